"""Microbenchmarks of the box: the sorted map, updates, and whole transactions.

    make bench-pieces

Each round makes thousands of calls; pytest-benchmark shows the time of a round, `make bench-pieces` that of
one call. Rows have 100 bytes of data.
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
from iproto_server.box.txn.journal import Journal
from iproto_server.box.update import apply_update, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.native._native import Transaction, Tree
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog

STANDING = 50_000
"""The number of permanent entries of a tree."""

CHANGED = 10_000
"""The number of entries that are inserted or deleted."""

SEED = 1
STATEMENTS = 10
"""The number of rows that the larger transactions change."""

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
    """Encode a key like those of a numeric index."""
    return b"\x10" + number.to_bytes(8, "big")


def filled(numbers: range) -> Tree:
    """Create a tree with these keys."""
    tree = Tree()
    tree.load([key(number) for number in numbers], [b"row"] * len(numbers))
    return tree


def shuffled(numbers: range) -> list[bytes]:
    """Shuffle the keys, always in the same way."""
    keys = [key(number) for number in numbers]
    random.Random(SEED).shuffle(keys)
    return keys


@pytest.mark.parametrize("order", ["ascending", "random"])
def test_tree_insert(benchmark: BenchmarkFixture, order: str) -> None:
    """Insert one entry, at the end or anywhere, into a tree of 50,000."""
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
    """Find one entry among 50,000: the first from a key on, the first with a prefix, or that of a key."""
    keys = shuffled(range(STANDING))[:CHANGED]

    def find(tree: Tree) -> None:
        ask = getattr(tree, question)
        for each in keys:
            ask(each)

    measure(benchmark, find, lambda: (filled(range(STANDING)),), count=CHANGED)


@pytest.mark.parametrize("order", ["ascending", "random"])
def test_tree_delete(benchmark: BenchmarkFixture, order: str) -> None:
    """Delete one of 50,000 entries, at the beginning or anywhere."""
    keys = list(map(key, range(CHANGED))) if order == "ascending" else shuffled(range(STANDING))[:CHANGED]

    def delete(tree: Tree) -> None:
        for each in keys:
            del tree[each]

    measure(benchmark, delete, lambda: (filled(range(STANDING)),), count=CHANGED)


@pytest.mark.parametrize("kind", OPERATIONS)
def test_update(benchmark: BenchmarkFixture, kind: str) -> None:
    """Create a row from an old one by decoded operations of a request."""
    operations = parse_update(codec.pack(OPERATIONS[kind]), {}, deferred=True)
    raws = [codec.pack([number, *ROW[1:]]) for number in range(COUNT)]

    def update() -> None:
        for raw in raws:
            apply_update(operations, raw)

    measure(benchmark, update, tuple)


@pytest.mark.parametrize("opcode", ["=", "+"])
def test_update_read(benchmark: BenchmarkFixture, opcode: str) -> None:
    """Decode the operations of one UPDATE, each time with another argument."""
    raws = [codec.pack([[opcode, 1, number]]) for number in range(COUNT)]

    def read() -> None:
        for raw in raws:
            parse_update(raw, {})

    measure(benchmark, read, tuple)


class Database:
    """A space with one index whose changes are collected, but not logged.

    The box has a dispatcher, as in a server: compiled code looks up the box's classes when the dispatcher is
    created, and until then leaves commits to Python.
    """

    def __init__(self, directory: Path) -> None:
        pipeline = Pipeline()
        self.box = pipeline.box
        plain_space(pipeline)
        self.space: Space = self.box.space.plain
        self.transactions = self.box.transactions
        self.transactions.journal = WriteAheadLog(directory, WalMode.WRITE, UUID(int=1), 1, VClock())

    def in_one(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in one transaction."""
        self.box.run(self.box.session.background, function, *arguments)


def test_change(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Insert one row in a transaction, including its row for the log."""

    def insert(database: Database) -> None:
        add = database.space.insert
        for number in range(COUNT):
            add([number, PAYLOAD])

    measure(benchmark, insert, lambda: (Database(tmp_path),))


def test_transaction(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    """Insert ten rows in one transaction, including its rows for the log; the time is per transaction."""
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
    """Append a transaction to the log, without the changes themselves."""
    count = COUNT // size

    def setup() -> tuple[Journal, list[Transaction]]:
        database = Database(tmp_path)
        transactions = database.transactions

        def change(first: int) -> None:
            for number in range(first, first + size):
                database.space.insert([number, PAYLOAD])

        for first in range(0, COUNT, size):
            database.in_one(change, first)
        return transactions.journal, transactions.take_unwritten()

    def commit(journal: Journal, prepared: list[Transaction]) -> None:
        for transaction in prepared:
            journal.append(transaction)

    measure(benchmark, commit, setup, count=count)
