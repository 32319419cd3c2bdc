"""Pagination: continuing after a row or a position, as in Tarantool 2.11."""

from __future__ import annotations

import base64
from typing import Any

import msgpack
import pytest

from iproto_server import Box, Space
from iproto_server.box.memtx.pagination import Page, select_page
from iproto_server.errors import ErrorCode
from tests.box.boxes import new_box, refused

EQ, REQ, ALL, LT, LE, GE, GT = range(7)
INVALID = (ErrorCode.ITERATOR_POSITION, "Iterator position is invalid")


def position(*values: Any) -> str:
    """A position in Tarantool's format."""
    return base64.b64encode(msgpack.packb(list(values))).rstrip(b"=").decode()


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.fixture
def space(box: Box) -> Space:
    """Eleven rows; three each share the value of the second field, and every fourth has none in the third."""
    space = box.schema.create_space("t")
    space.create_index("pk")
    space.create_index("group", parts=[{"field": 1, "type": "unsigned"}], unique=False)
    space.create_index("rare", parts=[{"field": 2, "type": "string", "is_nullable": True}])
    space.create_index("hash", parts=[0], type="hash")
    for number in range(1, 12):
        space.insert([number, number // 3, None if number % 4 == 0 else f"name {number}"])
    return space


def page(space: Space, index: str, iterator: int, key: list[Any], limit: int, after: str | None) -> Page:
    core = space.core()
    number = core.index_by_name(index).id
    return select_page(core, number, iterator, 0, limit, key, after_position=after, fetch_position=True)


WALKS = [
    *[(index, iterator, []) for index in ("pk", "group", "rare") for iterator in (EQ, REQ, ALL)],
    *[(index, iterator, [2]) for index in ("pk", "group") for iterator in (EQ, REQ, LT, LE, GE, GT)],
    *[("rare", iterator, ["name 5"]) for iterator in (EQ, REQ, LT, LE, GE, GT)],
    *[("rare", iterator, [None]) for iterator in (EQ, REQ, LT, LE, GE, GT)],
]


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize(("index", "iterator", "key"), WALKS)
def test_pages_are_the_whole_in_parts(
    space: Space, index: str, iterator: int, key: list[Any], limit: int
) -> None:
    core = space.core()
    number = core.index_by_name(index).id
    whole = core.select(number, iterator, 0, 100, key)
    by_position: list[bytes] = []
    after: str | None = None
    while (found := page(space, index, iterator, key, limit, after)).rows:
        by_position += found.rows
        after = found.position
    assert by_position == whole
    assert found.position is None
    by_row: list[bytes] = []
    last: bytes | None = None
    while rows := select_page(core, number, iterator, 0, limit, key, after_row=last).rows:
        by_row += rows
        last = rows[-1]
    assert by_row == whole


def test_a_position_is_the_key_with_the_primary_key(space: Space) -> None:
    assert page(space, "pk", ALL, [], 2, None).position == position(2)
    assert page(space, "group", ALL, [], 4, None).position == position(1, 4)
    assert page(space, "rare", EQ, [None], 1, None).position == position(None, 4)
    assert page(space, "rare", EQ, ["name 1"], 1, None).position == position("name 1", 1)


def test_the_row_of_a_position_may_be_gone(space: Space) -> None:
    after = page(space, "group", ALL, [], 4, None).position
    space.delete(4)
    assert page(space, "group", ALL, [], 1, after).rows == [space.get(5).raw]  # type: ignore[union-attr]


def test_an_empty_position_is_the_beginning(space: Space) -> None:
    assert page(space, "pk", ALL, [], 2, "") == page(space, "pk", ALL, [], 2, None)


def test_the_offset_counts_from_the_position(space: Space) -> None:
    rows = select_page(space.core(), 0, ALL, 2, 1, [], after_position=position(3)).rows
    assert rows == [space.get(6).raw]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("iterator", "key", "after"),
    [
        (ALL, [], "!!!"),
        (ALL, [], base64.b64encode(b"\x91").decode()),
        (ALL, [], base64.b64encode(b"\x01").decode()),
        (ALL, [], base64.b64encode(b"\x91\x01\x01").decode()),
        (ALL, [], "näh"),
        (ALL, [], position()),
        (ALL, [], position(1, 2)),
        (ALL, [], position("one")),
        (ALL, [], position(None)),
        (EQ, [1], position(2)),
        (REQ, [1], position(2)),
        (GE, [5], position(4)),
        (GT, [5], position(4)),
        (LE, [5], position(6)),
        (LT, [5], position(6)),
    ],
)
def test_a_position_that_cannot_be_of_this_select_is_invalid(
    space: Space, iterator: int, key: list[Any], after: str
) -> None:
    assert refused(page, space, "pk", iterator, key, 1, after) == INVALID


@pytest.mark.parametrize("row", [[], ["one"], [None, 1]])
def test_a_row_that_cannot_be_in_the_index_has_no_position(space: Space, row: list[Any]) -> None:
    assert refused(space.primary.tuple_pos, row) == INVALID
    assert refused(space.primary.select, after=row) == INVALID


def test_a_hash_index_has_no_pages(space: Space) -> None:
    text = "Index 'hash' (HASH) of space 't' (memtx) does not support pagination"
    assert refused(page, space, "hash", ALL, [], 1, None) == (ErrorCode.UNSUPPORTED_INDEX_FEATURE, text)
    assert refused(space.index["hash"].select_page) == (ErrorCode.UNSUPPORTED_INDEX_FEATURE, text)
    core = space.core()
    assert select_page(core, 3, EQ, 0, 1, [5]).rows == [space.get(5).raw]  # type: ignore[union-attr]


def test_nor_has_a_view(box: Box) -> None:
    text = "Index 'primary' (TREE) of space '_vspace' (sysview) does not support pagination"
    assert refused(page, box.space["_vspace"], "primary", ALL, [], 1, None)[1] == text


def test_procedures_go_on_behind_rows_and_positions(space: Space) -> None:
    first = space.select(limit=2)
    assert [row[0] for row in space.select(limit=2, after=first[-1])] == [3, 4]
    assert [row[0] for row in space.select(limit=2, after=[9])] == [10, 11]
    rows, after = space.primary.select_page(limit=2, after=[4])
    assert ([row[0] for row in rows], after) == ([5, 6], position(6))
    assert space.primary.select_page(12) == ([], None)
    group = space.index["group"]
    assert [row[0] for row in group.select(1, after=group.tuple_pos(first[-1] and [4, 1]))] == [5]
