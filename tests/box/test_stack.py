"""Endless recursion: at any depth, changes are made completely or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest

from iproto_server import Box, BoxError, ManualClock, Space
from iproto_server.box.txn.statement import Statement
from iproto_server.codec import msgpack as codec
from tests.box.boxes import accounts

DISTANCES = range(250)
"""Distances from the recursion limit at which changes begin; the last ones leave no stack."""


class KeepingJournal:
    """Records committed rows by space and primary key."""

    vclock: ClassVar[dict[int, int]] = {}

    def __init__(self) -> None:
        self.rows: dict[int, dict[bytes, bytes]] = {}
        self._count = 0

    def append(self, statements: Sequence[Statement]) -> bool:
        for statement in statements:
            rows = self.rows.setdefault(statement.space.id, {})
            if statement.new is None:
                del rows[statement.key]
            else:
                rows[statement.key] = statement.new
        self._count += len(statements)
        return False

    def position(self) -> int:
        return self._count


@pytest.fixture
def journal() -> KeepingJournal:
    return KeepingJournal()


@pytest.fixture
def box(journal: KeepingJournal) -> Box:
    return Box(journal, clock=ManualClock())


@pytest.fixture
def space(box: Box) -> Space:
    space = accounts(box)
    space.create_index("hash", type="HASH", parts=["name"])
    space.create_index("tags", parts=[{"field": 4, "type": "unsigned", "path": "[*]"}], unique=False)
    space.replace([1, "Ann", 10, None, [1, 2]])
    space.replace([2, "Bob", 20, None, [2, 3]])
    space.replace([3, "Cid", 20, None, []])
    return space


def contents(space: Space) -> tuple[list[Any], list[int], int]:
    """The sorted entries of all indexes, their number, and the size of the rows."""
    return (
        [sorted(list(row) for row in index.select()) for index in space.index],
        [len(index.tree) for index in space.index],
        space.bsize(),
    )


def dive(depth: int, function: Callable[[], object]) -> object:
    """Call a function at a given depth."""
    return function() if depth == 0 else dive(depth - 1, function)


def recurse() -> object:
    """Recurse without end."""
    return recurse()


def depths() -> Iterator[int]:
    """All depths of the stack at which changes are begun."""
    here, frame = 0, sys._getframe()
    while frame.f_back is not None:
        here, frame = here + 1, frame.f_back
    limit = sys.getrecursionlimit()
    return iter(range(max(limit - here - len(DISTANCES), 0), limit - here))


def check(box: Box, journal: KeepingJournal) -> None:
    """Check that all indexes hold the committed rows, and that no transaction runs."""
    assert not box.is_in_txn()
    assert box.transactions.nesting == 0
    for space in box.space:
        if space.id < 512:
            continue
        there = sorted(row.raw for row in space.select())
        assert there == sorted(journal.rows.get(space.id, {}).values())
        for index in space.index:
            fields = [codec.unpack(raw) for raw in there]
            size = sum(len(set(row[4])) for row in fields) if index.name == "tags" else len(there)
            assert len(index.tree) == size
        assert space.bsize() == sum(map(len, there))


def at_all_depths(box: Box, journal: KeepingJournal, change: Callable[[], object]) -> tuple[int, int]:
    """Make a change at all depths.

    Returns: How often it was made, and how often it was refused.
    """
    made = refused = 0
    limit = sys.getrecursionlimit()
    for depth in depths():
        try:
            dive(depth, change)
            made += 1
        except RecursionError:
            refused += 1
        assert sys.getrecursionlimit() == limit
        check(box, journal)
    return made, refused


ROW = [4, "Dan", 40, None, [3, 4, 5]]


def insert_and_delete(space: Space) -> None:
    space.insert(ROW)
    space.delete(4)


def update(space: Space) -> None:
    space.update(1, [("=", "name", "Zed"), ("+", "balance", 1), ("=", 4, [7, 2])])
    space.update(1, [("=", "name", "Ann"), ("=", 4, [1])])


def upsert(space: Space) -> None:
    space.upsert([2, "Bob", 20, None, []], [("+", "balance", 1)])


CHANGES: list[Callable[[Space], None]] = [insert_and_delete, update, upsert]
each_change = pytest.mark.parametrize("change", CHANGES)


@each_change
def test_changes_that_are_transactions(
    box: Box, journal: KeepingJournal, space: Space, change: Callable[[Space], None]
) -> None:
    def attempt() -> None:
        change(space)

    def put_right() -> None:
        if len(space) == 4:
            space.delete(4)

    made = refused = 0
    for depth in depths():
        try:
            dive(depth, attempt)
            made += 1
        except RecursionError:
            refused += 1
        check(box, journal)
        put_right()
    assert min(made, refused) > 20


@each_change
def test_changes_in_procedures(
    box: Box, journal: KeepingJournal, space: Space, change: Callable[[Space], None]
) -> None:
    def procedure() -> None:
        box.run(box.session.background, change, space)

    made, refused = at_all_depths(box, journal, procedure)
    assert min(made, refused) > 20


@each_change
def test_changes_of_procedures_that_recurse_and_catch(
    box: Box, journal: KeepingJournal, space: Space, change: Callable[[Space], None]
) -> None:
    before = contents(space)

    def attempt() -> None:
        space.replace([9, "Ina", 1, None, []])
        change(space)
        space.delete(9)
        raise ZeroDivisionError

    def catching() -> None:
        with pytest.raises((RecursionError, ZeroDivisionError)):
            box.atomic(attempt)

    def procedure(depth: int) -> None:
        dive(depth, catching)

    for depth in depths():
        try:
            box.run(box.session.background, procedure, depth)
        except RecursionError:
            assert depth > 0
        check(box, journal)
        assert contents(space) == before


@pytest.mark.parametrize("kind", ["on_replace", "before_replace"])
@pytest.mark.parametrize("is_caught", [False, True])
@each_change
def test_triggers_that_recurse(
    box: Box,
    journal: KeepingJournal,
    space: Space,
    change: Callable[[Space], None],
    kind: str,
    is_caught: bool,
) -> None:
    log = box.schema.create_space("log")
    log.create_index("primary")
    told: list[int] = []

    def trigger(old: object, new: object) -> object:
        log.replace([len(told)])
        return recurse()

    space.on_replace(lambda old, new: told.append(1), undo=lambda old, new: told.append(-1))
    getattr(space, kind)(trigger)
    before = contents(space)

    def attempt() -> None:
        if is_caught:
            box.run(box.session.background, catching)
        else:
            change(space)

    def catching() -> None:
        try:
            change(space)
        except RecursionError:
            return
        raise AssertionError

    at_all_depths(box, journal, attempt)
    assert (contents(space), len(log), sum(told)) == (before, 0, 0)


def test_blocks_within_each_other(box: Box, journal: KeepingJournal, space: Space) -> None:
    def nest(number: int) -> None:
        with box.in_transaction():
            space.replace([10 + number, str(number), number, None, [number]])
            if number:
                nest(number - 1)

    before = contents(space)

    def procedure() -> None:
        nest(40)
        raise ZeroDivisionError

    def attempt() -> None:
        with pytest.raises((RecursionError, ZeroDivisionError)):
            box.run(box.session.background, procedure)

    at_all_depths(box, journal, attempt)
    assert contents(space) == before


def test_going_back_from_far_down(box: Box, journal: KeepingJournal, space: Space) -> None:
    before = contents(space)

    def change() -> None:
        insert_and_delete(space)
        savepoint = box.savepoint()
        space.delete(1)
        box.rollback_to_savepoint(savepoint)
        update(space)
        space.delete(2)
        box.rollback()
        raise ZeroDivisionError

    def attempt() -> None:
        with pytest.raises((RecursionError, ZeroDivisionError)):
            box.run(box.session.background, lambda: dive(10, change))

    at_all_depths(box, journal, attempt)
    assert contents(space) == before


def test_definitions(box: Box, journal: KeepingJournal, space: Space) -> None:
    def names() -> list[list[Any]]:
        return [[list(row) for row in box.space[name].select()] for name in ("_space", "_index", "_truncate")]

    def define() -> None:
        made = box.schema.create_space("made", format=[("id", "unsigned")])
        made.create_index("primary", parts=["id"], sequence=True)
        made.insert([None])
        raise ZeroDivisionError

    def catching() -> None:
        with pytest.raises((RecursionError, ZeroDivisionError)):
            box.atomic(define)

    def alter() -> None:
        with pytest.raises((RecursionError, ZeroDivisionError)):
            box.atomic(drop)

    def drop() -> None:
        space.index["balance"].alter(parts=["balance", "name"])
        space.truncate()
        space.drop()
        raise ZeroDivisionError

    before = names(), contents(space)
    at_all_depths(box, journal, catching)
    assert (names(), contents(space)) == before
    at_all_depths(box, journal, alter)
    assert (names(), contents(space)) == before
    assert "made" not in box.space


def test_rows_of_another_s_transaction_are_taken_out_wholly(
    box: Box, journal: KeepingJournal, space: Space
) -> None:
    before = contents(space)
    transaction = box.interactive.begin()

    def request(function: Callable[[], object]) -> None:
        box.interactive.resume(transaction)
        try:
            function()
        finally:
            box.interactive.suspend()

    request(lambda: space.insert(ROW))
    request(lambda: space.delete(1))
    request(lambda: space.update(3, [("=", "name", "Zed"), ("=", 4, [8, 9])]))

    for depth in depths():
        request(lambda: None)  # its rows are in the space again
        try:
            assert dive(depth, lambda: contents(space)) == before
        except RecursionError:
            assert depth > 0
        assert contents(space) == before
        check(box, journal)
    box.interactive.commit(transaction)
    check(box, journal)
    assert [row[0] for row in space.select()] == [2, 3, 4]


def test_an_undo_that_recurses_stops_at_no_statement(
    box: Box, journal: KeepingJournal, space: Space, caplog: pytest.LogCaptureFixture
) -> None:
    before = contents(space)
    space.on_replace(lambda old, new: None, undo=lambda old, new: recurse())

    def procedure() -> None:
        insert_and_delete(space)
        raise ZeroDivisionError

    def attempt() -> None:
        with pytest.raises((RecursionError, ZeroDivisionError)):
            box.run(box.session.background, procedure)

    at_all_depths(box, journal, attempt)
    assert contents(space) == before
    assert {record.message for record in caplog.records} == {"a trigger's undo failed"}


def test_a_callback_that_changes_rows_again_and_again(
    box: Box, journal: KeepingJournal, space: Space, caplog: pytest.LogCaptureFixture
) -> None:
    def trigger(old: object, new: object) -> None:
        box.on_commit(lambda: space.update(1, [("+", "balance", 1)]))

    space.on_replace(trigger)
    space.update(1, [("+", "balance", 1)])
    check(box, journal)
    assert caplog.records
    assert space.get(1)[2] > 20  # type: ignore[index]
    space.on_replace(None, trigger)
    with pytest.raises(BoxError):
        space.insert(list(space.get(1) or ()))
