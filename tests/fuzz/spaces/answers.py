"""Requests to spaces of all kinds: what is refused changes nothing, indexes agree, and all can be undone."""

from __future__ import annotations

import atexit
import errno
import logging
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final
from uuid import UUID

from iproto_server import Box, BoxError, ErrorCode, ManualClock, Waiter
from iproto_server.app import Procedures
from iproto_server.codec import msgpack as codec
from iproto_server.protocol.constants import PROTOCOL_VERSION
from iproto_server.protocol.framing import FrameDecoder
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.requests.dispatcher import Dispatcher
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
from tests.fuzz.draw import Draw
from tests.fuzz.spaces.spaces import (
    NAMES,
    NOT_LOGGED,
    PROCEDURES,
    SPACES,
    check_indexes,
    draw_frame,
    empty,
    make_spaces,
    rows_of,
)
from tests.fuzz.target import Target
from tests.native.requests.sides import application
from tests.server.faults.faulty_disk import FaultyDisk

_UNPACKABLE: Final = b"unsupported Python type"
"""A procedure's result is packed when its changes are committed, as in Tarantool."""


class Client:
    """What a dispatcher needs of a connection."""

    def __init__(self, box: Box, user: str) -> None:
        self.session = box.session.open("binary", "a client", user=user)
        self.salt = b""
        self.streams = None
        self.received: list[bytes] = []

    def reply(self, response: bytes) -> None:
        """Keep a response."""
        self.received.append(response)

    def wait_for(self, waiter: Waiter, respond: Callable[[Waiter], bytes]) -> None:
        """Refuse to wait: none of the procedures does."""
        raise AssertionError("a call waits")


class Subject:
    """A box with a dispatcher, two clients without sockets, and a log on a disk that may fail."""

    def __init__(self) -> None:
        logging.getLogger("iproto_server").setLevel(logging.CRITICAL)
        self.box = Box(clock=ManualClock())
        app = application()
        for setup in app.setups:
            self.box.run(self.box.session.background, setup, self.box)
        self.box.run(self.box.session.background, make_spaces, self.box)
        directory = Path(tempfile.mkdtemp(prefix="fuzz-answers-"))
        atexit.register(shutil.rmtree, directory)
        self.disk = FaultyDisk()
        self.log = self.box.transactions.journal = WriteAheadLog(
            directory, WalMode.WRITE, UUID(int=1), 1, VClock({1: 5}), open_file=self.disk.open
        )
        self.box.transactions.write_soon = lambda: None
        limited = RateLimitedLog(logging.getLogger(__name__), self.box.clock)
        self.dispatcher = Dispatcher(
            self.box, Procedures([app]), (), PROTOCOL_VERSION, _refuse_coroutine, limited
        )
        self.clients = {user: Client(self.box, user) for user in ("admin", "guest")}

    def handle(self, frame: bytes, user: str) -> bytes:
        """Answer a request.

        Returns:
            The response.
        """
        client = self.clients[user]
        self.dispatcher.handle(client, frame)  # type: ignore[arg-type]
        [response] = client.received
        client.received.clear()
        assert self.box.transactions.statements is None
        assert self.box.session.current is self.box.session.background
        return response

    def write(self) -> None:
        """Write the log as a server does: if that fails, all changes since the last time are undone."""
        transactions = self.box.transactions
        transactions.is_write_due = transactions.has_logged = False
        taken = transactions.take_unwritten()
        try:
            self.log.write()
        except BoxError:
            transactions.undo(taken)


def _refuse_coroutine(session: object, coroutine: Any) -> Waiter:
    coroutine.close()
    raise BoxError(ErrorCode.UNSUPPORTED, "This test", "coroutines")


@cache
def subject() -> Subject:
    """Make the box, which is reused for all inputs."""
    return Subject()


def is_refusal(response: bytes) -> bool:
    """Check the form of a response to a request with the sync 5, and tell whether it is an error."""
    [frame] = FrameDecoder(1 << 30).feed(response)
    end = codec.skip(frame, 0)
    header, body = codec.unpack(frame[:end]), codec.unpack(frame[end:]) if end < len(frame) else {}
    assert set(header) == {0, 1, 5}
    assert set(body) <= ({0x31, 0x52} if header[0] else {0x30})
    return bool(header[0])


def check(data: bytes) -> None:
    """Answer requests, and write the log, which may fail."""
    draw = Draw(data)
    how = draw.byte()
    user = ("admin", "admin", "admin", "guest")[how % 4]
    target = subject()
    box = target.box
    assert rows_of(box) == []
    count, before = 0, rows_of(box)
    while not draw.is_used_up and count < 30:
        response = target.handle(draw_frame(draw), user)
        after = rows_of(box)
        assert before == after or not is_refusal(response) or _UNPACKABLE in response, response
        before = after
        count += 1
    check_indexes(box)
    target.disk.fault = errno.ENOSPC if how & 4 else None
    target.write()
    check_indexes(box)
    if how & 4:
        assert [name for name in NAMES if box.space[name].len() and name not in NOT_LOGGED] == []
    else:
        assert rows_of(box) == before
    target.disk.fault = None
    # The first change after a failed write is written at once, so it could not be undone.
    box.run(box.session.background, box.space.rows.replace, [0])
    empty(box)
    target.write()


def _inserts(space: int, count: int) -> bytes:
    """An INSERT of each of some rows."""
    width = len(SPACES[space][0])
    return b"".join(
        bytes((0, 1, space, 0, *(number + place for place in range(width)), 0)) for number in range(count)
    )


def _many(seed: int) -> bytes:
    """Many requests, mostly with the first few of all choices."""
    random = Random(seed)
    return bytes(random.randrange(random.choice((4, 8, 16, 256))) for _ in range(400))


TARGET: Final = Target(
    check,
    [
        b"",
        *map(_many, range(20)),
        *(b"\0" + _inserts(space, 4) + bytes((0, 3, space, 0, 0, 0, 0, 4)) for space in range(len(SPACES))),
        *(
            b"\0" + _inserts(space, 4) + bytes((8, 3, space, index, 0, 0, 0, 4, iterator))
            for space in range(len(SPACES))
            for index, iterator in ((0, 5), (1, 3), (1, 0), (0, 6), (2, 4))
        ),
        *(
            b"\0" + _inserts(space, 3) + bytes((0, 5, space, 0, 0, 1, 1, 2, 0, 1, 2))
            for space in range(len(SPACES))
        ),
        *(
            bytes((how,)) + _inserts(space, 3) + bytes((0, 8, space, 0, 0, 1))
            for how in (0, 4)
            for space in range(len(SPACES))
        ),
        *(
            b"\0" + _inserts(0, 2) + bytes((0x10, 9, number, 0, 1, 1, 2, 0, 0x10, 9, number, 0, 1, 1, 2, 0))
            for number in range(len(PROCEDURES))
        ),
        b"\3" + _inserts(0, 2),
        b"\0" + _inserts(1, 3) + bytes((0, 7, 1, 0, 1, 2, 3, 0, 2, 2, 1, 5)),
    ],
    memory=16 << 20,
)
