"""Refused connections are closed one after another, and what they held is given back at once."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from iproto_server import ManualClock
from iproto_server.protocol.constants import RequestType
from iproto_server.server.connection.connection import Connection
from iproto_server.server.limits.paced_closing import AT_ONCE, INTERVAL, PacedClosing
from tests.iproto_client import IprotoClient
from tests.server.in_process import ServerInProcess

TOO_LARGE_BEFORE_LOGIN = b"\xce\x05\xf5\xe1\x00" + bytes(1000)
TOO_LARGE_FOR_ALL = b"\xce\x7f\xff\xff\xff" + bytes(1000)
NO_LENGTH = b"\xc1 text"


class Paced:
    """The pace with its clock.

    Attributes:
        closed: the connections that are closed, in their order.
    """

    def __init__(self, most: int = 1000) -> None:
        self.clock = ManualClock()
        self.most = most
        self.closed: list[Any] = []
        self.closing = PacedClosing(self.clock, lambda: self.most, self.closed.append)

    def add(self, *connections: Any) -> None:
        for connection in connections:
            self.closing.add(connection)


def test_some_are_closed_at_once_and_then_one_in_each_interval() -> None:
    paced = Paced()
    paced.add(*range(100))
    assert paced.closed == [*range(AT_ONCE)]
    paced.clock.advance(INTERVAL)
    assert paced.closed == [*range(AT_ONCE + 1)]
    paced.clock.advance(10 * INTERVAL)
    assert paced.closed == [*range(AT_ONCE + 11)]
    paced.clock.advance(100)
    assert paced.closed == [*range(100)]
    assert paced.clock.pending == 0


def test_after_a_pause_some_are_closed_at_once_again() -> None:
    paced = Paced()
    paced.add(*range(AT_ONCE))
    paced.clock.advance(100)
    paced.add(*range(100, 200))
    assert paced.closed[AT_ONCE:] == [*range(100, 100 + AT_ONCE)]


def test_more_than_may_wait_do_not() -> None:
    paced = Paced(most=5)
    paced.add(*range(AT_ONCE + 5))
    assert len(paced.closed) == AT_ONCE
    paced.add(1000, 1001)
    assert paced.closed == [*range(AT_ONCE + 2)]
    assert len(paced.closing) == 5


def test_who_has_gone_need_not_be_closed() -> None:
    paced = Paced()
    paced.add(*range(AT_ONCE + 3))
    assert AT_ONCE in paced.closing
    paced.closing.forget(AT_ONCE)  # type: ignore[arg-type]
    assert AT_ONCE not in paced.closing
    paced.clock.advance(100)
    assert paced.closed == [*range(AT_ONCE), AT_ONCE + 1, AT_ONCE + 2]


def test_after_the_stop_nobody_waits() -> None:
    paced = Paced()
    paced.add(*range(50))
    paced.closing.stop()
    assert paced.closed == [*range(50)]
    paced.add(50)
    assert (paced.closed[-1], paced.clock.pending) == (50, 0)


class Refusing(ServerInProcess):
    """A server whose guest has no rights, and where the test says when refused connections are closed."""

    def __init__(self, work_dir: Path, **options: Any) -> None:
        super().__init__(work_dir, [], guest="none", **options)
        self.clock = ManualClock()

    def __enter__(self) -> Refusing:
        super().__enter__()
        self.server.state.incoming.paced._clock = self.clock
        return self

    def in_loop(self, function: Callable[[], Any]) -> Any:
        """Call something in the server's loop."""

        async def call() -> Any:
            await asyncio.sleep(0)
            return function()

        return self.run(call())


def connections() -> int:
    """How many objects of connections there are, those that nobody knows any more included."""
    return sum(isinstance(one, Connection) for one in gc.get_objects())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Refusing]:
    with Refusing(tmp_path) as server:
        yield server


def test_a_refused_client_hears_why_at_once_and_is_closed_when_it_is_its_turn(server: Refusing) -> None:
    with ExitStack() as clients:
        refused = [clients.enter_context(server.connect()) for _ in range(AT_ONCE + 3)]
        for client in refused:
            client.send_bytes(TOO_LARGE_BEFORE_LOGIN)
            assert "too big packet size" in client.receive().failure[1]
        assert all(client.closed_by_server() for client in refused[:AT_ONCE])
        assert server.in_loop(lambda: dict(server.server.metrics()))["server.closing"] == 3
        server.in_loop(lambda: server.clock.advance(100))
        assert all(client.closed_by_server() for client in refused[AT_ONCE:])


def test_one_that_waits_is_not_read_from(server: Refusing) -> None:
    with ExitStack() as clients:
        refused = [clients.enter_context(server.connect()) for _ in range(AT_ONCE + 1)]
        for client in refused:
            client.send_bytes(TOO_LARGE_BEFORE_LOGIN)
            client.receive()
        received = server.in_loop(lambda: server.server.state.traffic.received)
        refused[-1].send_bytes(bytes(1000))
        with server.connect() as other:
            other.send_bytes(bytes(1))
            while server.in_loop(lambda: server.server.state.traffic.received) == received:
                """What was sent first would have come first."""
        assert server.in_loop(lambda: server.server.state.traffic.received) == received + 1


def test_a_stop_does_not_wait_for_their_turns(tmp_path: Path) -> None:
    with ExitStack() as clients:
        with Refusing(tmp_path, stop_timeout=1000) as server:
            address = server.server.box.listen[0]
            refused = [clients.enter_context(IprotoClient.at(address)) for _ in range(AT_ONCE + 30)]
            for client in refused:
                client.send_bytes(TOO_LARGE_BEFORE_LOGIN)
                client.receive()
            assert server.in_loop(lambda: len(server.server.state.incoming.paced)) == 30
        assert all(client.closed_by_server() for client in refused)


@pytest.mark.parametrize("data", [TOO_LARGE_BEFORE_LOGIN, TOO_LARGE_FOR_ALL, NO_LENGTH, b"", b"\xce\x00"])
def test_nothing_of_a_connection_that_has_ended_waits_for_the_garbage_collector(
    server: Refusing, data: bytes
) -> None:
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        before = connections()
        with server.connect() as client:
            if data:
                client.send_bytes(data)
            if len(data) > 2:
                client.receive()
                assert client.closed_by_server()
        while server.in_loop(lambda: len(server.server.state.connections)):
            """Its end is on its way."""
        assert server.in_loop(connections) == before
    finally:
        if is_enabled:
            gc.enable()


def test_others_are_let_in_meanwhile(server: Refusing) -> None:
    with ExitStack() as clients:
        for _ in range(AT_ONCE + 5):
            client = clients.enter_context(server.connect())
            client.send_bytes(TOO_LARGE_BEFORE_LOGIN)
            client.receive()
        other = clients.enter_context(server.connect())
        assert other.request(RequestType.PING).ok
