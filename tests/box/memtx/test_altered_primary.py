"""Changes of the primary key rebuild all other indexes, because these contain primary keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from iproto_server import Box, BoxError, Space
from iproto_server.box.memtx.consistency import faults_of
from iproto_server.box.memtx.read_view import ReadView
from iproto_server.codec import msgpack as codec
from iproto_server.errors import ErrorCode
from tests.box.boxes import new_box, refused, rows, state
from tests.box.txn.interactive_clients import CONFLICT, Client, UnwrittenJournal, others
from tests.box.txn.test_interactive import YIELDED

ROWS = [
    [6, "b", 4, 1, 2, [1, 2]],
    [6, "c", 4, 1, 2, [2, 3]],
    [6, "b", 5, 1, 2, [1]],
    [7, "b", 4, 1, None, []],
    [5, "d", 4, 1, None, [3]],
]
"""Values of each of the first three fields repeat; their combinations are unique."""

WHOLE = [0, 1, 2]
"""The fields that identify rows."""

SECONDARIES: dict[str, dict[str, Any]] = {
    "shares the first part": {"parts": [1, 0], "unique": False},
    "shares the last part": {"parts": [1, 2], "unique": False},
    "ends with the old key": {"parts": [3, 0, 2], "unique": False},
    "ends with the whole key": {"parts": [3, 0, 1, 2], "unique": False},
    "shares nothing": {"parts": [3], "unique": False},
    "nullable": {"parts": [4, 0], "unique": False},
    "unique and nullable": {"parts": [4, 0, 1, 2], "unique": True},
    "unique": {"parts": [2, 1, 0], "unique": True},
    "hash": {"parts": [1, 2, 0], "unique": True, "type": "hash"},
    "multikey": {"parts": [5], "unique": False},
}

ONE = {name: options for name, options in SECONDARIES.items() if name == "shares the first part"}

ALTERATIONS = [
    ([0, 2, 1], [0, 1, 2]),
    ([0, 1, 2], [2, 1, 0]),
    ([0, 3, 1, 2], [0, 1, 2]),
    ([0, 1, 2], [1, 0, 2, 3]),
    ([2, 0, 1], [1, 2, 0]),
]


def part(number: int) -> dict[str, Any]:
    """The part of an index on one of the fields."""
    kind = "string" if number == 1 else "unsigned"
    found: dict[str, Any] = {"field": number, "type": kind}
    if number == 4:
        found["is_nullable"] = True
    if number == 5:
        found["path"] = "[*]"
    return found


def parts(numbers: list[int]) -> list[dict[str, Any]]:
    """The parts of an index."""
    return [part(number) for number in numbers]


def new_space(box: Box, primary: list[int], kind: str = "tree", secondaries: Any = None) -> Space:
    """A space with a primary key of some fields, and secondary indexes of every kind."""
    space = box.schema.create_space("t")
    space.create_index("primary", type=kind, parts=parts(primary))
    for name, options in (SECONDARIES if secondaries is None else secondaries).items():
        space.create_index(name, **{**options, "parts": parts(options["parts"])})
    return space


def faults(box: Box, space: Space) -> list[str]:
    """The faults of a space's indexes."""
    return list(faults_of(box.catalog.space(space.id)))


def expected(stored: list[list[Any]], numbers: list[int], primary: list[int]) -> list[list[Any]]:
    """The rows in the order of a tree: by its own parts, nil first, then by those of the primary key."""
    order = [*numbers, *(number for number in primary if number not in numbers)]
    found = [(row, row) for row in stored]
    if numbers == [5]:
        found = [(row, [*row[:5], element]) for row in stored for element in row[5]]
    found.sort(key=lambda pair: [(pair[1][number] is not None, pair[1][number] or 0) for number in order])
    return [row for row, _ in found]


def check(box: Box, space: Space, stored: list[list[Any]], primary: list[int]) -> None:
    """Check that each index has all rows in its order, without faults."""
    assert faults(box, space) == []
    for index in space.index:
        numbers = primary if index.name == "primary" else SECONDARIES[index.name]["parts"]
        found, wanted = [list(row) for row in index.select()], expected(stored, numbers, primary)
        if index.type == "HASH":
            found, wanted = sorted(found, key=repr), sorted(wanted, key=repr)
        assert found == wanted, index.name


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.mark.parametrize("before", [0, 3], ids=["without rows", "with rows"])
@pytest.mark.parametrize(("old", "new"), ALTERATIONS)
class TestEverySecondaryIndexIsMadeAnew:
    def test_rows_that_come_change_and_go_are_in_it(
        self, box: Box, old: list[int], new: list[int], before: int
    ) -> None:
        space = new_space(box, old)
        for row in ROWS[:before]:
            space.insert(row)
        space.index.primary.alter(parts=parts(new))
        check(box, space, ROWS[:before], new)
        for row in ROWS[before:]:
            space.insert(row)
        check(box, space, ROWS, new)
        key = [ROWS[0][number] for number in new]
        space.update(key, [("=", 5, [4, 5])])
        changed = [[*ROWS[0][:5], [4, 5]], *ROWS[1:]]
        check(box, space, changed, new)
        space.delete(key)
        check(box, space, changed[1:], new)

    def test_a_tree_becomes_a_hash(self, box: Box, old: list[int], new: list[int], before: int) -> None:
        space = new_space(box, old)
        for row in ROWS[:before]:
            space.insert(row)
        space.index.primary.alter(parts=parts(new), type="hash")
        for row in ROWS[before:]:
            space.insert(row)
        check(box, space, ROWS, new)

    def test_it_is_as_it_was_when_that_is_undone(
        self, box: Box, old: list[int], new: list[int], before: int
    ) -> None:
        space = new_space(box, old)
        for row in ROWS[:before]:
            space.insert(row)
        was = state(space)
        box.begin()
        space.replace([1, "x", 1, 1, 1, [9]])
        space.index.primary.alter(parts=parts(new))
        for row in ROWS[before:]:
            space.insert(row)
        box.rollback()
        assert state(space) == was
        for row in ROWS[before:]:
            space.insert(row)
        check(box, space, ROWS, old)

    def test_it_is_as_it_was_when_that_cannot_be_written(
        self, box: Box, old: list[int], new: list[int], before: int
    ) -> None:
        space = new_space(box, old)
        for row in ROWS[:before]:
            space.insert(row)
        was = state(space)
        box.transactions.journal = UnwrittenJournal()
        space.replace([1, "x", 1, 1, 1, [9]])
        space.index.primary.alter(parts=parts(new))
        for row in ROWS[before:]:
            space.insert(row)
        box.transactions.undo(box.transactions.take_unwritten())
        assert state(space) == was
        for row in ROWS[before:]:
            space.insert(row)
        check(box, space, ROWS, old)


def test_the_parts_of_the_old_key_tell_rows_apart_no_longer(box: Box) -> None:
    """Three rows with equal values in the index and in the rest of the old key."""
    space = new_space(
        box, [0, 3], secondaries={"shares the first part": SECONDARIES["shares the first part"]}
    )
    space.index.primary.alter(parts=parts(WHOLE))
    same = [[6, "b", number, 1, 2, []] for number in range(3)]
    for row in same:
        space.insert(row)
    check(box, space, same, WHOLE)


def test_a_part_of_the_old_key_may_have_been_of_any_type(box: Box) -> None:
    """A field that was a UUID in the old key has other types in new rows."""
    space = box.schema.create_space("t")
    space.create_index("primary", parts=[(0, "unsigned"), (4, "uuid")])
    space.create_index("other", parts=[(1, "string")], unique=False)
    space.index.primary.alter(parts=[(0, "unsigned")])
    space.insert([6, "b", 4, True, 2])
    assert rows(space, 1) == [[6, "b", 4, True, 2]]
    assert faults(box, space) == []


def test_a_row_that_the_new_key_refuses_leaves_everything_as_it_was(box: Box) -> None:
    space = new_space(box, WHOLE)
    for row in ROWS:
        space.insert(row)
    was = state(space)
    assert refused(space.index.primary.alter, parts=parts([0])) == (
        ErrorCode.TUPLE_FOUND,
        "Duplicate key exists in unique index 'primary' in space 't'",
    )
    assert (
        refused(space.index.primary.alter, parts=[(0, "unsigned"), (4, "unsigned")])[0]
        == ErrorCode.FIELD_TYPE
    )
    assert state(space) == was
    check(box, space, ROWS, WHOLE)


class TestTransactionsOfSeveralRequests:
    def test_one_that_is_open_is_ended_and_leaves_nothing_in_the_indexes(self, box: Box) -> None:
        space = new_space(box, [0, 2, 1])
        for row in ROWS[:3]:
            space.insert(row)
        client = Client(box)
        client.do(space.insert, ROWS[3])
        assert client.do(rows, space, 1) == expected(ROWS[:4], [1, 0], [0, 2, 1])
        others(box, lambda: space.index.primary.alter(parts=parts(WHOLE)))
        check(box, space, ROWS[:3], WHOLE)
        assert refused(client.commit) == CONFLICT
        for row in ROWS[3:]:
            space.insert(row)
        check(box, space, ROWS, WHOLE)

    def test_one_that_alters_the_key_itself_cannot_wait(self, box: Box) -> None:
        space = new_space(box, [0, 2, 1])
        space.insert(ROWS[0])
        client = Client(box)
        client.do(space.insert, ROWS[1])
        client.do(space.index.primary.alter, parts=parts(WHOLE))
        check(box, space, ROWS[:1], [0, 2, 1])
        assert refused(client.commit) == YIELDED
        space.index.primary.alter(parts=parts(WHOLE))
        for row in ROWS[1:]:
            space.insert(row)
        check(box, space, ROWS, WHOLE)


@pytest.mark.parametrize("kind", ["tree", "hash"])
def test_a_read_view_shows_the_rows_as_they_were(box: Box, kind: str) -> None:
    space = new_space(box, [0, 2, 1], kind)
    for row in ROWS[:3]:
        space.insert(row)
    core = box.catalog.space(space.id)
    before = list(core.rows())
    with ReadView([core]) as view:
        space.delete([6, 4, "b"])
        space.index.primary.alter(parts=parts(WHOLE))
        space.replace(ROWS[3])
        shown = [row for _, _, found in view.slices() for row in found]
    assert sorted(shown) == sorted(before)
    check(box, space, ROWS[1:4], WHOLE)


def walked(walk: Iterator[Any]) -> list[list[Any]]:
    """The rest of a walk."""
    return [list(row) for row in walk]


class TestWalksThatAreUnderWay:
    """As in Tarantool, iterators end when their index is replaced, and not before."""

    @pytest.fixture
    def space(self, box: Box) -> Space:
        space = new_space(box, [0, 2, 1], secondaries={"shares nothing": SECONDARIES["shares nothing"]})
        for row in ROWS:
            space.insert(row)
        return space

    @pytest.mark.parametrize("number", [0, 1])
    def test_they_end_when_the_primary_key_is_altered(self, space: Space, number: int) -> None:
        walk, unbegun = iter(space.index[number].pairs()), space.index[number].pairs()
        next(walk)
        space.index.primary.alter(parts=parts(WHOLE))
        assert walked(walk) == walked(unbegun) == []

    @pytest.mark.parametrize("number", [0, 1])
    def test_they_end_when_the_space_is_emptied(self, space: Space, number: int) -> None:
        walk = iter(space.index[number].pairs())
        next(walk)
        space.truncate()
        space.insert(ROWS[0])
        assert walked(walk) == []

    def test_they_end_when_their_index_is_dropped(self, space: Space) -> None:
        walk = iter(space.index[1].pairs())
        next(walk)
        space.index[1].drop()
        assert walked(walk) == []

    @pytest.mark.parametrize("number", [0, 1])
    def test_they_go_on_when_it_is_only_called_otherwise(self, space: Space, number: int) -> None:
        walk = iter(space.index[number].pairs())
        next(walk)
        space.index[number].alter(name="renamed")
        space.create_index("one more", parts=parts([2]), unique=False)
        assert walked(walk) == rows(space, number)[1:]

    def test_they_go_on_when_what_ended_them_is_undone(self, box: Box, space: Space) -> None:
        walk = iter(space.index[1].pairs())
        next(walk)
        box.begin()
        space.index.primary.alter(parts=parts(WHOLE))
        box.rollback()
        assert walked(walk) == rows(space, 1)[1:]


def test_faults_of_a_layout_for_another_key(box: Box) -> None:
    """In an empty space, an index with the wrong layout has no wrong entries yet."""
    space = new_space(box, WHOLE, secondaries=ONE)
    core = box.catalog.space(space.id)
    outdated = core.index(1).empty_copy()
    space.index.primary.alter(parts=parts([1, 2, 3]))
    core.set_indexes({0: core.index(0), 1: outdated})
    assert faults(box, space) == ["index 'shares the first part' is laid out for another primary key"]
    assert codec.unpack(space.insert(ROWS[0]).raw) == ROWS[0]
    assert faults(box, space)[0] == "index 'shares the first part' does not lead to row ['b', 4, 1]"
    with pytest.raises(BoxError):
        space.insert(ROWS[0])
