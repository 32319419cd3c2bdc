"""Microbenchmarks of the protocol: decoding frames and requests, encoding responses.

    make bench-pieces

Each round makes thousands of calls; pytest-benchmark shows the time of a round, `make bench-pieces` that of
one call. Rows and tasks have 100 bytes of data.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.micro.measuring import COUNT, measure
from bench.micro.test_hot_path import CHUNK, PAYLOAD, call, request
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.framing import FrameDecoder
from iproto_server.protocol.request import decode_request
from iproto_server.protocol.response import encode_error, encode_ok, encode_result, encode_tuples

SPACE_ID = 512
FRAME = request(RequestType.INSERT, {Key.SPACE_ID: SPACE_ID, Key.TUPLE: [123_456, PAYLOAD]})
FRAMES = 20_000
MAX_FRAME = 1 << 28

REQUESTS = {
    "ping": request(RequestType.PING, {}),
    "call": call("queue.put", PAYLOAD),
    "select": request(
        RequestType.SELECT, {Key.SPACE_ID: SPACE_ID, Key.INDEX_ID: 0, Key.LIMIT: 1, Key.KEY: [123_456]}
    ),
    "insert": FRAME,
    "update": request(
        RequestType.UPDATE,
        {Key.SPACE_ID: SPACE_ID, Key.INDEX_ID: 0, Key.KEY: [123_456], Key.TUPLE: [["=", 1, PAYLOAD]]},
    ),
}
TASK = {"id": 123_456, "status": "T", "data": PAYLOAD}
ROW = codec.pack([123_456, PAYLOAD])
ROWS = [ROW] * 10
ERROR = BoxError(ErrorCode.NO_SUCH_SPACE, "tasks")

RESPONSES: dict[str, Callable[[int], bytes]] = {
    "nothing": lambda sync: encode_ok(sync, 80),
    "a row": lambda sync: encode_tuples(sync, 80, (ROW,)),
    "ten rows": lambda sync: encode_tuples(sync, 80, ROWS),
    "a call's task": lambda sync: encode_result(sync, 80, TASK),
    "an error": lambda sync: encode_error(sync, 80, ERROR),
}


@pytest.mark.parametrize("arrival", ["whole", "split"])
def test_frame_decode(benchmark: BenchmarkFixture, arrival: str) -> None:
    """Split one frame off a chunk of 100; with "split", each chunk ends within its last frame."""
    cut = 0 if arrival == "whole" else len(FRAME) // 2
    stream = FRAME * FRAMES
    step = CHUNK * len(FRAME)
    bounds = [0, *range(step - cut, len(stream), step), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(bounds)]

    def decode(decoder: FrameDecoder) -> None:
        feed = decoder.feed
        for chunk in chunks:
            feed(chunk)

    measure(benchmark, decode, lambda: (FrameDecoder(MAX_FRAME),), count=FRAMES)


@pytest.mark.parametrize("kind", REQUESTS)
def test_request_decode(benchmark: BenchmarkFixture, kind: str) -> None:
    """Decode one request from its frame."""
    frames = [REQUESTS[kind][5:]] * COUNT

    def decode() -> None:
        for frame in frames:
            decode_request(frame)

    measure(benchmark, decode, tuple)


@pytest.mark.parametrize("kind", RESPONSES)
def test_response_encode(benchmark: BenchmarkFixture, kind: str) -> None:
    """Encode one response with packed rows, or with the values that a procedure returned."""
    encode = RESPONSES[kind]

    def responses() -> None:
        for sync in range(COUNT):
            encode(sync)

    measure(benchmark, responses, tuple)
