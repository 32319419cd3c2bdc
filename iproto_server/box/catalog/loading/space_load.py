"""The rows of one space from a snapshot, on their way to its primary index."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Protocol

from iproto_server.box.index.index import Index
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.row_applier import UNFIT, in_words
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode


class Report(Protocol):
    """Called when a row cannot be loaded. It raises, or returns to skip the row."""

    def __call__(self, reason: str, advice: str | None = None, /) -> None:
        """Take the reason, and what to do about it; None if the row is damaged."""


class Refusal(Exception):
    """A row cannot be loaded and must not be skipped."""


def refuse(reason: str, advice: str | None = None) -> None:
    """A `Report` for rows that are known to be valid."""
    raise Refusal(reason)


class SpaceLoad:
    """The rows of one space from a snapshot, on their way to its primary index.

    Attributes:
        space: the space.
        keys, rows: those that the index cannot take before the others are known.
    """

    __slots__ = ("_index", "keys", "rows", "space")

    def __init__(self, space: MemtxSpace) -> None:
        self.space = space
        self._index = space.primary_index()
        self.keys: list[bytes] = []
        self.rows: list[bytes] = []

    def add(self, rows: Sequence[bytes], report: Report) -> None:
        """Add rows of a snapshot."""
        unpack, index = codec.unpack, self._index
        fitting: list[bytes] = []
        try:
            decoded = list(map(unpack, rows))
            keys = list(map(index.key_of, decoded, repeat(b"")))
            if self.space.attached is not None:
                for fields in decoded:
                    self.space.attached.follow(fields)
            fitting += rows
        except UNFIT:
            keys = []
            for raw in rows:
                try:
                    keys.append(index.key_of(unpack(raw), b""))
                except UNFIT as error:
                    report(row_text(self.space.name, raw, error))
                else:
                    fitting.append(raw)
        if self.rows or not index.append(keys, fitting):
            self.keys += keys
            self.rows += fitting

    @property
    def tree(self) -> object:
        """The primary index's tree, if nothing but rows in order is to be added to it."""
        is_only = not self.rows and self.space.attached is None
        return self._index if is_only and self._index.holds_rows else None

    def finish(self, report: Report) -> None:
        """Add the rows that were collected."""
        for position in self._index.build(self.keys, self.rows):
            report(duplicate_text(self._index, self.rows[position]))


def row_text(space: str, raw: bytes, error: BaseException) -> str:
    """Return the reason why a row cannot be loaded."""
    return f"a row of space '{space}': {in_words(error)}: {row_values(raw)}"


def row_values(raw: bytes) -> str:
    """Return a row as text; in hexadecimal digits if it cannot be decoded."""
    try:
        return str(codec.unpack(raw))
    except BoxError:
        return raw.hex()


def duplicate_text(index: Index, raw: bytes) -> str:
    """Return the reason why a unique index cannot take a row."""
    error = BoxError(ErrorCode.TUPLE_FOUND, index.name, index.space_name)
    fields = codec.unpack(raw)
    return f"{error.message}: {index.values_of(fields)}"
