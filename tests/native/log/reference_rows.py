"""Rows of a block, decoded value by value with the library msgpack."""

from __future__ import annotations

from typing import Any

import msgpack

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.xlog import Row, RowFlag, RowType

_COMMIT = int(RowFlag.COMMIT)
_UINT64_MAX = 2**64 - 1
_FAULTS = (ValueError, TypeError, BoxError, msgpack.UnpackException)


def reference_rows(payload: bytes) -> list[Row]:
    """Decode the rows of a block.

    Raises:
        ValueError: The bytes are not rows.
    """
    rows: list[Row] = []
    position = 0
    try:
        while position < len(payload):
            end = codec.skip(payload, position)
            head = _head(payload[position:end])
            position = end
            if head.type != RowType.NOP and end < len(payload):
                position = codec.skip(payload, end)
                head = _with_body(head, payload[end:position])
            rows.append(head)
    except _FAULTS as error:
        raise ValueError(str(error)) from error
    return rows


def _head(raw: bytes) -> Row:
    pairs = codec.split_map(raw)
    values: dict[int, Any] = {}
    for key, value in pairs:
        if len(key) == 1 and key[0] in (0, 2, 3, 4, 7, 8, 9):
            number = msgpack.unpackb(value, ext_hook=_no_extension, strict_map_key=False)
            if type(number) is not (float if key[0] == 4 else int) or (number < 0 and key[0] != 4):
                raise ValueError("no number")
            values[key[0]] = number
    timestamp = values.pop(4, 0.0)
    row_type, replica_id, lsn, group_id, flags = (values.get(key, 0) for key in (0, 2, 3, 7, 9))
    tsn = lsn
    if 8 in values:
        tsn = (lsn - values[8]) & _UINT64_MAX
        tsn -= 2**64 if tsn >= 2**63 and tsn != lsn else 0
    else:
        flags |= _COMMIT
    return Row(
        row_type, lsn, timestamp=timestamp, replica_id=replica_id, group_id=group_id, tsn=tsn, flags=flags
    )


def _no_extension(code: int, data: bytes) -> object:
    raise ValueError("an extension type is no number")


def _with_body(row: Row, body: bytes) -> Row:
    parts: dict[int, bytes] = {}
    numbers: dict[int, int] = {}
    for key, value in codec.split_map(body):
        if len(key) == 1 and key[0] in (0x20, 0x21, 0x28) and (key[0], row.type) != (0x28, RowType.UPDATE):
            if codec.kind(value) is not codec.Kind.ARRAY:
                raise ValueError("no array")
            parts[key[0]] = value
        elif len(key) == 1 and key[0] in (0x10, 0x11, 0x15):
            if codec.kind(value) is not codec.Kind.UINT:
                raise ValueError("no number")
            numbers[key[0]] = codec.unpack(value)
    if row.type == RowType.UPDATE:
        parts = {0x28 if key == 0x21 else key: value for key, value in parts.items()}
    return row._replace(
        space_id=numbers.get(0x10),
        tuple_raw=parts.get(0x21),
        key_raw=parts.get(0x20),
        operations_raw=parts.get(0x28),
        index_id=numbers.get(0x11, 0),
        index_base=numbers.get(0x15, 0),
        body=body,
    )
