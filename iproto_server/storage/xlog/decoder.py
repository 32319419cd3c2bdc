"""Decodes the rows of a block.

The values of a row stay packed. Most rows have one of a few shapes, recognized by their first bytes and read
without unpacking: a header of type, replica id, LSN and timestamp, and a body of a space id and a tuple or
key.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Kind
from iproto_server.errors import BoxError
from iproto_server.storage.xlog.row import BodyKey, HeaderKey, Row, RowFlag, RowType

_NOP: Final = int(RowType.NOP)
_UPDATE: Final = int(RowType.UPDATE)
_COMMIT: Final = int(RowFlag.COMMIT)
_UINT64_MAX: Final = 2**64 - 1
_H_TYPE, _H_REPLICA_ID, _H_LSN, _H_TIMESTAMP, _H_GROUP_ID, _H_TSN, _H_FLAGS = map(int, HeaderKey)
_SPACE_ID, _INDEX_ID, _INDEX_BASE, _KEY, _TUPLE, _OPERATIONS = (bytes((key,)) for key in BodyKey)

# A header `84 00 TYPE 02 REPLICA 03 FORM` is recognized by these seven bytes. The LSN follows, the 04 cb
# before the timestamp, and the timestamp. In a transaction of several rows the map has one or two more pairs,
# at its end.
_SHAPE_SIZE: Final = 7
_TIMESTAMP_MARK: Final = 0x04CB
_LSN_FORMS: Final = {0xCD: Struct(">HHd"), 0xCE: Struct(">IHd"), 0xCF: Struct(">QHd")}
_header_shapes: dict[bytes, tuple[int, int, Any, int]] = {}

# The number of preceding rows of the transaction, and the flags.
_ENDINGS: Final[dict[bytes, tuple[int, int]]] = {
    b"": (0, _COMMIT),
    **{bytes((HeaderKey.TSN, number)): (number, 0) for number in range(0x80)},
    **{bytes((HeaderKey.TSN, number, HeaderKey.FLAGS, 1)): (number, _COMMIT) for number in range(0x80)},
}

# A body `82 10 SPACE 21 TUPLE` or `82 10 SPACE 20 KEY` is recognized by its bytes up to the array's length.
# Their number depends on the first byte of the space's id.
_LEADS: Final = (*[5] * 0x80, *[0] * 0x4C, 6, 7, 9, *[0] * 0x31)
_body_shapes: dict[bytes, tuple[int, bool]] = {}

# An UPDATE's body is `83 10 SPACE 20 KEY 21 OPERATIONS`, or `84 10 SPACE 15 BASE 20 KEY 21 OPERATIONS`, and
# is recognized by its bytes up to the 20: one less than above, or one more. They determine space and index
# base.
_UPDATE_LEADS: Final = {0x83: -1, 0x84: 1}
_update_shapes: dict[bytes, tuple[int, int]] = {}

_SHAPES_MAX: Final = 4096
"""Maximum number of remembered shapes, so that no file fills the memory."""

_new_row = tuple.__new__

# An unpacker keeps its largest buffer, so one that has read more than this is not reused.
_KEEP_UNPACKER: Final = 1 << 20
_unpackers: list[Any] = []


def _take_unpacker() -> Any:
    """Take an unused unpacker. After an error it holds half a message and is not returned to the pool."""
    try:
        return _unpackers.pop()
    except IndexError:
        return codec.new_unpacker()


def decode_rows(payload: bytes) -> list[Row]:
    """Decode the rows of a block.

    Parameters:
        payload: the packed rows, uncompressed.

    Returns:
        The rows, in order.

    Raises:
        ValueError: the bytes are not rows.
    """
    rows: list[Row] = []
    append = rows.append
    header_shapes, body_shapes, endings, leads = _header_shapes, _body_shapes, _ENDINGS, _LEADS
    whole = _ENDINGS[b""]
    start, size = 0, len(payload)
    unpacker = _take_unpacker()
    skip, tell = unpacker.skip, unpacker.tell
    base: int = tell()
    try:
        unpacker.feed(payload)
        while start < size:
            skip()
            middle: int = tell() - base
            shape = header_shapes.get(payload[start : start + _SHAPE_SIZE])
            if (
                shape is not None
                and (end := start + shape[3]) <= middle
                and (ending := whole if end == middle else endings.get(payload[end:middle]))
                and (numbers := shape[2](payload, start + _SHAPE_SIZE))[1] == _TIMESTAMP_MARK
            ):
                row_type, replica_id, _, _ = shape
                lsn, _, timestamp = numbers
                group_id, tsn, flags = 0, lsn - ending[0], ending[1]
            else:
                row_type, lsn, timestamp, replica_id, group_id, tsn, flags = _decode_header(
                    payload[start:middle]
                )
            start = middle
            tuple_raw = key_raw = operations_raw = None
            index_id = index_base = 0
            if row_type == _NOP or middle == size:
                space_id, body = None, b""
            elif row_type == _UPDATE:
                values = _read_update(unpacker, payload, middle)
                space_id, tuple_raw, key_raw, operations_raw, index_id, index_base = values
                start = tell() - base
                body = payload[middle:start]
            else:
                skip()
                start = tell() - base
                body = payload[middle:start]
                lead = leads[body[2]] if len(body) > 2 else 0
                body_shape = body_shapes.get(body[:lead])
                if body_shape is None:
                    values = _decode_body(row_type, body)
                    space_id, tuple_raw, key_raw, operations_raw, index_id, index_base = values
                else:
                    space_id, has_tuple = body_shape
                    if has_tuple:
                        tuple_raw = body[lead - 1 :]
                    else:
                        key_raw = body[lead - 1 :]
            values_of_row = (
                row_type,
                lsn,
                space_id,
                tuple_raw,
                key_raw,
                operations_raw,
                index_id,
                index_base,
                body,
                timestamp,
                replica_id,
                group_id,
                tsn,
                flags,
            )
            # The constructor of the class takes twice as long.
            append(_new_row(Row, values_of_row))
    except (*codec.MALFORMED, BoxError, IndexError) as error:
        raise ValueError(f"malformed row at {start} of the block's rows: {error}") from None
    if size <= _KEEP_UNPACKER:
        _unpackers.append(unpacker)
    return rows


# First bytes of INSERT headers in snapshots: an LSN of 0 is omitted, and most rows have no group.
_INSERT_HEADS: Final = frozenset(bytes((0x80 + pairs, HeaderKey.TYPE, RowType.INSERT)) for pairs in (2, 3, 4))


def decode_tuples(payload: bytes) -> list[tuple[int, bytes]] | None:
    """Decode a block of a snapshot that has only tuples, in half the time of `decode_rows`.

    Of the rows' headers only the first bytes are checked, which tell that the type is INSERT.

    Parameters:
        payload: the packed rows, uncompressed.

    Returns:
        Space ids and tuples, in order; None if the block has other rows or cannot be read.
    """
    tuples: list[tuple[int, bytes]] = []
    append = tuples.append
    body_shapes = _body_shapes
    start, size = 0, len(payload)
    unpacker = _take_unpacker()
    skip, tell = unpacker.skip, unpacker.tell
    base: int = tell()
    try:
        unpacker.feed(payload)
        while start < size:
            if payload[start : start + 3] not in _INSERT_HEADS:
                return None
            skip()
            middle: int = tell() - base
            skip()
            start = tell() - base
            lead = _LEADS[payload[middle + 2]]
            shape = body_shapes.get(payload[middle : middle + lead])
            if shape is None:
                space_id, raw, *_ = _decode_body(RowType.INSERT, payload[middle:start])
                if space_id is None or raw is None:
                    return None
                append((space_id, raw))
            elif shape[1]:
                append((shape[0], payload[middle + lead - 1 : start]))
            else:
                return None
    except (*codec.MALFORMED, BoxError, IndexError):
        return None
    if size <= _KEEP_UNPACKER:
        _unpackers.append(unpacker)
    return tuples


Change = tuple[int, int, int, int | None, bytes | None, bytes | None, bytes | None, int, int]
"""The change of a row: type, LSN, member, space id, tuple, key, operations, index id and index base."""


def change_of(row: Row) -> Change:
    """Return the change of a row."""
    return (
        row.type,
        row.lsn,
        row.replica_id,
        row.space_id,
        row.tuple_raw,
        row.key_raw,
        row.operations_raw,
        row.index_id,
        row.index_base,
    )


def decode_changes(payload: bytes) -> list[Change] | None:
    """Decode a block of a log whose rows have known shapes, in two thirds of the time of `decode_rows`.

    Parameters:
        payload: the packed rows, uncompressed.

    Returns:
        The rows' changes, in order; None if a row has an unknown shape, or a transaction does not end.
    """
    changes: list[Change] = []
    append = changes.append
    header_shapes, body_shapes, endings, leads = _header_shapes, _body_shapes, _ENDINGS, _LEADS
    start, size, flags = 0, len(payload), 0
    unpacker = _take_unpacker()
    skip, tell = unpacker.skip, unpacker.tell
    base: int = tell()
    try:
        unpacker.feed(payload)
        while start < size:
            skip()
            middle: int = tell() - base
            row_type, member, unpack_numbers, length = header_shapes[payload[start : start + _SHAPE_SIZE]]
            end = start + length
            if end > middle or row_type == _NOP:
                return None
            flags = _COMMIT if end == middle else endings[payload[end:middle]][1]
            lsn, mark, _ = unpack_numbers(payload, start + _SHAPE_SIZE)
            if mark != _TIMESTAMP_MARK:
                return None
            if row_type == _UPDATE:
                space_id, _, key, operations, index_id, index_base = _read_update(unpacker, payload, middle)
                append((row_type, lsn, member, space_id, None, key, operations, index_id, index_base))
                start = tell() - base
                continue
            skip()
            start = tell() - base
            lead = leads[payload[middle + 2]]
            space_id, has_tuple = body_shapes[payload[middle : middle + lead]]
            value = payload[middle + lead - 1 : start]
            if has_tuple:
                append((row_type, lsn, member, space_id, value, None, None, 0, 0))
            else:
                append((row_type, lsn, member, space_id, None, value, None, 0, 0))
    except (*codec.MALFORMED, BoxError, LookupError, ValueError):
        # This includes new shapes, which `decode_rows` learns.
        return None
    if size <= _KEEP_UNPACKER:
        _unpackers.append(unpacker)
    return changes if flags & _COMMIT else None


def _decode_header(raw: bytes) -> tuple[int, int, float, int, int, int, int]:
    """Decode a header of any shape: type, LSN, timestamp, replica id, group id, TSN, flags."""
    header = codec.unpack(raw)
    if not isinstance(header, dict):
        raise ValueError("no header")
    get = header.get
    row_type, lsn, flags = get(_H_TYPE, 0), get(_H_LSN, 0), get(_H_FLAGS, 0)
    replica_id, group_id, tsn = get(_H_REPLICA_ID, 0), get(_H_GROUP_ID, 0), get(_H_TSN)
    timestamp = get(_H_TIMESTAMP, 0.0)
    for number in (row_type, lsn, flags, replica_id, group_id, tsn or 0):
        if type(number) is not int or number < 0:
            raise ValueError(f"header {raw.hex()}")
    if not isinstance(timestamp, float):
        raise ValueError(f"header {raw.hex()}")
    if tsn is not None:
        # The file has the distance of the LSN from the TSN; rows of another member's log may be below it.
        tsn = (lsn - tsn) & _UINT64_MAX
        if tsn >= 2**63:
            tsn -= 2**64
    else:
        tsn = lsn
        flags |= _COMMIT
    form = _LSN_FORMS.get(raw[6]) if len(raw) > _SHAPE_SIZE else None
    if form is not None and raw[1:6] == bytes((0, row_type & 0x7F, 2, replica_id & 0x7F, 3)):
        size = _SHAPE_SIZE + form.size
        pairs = {0: 4, 2: 5, 4: 6}.get(len(raw) - size)
        if pairs is not None and raw[0] == 0x80 + pairs and len(_header_shapes) < _SHAPES_MAX:
            _header_shapes[raw[:_SHAPE_SIZE]] = (row_type, replica_id, form.unpack_from, size)
    return row_type, lsn, timestamp, replica_id, group_id, tsn, flags


_Values = tuple[int | None, bytes | None, bytes | None, bytes | None, int, int]


def _read_update(unpacker: Any, payload: bytes, start: int) -> _Values:
    """Read the body of an UPDATE from the unpacker's position; return the same as `_decode_body`."""
    lead = _LEADS[payload[start + 2]] + _UPDATE_LEADS.get(payload[start], 0)
    shape = _update_shapes.get(payload[start : start + lead])
    before: int = unpacker.tell()
    if shape is None:
        unpacker.skip()
        body = payload[start : start + unpacker.tell() - before]
        values = _decode_body(_UPDATE, body)
        space_id, _, _, _, _, index_base = values
        if space_id is not None and index_base < 0x80 and len(_update_shapes) < _SHAPES_MAX:
            head = body[: _LEADS[body[2]] - 2]
            if body[:lead] in (
                b"\x83\x10" + head[2:] + _KEY,
                b"\x84\x10" + head[2:] + _INDEX_BASE + bytes((index_base,)) + _KEY,
            ):
                _update_shapes[body[:lead]] = (space_id, index_base)
        return values
    unpacker.read_bytes(lead)
    unpacker.skip()
    middle: int = start + unpacker.tell() - before
    if unpacker.read_bytes(1) != _TUPLE:
        end = codec.skip(payload, start)
        unpacker.read_bytes(end - middle - 1)
        return _decode_body(_UPDATE, payload[start:end])
    unpacker.skip()
    end = start + unpacker.tell() - before
    key_raw = _array(payload[start + lead : middle])
    return shape[0], None, key_raw, _array(payload[middle + 1 : end]), 0, shape[1]


def _decode_body(row_type: int, body: bytes) -> _Values:
    """Decode a body of any shape: space id, tuple, key, operations, index id, index base."""
    space_id: int | None = None
    tuple_raw = key_raw = operations_raw = None
    index_id = index_base = 0
    pairs = codec.split_map(body)
    for key, value in pairs:
        if key == _TUPLE:
            tuple_raw = _array(value)
        elif key == _SPACE_ID:
            space_id = _number(value)
        elif key == _KEY:
            key_raw = _array(value)
        elif key == _OPERATIONS:
            operations_raw = _array(value)
        elif key == _INDEX_ID:
            index_id = _number(value)
        elif key == _INDEX_BASE:
            index_base = _number(value)
    if row_type == _UPDATE:
        tuple_raw, operations_raw = None, tuple_raw
    elif space_id is not None and len(pairs) == 2 and len(_body_shapes) < _SHAPES_MAX:
        lead = _LEADS[body[2]]
        if lead and body[:2] == b"\x82\x10" and body[lead - 2 : lead - 1] in (_TUPLE, _KEY):
            _body_shapes[body[:lead]] = (space_id, tuple_raw is not None)
    return space_id, tuple_raw, key_raw, operations_raw, index_id, index_base


def _array(value: bytes) -> bytes:
    if codec.kind(value) is not Kind.ARRAY:
        raise ValueError("a body lacks an array")
    return value


def _number(value: bytes) -> int:
    if codec.kind(value) is not Kind.UINT:
        raise ValueError("a body lacks a number")
    number: int = codec.unpack(value)
    return number
