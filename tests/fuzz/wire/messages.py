"""Values, requests and responses: what is decoded and encoded, compared with another library."""

from __future__ import annotations

import math
from typing import Any, Final
from zlib import crc32

import msgpack

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.protocol.framing import FrameDecoder, FramingError
from iproto_server.protocol.response import encode_result, encode_tuples, response_sync, response_version
from iproto_server.storage.xlog import RowEncoder, RowType, decode_rows, delete_body, insert_body
from iproto_server.storage.xlog.block import HEAD_SIZE, PLAIN_MARKER, decode_head, with_head
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target
from tests.fuzz.wire import frames, requests, values

_FRAMES_MOST: Final = 7
"""How many frames the decoder returns at once."""

_CHANGES: Final = (RowType.INSERT, RowType.REPLACE, RowType.DELETE)


def in_detail(value: object) -> str:
    """Describe a value by its types, so that 1, 1.0 and True differ and NaN is equal to itself."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_detail, value))}]"
    if isinstance(value, dict):
        pairs = (f"{in_detail(key)}: {in_detail(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    return f"{type(value).__name__} {value!r}"


def decoded(raw: bytes) -> Any:
    """Decode a value with the other library, which leaves extensions packed."""
    return msgpack.unpackb(
        raw,
        strict_map_key=False,
        unicode_errors="surrogateescape",
        ext_hook=lambda code, data: ("extension", code, data),
    )


def without_extensions(value: Any) -> Any:
    """Pack what is no plain value of MessagePack, as the other library decodes it."""
    if isinstance(value, list):
        return [without_extensions(each) for each in value]
    if isinstance(value, dict):
        return {key: without_extensions(each) for key, each in value.items()}
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    return decoded(codec.pack(value))


def has_extensions(value: object) -> bool:
    """Whether the other library has left something packed."""
    if isinstance(value, dict):
        return any(map(has_extensions, (*value.keys(), *value.values())))
    return isinstance(value, tuple | msgpack.Timestamp) or (
        isinstance(value, list) and any(map(has_extensions, value))
    )


def check_value(raw: bytes) -> None:
    """A value is decoded as by the other library."""
    try:
        found = codec.unpack(raw)
    except BoxError:
        return  # `values` knows which
    try:
        expected = decoded(raw)
    except (TypeError, ValueError, msgpack.StackError):
        return  # a key of a map that is a map or an array, a timestamp, or nested too deeply
    if not has_extensions(expected):
        assert in_detail(found) == in_detail(expected)


def check_stream(stream: bytes, sizes: bytes) -> None:
    """Frames do not depend on how the stream is cut into pieces, nor on how many are taken at once."""
    expected, fault, _ = frames.frames_of(stream)
    decoder = FrameDecoder(frames.MAX_FRAME, _FRAMES_MOST)
    found: list[bytes] = []
    position = number = 0
    error = None
    while position < len(stream) and error is None:
        size = max(sizes[number % len(sizes)], 1) if sizes else len(stream)
        try:
            some = decoder.feed(stream[position : position + size])
            while True:
                assert len(some) <= _FRAMES_MOST
                found += some
                if not decoder.has_more:
                    break
                some = decoder.more()
        except FramingError as raised:
            found += raised.frames
            error = raised.message
        position += size
        number += 1
    assert found == expected
    assert error == (None if fault is None else f"Invalid MsgPack - {fault}")


def check_encoding(draw: Draw) -> None:
    """What is encoded is decoded as the same, by the other library."""
    sync, version, space = draw.integer() & 2**64 - 1, draw.integer() & 2**32 - 1, draw.integer() & 2**32 - 1
    value: Any = draw.value(4)
    raws = [codec.pack(draw.value(1)) for _ in range(draw.byte() % 4)]
    plain = in_detail(without_extensions(value))
    packed = codec.pack(value)
    assert in_detail(decoded(packed)) == plain
    responses: tuple[tuple[bytes, list[Any]], ...] = (
        (encode_result(sync, version, [value]), [[value]]),
        (encode_result(sync, version, (value, *raws)), [value, *raws]),
        (encode_result(sync, version, None), []),
    )
    for response, data in responses:
        assert in_detail(data_of(response, sync, version)) == in_detail(without_extensions(data))
    rows = data_of(encode_tuples(sync, version, raws), sync, version)
    assert in_detail(rows) == in_detail([decoded(raw) for raw in raws])
    check_logged(draw.pick(_CHANGES), sync, space, b"\x91" + packed)
    block = with_head(PLAIN_MARKER, packed, crc32(packed))
    assert decode_head(block[:HEAD_SIZE]) == (False, len(packed), crc32(packed))
    assert block[HEAD_SIZE:] == packed


def data_of(response: bytes, sync: int, version: int) -> Any:
    """Decode the data of a response, after a check of the rest."""
    assert (response_sync(response), response_version(response)) == (sync, version)
    [frame], fault, left = frames.frames_of(response) if len(response) < frames.MAX_FRAME else _long(response)
    assert (fault, left) == (None, 0)
    end = codec.skip(frame, 0)
    assert decoded(frame[:end]) == {0: 0, 1: sync, 5: version}
    body: dict[int, Any] = decoded(frame[end:])
    assert list(body) == [0x30]
    return body[0x30]


def _long(response: bytes) -> tuple[list[bytes], None, int]:
    assert response[:1] == b"\xce"
    length = int.from_bytes(response[1:5], "big")
    return [response[5 : 5 + length]], None, len(response) - 5 - length


def check_logged(kind: RowType, lsn: int, space: int, raw: bytes) -> None:
    """A change is read from the log as it was written."""
    lsn &= 2**63 - 1
    body = delete_body(space, raw) if kind is RowType.DELETE else insert_body(space, raw)
    [row] = decode_rows(RowEncoder().transaction(lsn, 1.5, [(kind, body)]))
    assert (row.type, row.replica_id, row.lsn, row.timestamp, row.space_id) == (kind, 1, lsn, 1.5, space)
    assert (row.key_raw, row.tuple_raw) == ((raw, None) if kind is RowType.DELETE else (None, raw))
    assert row.is_last
    assert math.isfinite(row.timestamp)


def check(data: bytes) -> None:
    draw = Draw(data)
    how = draw.byte() % 4
    if how == 0:
        raw = draw.rest()
        requests.check(raw)
        check_value(raw)
    elif how == 1:
        sizes = draw.chunk()
        check_stream(draw.rest(), sizes)
    else:
        check_encoding(draw)


TARGET: Final = Target(
    check,
    [
        *(b"\0" + seed for seed in requests.SEEDS),
        *(b"\0" + seed[1:] for seed in values.TARGET.seeds),
        *(b"\1" + seed for seed in frames.TARGET.seeds),
        *(
            b"\2" + bytes((sync, 3, 200, kind, 2, 5, 1, 2, 3, 4, 2, 1, 7, 2, 1, 2))
            for sync in (1, 160, 190)
            for kind in range(8)
        ),
    ],
    {f"values: {what}": b"\0" + data[1:] for what, data in values.TARGET.cases.items()},
)
