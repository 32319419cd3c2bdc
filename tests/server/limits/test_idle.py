"""Connections on which nothing happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from iproto_server import Application, Box, Waiter, WaitQueue
from tests.iproto_client import CALL, EVENT_KEY, FUNCTION_NAME, PING, TUPLE, WATCH, IprotoClient
from tests.server.in_process import ServerInProcess

TIMEOUT = 1000.0
"""Seconds that no test waits: the tests say what time it is."""


class Service:
    """A server whose idle connections are looked for when a test says so."""

    def __init__(self, running: ServerInProcess) -> None:
        self.running = running
        self.now = 0.0
        self._clients: list[IprotoClient] = []

    def client(self, **options: Any) -> IprotoClient:
        self._clients.append(IprotoClient.at(self.running.server.box.listen[0], **options))
        return self._clients[-1]

    async def connections(self) -> int:
        """How many there are."""
        return len(self.running.server.state.connections)

    def unsent(self) -> int:
        """How much waits to be sent to all clients."""

        async def look() -> int:
            return sum(connection.unsent for connection in self.running.server.state.connections)

        found: int = self.running.run(look())
        return found

    def pass_time(self, seconds: float) -> int:
        """Let time pass, as far as idle connections are concerned; how many were closed so far."""
        self.now += seconds

        async def check() -> int:
            self.running.server.state.idle.check(self.now)
            return self.running.server.state.idle.closed

        closed: int = self.running.run(check())
        return closed


@contextmanager
def serve(directory: Path, **options: Any) -> Iterator[Service]:
    application = Application("waits")

    @application.procedure("wait")
    def wait(box: Box) -> Waiter:
        return WaitQueue(box).park(3600, lambda: None)

    @application.procedure("big")
    def big(box: Box, size: int) -> str:
        return "x" * size

    options.setdefault("idle_timeout", TIMEOUT)
    with ServerInProcess(directory, [application], loop=uvloop.new_event_loop(), **options) as running:
        yield Service(running)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serve(tmp_path) as service:
        yield service


def test_who_is_silent_for_so_long_is_closed(service: Service) -> None:
    with service.client() as silent, service.client() as busy:
        assert service.pass_time(0) == 0
        assert service.pass_time(0) == 0
        for _ in range(2):
            assert busy.request(PING).ok
            assert service.pass_time(TIMEOUT / 2 - 1) == 0
        assert busy.request(PING).ok
        assert service.pass_time(3) == 1
        assert silent.closed_by_server()
        assert busy.request(PING).ok


def test_who_has_requests_in_flight_is_not(service: Service) -> None:
    with service.client() as client:
        client.send(CALL, {FUNCTION_NAME: "wait", TUPLE: []})
        service.pass_time(0)
        for _ in range(5):
            assert service.pass_time(TIMEOUT * 2) == 0
        assert client.request(PING).ok


def test_who_watches_a_key_is_not(service: Service) -> None:
    with service.client() as client:
        client.send(WATCH, {EVENT_KEY: "key"})
        client.receive()
        for _ in range(5):
            assert service.pass_time(TIMEOUT * 2) == 0
        assert client.request(PING).ok


def test_half_a_request_is_something_only_when_it_comes(service: Service) -> None:
    with service.client() as client:
        client.send_bytes(b"\xce\x00")
        assert service.client().request(PING).ok
        service.pass_time(0)
        service.pass_time(0)
        assert service.pass_time(TIMEOUT) == 2
        assert client.closed_by_server()


def test_who_reads_what_it_is_sent_is_not_idle_and_who_does_not_is(tmp_path: Path) -> None:
    with serve(tmp_path, write_high_water=65536) as service:
        reader, other = (service.client(receive_buffer=4096) for _ in range(2))
        for client in (reader, other):
            client.send(CALL, {FUNCTION_NAME: "big", TUPLE: [8_000_000]})
        prompt = service.client()
        assert prompt.request(PING).ok
        service.pass_time(0)
        service.pass_time(0)
        unread = service.unsent()
        received = 0
        while service.unsent() == unread:
            received += len(reader.socket.recv(65536))
        assert service.pass_time(TIMEOUT) == 2
        assert other.socket.recv(65536)  # what was on its way
        assert prompt.closed_by_server()
        assert service.running.run(service.connections()) == 1
        assert received


def test_it_is_off_unless_asked_for_and_can_be_switched_on_and_off(tmp_path: Path) -> None:
    with serve(tmp_path, idle_timeout=0.0) as service:
        with service.client() as client, service.client() as silent:
            assert client.call("box.cfg", {"idle_timeout": 0.02}).ok
            assert silent.closed_by_server()
            assert client.closed_by_server()
        with service.client() as client:
            # It may be closed before it says so, and is not closed any more when it has.
            assert service.running.server.state.idle.closed >= 2


def test_the_counter_says_how_many(service: Service) -> None:
    with service.client():
        for _ in range(3):
            service.pass_time(TIMEOUT)

        async def look() -> dict[str, float]:
            return dict(service.running.server.metrics())

        assert service.running.run(look())["server.connections.closed_idle"] == 1
