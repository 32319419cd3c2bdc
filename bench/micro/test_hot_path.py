"""Microbenchmarks of whole requests, from their bytes to the bytes of their responses, without sockets.

    make bench-pieces

Each round sends a pipeline of `REQUESTS` requests in chunks of 100 through the frame decoder and the
dispatcher, as a connection does. pytest-benchmark shows a round's time, `make bench-pieces` that of one
request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import msgpack
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.micro import measuring
from iproto_server import Application, Box, ManualClock, Waiter
from iproto_server.app import Procedures
from iproto_server.box.access.session import Session
from iproto_server.protocol.constants import PROTOCOL_VERSION, Key, RequestType
from iproto_server.protocol.framing import FrameDecoder
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.requests.dispatcher import Dispatcher
from queue_lua_compat.tutorial import TutorialQueue

REQUESTS = 5_000
ROUNDS = 7
CHUNK = 100
PAYLOAD = "x" * 100


class RunningClock(ManualClock):
    """The system's time, without timers."""

    def time_ns(self) -> int:
        """Return nanoseconds since 1970."""
        return time.time_ns()


class Pipeline:
    """A client that hands its requests directly to the dispatcher.

    Parameters:
        add: adds procedures to those of the queue.
    """

    def __init__(self, add: Callable[[Application], None] | None = None) -> None:
        self.box = Box(clock=RunningClock())
        application = Application("queue")
        TutorialQueue(application)
        if add is not None:
            add(application)
        for setup in application.setups:
            self.box.run(self.box.session.background, setup, self.box)
        self._dispatcher = Dispatcher(
            self.box,
            Procedures([application]),
            (),
            PROTOCOL_VERSION,
            _no_coroutines,
            RateLimitedLog(logging.getLogger(__name__), self.box.clock),
        )
        self._decoder = FrameDecoder(1 << 28)
        self.session = self.box.session.open("binary", "bench", user="admin")
        self.salt = b""
        self.responses: list[bytes] = []
        self.reply = self.responses.append

    def send(self, chunks: list[bytes]) -> None:
        """Execute all requests."""
        handle = self._dispatcher.handle
        for chunk in chunks:
            for frame in self._decoder.feed(chunk):
                handle(self, frame)  # type: ignore[arg-type]  # it has what the dispatcher uses of a connection

    def taken(self) -> list[int]:
        """Take all tasks and return their ids."""
        self.responses.clear()
        self.send(requests(call("queue.take") for _ in range(REQUESTS)))
        bodies = (msgpack.unpackb(response[28:], strict_map_key=False) for response in self.responses)
        return [body[Key.DATA][0]["id"] for body in bodies]


def _no_coroutines(session: Session, coroutine: Coroutine[Any, Any, object]) -> Waiter:
    raise AssertionError("the queue has no async procedures")


def call(name: str, *arguments: object) -> bytes:
    """Encode a CALL request."""
    return request(RequestType.CALL, {Key.FUNCTION_NAME: name, Key.TUPLE: list(arguments)})


def request(kind: int, body: dict[Key, object]) -> bytes:
    """Encode a request."""
    packed = msgpack.packb({int(Key.REQUEST_TYPE): int(kind), int(Key.SYNC): 1}) + msgpack.packb(body)
    return b"".join((b"\xce", len(packed).to_bytes(4, "big"), packed))


def requests(frames: Iterator[bytes]) -> list[bytes]:
    """Join frames to chunks of many, as they arrive from a socket."""
    every = list(frames)
    return [b"".join(every[start : start + CHUNK]) for start in range(0, len(every), CHUNK)]


def measure(
    benchmark: BenchmarkFixture,
    prepare: Callable[[Pipeline], list[bytes]],
    add: Callable[[Application], None] | None = None,
) -> None:
    """Measure the requests that `prepare` creates; each round has a new pipeline.

    Parameters:
        benchmark: the fixture.
        prepare: fills the pipeline's box and returns the requests.
        add: adds procedures to those of the queue.
    """

    def setup() -> tuple[Pipeline, list[bytes]]:
        pipeline = Pipeline(add)
        chunks = prepare(pipeline)
        pipeline.responses.clear()
        return pipeline, chunks

    measuring.measure(benchmark, Pipeline.send, setup, count=REQUESTS, rounds=ROUNDS)


def puts() -> list[bytes]:
    return requests(call("queue.put", PAYLOAD) for _ in range(REQUESTS))


def inserts(space_id: int) -> list[bytes]:
    return requests(
        request(RequestType.INSERT, {Key.SPACE_ID: space_id, Key.TUPLE: [number, PAYLOAD]})
        for number in range(REQUESTS)
    )


def plain_space(pipeline: Pipeline) -> int:
    """Create a space with one index."""
    space = pipeline.box.schema.create_space("plain", format=[("id", "unsigned"), ("data", "string")])
    space.create_index("primary", parts=["id"])
    return space.id


def test_ping(benchmark: BenchmarkFixture) -> None:
    measure(benchmark, lambda pipeline: requests(request(RequestType.PING, {}) for _ in range(REQUESTS)))


def test_put(benchmark: BenchmarkFixture) -> None:
    measure(benchmark, lambda pipeline: puts())


def test_take(benchmark: BenchmarkFixture) -> None:
    def prepare(pipeline: Pipeline) -> list[bytes]:
        pipeline.send(puts())
        return requests(call("queue.take") for _ in range(REQUESTS))

    measure(benchmark, prepare)


def test_ack(benchmark: BenchmarkFixture) -> None:
    def prepare(pipeline: Pipeline) -> list[bytes]:
        pipeline.send(puts())
        return requests(call("queue.ack", task_id) for task_id in pipeline.taken())

    measure(benchmark, prepare)


def test_insert(benchmark: BenchmarkFixture) -> None:
    measure(benchmark, lambda pipeline: inserts(plain_space(pipeline)))


@pytest.mark.parametrize("kind", ["select", "replace", "update", "delete"])
def test_by_key(benchmark: BenchmarkFixture, kind: str) -> None:
    def prepare(pipeline: Pipeline) -> list[bytes]:
        space_id = plain_space(pipeline)
        pipeline.send(inserts(space_id))
        bodies: dict[str, Callable[[int], dict[Key, object]]] = {
            "select": lambda number: {Key.INDEX_ID: 0, Key.LIMIT: 1, Key.KEY: [number]},
            "replace": lambda number: {Key.TUPLE: [number, PAYLOAD]},
            "update": lambda number: {Key.INDEX_ID: 0, Key.KEY: [number], Key.TUPLE: [["=", 1, "y"]]},
            "delete": lambda number: {Key.INDEX_ID: 0, Key.KEY: [number]},
        }
        return requests(
            request(RequestType[kind.upper()], {Key.SPACE_ID: space_id, **bodies[kind](number)})
            for number in range(REQUESTS)
        )

    measure(benchmark, prepare)
