"""Rows that become others with the same keys: a decimal equals an integer, and is packed differently."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from iproto_server import Box, Space
from iproto_server.box.memtx.consistency import faults_of

CHANGES: dict[str, Callable[[Space], object]] = {
    "replace: primary key": lambda space: space.replace([Decimal(2), 20, "c"]),
    "replace: secondary key": lambda space: space.replace([2, Decimal(20), "c"]),
    "replace: both": lambda space: space.replace([Decimal(2), Decimal(20), "c"]),
    "update: primary key": lambda space: space.update([2], [("=", 0, Decimal(2))]),
    "update: secondary key": lambda space: space.update([2], [("=", 1, Decimal(20))]),
    "update: both": lambda space: space.update([2], [("=", 0, Decimal(2)), ("=", 1, Decimal(20))]),
    "update: both, and another field": lambda space: space.update(
        [2], [("=", 2, "c"), ("=", 1, Decimal(20)), ("=", 0, Decimal(2))]
    ),
    "upsert": lambda space: space.upsert([2, 0, "c"], [("=", 1, Decimal(20))]),
}


@pytest.fixture(params=[False, True], ids=["not unique", "unique"])
def box(request: pytest.FixtureRequest) -> Box:
    box = Box()
    space = box.schema.create_space("rows", format=[("id", "number"), ("n", "number"), ("text", "string")])
    space.create_index("primary", parts=["id"])
    space.create_index("n", parts=["n"], unique=request.param)
    space.create_index("text", parts=["text"], unique=False)
    space.create_index("hash", type="HASH", parts=["text", "id"])
    for number in range(5):
        space.insert([number, 10 * number, "abcde"[number]])
    return box


def rows(space: Space) -> list[list[list[object]]]:
    """The rows as each index has them."""
    return [
        sorted((list(row) for row in index.select()), key=lambda row: str(row[0])) for index in space.index
    ]


def check(box: Box, space: Space, expected: list[list[object]]) -> None:
    assert rows(space) == [expected] * 4
    assert list(faults_of(box.catalog.space_by_name("rows"))) == []


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_all_indexes_lead_to_the_new_row(box: Box, change: Callable[[Space], object]) -> None:
    space = box.space["rows"]
    change(space)
    expected = sorted((list(row) for row in space.select()), key=lambda row: str(row[0]))
    assert any(isinstance(value, Decimal) for row in expected for value in row)
    check(box, space, expected)
    assert space.index["n"].select([20])[0][0] == 2
    space.replace([2, 20, "c"])
    check(box, space, [[number, 10 * number, "abcde"[number]] for number in range(5)])


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_all_indexes_lead_to_the_old_row_when_it_is_undone(
    box: Box, change: Callable[[Space], object]
) -> None:
    space = box.space["rows"]
    before = rows(space)[0]
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        change(space)
        raise ZeroDivisionError
    check(box, space, before)
    change(space)
    changed = rows(space)[0]
    with pytest.raises(ZeroDivisionError), box.in_transaction():
        space.replace([2, 20, "c"])
        raise ZeroDivisionError
    check(box, space, changed)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_such_a_row_can_be_deleted(box: Box, change: Callable[[Space], object]) -> None:
    space = box.space["rows"]
    change(space)
    space.delete([2])
    check(box, space, [[number, 10 * number, "abcde"[number]] for number in (0, 1, 3, 4)])
