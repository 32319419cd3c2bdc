"""A connection's requests are carried out, and its answers kept, the same by compiled code and by Python."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from iproto_server import Box, ManualClock, native
from iproto_server.app import Procedures
from iproto_server.protocol.constants import PROTOCOL_VERSION
from iproto_server.server.connection import Connection, carry_out_until
from iproto_server.server.dispatch import Dispatcher
from tests.native.test_handle import _no_coroutines, application, call

pytestmark = pytest.mark.skipif(not native.IS_COMPILED, reason="nothing is compiled here")

FRAMES = [b"one", b"two", b"three", b"four"]


class Batch:
    """Who has something to send."""

    def __init__(self) -> None:
        self.connections: list[Any] = []
        self.add = self.connections.append


def connection_of(**attributes: object) -> Connection:
    """A connection without a client."""
    box = Box(clock=ManualClock())
    app = application()
    for setup in app.setups:
        box.run(box.session.background, setup, box)
    server = SimpleNamespace(
        box=box,
        dispatcher=Dispatcher(box, Procedures([app]), (), PROTOCOL_VERSION, _no_coroutines),
        config=SimpleNamespace(max_frame=1 << 20, write_high_water=100),
        batch=Batch(),
        is_full=True,
    )
    connection = Connection(cast(Any, server))
    connection.session = box.session.open("binary", "a test", user="admin")
    for name, value in attributes.items():
        setattr(connection, name, value)
    return connection


def close(connection: Connection) -> None:
    connection.is_closing = True


def answer_much(connection: Connection) -> None:
    connection.reply(b"x" * 101)


def begin_to_wait(connection: Connection) -> None:
    connection.in_flight += 1


def raise_something(connection: Connection) -> None:
    raise LookupError("a fault")


def nothing(connection: Connection) -> None:
    pass


@pytest.mark.parametrize("end", [0.0, math.inf])
@pytest.mark.parametrize("second", [nothing, close, answer_much, begin_to_wait, raise_something])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"is_closing": True},
        {"_is_write_paused": True},
        {"_output_size": 60, "_held_size": 41},
        {"_output_size": 60, "_held_size": 40},
        {"in_flight": 1},
    ],
    ids=str,
)
def test_when_it_stops(
    attributes: dict[str, object], second: Callable[[Connection], None], end: float
) -> None:
    """Before a request that must wait, and behind one, at least, when the time is over."""
    told = []
    for carry_out in (carry_out_until, native.in_python["carry_out_until"]):
        connection = connection_of(**attributes)
        backlog = deque(FRAMES)
        seen: list[bytes] = []

        def handle(connection: Connection, frame: bytes, seen: list[bytes] = seen) -> None:
            seen.append(frame)
            if frame == b"two":
                second(connection)

        try:
            result = carry_out(connection, backlog, handle, end)
        except LookupError as error:
            result = error.args
        told.append((result, seen, list(backlog), connection._output_size))
    assert told[0] == told[1]


@pytest.mark.parametrize("is_full", [True, False])
def test_a_server_that_is_full_stops_those_who_have_requests_in_flight(is_full: bool) -> None:
    for carry_out in (carry_out_until, native.in_python["carry_out_until"]):
        connection = connection_of(in_flight=1)
        connection._server.is_full = is_full  # type: ignore[misc]
        backlog = deque(FRAMES)
        assert carry_out(connection, backlog, lambda connection, frame: None, math.inf) is not is_full
        assert len(backlog) == (len(FRAMES) if is_full else 0)


def test_answers_wait_for_the_batch() -> None:
    """With what they rest on, and announced once."""
    told = []
    for is_compiled in (True, False):
        connection = connection_of()
        transactions = connection._server.box.transactions
        dispatcher = connection._server.dispatcher
        handle = dispatcher.handle if is_compiled else dispatcher._answer

        class Journal:
            def append(self, statements: list[Any]) -> bool:
                return True

            def position(self) -> int:
                return 0

        transactions.journal = cast(Any, Journal())
        for frame in (call("one", 1), call("put", 1, "a"), call("one", 2), call("drop", 1), call("nothing")):
            handle(connection, frame)
        batch = cast(Batch, connection._server.batch)
        assert batch.connections == [connection]
        assert connection._output_size == sum(map(len, connection._output))
        told.append((connection._output, connection._logged, connection._has_output))
    assert told[0] == told[1]
    assert told[0][1] == [1, 3]
