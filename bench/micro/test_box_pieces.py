"""What the box does to rows: the ordered tree, updates, and whole transactions.

    make bench-pieces

Each round does its piece some thousand times; pytest-benchmark shows a round's time, `make bench-pieces` that
of one. The data of rows has 100 bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.micro.measuring import COUNT, measure
from bench.micro.test_hot_path import PAYLOAD, Pipeline, plain_space
from iproto_server.box.api.space import Space
from iproto_server.box.index.sorted_map import Tree
from iproto_server.box.txn.statement import Statement
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.box.update import apply_update, operations_from_python, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog

STANDING = 50_000
"""How many entries a tree has beside those that come and go."""

CHANGED = 10_000
"""How many come and go."""

SEED = 1
STATEMENTS = 10
"""How many rows the larger transactions change."""

ROW = [123_456, "ready", 1_700_000_000.5, PAYLOAD, {"priority": 3, "owner": "bench"}]

OPERATIONS: dict[str, list[tuple[object, ...]]] = {
    "assignment": [("=", 1, "taken")],
    "two assignments": [("=", 1, "taken"), ("=", 2, 1_700_000_001.5)],
    "addition": [("+", 0, 1)],
    "insertion": [("!", 1, "new")],
    "splice": [(":", 3, 10, 5, "spliced")],
    "in a map": [("=", "[5].priority", 4)],
}


def key(number: int) -> bytes:
    """A key such as an index of numbers has."""
    return b"\x10" + number.to_bytes(8, "big")


def filled(numbers: range) -> Tree:
    """A tree with these keys."""
    tree = Tree()
    tree.load([key(number) for number in numbers], [b"row"] * len(numbers))
    return tree


def shuffled(numbers: range) -> list[bytes]:
    """The keys in an order that is always the same."""
    keys = [key(number) for number in numbers]
    random.Random(SEED).shuffle(keys)
    return keys


@pytest.mark.parametrize("order", ["ascending", "random"])
def test_tree_insert(benchmark: BenchmarkFixture, order: str) -> None:
    """Adding one entry, behind all others or anywhere among them, to a tree of 50,000."""
    if order == "ascending":
        standing, keys = range(STANDING), [key(STANDING + number) for number in range(CHANGED)]
    else:
        step = STANDING // CHANGED
        # The odd ones are missing.
        standing, keys = range(0, 2 * STANDING, 2), shuffled(range(1, 2 * STANDING, 2 * step))

    def insert(tree: Tree) -> None:
        add = tree.insert
        for each in keys:
            add(each, b"row")

    measure(benchmark, insert, lambda: (filled(standing),), count=CHANGED)


@pytest.mark.parametrize("question", ["first", "first_value", "get"])
def test_tree_find(benchmark: BenchmarkFixture, question: str) -> None:
    """Finding one entry among 50,000: the first from a key on, the first with a prefix, or that of a key."""
    keys = shuffled(range(STANDING))[:CHANGED]

    def find(tree: Tree) -> None:
        ask = getattr(tree, question)
        for each in keys:
            ask(each)

    measure(benchmark, find, lambda: (filled(range(STANDING)),), count=CHANGED)


@pytest.mark.parametrize("order", ["ascending", "random"])
def test_tree_delete(benchmark: BenchmarkFixture, order: str) -> None:
    """Removing one entry of 50,000, in front of all others or anywhere among them."""
    keys = list(map(key, range(CHANGED))) if order == "ascending" else shuffled(range(STANDING))[:CHANGED]

    def delete(tree: Tree) -> None:
        for each in keys:
            del tree[each]

    measure(benchmark, delete, lambda: (filled(range(STANDING)),), count=CHANGED)


@pytest.mark.parametrize("kind", OPERATIONS)
def test_update(benchmark: BenchmarkFixture, kind: str) -> None:
    """Making one new row of an old one, by operations that have been read."""
    operations = operations_from_python(OPERATIONS[kind], {})
    raws = [codec.pack([number, *ROW[1:]]) for number in range(COUNT)]

    def update() -> None:
        for raw in raws:
            apply_update(operations, raw)

    measure(benchmark, update, tuple)


@pytest.mark.parametrize("opcode", ["=", "+"])
def test_update_read(benchmark: BenchmarkFixture, opcode: str) -> None:
    """Reading the operations of one UPDATE, each time with another argument."""
    raws = [codec.pack([[opcode, 1, number]]) for number in range(COUNT)]

    def read() -> None:
        for raw in raws:
            parse_update(raw, {})

    measure(benchmark, read, tuple)


class Database:
    """A space with one index whose changes are put aside to be written, which is not done here.

    The box is one with a dispatcher, as in a server: compiled code looks for the box's classes when that is
    made, and leaves commits to Python before.
    """

    def __init__(self, directory: Path) -> None:
        pipeline = Pipeline()
        self.box = pipeline.box
        plain_space(pipeline)
        self.space: Space = self.box.space.plain
        self.transactions: TransactionManager = self.box.transactions
        self.transactions.journal = WriteAheadLog(directory, WalMode.WRITE, UUID(int=1), 1, VClock())

    def in_one(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function as one transaction."""
        self.box.run(self.box.session.background, function, *arguments)


def test_change(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """One row inserted as a transaction of its own, with its row for the log."""

    def insert(database: Database) -> None:
        add = database.space.insert
        for number in range(COUNT):
            add([number, PAYLOAD])

    measure(benchmark, insert, lambda: (Database(tmp_path),))


def test_transaction(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Ten rows inserted in one transaction, with its rows for the log; the time is a transaction's."""
    count = COUNT // STATEMENTS

    def insert_some(space: Space, first: int) -> None:
        for number in range(first, first + STATEMENTS):
            space.insert([number, PAYLOAD])

    def insert(database: Database) -> None:
        for number in range(count):
            database.in_one(insert_some, database.space, number * STATEMENTS)

    measure(benchmark, insert, lambda: (Database(tmp_path),), count=count)


@pytest.mark.parametrize("size", [1, STATEMENTS])
def test_commit(benchmark: BenchmarkFixture, tmp_path: Path, size: int) -> None:
    """The beginning and the end of one transaction that has changed so many rows, without the changes."""
    count = COUNT // size

    def setup() -> tuple[TransactionManager, list[list[Statement]]]:
        database = Database(tmp_path)
        transactions = database.transactions
        prepared: list[list[Statement]] = []

        def change(first: int) -> None:
            for number in range(first, first + size):
                database.space.insert([number, PAYLOAD])
            assert transactions.statements is not None
            prepared.append(list(transactions.statements))

        for first in range(0, COUNT, size):
            database.in_one(change, first)
        transactions.take_unwritten()
        return transactions, prepared

    def commit(transactions: TransactionManager, prepared: list[list[Statement]]) -> None:
        for statements in prepared:
            transactions.begin()
            transactions.statements = statements
            transactions.commit()

    measure(benchmark, commit, setup, count=count)
