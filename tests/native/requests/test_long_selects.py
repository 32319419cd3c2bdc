"""Selects of about as many rows as compiled code answers by itself; Python answers longer ones."""

from __future__ import annotations

import pytest

from iproto_server import Box, Space

ROWS = 2500
LIMITS = [1, 2, 999, 1000, 1001, ROWS, 2**32 - 1]
OFFSETS = [0, 1, 999, 1000, 1001, ROWS - 1, ROWS, ROWS + 1]


@pytest.fixture(scope="module")
def space() -> Space:
    """Rows [number, group], of which each of five groups has every fifth."""
    space = Box().schema.create_space("rows", format=[("number", "unsigned"), ("group", "string")])
    space.create_index("primary", parts=["number"])
    space.create_index("group", parts=["group"], unique=False)
    for number in range(ROWS):
        space.insert([number, "abcde"[number % 5]])
    return space


@pytest.mark.parametrize("iterator", ["ALL", "EQ", "GE", "GT", "REQ", "LE", "LT"])
def test_of_all_rows_have_their_part_in_order(space: Space, iterator: str) -> None:
    numbers = list(range(ROWS))
    if iterator in ("REQ", "LE", "LT"):
        numbers.reverse()
    for limit in LIMITS:
        for offset in OFFSETS:
            found = space.select([], iterator=iterator, offset=offset, limit=limit)
            assert [row[0] for row in found] == numbers[offset : offset + limit], (limit, offset)


@pytest.mark.parametrize(
    ("iterator", "groups", "is_backward"),
    [
        ("EQ", "c", False),
        ("REQ", "c", True),
        ("GE", "cde", False),
        ("GT", "de", False),
        ("LE", "abc", True),
        ("LT", "ab", True),
    ],
)
def test_of_a_group_have_their_part_in_order(
    space: Space, iterator: str, groups: str, is_backward: bool
) -> None:
    numbers = [number for group in groups for number in range("abcde".index(group), ROWS, 5)]
    if is_backward:
        numbers.reverse()
    for limit in LIMITS:
        for offset in OFFSETS:
            found = space.index["group"].select(["c"], iterator=iterator, offset=offset, limit=limit)
            assert [row[0] for row in found] == numbers[offset : offset + limit], (limit, offset)
