"""Frames, requests and responses: decoded as by the models, encoded as their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.protocol.framing import FrameDecoder, FramingError
from iproto_server.protocol.response import (
    encode_ok,
    encode_result,
    encode_tuples,
    response_sync,
    response_version,
)
from tests.fuzz import frames, requests, values
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target


def told(function: Callable[..., object], *arguments: object) -> object:
    """Return what a function returns, or its error."""
    try:
        return function(*arguments)
    except BoxError as error:
        return error.code, error.message
    except RecursionError:
        return RecursionError


def cut(stream: bytes, sizes: bytes) -> tuple[list[bytes], str | None]:
    """Cut a stream, which arrives in pieces, into frames."""
    decoder = FrameDecoder(frames.MAX_FRAME, 7)
    found: list[bytes] = []
    position = number = 0
    try:
        while position < len(stream):
            size = max(sizes[number % len(sizes)], 1) if sizes else len(stream)
            found += decoder.feed(stream[position : position + size])
            while decoder.has_more:
                found += decoder.more()
            position += size
            number += 1
    except FramingError as error:
        return found + error.frames, error.reason
    return found, None


def response(sync: int, version: int, raws: Sequence[bytes]) -> bytes:
    """Build a response with values."""
    body = b"\x81\x30\xdd" + len(raws).to_bytes(4, "big") + b"".join(raws)
    return encode_ok(sync, version, body)


def response_to(sync: int, version: int, result: Any) -> bytes:
    """Build the response to a CALL from packed values."""
    values = [] if result is None else result if isinstance(result, tuple) else [result]
    return response(sync, version, [codec.pack(value) for value in values])


def check(data: bytes) -> None:
    draw = Draw(data)
    how = draw.byte() % 4
    if how == 0:
        requests.check(draw.rest())
        return
    if how == 1:
        sizes = draw.chunk()
        stream = draw.rest()
        assert cut(stream, sizes) == frames.frames_of(stream)[:2]
        return
    sync, version = draw.integer() & 2**64 - 1, draw.integer() & 2**32 - 1
    value: Any = draw.value(4)
    raws = [draw.chunk() for _ in range(draw.byte() % 4)]
    made = encode_tuples(sync, version, raws)
    assert made == response(sync, version, raws)
    assert (response_sync(made), response_version(made)) == (sync, version)
    for result in (value, (value, *raws)):
        assert told(encode_result, sync, version, result) == told(response_to, sync, version, result)


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
