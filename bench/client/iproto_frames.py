"""Frames of IPROTO requests, without the server's code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgpack

LENGTH_SIZE: Final = 5
"""Bytes of the length prefix of every request and answer."""

_CALL: Final = 10
_TYPE, _SYNC, _TUPLE, _FUNCTION_NAME = 0x00, 0x01, 0x21, 0x22
_LENGTH_MARK: Final = b"\xce"


def frame(content: bytes) -> bytes:
    """Prepend the length to a request's header and body."""
    return _LENGTH_MARK + len(content).to_bytes(LENGTH_SIZE - 1, "big") + content


def request_frame(request_type: int, body: dict[int, object], sync: int = 0) -> bytes:
    """Encode a request.

    Parameters:
        request_type: the number of the type.
        body: the values by the numbers of their keys.
        sync: the number that the answer repeats.

    Returns: the length, the header and the body.
    """
    return frame(bytes(msgpack.packb({_TYPE: request_type, _SYNC: sync}) + msgpack.packb(body)))


def call_frame(procedure: str, arguments: Iterable[object], sync: int = 0) -> bytes:
    """Encode a CALL.

    Parameters:
        procedure: the name of the procedure.
        arguments: its arguments.
        sync: the number that the answer repeats.

    Returns: the length, the header and the body.
    """
    return request_frame(_CALL, {_FUNCTION_NAME: procedure, _TUPLE: list(arguments)}, sync)
