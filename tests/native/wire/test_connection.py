"""The state of a connection: which requests are handled, and which have to wait."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import pytest

from iproto_server.native._native import Traffic
from iproto_server.protocol.constants import RequestType
from iproto_server.protocol.framing import Frames
from iproto_server.server.connection.connection import Connection
from iproto_server.server.connection.states import Phase, Wait
from tests.native.requests.sides import SPACE, application, request
from tests.native.wire.connections import (
    PUT,
    Server,
    connection_of,
    rows,
)

FRAMES = [b"one", b"two", b"three", b"four"]


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
