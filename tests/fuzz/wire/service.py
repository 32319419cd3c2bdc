"""A server without sockets: each request of a client has one answer, and none affects others."""

from __future__ import annotations

import asyncio
import atexit
import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Final

from iproto_server import Application, Box
from iproto_server.codec import msgpack as codec
from iproto_server.config.address import Address
from iproto_server.config.config import Config
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.protocol.framing import FrameDecoder, FramingError
from iproto_server.protocol.request import RequestError, decode_request
from iproto_server.server.connection.connection import Connection
from iproto_server.server.limits.login_delays import LoginDelays
from iproto_server.server.server import Server
from queue_lua_compat.tutorial import TutorialQueue
from tests.fuzz.draw import Draw
from tests.fuzz.spaces.updates import draw_operation
from tests.fuzz.target import Target
from tests.fuzz.wire.requests import SEEDS, frame_of
from tests.server.wire import Wire

USER: Final = "fuzz"
MAX_FRAME: Final = 1 << 16
PATIENCE: Final = 10_000
"""The maximum number of loop iterations until a client is read from again."""

_KINDS: Final = (1, 2, 3, 4, 5, 9, 6, 10, 7, 64, 73, 8, 11, 12, 13, 14, 15, 16, 74, 75, 77, 78, 255)
_UNANSWERED: Final = (RequestType.WATCH, RequestType.UNWATCH)
GREETING: Final = 128
_NAMES: Final = (
    *("queue.put", "queue.take", "queue.ack", "queue.release", "queue.stats", "async.echo", "echo"),
    *("box.space.jobs:select", "box.space.jobs:replace", "box.space.jobs:update", "box.space.jobs:delete"),
    *("box.space.jobs.index.status:select", "box.space.jobs:upsert", "box.space.jobs:insert", "box.info"),
    *("box.space.jobs.index[1]:get", "box.space[512]:count", "box.space.jobs:", "nothing", "dostring"),
    *("box.begin", "box.space.jobs:len", "box.space.jobs.index.status:pairs", "box.space._space:select"),
)


class Errors(logging.Handler):
    """Records unexpected exceptions, which are logged as errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[logging.LogRecord] = []

    def listen(self) -> None:
        """Clear the records, and record from now on, whatever other targets have changed in the logs."""
        self.seen.clear()
        logger = logging.getLogger("iproto_server")
        logger.setLevel(logging.ERROR)
        logger.propagate = False
        logger.addHandler(self)  # has no effect the second time

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record)


class Subject:
    """The server, which is reused for all inputs, and its loop.

    Parameters:
        applications: What it serves.
        wal_mode: How it writes its log.

    Attributes:
        directory: Its files.
    """

    def __init__(self, applications: Sequence[Application], wal_mode: str = "none") -> None:
        self.errors = Errors()
        self.loop = asyncio.new_event_loop()
        self.directory = directory = Path(tempfile.mkdtemp(prefix="fuzz-service-"))
        atexit.register(shutil.rmtree, directory)
        config = Config(
            listen=(Address(path="fuzz.sock"),),
            listen_1_5=(Address(path="fuzz15.sock"),),
            work_dir=directory,
            wal_mode=wal_mode,
            max_frame=MAX_FRAME,
        )
        self.server = Server(config, applications)
        # DDL would affect the next input, too.
        self.server.configure_guest = lambda: None  # type: ignore[method-assign]
        self.server.open(self.loop)
        self.loop.run_until_complete(self.server.start())
        self.box: Box = self.server.box
        # Failed logins are forgiven before the next one: a delayed AUTH has no answer to count.
        later = partial(next, count(0.0, 1000.0))
        self.server.dispatcher.authentication.delays = LoginDelays(later)

    async def serve(
        self, pieces: list[bytes], connection_type: type[Connection] = Connection
    ) -> tuple[bytes, int]:
        """Send bytes; return the answers, and the number of requests in flight."""
        wire = Wire()
        connection = connection_type(self.server.state)
        connection.connection_made(wire)
        connection.session.credentials = self.box.access.by_name(USER)
        for piece in pieces:
            if not wire.is_shut:
                connection.data_received(piece)
            for _ in range(PATIENCE):
                if wire.is_shut or not wire.is_paused:
                    break
                await asyncio.sleep(0)
        for _ in range(PATIENCE):
            if wire.is_shut or connection not in self.server.state.turns:
                break
            await asyncio.sleep(0)
        for _ in range(12):
            await asyncio.sleep(0)
        # A call that has just timed out is not in flight any more, but its answer is not sent yet.
        await self.server.state.batch.drain()
        in_flight = connection.in_flight
        sent = bytes(wire.sent)
        wire.close()
        connection.connection_lost(None)
        for _ in range(12):
            await asyncio.sleep(0)
        return sent, in_flight

    def clean(self) -> None:
        """Check that the indexes agree, and remove all effects on the next input."""
        session = self.box.session.background
        for name in ("jobs", "queue"):
            space = self.box.space[name]
            native = self.box.catalog.space_by_name(name)
            rows = list(native.rows())
            for index in native.indexes.values():
                assert len(index) == len(rows)
            for row in rows:
                self.box.run(session, space.delete, [codec.unpack(row)[0]])
        assert not self.server.state.connections
        assert not self.server.state.in_flight
        assert not self.server.state.held


def application() -> Application:
    """Provide a space, and calls of all kinds."""
    app = Application("fuzz")

    @app.setup
    def setup(box: Box) -> None:
        box.schema.user.create(USER, password="secret")
        fields = [("id", "unsigned"), ("status", "string"), ("m", "any")]
        space = box.schema.create_space("jobs", format=fields)
        space.create_index("primary", parts=["id"])
        space.create_index("status", parts=["status", "id"])
        box.schema.user.grant(USER, "read,write,execute", "universe")

    @app.procedure("echo")
    def echo(box: Box, *values: object) -> object:
        return values

    @app.procedure("async.echo")
    async def async_echo(box: Box, *values: object) -> object:
        await asyncio.sleep(0)
        return list(values)

    @app.procedure("nothing")
    def nothing(box: Box) -> None:
        """Take no arguments, and return nothing."""

    return app


def queue() -> Application:
    """Provide the tutorial's queue."""
    app = Application("queue")
    TutorialQueue(app)
    return app


@cache
def subject() -> Subject:
    return Subject([application(), queue()])


def draw_frame(draw: Draw) -> bytes:
    """Draw a request, valid or not."""
    how = draw.byte()
    if how % 16 == 15:
        return draw.chunk()
    kind = draw.pick(_KINDS)
    body: dict[Any, Any] = {}
    if kind in (6, 10):
        body[Key.FUNCTION_NAME] = draw.pick(_NAMES)
        body[Key.TUPLE] = draw.values(4, 3)
    elif kind < 10:
        body = {Key.SPACE_ID: 512, Key.INDEX_ID: draw.byte() % 3, Key.LIMIT: 10}
        body[Key.ITERATOR] = draw.byte() % 13
        row = [draw.byte() % 4, draw.pick("RTW"), draw.value(3)]
        body[Key.KEY] = row[:1] if how & 0x10 else draw.values(3)
        body[Key.TUPLE] = row
        body[Key.OPS] = [draw_operation(draw) for _ in range(draw.byte() % 3)]
        if kind == RequestType.UPDATE:
            body[Key.TUPLE] = body[Key.OPS]
    for _ in range(how & 3):
        body[draw.pick([*Key])] = draw.value(3)
    header: dict[int, object] = {}
    if how & 0x20:
        header[Key.SCHEMA_VERSION] = draw.integer()
    if how & 0x40:
        header[Key.STREAM_ID] = draw.byte() % 3
    return frame_of(kind, body, header)


def framed(frame: bytes) -> bytes:
    return b"\xce" + len(frame).to_bytes(4, "big") + frame


def answers(sent: bytes) -> Iterator[tuple[int, int]]:
    """Return the type and the sync of every answer after the greeting, except events."""
    for frame in FrameDecoder(1 << 30).feed(sent[GREETING:]):
        end = codec.skip(frame, 0)
        header = codec.unpack(frame[:end])
        assert type(codec.unpack(frame[end:])) is dict or header[0] == 0
        if header[0] != RequestType.EVENT:
            yield header[0], header[1]


def check(data: bytes) -> None:
    draw = Draw(data)
    how = draw.byte()
    frames: list[bytes] = []
    fault = 0
    if how & 1:
        stream = draw.rest()
        try:
            frames = FrameDecoder(MAX_FRAME).feed(stream)
        except FramingError as error:
            frames, fault = error.frames, 1
    else:
        while not draw.is_used_up and len(frames) < 30:
            frames.append(draw_frame(draw))
        stream = b"".join(map(framed, frames))
    middle = len(stream) * (how >> 1) // 128
    target = subject()
    target.errors.listen()
    sent, in_flight = target.loop.run_until_complete(target.serve([stream[:middle], stream[middle:]]))
    assert not target.errors.seen, [record.getMessage() for record in target.errors.seen]
    syncs = [sync for _, sync in answers(sent)]
    asked, unanswered = [], 0
    for frame in frames:
        try:
            request = decode_request(frame)
        except RequestError as error:
            asked.append(error.sync)
            continue
        asked.append(request.sync)
        # A call that waits when its connection is closed for a malformed packet has no answer.
        unanswered += request.type in _UNANSWERED or (fault and request.type == RequestType.CALL)
    assert len(frames) + fault - unanswered - in_flight <= len(syncs) <= len(frames) + fault - in_flight
    for sync in set(syncs) - {0}:
        assert syncs.count(sync) <= asked.count(sync)
    target.clean()


TARGET: Final = Target(
    check,
    [
        *(b"\1" + framed(frame) for frame in SEEDS),
        *(bytes((0, 0, number, 0, 0, 1, 0, 0x51, 0, 0, 0)) for number in range(len(_KINDS))),
        *(bytes((0, 0, 7, number, 1, 0, 0x51, 0, 7, number, 2, 3, 1, 3, 1)) for number in range(len(_NAMES))),
        b"\1" + framed(frame_of(10, {Key.FUNCTION_NAME: "queue.put", Key.TUPLE: ["x", {"delay": 1}]})),
    ],
    {
        "a take waits when a malformed packet comes": b"\1"
        + framed(frame_of(10, {Key.FUNCTION_NAME: "queue.take", Key.TUPLE: [1]}))
        + b"\x9c" * 8,
    },
    memory=64 << 20,
)
