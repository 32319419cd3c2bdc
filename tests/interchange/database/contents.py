"""All contents of a database, as a client sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.interchange.database.packing import rows_of
from tests.iproto_client import Answer, IprotoClient

_VSPACE, _VINDEX = 281, 289
_SYSTEM_ID_MAX: Final = 511
_DATA: Final = b"\x81\x30\xdd"
_NOT_KEPT: Final = frozenset({"_session_settings"})
"""Spaces with the state of single sessions."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents that must survive a move.

    Parameters:
        rows: The rows of every index of every space that is not temporary: "space.index" to their bytes,
            in the index's order, or sorted where it has none.
        sizes: The answers of `bsize` for users' spaces, by name.
        position: The identity and position in `box.info`.
    """

    rows: Mapping[str, list[bytes]]
    sizes: Mapping[str, int]
    position: Mapping[str, Any]

    def of(self, index: str) -> list[bytes]:
        """Return the rows of an index, "space.index"."""
        return self.rows[index]


def read_contents(client: IprotoClient) -> Contents:
    """Read everything, through every index.

    Parameters:
        client: A client that may read everything.
    """
    spaces = {fields[0]: fields for fields in _select(client, _VSPACE).data}
    rows: dict[str, list[bytes]] = {}
    sizes: dict[str, int] = {}
    for space_id, index_id, index, kind, *_ in _select(client, _VINDEX).data:
        name, flags = spaces[space_id][2], spaces[space_id][5]
        if flags.get("temporary") or name in _NOT_KEPT:
            continue
        found = _raw_rows(_select(client, space_id, index_id).raw_body)
        rows[f"{name}.{index}"] = found if kind != "hash" else sorted(found)
        if space_id > _SYSTEM_ID_MAX and re.fullmatch(r"\w+", name):
            (sizes[name],) = client.call(f"box.space.{name}:bsize").data
    return Contents(rows, sizes, read_position(client))


def read_position(client: IprotoClient) -> dict[str, Any]:
    """Return the identity and position of the database."""
    (info,) = client.call("box.info").data
    vclock = info["vclock"]
    if isinstance(vclock, list):
        # A Lua table whose keys happen to be 1, 2, 3.
        vclock = dict(enumerate(vclock, 1))
    return {
        **{name: info[name] for name in ("id", "uuid", "lsn", "signature")},
        "cluster": info["cluster"]["uuid"],
        "vclock": vclock,
    }


def _select(client: IprotoClient, space_id: int, index_id: int = 0) -> Answer:
    answer = client.everything(space_id, index_id)
    assert answer.ok, f"space {space_id}, index {index_id}: {answer.failure}"
    return answer


def _raw_rows(body: bytes) -> list[bytes]:
    assert body.startswith(_DATA), body[:8]
    return rows_of(body[2:])


def assert_same(found: Contents, expected: Contents) -> None:
    """Check that the contents are equal, and report differences briefly."""
    assert found.rows.keys() == expected.rows.keys()
    for index, rows in expected.rows.items():
        if found.rows[index] != rows:
            missing = [row for row in rows if row not in found.rows[index]]
            surplus = [row for row in found.rows[index] if row not in rows]
            raise AssertionError(f"{index}: missing {missing[:5]}, surplus {surplus[:5]}, or another order")
    assert found.sizes == expected.sizes
    assert found.position == expected.position
