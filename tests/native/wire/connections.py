"""Connections without clients, for tests of their state."""

from __future__ import annotations

import logging
import math
from typing import Any, cast

from iproto_server import Application, Box, ManualClock
from iproto_server.app import Procedures
from iproto_server.config.config import Config
from iproto_server.native._native import OutputBatch, SchedulerState, SharedState, Traffic
from iproto_server.protocol.constants import PROTOCOL_VERSION, Key, RequestType
from iproto_server.server.connection.connection import Connection
from iproto_server.server.limits.connection_deadlines import ConnectionDeadlines
from iproto_server.server.limits.incoming_limits import IncomingLimits
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.requests.dispatcher import Dispatcher
from tests.native.requests.sides import SPACE, application, call, no_coroutines, request


class Batch(OutputBatch):
    """The connections that have something to send; nothing is scheduled."""

    def _schedule(self) -> None:
        self._is_scheduled = True


class Server(SharedState):
    """What a connection needs of its server."""

    def __init__(self, app: Application) -> None:
        clock = ManualClock()
        self.box = Box(clock=clock)
        self.config = Config(max_frame=1 << 20, write_high_water=100)
        log = RateLimitedLog(logging.getLogger("iproto_server.test"), clock)
        for setup in app.setups:
            self.box.run(self.box.session.background, setup, self.box)
        self.transactions = self.box.transactions
        self.dispatcher = Dispatcher(self.box, Procedures([app]), (), PROTOCOL_VERSION, no_coroutines, log)
        self.incoming = IncomingLimits(
            lambda: self.config, self.box.access, ConnectionDeadlines(clock), log, clock, lambda: 1000
        )
        self.batch = Batch()
        self.traffic = Traffic()
        self.write_high_water = 100
        self.parked_max = 1
        self.held: set[Connection] = set()


def connection_of(unsent: int = 0, **attributes: object) -> Connection:
    """A connection without a client, with so many bytes to send."""
    server = Server(application())
    connection = Connection(cast(Any, server))
    connection.session = server.box.session.open("binary", "a test", user="admin")
    for name, value in attributes.items():
        setattr(connection, name, value)
    connection._output.add(b"x" * unsent, False)
    return connection


class Transport:
    """Where a connection's answers go."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_shut = False
        self.calls: list[str] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.is_shut

    def get_extra_info(self, name: str) -> None:
        """Nothing is known."""

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")


class Turns(SchedulerState):
    """The line of those who have more to do."""

    def __init__(self) -> None:
        self.line: list[Any] = []
        self.add = self.line.append

    def begin(self) -> float:
        return 0.0


def framed(*frames: bytes) -> bytes:
    return b"".join(b"\xce" + len(frame).to_bytes(4, "big") + frame for frame in frames)


ONE, PUT = call("one", 1), call("put", 1, "a")


class EndlessTurns(Turns):
    """All the time that anybody may ask for."""

    def begin(self) -> float:
        return math.inf


def rows(kind: RequestType, *keys: int) -> list[bytes]:
    """Requests with other numbers each."""
    select = {0x10: SPACE, 0x12: 10, 0x20: [0]}
    bodies = {
        RequestType.SELECT: lambda key: {**select, 0x20: [key]},
        RequestType.REPLACE: lambda key: {0x10: SPACE, 0x21: [key, "x" * 100]},
    }
    return [request(kind, bodies[kind](key), {int(Key.SYNC): 1000 + key}) for key in keys]
