"""The changes that a log tells of, made to the rows of a space that is being loaded."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.memtx.auto_increment import AttachedSequence
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.update import apply_update, apply_upsert, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import Tree

UNFIT: Final = (BoxError, LookupError, TypeError, ValueError, AttributeError, OverflowError, struct.error)
"""Exceptions for rows that do not fit their space."""


def in_words(error: BaseException) -> str:
    """The fault of a row, for one of `UNFIT`."""
    return error.message if isinstance(error, BoxError) else f"it does not fit its space ({error})"


class SpaceChanges:
    """Changes rows of one space. Of its indexes only the primary one is kept in step.

    Parameters:
        space: a space with a primary index.

    Attributes:
        space: the space.
        rows_tree: the tree of its rows, if compiled code can make such changes; otherwise None.
    """

    __slots__ = ("_add", "_extract", "_extract_key", "_get", "_remove", "_set", "rows_tree", "space")

    def __init__(self, space: MemtxSpace) -> None:
        primary = space.primary_index()
        self.space = space
        self.rows_tree: Tree | None = primary if primary.holds_rows else None
        self._get, self._set, self._remove = primary.get, primary.set, primary.remove
        self._add = primary.insert
        self._extract = primary.key_def.extract
        # A key is a tuple of the key's fields only. It was checked when it was logged.
        parts = [
            replace(part, field_no=number, path=None) for number, part in enumerate(primary.key_def.parts)
        ]
        self._extract_key = KeyDef(parts).extract

    def insert(self, raw: bytes) -> None:
        """Add a row. Raises one of `UNFIT`, among them BoxError TUPLE_FOUND (3)."""
        key = self._extract(codec.unpack(raw))
        if self._add(key, raw):
            return
        raise BoxError(ErrorCode.TUPLE_FOUND, self.space.primary_index().name, self.space.name)

    def replace(self, raw: bytes) -> None:
        """Add a row or put it in the place of another. Raises one of `UNFIT`."""
        self._set(self._extract(codec.unpack(raw)), raw)

    def delete(self, key_raw: bytes, index_id: int = 0) -> None:
        """Remove the row of a key of a unique index, if there is one. Raises one of `UNFIT`."""
        key = self._locate(key_raw, index_id) if index_id else self._extract_key(codec.unpack(key_raw))
        try:
            self._remove(key)
        except KeyError:
            return

    def update(self, key_raw: bytes, operations_raw: bytes, index_id: int = 0, index_base: int = 0) -> None:
        """Change the row of a key of a unique index, if there is one.

        Raises one of `UNFIT`, among them BoxError CANT_UPDATE_PRIMARY_KEY (94).
        """
        key = self._locate(key_raw, index_id) if index_id else self._extract_key(codec.unpack(key_raw))
        raw = self._get(key)
        if raw is not None:
            space = self.space
            operations = parse_update(operations_raw, space.format.names, index_base)
            changed = apply_update(operations, raw, space.doubles)
            if self._extract(codec.unpack(changed)) != key:
                raise BoxError(ErrorCode.CANT_UPDATE_PRIMARY_KEY, space.primary_index().name, space.name)
            self._set(key, changed)

    def upsert(self, raw: bytes, operations_raw: bytes, index_base: int = 0) -> None:
        """Add a row, or change the one that has its primary key. Raises one of `UNFIT`."""
        space = self.space
        key = self._extract(codec.unpack(raw))
        old = self._get(key)
        if old is not None:
            operations = parse_update(operations_raw, space.format.names, index_base)
            raw = apply_upsert(operations, old, space.doubles)
            if self._extract(codec.unpack(raw)) != key:
                return
        self._set(key, raw)

    def _locate(self, key_raw: bytes, index_id: int) -> bytes:
        """The primary key of the row with a key of another index, which is not built: b"" for no row."""
        index = self.space.index(index_id)
        wanted = index.encode_unique_key(codec.unpack(key_raw))
        for key, raw in self._items():
            if wanted in index.key_def.encode_all(codec.unpack(raw)):
                return key
        return b""

    def _items(self) -> Iterator[tuple[bytes, bytes]]:
        return self.space.primary_index().items()


class NumberedChanges(SpaceChanges):
    """Changes rows of a space with a sequence, which the rows move forward.

    Parameters:
        space: a space with a primary index.
        attached: its sequence.
    """

    __slots__ = ("_attached",)

    def __init__(self, space: MemtxSpace, attached: AttachedSequence) -> None:
        super().__init__(space)
        self.rows_tree = None
        self._attached = attached

    def insert(self, raw: bytes) -> None:
        """Add a row. Raises one of `UNFIT`, among them BoxError TUPLE_FOUND (3)."""
        self._attached.follow(codec.unpack(raw))
        super().insert(raw)

    def replace(self, raw: bytes) -> None:
        """Add a row or put it in the place of another. Raises one of `UNFIT`."""
        self._attached.follow(codec.unpack(raw))
        super().replace(raw)


class SystemChanges(SpaceChanges):
    """Changes rows of a system space, with all the consequences, and keeps all its indexes in step."""

    __slots__ = ()

    def insert(self, raw: bytes) -> None:
        """Add a row. Raises one of `UNFIT`, among them BoxError TUPLE_FOUND (3)."""
        key = self._extract(codec.unpack(raw))
        if self._get(key) is not None:
            raise BoxError(ErrorCode.TUPLE_FOUND, self.space.primary_index().name, self.space.name)
        self._change(key, None, raw, "INSERT")

    def replace(self, raw: bytes) -> None:
        """Add a row or put it in the place of another. Raises one of `UNFIT`."""
        key = self._extract(codec.unpack(raw))
        self._change(key, self._get(key), raw, "REPLACE")

    def delete(self, key_raw: bytes, index_id: int = 0) -> None:
        """Remove the row of a key of a unique index, if there is one. Raises one of `UNFIT`."""
        old = self.space.find(index_id, codec.unpack(key_raw))
        if old is not None:
            self._change(self._extract(codec.unpack(old)), old, None, "DELETE")

    def update(self, key_raw: bytes, operations_raw: bytes, index_id: int = 0, index_base: int = 0) -> None:
        """Change the row of a key of a unique index, if there is one. Raises one of `UNFIT`."""
        space = self.space
        old = space.find(index_id, codec.unpack(key_raw))
        if old is not None:
            operations = parse_update(operations_raw, space.format.names, index_base)
            new = apply_update(operations, old, space.doubles)
            self._change(self._extract(codec.unpack(old)), old, new, "UPDATE")

    def upsert(self, raw: bytes, operations_raw: bytes, index_base: int = 0) -> None:
        """Add a row, or change the one that has its primary key. Raises one of `UNFIT`."""
        space = self.space
        key = self._extract(codec.unpack(raw))
        old = self._get(key)
        if old is not None:
            operations = parse_update(operations_raw, space.format.names, index_base)
            raw = apply_upsert(operations, old, space.doubles)
        self._change(key, old, raw, "UPSERT")

    def _change(self, key: bytes, old: bytes | None, new: bytes | None, operation: str) -> None:
        space = self.space
        new_fields: list[Any] | None = None
        if new is not None:
            new_fields = codec.unpack(new)
            space.format.check(new_fields)
            for index in space.secondaries:
                if index.unique and index.get(index.key_of(new_fields, key)) not in (None, key):
                    raise BoxError(ErrorCode.TUPLE_FOUND, index.name, space.name)
        space.exchange(key, new)
        if space.system_hook is None:
            return
        try:
            space.system_hook(None if old is None else codec.unpack(old), new_fields, operation)
        except UNFIT:
            space.exchange(key, old)
            raise
