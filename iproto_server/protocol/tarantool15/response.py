"""Encodes responses."""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.tarantool15.constants import BODY_MAX, HEADER_SIZE, RequestType15
from iproto_server.protocol.tarantool15.return_code import message_of, return_code

_pack_header: Final = struct.Struct("<III").pack
_pack_start: Final = struct.Struct("<IIIII").pack
_pack_error_start: Final = struct.Struct("<IIII").pack
_pack_tuple_start: Final = struct.Struct("<II").pack


def encode_pong(request_id: int) -> bytes:
    """Encode the response to a PING: a header without return code.

    Args:
        request_id: the request's own number.
    """
    return _pack_header(RequestType15.PING, 0, request_id)


def encode_tuples(kind: int, request_id: int, count: int, tuples: Sequence[bytes] = ()) -> bytes:
    """Encode a successful response.

    Args:
        kind: the request's type.
        request_id: the request's own number.
        count: the number of rows found or changed.
        tuples: the rows, each packed by `encode_tuple`; empty if they were not requested.

    Returns:
        The whole response.

    Raises:
        BoxError: MEMORY_ISSUE if it exceeds the limit of the protocol.
    """
    rows = b"".join(tuples)
    if len(rows) + 8 > BODY_MAX:
        raise too_large(len(rows))
    return _pack_start(kind, 8 + len(rows), request_id, 0, count) + rows


def encode_error(kind: int, request_id: int, error: BoxError) -> bytes:
    """Encode an error response.

    Args:
        kind: the request's type.
        request_id: the request's own number.
        error: the error.

    Returns:
        The whole response; its text ends with a zero byte, as in 1.5.
    """
    text = message_of(error)
    return _pack_error_start(kind, 4 + len(text), request_id, return_code(error)) + text


def encode_tuple(fields: Iterable[bytes]) -> bytes:
    """Encode a row: the size of its fields in bytes, their number, and each field after its length."""
    parts: list[bytes] = []
    count = 0
    for field in fields:
        count += 1
        parts.append(encode_length(len(field)))
        parts.append(field)
    data = b"".join(parts)
    return _pack_tuple_start(len(data), count) + data


def encode_length(value: int) -> bytes:
    """Encode a number below 2^32 in as few bytes as possible, seven bits each, the highest first."""
    if value < 0x80:
        return bytes((value,))
    parts = [value & 0x7F]
    while value := value >> 7:
        parts.append(0x80 | value & 0x7F)
    return bytes(reversed(parts))


def too_large(size: int) -> BoxError:
    """The error for a response that is too large.

    Args:
        size: its minimal size in bytes.
    """
    return BoxError(ErrorCode.MEMORY_ISSUE, size, "an answer", "tuples")


def answered_request(answer: bytes) -> tuple[int, int]:
    """The type and the number of a response's request."""
    return int.from_bytes(answer[:4], "little"), int.from_bytes(answer[8:HEADER_SIZE], "little")
