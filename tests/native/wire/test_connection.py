"""The state of a connection: which requests are handled at once, and what is kept, sent and counted."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import pytest
import uvloop

from iproto_server import Application, Box, ManualClock
from iproto_server.app import Procedures
from iproto_server.config.config import Config
from iproto_server.native._native import OutputBatch, SchedulerState, SharedState, Traffic, send_outputs
from iproto_server.protocol.constants import PROTOCOL_VERSION, Key, RequestType
from iproto_server.protocol.framing import Frames
from iproto_server.server.connection.connection import Connection
from iproto_server.server.connection.group_commit import Batch as GroupCommit
from iproto_server.server.connection.states import Phase, Wait
from iproto_server.server.limits.connection_deadlines import ConnectionDeadlines
from iproto_server.server.limits.incoming_limits import IncomingLimits
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.requests.dispatcher import Dispatcher
from tests.native.requests.test_handle import SPACE, _no_coroutines, application, call, request

FRAMES = [b"one", b"two", b"three", b"four"]


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
        self.dispatcher = Dispatcher(self.box, Procedures([app]), (), PROTOCOL_VERSION, _no_coroutines, log)
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


def close(connection: Connection) -> None:
    connection._phase = Phase.CLOSING


def answer_much(connection: Connection) -> None:
    connection.reply(b"x" * 101)


def begin_to_wait(connection: Connection) -> None:
    connection.in_flight += 1


def raise_something(connection: Connection) -> None:
    raise LookupError("a fault")


def nothing(connection: Connection) -> None:
    pass


@pytest.mark.parametrize("end", [0.0, math.inf])
@pytest.mark.parametrize(
    ("second", "handled"),
    [
        (nothing, 4),
        (close, 2),
        (answer_much, 2),
        (begin_to_wait, 2),
        (raise_something, 2),
    ],
)
def test_requests_are_handled_until_one_has_to_wait(
    second: Callable[[Connection], None], handled: int, end: float
) -> None:
    """Or until the time is over, of which the first request needs nothing."""
    connection = connection_of()
    backlog = Frames(FRAMES)
    seen: list[bytes] = []

    def handle(connection: Connection, frame: bytes) -> None:
        seen.append(frame)
        if frame == b"two":
            second(connection)

    connection._handle = handle
    count = handled if end else 1
    if second is raise_something and end:
        with pytest.raises(LookupError, match="a fault"):
            connection._handle_frames(backlog, end)
    else:
        assert connection._handle_frames(backlog, end) is (count == len(FRAMES))
    assert seen == FRAMES[:count]
    assert list(backlog) == FRAMES[count:]


@pytest.mark.parametrize(
    ("attributes", "must_hold"),
    [
        ({}, False),
        ({"_phase": Phase.CLOSING}, None),
        ({"_phase": Phase.ENDED}, None),
        ({"_phase": Phase.DRAINING}, False),
        ({"_waits": Wait.READER}, True),
        ({"_waits": Wait.ROOM}, True),
        ({"_waits": Wait.REQUEST}, True),
        ({"unsent": 60, "_held_size": 41}, True),
        ({"unsent": 60, "_held_size": 40}, False),
        ({"in_flight": 1}, True),
    ],
    ids=str,
)
def test_what_the_first_request_has_to_wait_for(attributes: dict[str, Any], must_hold: bool | None) -> None:
    """A closing connection (None) handles nothing, whatever it waits for."""
    connection = connection_of(**attributes)
    connection._handle = lambda connection, frame: None
    backlog = Frames(FRAMES)
    if must_hold is not None:
        assert connection.must_hold() is must_hold
    assert connection._handle_frames(backlog, math.inf) is (must_hold is False)
    assert len(backlog) == (0 if must_hold is False else len(FRAMES))


@pytest.mark.parametrize(
    ("in_flight", "parked", "is_full"),
    [(0, 0, False), (9, 0, False), (10, 0, True), (19, 10, False), (20, 10, True), (20, 20, True)],
)
def test_a_server_that_is_full_stops_connections_with_requests_in_flight(
    in_flight: int, parked: int, is_full: bool
) -> None:
    connection = connection_of(in_flight=1)
    server = cast(Any, connection._server)
    server.in_flight_max, server.parked_max = 10, 20
    server.in_flight, server.parked = in_flight, parked
    connection._handle = lambda connection, frame: None
    backlog = Frames(FRAMES)
    assert server.is_full is is_full
    assert connection._handle_frames(backlog, math.inf) is not is_full
    assert len(backlog) == (len(FRAMES) if is_full else 0)


@pytest.mark.parametrize("given", [(), (Frames(), 0.0, 1), ([], 0.0), (Frames(), "soon")], ids=len)
def test_frames_are_handled_until_a_time_only(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        connection_of()._handle_frames(*given)


@pytest.mark.parametrize("server", [None, object(), Traffic()], ids=type)
def test_a_connection_needs_a_shared_state(server: object) -> None:
    with pytest.raises(TypeError, match="a connection needs a SharedState"):
        Connection(cast(Any, server))


@pytest.mark.parametrize("name", ["data_received", "reply", "push", "_send"])
def test_only_bytes_are_received_and_sent(name: str) -> None:
    with pytest.raises(TypeError, match="is bytes"):
        getattr(connection_of(), name)("text")


@pytest.mark.parametrize(
    ("name", "value"), [("batch", []), ("turns", None), ("traffic", 1), ("transactions", object())]
)
def test_the_parts_of_a_server_have_their_types(name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"{name} is a "):
        setattr(Server(application()), name, value)


@pytest.mark.parametrize("is_fast", [True, False])
def test_answers_wait_for_the_batch(is_fast: bool) -> None:
    """With the rows that they depend on, and announced once; the same on the fast path and beside it."""
    connection = connection_of()
    transactions = connection._server.transactions
    dispatcher = cast(Dispatcher, connection._server.dispatcher)
    handle: Any = dispatcher.handle if is_fast else dispatcher._answer

    class Journal:
        def append(self, statements: Sequence[Any]) -> bool:
            return True

        def position(self) -> int:
            return 0

    transactions.journal = cast(Any, Journal())
    for frame in (call("one", 1), call("put", 1, "a"), call("one", 2), call("drop", 1), call("nothing")):
        handle(connection, frame)
    batch = cast(Batch, connection._server.batch)
    assert batch._connections == [connection]
    assert connection._output.has_logged
    assert connection._has_output
    connection._output.refuse(lambda response: b"refused " + response[14:22])
    assert connection._output.take().count(b"refused") == 2


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


class Case(NamedTuple):
    """What is to come of what is received.

    Attributes:
        requests: how many are answered.
        left: how many are held.
        is_closing: whether the connection closes.
    """

    requests: int
    left: int = 0
    is_closing: bool = False


OUTCOMES = {
    "a request": Case(1),
    "four requests": Case(3, 1),
    "five requests": Case(0, 5),
    "a request in two pieces": Case(1),
    "half a length": Case(2),
    "a request and a half, and the rest": Case(3, 1),
    "an empty frame": Case(1),
    "nothing": Case(0),
    "a short length": Case(1),
    "no length": Case(1, is_closing=True),
    "a request and no length": Case(2, is_closing=True),
    "too large": Case(1, is_closing=True),
    "as large as may be": Case(1),
    "larger than may be": Case(1, is_closing=True),
}
"""By what is received, of a connection that handles requests at once; an error at the end counts as one."""


def receive(name: str, **attributes: Any) -> tuple[Connection, Transport]:
    """A connection that has received something, with the transport that it sends to."""
    connection = connection_of(**attributes)
    transport = connection._transport = cast(Any, Transport())
    server = cast(Any, connection._server)
    server.turns = Turns()
    server.hangups = server.unsent = None
    server.let_held_go_on = lambda: transport.calls.append("go on")
    for data in RECEIVED[name]:
        connection.data_received(data)
    return connection, cast(Transport, transport)


@pytest.mark.parametrize("name", RECEIVED)
def test_what_is_received_is_answered(name: str) -> None:
    connection, transport = receive(name)
    outcome = OUTCOMES[name]
    is_scheduled = connection.is_held and not connection.must_hold()
    connection.send_output()
    written = transport.written
    assert len(written) == (outcome.requests > 0)
    assert sum(data.count(b"\xce\x00\x00\x00") for data in written) >= outcome.requests
    assert len(connection._backlog or ()) == outcome.left
    assert connection.is_closing is outcome.is_closing
    server = cast(Any, connection._server)
    assert server.traffic.received == sum(map(len, RECEIVED[name]))
    assert server.traffic.sent == sum(map(len, written))
    assert len(server.turns.line) == is_scheduled
    transport.is_shut = True
    connection._send(b"late")
    assert transport.written == written


@pytest.mark.parametrize("reason", Wait)
@pytest.mark.parametrize("name", ["a request", "four requests", "a short length", "a request in two pieces"])
def test_what_is_received_is_held_while_requests_wait(name: str, reason: Wait) -> None:
    connection, transport = receive(name, _waits=reason)
    assert connection.phase is Phase.HELD
    assert len(connection._backlog or ()) == OUTCOMES[name].requests + OUTCOMES[name].left
    assert transport.calls[0] == "pause"
    assert not connection._output.size


@pytest.mark.parametrize("name", ["a request", "four requests", "a short length", "five requests"])
def test_what_is_received_is_dropped_while_the_connection_closes(name: str) -> None:
    connection, _ = receive(name, _phase=Phase.CLOSING)
    assert connection.phase is Phase.CLOSING
    assert not connection._output.size


@pytest.mark.parametrize("name", ["a request", "four requests", "a short length", "five requests"])
def test_what_is_received_is_appended_to_what_is_held(name: str) -> None:
    connection, _ = receive(name, _phase=Phase.HELD, _backlog=Frames([b"first"]))
    outcome = OUTCOMES[name]
    backlog = list(connection._backlog or ())
    assert backlog[0] == b"first"
    assert len(backlog) == 1 + outcome.requests + outcome.left
    assert not connection._output.size


def test_bytes_behind_a_malformed_length_are_ignored_while_requests_wait() -> None:
    connection, _ = receive("a request and no length", _waits=Wait.REQUEST)
    connection.data_received(framed(ONE))
    connection.data_received(b"\xc1")
    assert list(connection._backlog or ()) == [ONE]
    assert connection._fault is not None
    assert not connection.is_closing


@pytest.mark.parametrize("has_hurried", [True, False])
def test_the_scheduler_hears_of_connections_that_are_served_at_once(has_hurried: bool) -> None:
    """Not of the first requests behind those that had to be held."""
    for name in ("a request", "a short length"):
        connection, _ = receive(name, _has_hurried=has_hurried)
        server = cast(Any, connection._server)
        assert server.turns.has_others is not has_hurried
        assert not connection._has_hurried


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


class Failing:
    """A connection whose answers cannot be sent."""

    def send_output(self) -> None:
        raise LookupError("a fault")


def test_outputs_are_sent_in_order_until_one_fails() -> None:
    written: list[tuple[int, bytes]] = []
    connections: list[Any] = [connection_of() for _ in range(3)]
    for number, connection in enumerate(connections):

        def write(data: bytes, number: int = number) -> None:
            written.append((number, data))

        connection._transport = cast(Any, Transport())
        connection._transport.write = write
        connection._server.transactions.has_logged = number == 2
        connection.reply(b"one")
        connection.reply(b"two")
    assert connections[2].has_logged_output
    with pytest.raises(LookupError, match="a fault"):
        send_outputs([connections[2], connections[0], cast(Any, Failing()), connections[1]])
    assert [each._has_output for each in connections] == [False, True, False]
    assert [each._output.size for each in connections] == [0, 6, 0]
    assert written == [(2, b"onetwo"), (0, b"onetwo")]
    assert connections[2]._server.traffic.sent == 6


def test_only_a_list_of_connections_is_sent() -> None:
    with pytest.raises(TypeError, match="takes a list of connections"):
        send_outputs(cast(Any, ()))


def test_group_commit_is_scheduled_once_for_all_answers_of_an_iteration() -> None:
    class Inherited(GroupCommit):
        """Another class."""

    for owner in (GroupCommit, Inherited):
        loop = uvloop.new_event_loop()
        try:
            connections = [connection_of() for _ in range(2)]
            written: list[bytes] = []

            async def answer(
                owner: type[GroupCommit] = owner,
                connections: list[Connection] = connections,
                written: list[bytes] = written,
            ) -> None:
                batch = owner(connections[0]._server.transactions)
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
def test_many_requests_that_come_together(frames: list[bytes], high_water: int, ending: str) -> None:
    """They are answered in order, up to the limit of what is unsent; what is left waits, to the last byte."""
    alone = connection_of()
    alone._server.write_high_water = 10**9
    expected: list[bytes] = []
    everything = [*frames, ONE] if ending == "a short length" else frames
    for frame in everything:
        if high_water == 2000 and sum(map(len, expected)) > high_water:
            break
        cast(Dispatcher, alone._server.dispatcher)._answer(alone, frame)
        expected.append(alone._output.take())
    connection = connection_of()
    transport = connection._transport = cast(Any, Transport())
    server = cast(Any, connection._server)
    server.write_high_water = high_water
    server.turns = EndlessTurns()
    server.hangups = None
    server.let_held_go_on = lambda: transport.calls.append("go on")
    data = framed(*frames) + ENDINGS[ending]
    connection.data_received(data)
    backlog = list(connection._backlog or ())
    unsent = connection._output.size
    left = everything[len(expected) :]
    assert backlog == left[: len(backlog)]
    assert connection._decoder.has_more or len(backlog) == len(left)
    assert connection.is_held is bool(left)
    assert connection.session.sync == alone.session.sync
    assert server.traffic.received == len(data)
    connection.send_output()
    written = b"".join(transport.written)
    has_failed = ending in ("no length", "too large") and not left
    assert written.startswith(b"".join(expected))
    assert (len(written) > sum(map(len, expected))) is has_failed
    assert unsent == len(written)
    assert connection.is_closing is has_failed
    assert bool(left) == (high_water == 2000)


def test_a_limit_that_a_request_changes_holds_for_the_next() -> None:
    connection = connection_of()
    backlog = Frames(FRAMES)

    def handle(connection: Connection, frame: bytes) -> None:
        connection.reply(b"x" * 10)
        if frame == b"two":
            connection._server.write_high_water = 19

    connection._handle = handle
    assert not connection._handle_frames(backlog, math.inf)
    assert list(backlog) == FRAMES[2:]


def test_the_time_is_looked_at_after_few_cheap_requests() -> None:
    """And after each that runs a procedure; one is handled in any case."""
    for frames, most in ((rows(RequestType.SELECT, *range(100)), 8), ([PUT] * 10, 1)):
        connection = connection_of()
        connection._server.write_high_water = 10**9
        backlog = Frames(frames)
        assert not connection._handle_frames(backlog, 0.0)
        assert 1 <= len(frames) - len(backlog) <= most


def test_a_select_of_many_rows_is_not_cheap() -> None:
    connection = connection_of()
    connection._server.write_high_water = 10**9
    assert connection._handle_frames(Frames(rows(RequestType.REPLACE, *range(9))), math.inf)
    everything = request(RequestType.SELECT, {0x10: SPACE, 0x12: 10, 0x14: 2, 0x20: []})
    backlog = Frames([everything] * 5)
    assert not connection._handle_frames(backlog, 0.0)
    assert len(backlog) == 4
