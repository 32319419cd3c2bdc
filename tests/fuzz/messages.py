"""Values, requests and responses: compiled code and pure Python decode and encode them alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.protocol.framing import FrameDecoder, FramingError
from iproto_server.protocol.request import RequestError, decode_request
from iproto_server.protocol.response import encode_tuples
from iproto_server.server.requests.call import encode_result
from iproto_server.storage.xlog import encode_change
from iproto_server.storage.xlog.block import PLAIN_MARKER, with_head
from tests.fuzz import frames, requests, values
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target
from tests.native.test_twins import told as in_detail

_MAX_FRAME: Final = 300


def told(function: Callable[[], object]) -> object:
    """Return what a function returns, or its error."""
    try:
        return function()
    except BoxError as error:
        return error.code, error.message
    except RequestError as error:
        return error.sync, error.code, error.message
    except RecursionError:
        return RecursionError


def cut(stream: bytes, sizes: bytes) -> object:
    """Cut a stream, which arrives in pieces, into frames."""
    decoder = FrameDecoder(_MAX_FRAME, 7)
    found: list[object] = []
    position = number = 0
    try:
        while position < len(stream):
            size = max(sizes[number % len(sizes)], 1) if sizes else len(stream)
            found.append(decoder.feed(stream[position : position + size]))
            while decoder.has_more:
                found.append(decoder.more())
            position += size
            number += 1
    except FramingError as error:
        found += [error.frames, error.message]
    return found


def request(frame: bytes) -> object:
    """Decode a request."""
    made = decode_request(frame)
    body = [(key, in_detail(value)) for key, value in made.body.items()]
    return made.type, made.sync, made.schema_version, made.stream_id, body


def outcome(data: bytes) -> object:
    """Decode bytes in all ways, or encode values drawn from them in all ways.

    Returns:
        What comes of each.
    """
    draw = Draw(data)
    how = draw.byte() % 4
    if how == 0:
        raw = draw.rest()
        return told(lambda: request(raw)), told(lambda: in_detail(codec.unpack(raw)))
    if how == 1:
        sizes = draw.chunk()
        return cut(draw.rest(), sizes)
    sync, version, space = draw.integer() & 2**64 - 1, draw.integer() & 2**32 - 1, draw.integer() & 2**32 - 1
    value: Any = draw.value(4)
    raws = [draw.chunk() for _ in range(draw.byte() % 4)]
    return (
        told(lambda: codec.pack(value)),
        told(lambda: encode_result(sync, version, value)),
        told(lambda: encode_result(sync, version, (value, *raws))),
        told(lambda: encode_tuples(sync, version, raws)),
        told(lambda: encode_change(2 + how, 1, sync, 1.5, space, b"".join(raws))),
        told(lambda: with_head(PLAIN_MARKER, b"".join(raws), version)),
    )


TARGET: Final = Target(
    outcome,
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
