"""Databases for tests: a box with a manual clock, a space, and helpers for errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, BoxError, ManualClock, Space


def new_box() -> tuple[Box, ManualClock]:
    """An empty box, and its clock."""
    clock = ManualClock()
    return Box(clock=clock), clock


def accounts(box: Box) -> Space:
    """A space of accounts: 1 Ann 10, 2 Bob 20, 3 Cid 20; by id, by name (unique), by balance and id."""
    space = box.schema.create_space(
        "accounts",
        format=[
            ("id", "unsigned"),
            ("name", "string"),
            ("balance", "integer"),
            {"name": "note", "is_nullable": True},
        ],
    )
    space.create_index("primary", parts=["id"])
    space.create_index("name", parts=["name"])
    space.create_index("balance", parts=["balance"], unique=False)
    for row in ([1, "Ann", 10], [2, "Bob", 20], [3, "Cid", 20]):
        space.insert(row)
    return space


def rows(space: Space, index: int = 0) -> list[list[Any]]:
    """Every row in the order of an index."""
    return [list(row) for row in space.index[index].select()]


def state(space: Space) -> tuple[Any, ...]:
    """The visible state of a space: the contents of all indexes, counts and sizes."""
    return (
        [[list(row) for row in index.select()] for index in space.index],
        [len(index.tree) for index in space.index],
        len(space),
        space.bsize(),
    )


def refused(function: Callable[..., object], *arguments: object, **options: object) -> tuple[int, str]:
    """The number and the text of a call's error."""
    with pytest.raises(BoxError) as caught:
        function(*arguments, **options)
    return caught.value.code, caught.value.message
