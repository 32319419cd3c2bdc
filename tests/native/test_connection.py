"""A connection's requests are carried out, and its answers kept, the same by compiled code and by Python."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvloop

from iproto_server import Box, ManualClock, native
from iproto_server.app import Procedures
from iproto_server.config.config import Config
from iproto_server.native._native import Traffic
from iproto_server.protocol.constants import PROTOCOL_VERSION, Key, RequestType
from iproto_server.protocol.framing import Frames
from iproto_server.server.connection import connection as connection_module
from iproto_server.server.connection.connection import Connection, carry_out_until
from iproto_server.server.connection.group_commit import Batch as GroupCommit
from iproto_server.server.connection.group_commit import send_outputs
from iproto_server.server.limits.connection_deadlines import ConnectionDeadlines
from iproto_server.server.limits.incoming_limits import IncomingLimits
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.requests.dispatcher import Dispatcher
from tests.native.test_handle import SPACE, _no_coroutines, application, call, request

FRAMES = [b"one", b"two", b"three", b"four"]


class Batch:
    """Who has something to send."""

    def __init__(self) -> None:
        self.connections: list[Any] = []
        self.add = self.connections.append


def connection_of(unsent: int = 0, **attributes: object) -> Connection:
    """A connection without a client, with so many bytes to send."""
    clock = ManualClock()
    box = Box(clock=clock)
    config = Config(max_frame=1 << 20, write_high_water=100)
    log = RateLimitedLog(logging.getLogger("iproto_server.test"), clock)
    app = application()
    for setup in app.setups:
        box.run(box.session.background, setup, box)
    server = SimpleNamespace(
        box=box,
        dispatcher=Dispatcher(box, Procedures([app]), (), PROTOCOL_VERSION, _no_coroutines, log),
        config=config,
        incoming=IncomingLimits(
            lambda: config, box.access, ConnectionDeadlines(clock), log, clock, lambda: 1000
        ),
        batch=Batch(),
        traffic=Traffic(),
        is_full=True,
    )
    connection = Connection(cast(Any, server))
    connection.session = box.session.open("binary", "a test", user="admin")
    for name, value in attributes.items():
        setattr(connection, name, value)
    connection._output.add(b"x" * unsent, False)
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
        {"_is_suspended": True},
        {"unsent": 60, "_held_size": 41},
        {"unsent": 60, "_held_size": 40},
        {"in_flight": 1},
    ],
    ids=str,
)
def test_when_it_stops(attributes: dict[str, Any], second: Callable[[Connection], None], end: float) -> None:
    """Before a request that must wait, and behind one, at least, when the time is over."""
    told = []
    for carry_out in (carry_out_until, native.in_python["carry_out_until"]):
        connection = connection_of(**attributes)
        backlog = Frames(FRAMES)
        seen: list[bytes] = []

        def handle(connection: Connection, frame: bytes, seen: list[bytes] = seen) -> None:
            seen.append(frame)
            if frame == b"two":
                second(connection)

        try:
            result = carry_out(connection, backlog, handle, end)
        except LookupError as error:
            result = error.args
        told.append((result, seen, list(backlog), connection._output.size))
    assert told[0] == told[1]


@pytest.mark.parametrize("is_full", [True, False])
def test_a_server_that_is_full_stops_those_who_have_requests_in_flight(is_full: bool) -> None:
    for carry_out in (carry_out_until, native.in_python["carry_out_until"]):
        connection = connection_of(in_flight=1)
        connection._server.is_full = is_full  # type: ignore[misc]
        backlog = Frames(FRAMES)
        assert carry_out(connection, backlog, lambda connection, frame: None, math.inf) is not is_full
        assert len(backlog) == (len(FRAMES) if is_full else 0)


def test_answers_wait_for_the_batch() -> None:
    """With what they rest on, and announced once."""
    told = []
    for is_compiled in (True, False):
        connection = connection_of()
        transactions = connection._server.box.transactions
        dispatcher = cast(Dispatcher, connection._server.dispatcher)
        handle = dispatcher.handle if is_compiled else dispatcher._answer

        class Journal:
            def append(self, statements: Sequence[Any]) -> bool:
                return True

            def position(self) -> int:
                return 0

        transactions.journal = cast(Any, Journal())
        for frame in (call("one", 1), call("put", 1, "a"), call("one", 2), call("drop", 1), call("nothing")):
            handle(connection, frame)
        batch = cast(Batch, connection._server.batch)
        assert batch.connections == [connection]
        has_logged = connection._output.has_logged
        connection._output.refuse(lambda response: b"refused " + response[14:22])
        told.append((connection._output.size, has_logged, connection._has_output, connection._output.take()))
    assert told[0] == told[1]
    assert told[0][3].count(b"refused") == 2


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


class Turns:
    """The line of those who have more to do."""

    has_others = False

    def __init__(self) -> None:
        self.line: list[Any] = []
        self.add = self.line.append

    def begin(self) -> float:
        return 0.0


def framed(*frames: bytes) -> bytes:
    return b"".join(b"\xce" + len(frame).to_bytes(4, "big") + frame for frame in frames)


ONE, PUT = call("one", 1), call("put", 1, "a")
RECEIVED = {
    "a request": [framed(ONE)],
    "four requests": [framed(ONE, PUT, ONE, ONE)],
    "five requests": [framed(ONE, PUT, ONE, ONE, ONE)],
    "a request in two pieces": [framed(ONE)[:7], framed(ONE)[7:]],
    "half a length": [framed(ONE)[:3], framed(ONE)[3:] + framed(ONE)],
    "a request and a half, and the rest": [
        framed(ONE) + framed(ONE)[:9],
        framed(ONE)[9:] + framed(ONE),
        framed(ONE),
    ],
    "an empty frame": [framed(b"")],
    "nothing": [b""],
    "a short length": [bytes((len(ONE),)) + ONE],
    "no length": [b"\xc1" + ONE, framed(ONE)],
    "a request and no length": [framed(ONE) + b"\xc1"],
    "too large": [b"\xce\x7f\xff\xff\xff" + ONE],
    "as large as may be": [framed(b"x" * (1 << 20))],
    "larger than may be": [framed(b"x" * ((1 << 20) + 1))],
}


def _made(value: object) -> Any:
    return Frames(value) if isinstance(value, list) else value


@pytest.mark.parametrize("name", RECEIVED)
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"is_closing": True},
        {"_is_write_paused": True},
        {"_is_suspended": True},
        {"unsent": 60, "_held_size": 41},
        {"unsent": 60},
        {"in_flight": 1},
        {"_has_hurried": True},
        {"_is_held": True, "_backlog": [ONE]},
    ],
    ids=str,
)
def test_what_is_received_and_sent(
    name: str, attributes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for is_compiled in (True, False):
        if not is_compiled:
            for method in ("data_received", "send_output", "_send"):
                monkeypatch.setattr(Connection, method, native.in_python[f"Connection.{method}"])
        connection = connection_of(**{key: _made(value) for key, value in attributes.items()})
        transport = connection._transport = cast(Any, Transport())
        server = cast(Any, connection._server)
        server.turns, server.held = Turns(), set()
        server.let_held_go_on = lambda transport=transport: transport.calls.append("go on")
        states = []
        for data in RECEIVED[name]:
            connection.data_received(data)
            states.append((server.turns.has_others, connection._is_held, [*(connection._backlog or ())]))
        connection.send_output()
        sent = (list(transport.written), server.traffic.received, server.traffic.sent, list(transport.calls))
        transport.is_shut = True
        connection._send(b"late")
        told.append((states, sent, len(transport.written), len(server.turns.line), connection.is_closing))
    assert told[0] == told[1]


def test_several_answers_are_sent_in_one_piece() -> None:
    connection = connection_of()
    transport = connection._transport = cast(Any, Transport())
    for responses in ([b"one", b"two"], [], [b"three"]):
        for response in responses:
            connection.reply(response)
        connection.send_output()
    connection._send(b"")
    assert transport.written == [b"onetwo", b"three"]
    assert connection._server.traffic.sent == 11


class Inherited(Connection):
    """Compiled code leaves objects of other classes to Python."""

    __slots__ = ("sent_outputs",)

    def send_output(self) -> None:
        self.sent_outputs = self._output.size
        super().send_output()


class Failing:
    """A connection whose answers cannot be sent."""

    def send_output(self) -> None:
        raise LookupError("a fault")


def test_outputs_are_sent_in_order_until_one_fails() -> None:
    told = []
    for send in (send_outputs, native.in_python["send_outputs"]):
        written: list[tuple[int, bytes]] = []
        connections: list[Any] = [connection_of() for _ in range(3)]
        for number, connection in enumerate(connections):

            def write(data: bytes, number: int = number, written: list[tuple[int, bytes]] = written) -> None:
                written.append((number, data))

            connection._transport = cast(Any, Transport())
            connection._transport.write = write
            connection._transactions.has_logged = number == 2
            connection.reply(b"one")
            connection.reply(b"two")
        assert connections[2].has_logged_output
        with pytest.raises(LookupError, match="a fault"):
            send([connections[2], connections[0], cast(Any, Failing()), connections[1]])
        states = [
            (each._output.size, each._output.has_logged, each._has_output, each._output.take())
            for each in connections
        ]
        told.append((written, states, connections[2]._server.traffic.sent))
    assert told[0] == told[1]
    assert told[0][0] == [(2, b"onetwo"), (0, b"onetwo")]
    assert told[0][2] == 6


def test_outputs_of_other_classes_are_sent_by_python() -> None:
    connection = connection_of()
    inherited = Inherited(connection._server)
    transport = inherited._transport = cast(Any, Transport())
    inherited.reply(b"one")
    send_outputs([inherited])
    assert inherited.sent_outputs == 3
    assert transport.written == [b"one"]


def test_only_a_list_of_connections_is_sent() -> None:
    with pytest.raises(TypeError, match="takes a list of connections"):
        send_outputs(cast(Any, ()))


def test_group_commit_is_scheduled_once_for_all_answers_of_an_iteration() -> None:
    class Counting(GroupCommit):
        """Counts what the compiled twin leaves to it."""

    for owner in (GroupCommit, Counting):
        loop = uvloop.new_event_loop()
        try:
            connections = [connection_of() for _ in range(2)]
            written: list[bytes] = []

            async def answer(
                owner: type[GroupCommit] = owner,
                connections: list[Connection] = connections,
                written: list[bytes] = written,
            ) -> None:
                batch = owner(connections[0]._transactions)
                for number, connection in enumerate(connections):
                    connection._server.batch = batch
                    transport = connection._transport = cast(Any, Transport())
                    transport.write = written.append
                    dispatcher = cast(Dispatcher, connection._server.dispatcher)
                    for _ in range(number + 1):
                        dispatcher.handle(connection, ONE)
                assert written == []
                assert batch._connections == connections
                await asyncio.sleep(0)
                assert len(written) == 2
                assert batch._connections == []
                assert not batch._is_scheduled

            loop.run_until_complete(answer())
        finally:
            loop.close()
        assert len(written[1]) == 2 * len(written[0])


# -- many requests at a time --


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


MANY = [*rows(RequestType.REPLACE, *range(100)), *rows(RequestType.SELECT, *range(50)), *[PUT] * 10]
ENDINGS = {
    "nothing": b"",
    "a part": framed(ONE)[:7],
    "a short length": bytes((len(ONE),)) + ONE,
    "no length": b"\xc1",
    "too large": b"\xce\x7f\xff\xff\xff",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("high_water", [10**9, 2000])
@pytest.mark.parametrize("frames", [MANY, MANY[100:], [*MANY[:20], b"", b"\xc1", *MANY[:3]]], ids=len)
def test_many_requests_that_come_together(
    frames: list[bytes], high_water: int, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are answered in order, up to the limit of what is unsent; what is left waits, to the last byte."""
    told = []
    for is_compiled in (True, False):
        if not is_compiled:
            monkeypatch.setattr(Connection, "data_received", native.in_python["Connection.data_received"])
            monkeypatch.setattr(connection_module, "carry_out_until", native.in_python["carry_out_until"])
        connection = connection_of()
        transport = connection._transport = cast(Any, Transport())
        server = cast(Any, connection._server)
        server.config = Config(max_frame=1 << 20, write_high_water=high_water)
        server.turns, server.held = EndlessTurns(), set()
        server.let_held_go_on = lambda transport=transport: transport.calls.append("go on")
        connection.data_received(framed(*frames) + ENDINGS[ending])
        dispatcher = cast(Dispatcher, server.dispatcher)
        backlog = list(connection._backlog or ())
        unsent = connection._output.size
        connection.send_output()
        told.append(
            (
                backlog,
                unsent,
                b"".join(transport.written),
                connection._decoder.buffered,
                connection._is_held,
                connection.is_closing,
                connection.session.sync,
                dict(dispatcher.requests),
                server.traffic.received,
                transport.calls,
            )
        )
    assert told[0] == told[1]
    assert bool(told[0][0]) == (high_water == 2000 and len(frames) > 23)


def test_a_limit_that_a_request_changes_holds_for_the_next() -> None:
    told = []
    for carry_out in (carry_out_until, native.in_python["carry_out_until"]):
        connection = connection_of()
        server = cast(Any, connection._server)
        backlog = Frames(FRAMES)

        def handle(connection: Connection, frame: bytes, server: Any = server) -> None:
            connection.reply(b"x" * 10)
            if frame == b"two":
                server.config = Config(max_frame=1 << 20, write_high_water=19)

        told.append((carry_out(connection, backlog, handle, math.inf), list(backlog)))
    assert told[0] == told[1] == (False, FRAMES[2:])


def test_the_time_is_looked_at_after_few_cheap_requests() -> None:
    """And after each that runs a procedure; one is carried out in any case."""
    for frames, most in ((rows(RequestType.SELECT, *range(100)), 8), ([PUT] * 10, 1)):
        connection = connection_of()
        backlog = Frames(frames)
        server = cast(Any, connection._server)
        server.config = Config(max_frame=1 << 20, write_high_water=10**9)
        assert not carry_out_until(connection, backlog, server.dispatcher.handle, 0.0)
        assert 1 <= len(frames) - len(backlog) <= most


def test_a_select_of_many_rows_is_not_cheap() -> None:
    connection = connection_of()
    server = cast(Any, connection._server)
    server.config = Config(max_frame=1 << 20, write_high_water=10**9)
    assert carry_out_until(
        connection, Frames(rows(RequestType.REPLACE, *range(9))), server.dispatcher.handle, math.inf
    )
    everything = request(RequestType.SELECT, {0x10: SPACE, 0x12: 10, 0x14: 2, 0x20: []})
    backlog = Frames([everything] * 5)
    assert not carry_out_until(connection, backlog, server.dispatcher.handle, 0.0)
    assert len(backlog) == 4
