"""The format and indexes of a space with tubes, and the tubes that its rows are in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iproto_server import Box, Space
from queue_lua_compat.legacy.task import FORMAT, TUBE

_FIELDS: Final = [field["name"] for field in FORMAT][:-1]


def create_space(box: Box, name: str, number: int | None) -> Space:
    """Create a space for tubes.

    Parameters:
        box: the box.
        name: the name of the space.
        number: the id of the space; None for the next free one.
    """
    space = box.schema.create_space(name, id=number, format=FORMAT)
    space.create_index("task", parts=["id"])
    space.create_index("tube", unique=False, parts=["tube", "status", "ipri", "pri", "created"])
    space.create_index("event", unique=False, parts=["next_event"])
    return space


def fits(space: Space) -> bool:
    """Whether a space has the format of a queue's space."""
    names = [field["name"] for field in space.format()]
    return names[: len(_FIELDS)] == _FIELDS and all(name in space.index for name in ("task", "tube", "event"))


def create_data_index(box: Box, space: Space) -> None:
    """Create the index by data, which only `queue.put_unique` needs, unless it exists."""
    if "data" not in space.index:
        data = {"field": "data", "type": "scalar", "is_nullable": True}
        with box.session.su("admin"):
            space.create_index("data", unique=False, parts=["tube", "status", data])


def tubes_of(space: Space) -> Iterator[str]:
    """Return the tubes with tasks.

    Parameters:
        space: the space.
    """
    in_order = space.index["tube"]
    row = in_order.first()
    while row is not None:
        tube = row[TUBE]
        yield tube
        row = next(in_order.pairs([tube], iterator="GT"), None)
