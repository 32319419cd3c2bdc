"""Spaces that were dropped, and created again with the same id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from iproto_server.codec import msgpack as codec


class Drop(NamedTuple):
    """A row that dropped a space.

    Attributes:
        space_id: The space.
        name: Its name.
        shape: Its format and the parts of its primary key, packed.
        member: The member that dropped it.
        lsn: The row's LSN.
    """

    space_id: int
    name: str
    shape: bytes
    member: int
    lsn: int


class Incarnation(NamedTuple):
    """An earlier space with the id of a later one.

    Attributes:
        space_id: Their id.
        name: The name of the earlier one.
        shape: As in `Drop`.
        until: The clock at which it was dropped: later rows are of a later one.
    """

    space_id: int
    name: str
    shape: bytes
    until: Mapping[int, int]

    @property
    def format_rows(self) -> list[Any]:
        """Its format."""
        rows: list[Any] = codec.unpack(self.shape)[0]
        return rows

    @property
    def index_rows(self) -> list[Any]:
        """Its primary index, as a row of `_index`; empty if it had none."""
        parts = codec.unpack(self.shape)[1]
        return [] if parts is None else [[self.space_id, 0, "primary", "tree", {}, parts]]


def shape_of(format_rows: Sequence[Any], primary: Sequence[Any] | None) -> bytes:
    """The parts of a space that decide about its columns: its format, and the parts of its primary key.

    Parameters:
        format_rows: The field `format` of its row of `_space`.
        primary: The row of `_index` of its primary index; None without one.
    """
    packed: bytes = codec.pack([list(format_rows), None if primary is None else primary[5]])
    return packed
