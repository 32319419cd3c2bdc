"""What a connection receives: handled at once, in turns, held or dropped."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import pytest

from iproto_server.protocol.constants import RequestType
from iproto_server.protocol.framing import Frames
from iproto_server.server.connection.connection import Connection
from iproto_server.server.connection.states import Phase, Wait
from iproto_server.server.requests.dispatcher import Dispatcher
from tests.native.wire.connections import (
    ONE,
    PUT,
    EndlessTurns,
    Transport,
    Turns,
    connection_of,
    framed,
    rows,
)

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


@pytest.mark.parametrize("reason", [Wait.READER, Wait.ROOM, Wait.REQUEST])
@pytest.mark.parametrize("name", ["a request", "four requests", "a short length", "a request in two pieces"])
def test_what_is_received_is_held_while_requests_wait(name: str, reason: int) -> None:
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
