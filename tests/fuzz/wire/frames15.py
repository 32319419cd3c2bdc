"""Requests of Tarantool 1.5's protocol in a stream of random pieces; their contents; UPDATEs of a row.

Requests are also split independently of the decoder; their contents are decoded, or refused with
a known error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.framing import FramingError
from iproto_server.protocol.tarantool15 import FrameDecoder15
from iproto_server.protocol.tarantool15.request import Update, decode_body, decode_header
from iproto_server.protocol.tarantool15.response import encode_error, encode_tuple, encode_tuples
from iproto_server.protocol.tarantool15.update_operations import apply_operations, decode_operations
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target
from tests.protocol.tarantool15.box15_client import (
    CALL,
    DELETE,
    DELETE_1_3,
    INSERT,
    PING,
    SELECT,
    UPDATE,
    answer_of,
    call_body,
    delete_body,
    frame,
    insert_body,
    operation,
    packed_tuple,
    select_body,
    splice,
    u32,
    u64,
    update_body,
)

MAX_BODY: Final = 300
HEADER: Final = 12
ROW: Final = (b"key", u32(1), u64(2), b"text", b"")
_REFUSALS: Final = frozenset(
    {
        ErrorCode.ILLEGAL_PARAMS,
        ErrorCode.UNKNOWN_UPDATE_OP,
        ErrorCode.NO_SUCH_FIELD_NO,
        ErrorCode.FIELD_TYPE,
        ErrorCode.UPDATE_ARG_TYPE,
        ErrorCode.UPDATE_SPLICE,
        ErrorCode.UPDATE_FIELD,
    }
)


def frames_of(stream: bytes) -> tuple[list[bytes], bool]:
    """Return the requests of a stream, and whether an oversized one follows."""
    frames: list[bytes] = []
    while len(stream) >= HEADER:
        size = int.from_bytes(stream[4:8], "little")
        if size > MAX_BODY:
            return frames, True
        if len(stream) < HEADER + size:
            break
        frames.append(stream[: HEADER + size])
        stream = stream[HEADER + size :]
    return frames, False


def cut(stream: bytes, cuts: Sequence[int]) -> tuple[list[bytes], bool]:
    """Return the same from the decoder, which is fed pieces of these sizes."""
    decoder = FrameDecoder15(MAX_BODY)
    frames: list[bytes] = []
    position = number = 0
    while position < len(stream):
        size = max(cuts[number % len(cuts)], 1) if cuts else len(stream)
        number += 1
        try:
            frames += decoder.feed(stream[position : position + size])
        except FramingError as error:
            return frames + error.frames, True
        position += size
        assert decoder.buffered < MAX_BODY + HEADER + 255
    return frames, False


def carry_out(request: bytes) -> bytes:
    """Execute a request; only UPDATEs do something."""
    kind, _, request_id = decode_header(request)
    try:
        asked = decode_body(request)
        if not isinstance(asked, Update):
            return encode_tuples(kind, request_id, 1)
        fields = apply_operations(len(ROW), ROW.__getitem__, decode_operations(asked.operations))
        row = [ROW[field.origin or 0] if field.data is None else field.data for field in fields]
        assert len(row) <= len(ROW) + len(asked.operations)
        return encode_tuples(kind, request_id, 1, [encode_tuple(row)])
    except BoxError as error:
        if error.code not in _REFUSALS:
            raise
        return encode_error(kind, request_id, error)


def check(data: bytes) -> None:
    draw = Draw(data)
    cuts = draw.chunk()
    stream = draw.rest()
    frames, is_too_large = frames_of(stream)
    assert cut(stream, cuts) == (frames, is_too_large)
    for each in frames:
        kind, size, request_id = decode_header(each)
        assert size == len(each) - HEADER
        if kind != PING:
            answer = answer_of(carry_out(each))
            assert (answer.kind, answer.request_id) == (kind, request_id)


_OPERATIONS: Final = (
    *(operation(1, code, u32(3)) for code in (0, 1, 2, 3, 4, 8)),
    *(operation(2, 1, u64(3)), operation(3, 5, splice(1, -1, b"ex")), operation(4, 6, b"")),
    *(operation(2**32 - 1, 7, b"new"), operation(0, 9, u32(2)), operation(5, 0, b"")),
)

SEEDS: Final = (
    frame(PING, b"", 1),
    frame(INSERT, insert_body(512, u32(1), b"R", b"\xff"), 2),
    frame(INSERT, insert_body(512, u32(1), b"T", b"x" * 130, flags=3), 3),
    frame(SELECT, select_body(512, [u32(1)], [], index=1, limit=2), 4),
    frame(SELECT, select_body(512, [b"R", u32(1)], index=1), 4),
    *(frame(UPDATE, update_body(512, [u32(1)], each, flags=1), 5) for each in _OPERATIONS),
    frame(DELETE, delete_body(512, u32(1), flags=1), 6),
    frame(DELETE_1_3, u32(512) + packed_tuple(u32(1)), 7),
    frame(CALL, call_body(b"echo", b"a", b"\xff", u32(3)), 8),
    frame(99, b"x", 9),
    u32(SELECT, MAX_BODY + 1, 10),
)
"""Draw requests of every type."""

TARGET: Final = Target(
    check,
    [
        *(b"\0" + each for each in SEEDS),
        b"\2\1\3" + b"".join(SEEDS[:4]),
        b"\1\x0b" + b"".join(SEEDS),
        b"\0" + frame(UPDATE, update_body(512, [u32(1)], *_OPERATIONS), 5),
    ],
)
