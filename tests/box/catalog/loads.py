"""Snapshots and logs that are loaded into a box."""

from __future__ import annotations

from typing import Any

from iproto_server import Box
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.loading.space_load import Report
from iproto_server.box.catalog.sysview import SysviewSpace
from tests.box.boxes import accounts, new_box

ID = 700


class Refused(Exception):
    """A row could not be loaded."""


def refuse(reason: str, advice: str | None = None) -> None:
    raise Refused(reason)


def snapshot(box: Box) -> dict[int, list[bytes]]:
    """The contents of a snapshot: the rows of all spaces that are not empty, by space id."""
    return {
        space.id: rows
        for space in sorted(box.catalog, key=lambda space: space.id)
        if not isinstance(space, SysviewSpace) and not space.is_temporary and (rows := list(space.rows()))
    }


def load(contents: dict[int, list[bytes]], report: Report = refuse) -> Box:
    """A box with the contents of a snapshot."""
    box, _ = new_box()
    with Loader(box.catalog, report) as loader:
        for space_id, rows in contents.items():
            loader.load(space_id, rows)
        loader.finish()
    return box


def everything(box: Box) -> dict[Any, Any]:
    """The visible state of a box: spaces with all indexes, and privileges."""
    contents: dict[Any, Any] = {
        space.id: (
            space.name,
            space.owner,
            space.engine,
            space.format_row,
            space.is_local,
            space.is_temporary,
            space.bsize,
            [(index.id, index.name, sorted(index.items())) for index in space.indexes.values()],
        )
        for space in box.catalog
    }
    for name in ("admin", "guest", "public", "ann"):
        user = box.access.find(name)
        contents[name] = user and (user.user_id, user.owner, user.auth, user.universe, user.objects)
    contents["functions"] = box.catalog.users.functions
    return contents


def plain_box() -> Box:
    """A space of accounts, and spaces with all types of indexes."""
    box, _ = new_box()
    accounts(box)
    kinds = box.schema.create_space("kinds", is_local=True)
    kinds.create_index("primary", parts=[(1, "string"), (0, "unsigned")])
    kinds.create_index("hash", type="hash", parts=[(2, "scalar")])
    kinds.create_index("nullable", parts=[{"field": 3, "type": "number", "is_nullable": True}])
    kinds.create_index("many", parts=[(0, "unsigned")], unique=False)
    kinds.create_index("scalars", parts=[(2, "scalar"), (1, "string"), (0, "unsigned")])
    for row in ([1, "b", True, 1.5], [2, "a", 1, None], [3, "a", "x"], [3, "c", b"x", None, {"more": []}]):
        kinds.insert(row)
    hashed = box.schema.create_space("hashed")
    hashed.create_index("primary", type="hash", parts=[(0, "integer")])
    for number in range(-5, 5):
        hashed.insert([number])
    box.schema.create_space("empty")
    box.schema.create_space("temporary", temporary=True).create_index("primary")
    box.schema.user.create("ann", password="secret")
    box.schema.user.grant("ann", "read,write", "space", "kinds")
    box.schema.role.create("clerk")
    box.schema.role.grant("clerk", "execute", "universe")
    box.schema.user.grant("ann", "clerk")
    box.schema.func.create("compute")
    return box


ACCOUNTS = 512
