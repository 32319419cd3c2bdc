"""Facades: procedures find spaces and indexes by them, and read and change rows."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from iproto_server import Box, BoxError, Space, Tuple, pack
from iproto_server.codec.msgpack import Raw


@pytest.fixture
def box() -> Box:
    return Box()


def create(box: Box, name: str = "jobs") -> Space:
    space = box.schema.create_space(name)
    space.create_index("primary")
    return space


def find_in_all_ways(box: Box, space: Space) -> None:
    for _ in range(2):
        for which in (space.name, space.id):
            assert box.space[which].id == space.id
            assert box.space[which] is box.space[space.id]
        assert getattr(box.space, space.name) is box.space[space.id]


def test_a_space_is_found_by_name_and_number(box: Box) -> None:
    find_in_all_ways(box, create(box))
    find_in_all_ways(box, create(box, "others"))


@pytest.mark.parametrize("which", ["none", "", 999, -1, True, None, 1.5])
def test_no_space_is_found(box: Box, which: Any) -> None:
    create(box)
    for _ in range(2):
        with pytest.raises(BoxError, match="does not exist"):
            box.space[which]


def test_a_key_that_cannot_be_one(box: Box) -> None:
    with pytest.raises(TypeError):
        box.space[[]]  # type: ignore[index]


def test_names_of_python_are_no_spaces(box: Box) -> None:
    create(box, "__own__")
    assert box.space["__own__"].name == "__own__"
    for holder in (box.space, box.space["__own__"].index):
        with pytest.raises(AttributeError, match="__own__"):
            holder.__own__  # noqa: B018


def test_a_dropped_space_is_not_found(box: Box) -> None:
    space = create(box)
    find_in_all_ways(box, space)
    space.drop()
    for which in ("jobs", space.id):
        with pytest.raises(BoxError, match="does not exist"):
            box.space[which]
    other = create(box)
    other.insert([1])
    find_in_all_ways(box, other)
    assert box.space.jobs.len() == 1


def test_a_renamed_space_is_found_by_its_new_name(box: Box) -> None:
    space = create(box)
    find_in_all_ways(box, space)
    space.rename("tasks")
    find_in_all_ways(box, space)
    with pytest.raises(BoxError, match="Space 'jobs' does not exist"):
        box.space["jobs"]
    find_in_all_ways(box, create(box))


def test_a_space_of_an_undone_transaction_is_not_found(box: Box) -> None:
    space = create(box)
    for _ in range(2):
        box.begin()
        space.drop()
        made = create(box)
        find_in_all_ways(box, made)
        box.rollback()
        box.commit()
        find_in_all_ways(box, space)


def test_an_index_is_found_by_name_and_number(box: Box) -> None:
    space = create(box)
    space.create_index("second", parts=[(1, "string")])
    for number, name in enumerate(("primary", "second")):
        for index in (space.index[number], space.index[name], getattr(space.index, name)):
            assert (index.id, index.name, index.space) == (number, name, space)
    space.insert([1, "a"])
    assert space.index.second.get("a") == [1, "a"]


@pytest.mark.parametrize("which", ["none", "", 2, -1, 1.5])
def test_no_index_is_found(box: Box, which: Any) -> None:
    space = create(box)
    with pytest.raises(BoxError, match="No index"):
        space.index[which]


def test_indexes_follow_their_definition(box: Box) -> None:
    space = create(box)
    space.create_index("second", parts=[(1, "string")])
    space.index.second.rename("other")
    assert space.index.other.id == space.index[1].id == 1
    with pytest.raises(BoxError, match="No index 'second'"):
        space.index["second"]
    space.index["other"].drop()
    with pytest.raises(BoxError, match="No index #1"):
        space.index[1]
    space.drop()
    with pytest.raises(BoxError, match="does not exist"):
        space.index["primary"]


def read(row: Tuple, field: Any) -> object:
    try:
        return row[field]
    except LookupError as error:
        return type(error)


FIELDS = [5, "text", [1, {"a": None}], 1.5, None, "é" * 40, b"\0" * 300, True, -7]
WHICH = [0, 1, 2, 3, 4, 5, 6, 8, -1, 9, "id", "data", "last", "none"]


@pytest.mark.parametrize("first", WHICH)
def test_fields_of_a_row_are_read_in_any_order(box: Box, first: Any) -> None:
    names = ["id", "text", "data", "f3", "f4", "f5", "f6", "f7", "f8", "last"]
    space = box.schema.create_space(
        "jobs", format=[{"name": name, "is_nullable": name != "id"} for name in names]
    )
    space.create_index("primary", parts=[("id", "unsigned")])
    expected = Tuple(pack(FIELDS), space.core().format, FIELDS)
    space.insert(FIELDS)
    for second in WHICH:
        for found in (space.get(5), space.index[0].first(), space.update(5, [("=", 0, 5)])):
            assert found is not None
            for field in (first, second, first, second, 7, 0, 2, second, "id", "last"):
                assert read(found, field) == read(expected, field)
            assert found == FIELDS


@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_triggers_read_both_rows_of_a_change(box: Box, count: int) -> None:
    space = create(box)
    seen: list[Any] = []

    def trigger(old: Tuple | None, new: Tuple | None) -> None:
        rows = (old, new)
        seen.extend(None if row is None else [row[place] for place in range(count)] + [*row] for row in rows)

    space.on_replace(trigger)
    space.insert([1, "R", [7], 0])
    space.update(1, [("=", 1, "T"), ("=", 3, {"a": 1})])
    space.upsert([1, "x"], [("=", 2, None)])
    space.replace([1, "W", 0, 0])
    space.delete(1)
    rows = [None, [1, "R", [7], 0], [1, "T", [7], {"a": 1}], [1, "T", None, {"a": 1}], [1, "W", 0, 0], None]
    told = [None if row is None else row[:count] + row for row in rows]
    assert seen == [row for change in pairwise(told) for row in change]


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize(
    "operations",
    [
        [("=", 1, "a")],
        [("=", "text", "b"), ("=", 2, None)],
        [("=", 1, 2**63), ("=", 1, -1)],
        [("=", 2, b"x"), ("=", 3, True)],
        [("=", 2, 1.5), ("=", 1, "\udcff" * 40)],
        [("=", 1, [1, 2])],
        [("=", -1, 5)],
        [("=", 2, 1), ("+", 2, 4)],
        [("=", 2, Tuple(pack([1])))],
        [("=", True, 1)],
        [("=", "none", 1)],
        [("=", "text[1]", 1)],
        [("=", 2**40, 1)],
        [("=", 9, 1)],
        [("=", 1, 2**64)],
        [("=", 1, "\ud800")],
        [("==", 1, 1)],
        [("", 1, 1)],
        [(1, 1, 1)],
        [("=", 1)],
        [("=", 1, 2, 3)],
        [("=", 0, 2)],
        [("=", 1, place) for place in range(40)],
        [],
        ["=", 1, 1],
        [None],
    ],
)
def test_operations_of_procedures(kind: Any, operations: list[Any]) -> None:
    """What compiled code reads is what Python parses."""
    given = kind(kind(each) if isinstance(each, tuple) else each for each in operations)

    def update(space: Space, is_parsed: bool) -> object:
        core = space.core()
        return core.update(0, [1], core.parse_operations(given)) if is_parsed else space.update(1, given)

    told = []
    for is_parsed in (False, True):
        box = Box()
        space = box.schema.create_space("jobs", format=[("id", "unsigned"), "text", "more"])
        space.create_index("primary", parts=["id"])
        space.insert([1, "x", 0])
        try:
            result: object = update(space, is_parsed)
        except BoxError as error:
            result = error.code, error.message
        told.append((repr(result), [[*row] for row in space.select()]))
    assert told[0] == told[1]


@pytest.mark.parametrize(
    "value", [Raw(b"\x05"), [7], {"a": 1}, Tuple(pack([1])), True, "text", Decimal("1.5")]
)
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_row_that_was_stored_is_read(box: Box, kind: Any, value: Any) -> None:
    space, expected = create(box), [1, value.fields if isinstance(value, Tuple) else value, 3]
    if isinstance(value, Raw) and not isinstance(value, Tuple):
        expected[1] = 5
    seen: list[Any] = []
    space.on_replace(lambda old, new: seen.append((new[0], new[1], new[2], [*new], new.fields)))
    for store in (space.insert, space.replace):
        stored = store(kind([1, value, 3]))
        assert stored.fields == stored == [*stored] == expected
    space.upsert(kind([1, value, 3]), [("=", 2, 4)])
    assert seen == [(*row, row, row) for row in (expected, expected, [*expected[:2], 4])]
