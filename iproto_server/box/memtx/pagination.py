"""Pagination: a SELECT that continues after a row, or after the position at which another one ended.

A position is the key of a row with the parts of the primary key, as a packed array in base64 without padding.
Tarantool uses the same format.

Source: Tarantool reference, "index_object:select()", options `fetch_pos` and `after`; binary protocol,
IPROTO_FETCH_POSITION.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple

from iproto_server.box.index.index import Index
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.key.key_part import reader_of
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import DESCENDING, IteratorType


class Page(NamedTuple):
    """Rows, and the position after them.

    Attributes:
        rows: the rows.
        position: that of the last row; None if not requested or without rows.
    """

    rows: list[bytes]
    position: str | None


def select_page(
    space: MemtxSpace,
    index_id: int,
    iterator: int,
    offset: int,
    limit: int,
    key: list[Any],
    *,
    after_position: str | None = None,
    after_row: bytes | None = None,
    fetch_position: bool = False,
) -> Page:
    """The rows that an iterator finds after a position.

    Parameters:
        space, index_id, iterator, offset, limit, key: as for `MemtxSpace.select`; the offset counts from the
            position.
        after_position: the position to continue from; None or empty for the beginning.
        after_row: a row to continue after, in place of a position; it need not be in the space.
        fetch_position: whether to return the position of the last row.

    Raises:
        BoxError: ITERATOR_POSITION (247) if the position does not belong to such a select;
            UNSUPPORTED_INDEX_FEATURE (112) if the index has no pagination; UNSUPPORTED (5) for a row in a
            multikey index, where it has several positions.
    """
    index = space.index(index_id)
    parts = _parts(space, index)
    after: bytes | None = None
    if after_position is None and after_row is not None:
        if index.is_multikey:
            raise BoxError(ErrorCode.UNSUPPORTED, "Multikey index", "position by tuple")
        after_position = tuple_position(space, index_id, after_row)
    if after_position:
        after = _tree_key(index, parts, iterator, key, after_position)
    if (after is not None or fetch_position) and (
        index.type != "TREE" or space.engine != "memtx" or index.is_multikey
    ):
        index.encode_key(key)
        raise BoxError(
            ErrorCode.UNSUPPORTED_INDEX_FEATURE,
            index.name,
            index.type,
            space.name,
            space.engine,
            "pagination",
        )
    rows = space.select(index_id, iterator, offset, limit, key, after)
    return Page(rows, _position(parts, rows[-1]) if fetch_position and rows else None)


def tuple_position(space: MemtxSpace, index_id: int, row: bytes) -> str:
    """The position of a row.

    Raises:
        BoxError: ITERATOR_POSITION (247) if it cannot be in the index.
    """
    parts = _parts(space, space.index(index_id))
    try:
        parts.encode_key(_values(parts, codec.unpack(row)))
    except (BoxError, LookupError):
        raise BoxError(ErrorCode.ITERATOR_POSITION) from None
    return _position(parts, row)


def _parts(space: MemtxSpace, index: Index) -> KeyDef:
    """The parts of a position."""
    return index.key_def.merge(space.primary_index().key_def)


def _values(parts: KeyDef, fields: list[Any]) -> list[Any]:
    return [reader_of(part)(fields) for part in parts.parts]


def _position(parts: KeyDef, row: bytes) -> str:
    """The position of a row that the index has."""
    packed = codec.split_array(row)
    fields = None
    values = []
    for part in parts.parts:
        if part.path is not None:
            fields = codec.unpack(row) if fields is None else fields
            values.append(codec.pack(reader_of(part)(fields)))
        else:
            values.append(packed[part.field_no] if part.field_no < len(packed) else codec.pack(None))
    array = codec.array_header(len(values)) + b"".join(values)
    return base64.b64encode(array).rstrip(b"=").decode("ascii")


def _tree_key(index: Index, parts: KeyDef, iterator: int, key: list[Any], position: str) -> bytes:
    """The encoded key of a position, checked against the select's key and iterator."""
    try:
        packed = base64.b64decode(position.encode() + b"=" * (-len(position) % 4))
        values = codec.unpack(packed)
        if type(values) is not list or len(values) != parts.part_count:
            raise BoxError(ErrorCode.ITERATOR_POSITION)
        whole = parts.encode_key(values)
    except (BoxError, binascii.Error, ValueError):
        raise BoxError(ErrorCode.ITERATOR_POSITION) from None
    prefix = index.encode_key(key)
    is_exact = iterator in (IteratorType.EQ, IteratorType.REQ)
    if not whole.startswith(prefix) and (is_exact or (whole < prefix) == (iterator not in DESCENDING)):
        raise BoxError(ErrorCode.ITERATOR_POSITION)
    own = values[: index.part_count]
    # In a unique index the key identifies a row, unless it contains nil.
    return whole if not index.unique or None in own else index.encode_key(own)
