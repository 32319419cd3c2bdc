"""The end of a connection whose requests are held, and which is not read from therefore."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from iproto_server import Application, Box, Waiter, WaitQueue
from iproto_server.config.address import Address
from iproto_server.server.connection import connection as module
from iproto_server.server.connection import fair_scheduler
from iproto_server.server.connection.fair_scheduler import AT_ONCE
from tests.box15_client import CALL as CALL_15
from tests.box15_client import PING as PING_15
from tests.box15_client import Client15, call_body
from tests.certificates import Certificates
from tests.conftest import StartServer
from tests.iproto_client import CALL, FUNCTION_NAME, PING, TUPLE, IprotoClient, frame
from tests.server.in_process import ServerInProcess

NET_MSG_MAX = 4
CALLS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "tutorial": (("queue.put",), ("queue.take", 3600)),
    "legacy": (("queue.put", 0, "t", 0, 0, 3600, 0), ("queue.take", 0, "t", 3600)),
    "tubes": (("queue.tube.t:put",), ("queue.tube.t:take", 3600)),
}
"""How a task is put, its data behind, and how one is waited for."""
Client = IprotoClient | Client15


class Service:
    """An application whose calls wait in a line, and a server of it.

    Parameters:
        directory: the server's.
        loop: what it runs in.
        options: more of its configuration.

    Attributes:
        line: where calls of `wait` wait for a `give`.
        gone: released when a client is gone.
        steps: what `step` was called with, and how many waited then.
        barrier: where `step(0)` waits for the test.
    """

    def __init__(self, directory: Path, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        self.gone = threading.Semaphore(0)
        self.steps: list[tuple[int, int]] = []
        self.barrier = threading.Barrier(2)
        self._things: list[object] = []
        application = Application("line")
        application.setup(self._setup)
        for procedure in (self.wait, self.give, self.step, self.big, self.hours):
            application.procedure(procedure.__name__)(procedure)
        self.running = ServerInProcess(
            directory, [application], loop=loop, net_msg_max=NET_MSG_MAX, **options
        )

    def _setup(self, box: Box) -> None:
        self.line = WaitQueue(box)
        box.session.on_disconnect(self.gone.release)

    def wait(self, box: Box) -> Waiter:
        """Wait for a thing."""
        return self.line.park(3600, self._things.pop)

    def give(self, box: Box, thing: object) -> None:
        """Give the first one a thing."""
        self._things.append(thing)
        self.line.wake()

    def step(self, box: Box, number: int) -> None:
        """Note who waits; 0 stops the server until the test goes on."""
        if number == 0:
            self.barrier.wait(20)
            self.barrier.wait(20)
        self.steps.append((number, len(self.line)))

    def big(self, box: Box, size: int) -> str:
        """A large answer."""
        return "x" * size

    async def hours(self, box: Box) -> None:
        """Work for hours."""
        await asyncio.sleep(7200)

    def until(self, condition: Callable[[], bool]) -> None:
        """Let the server go on until something is so."""

        async def wait() -> None:
            async with asyncio.timeout(20):
                while not condition():  # noqa: ASYNC110  # nobody tells
                    await asyncio.sleep(0)

        self.running.run(wait())

    def until_held(self, count: int = 1) -> None:
        """Let the server go on until it holds so many connections."""
        self.until(lambda: len(self.running.server.state.held) == count)

    def waiting(self) -> int:
        """How many wait."""

        async def look() -> int:
            return len(self.line)

        found: int = self.running.run(look())
        return found

    def waiter(self) -> IprotoClient:
        """A client with a call that waits."""
        before = self.waiting()
        client = self.running.connect()
        call(client, "wait")
        self.until(lambda: len(self.line) == before + 1)
        return client


@contextmanager
def serve(directory: Path, kind: str = "uvloop", **options: Any) -> Iterator[Service]:
    loop = uvloop.new_event_loop() if kind == "uvloop" else asyncio.new_event_loop()
    service = Service(directory, loop, **options)
    with service.running:
        yield service


def call(client: IprotoClient, name: str, *arguments: object) -> int:
    return client.send(CALL, {FUNCTION_NAME: name, TUPLE: list(arguments)})


def shut(client: Client) -> None:
    """End it as a process does that has read everything."""
    close(client)


def close(client: Client) -> None:
    if isinstance(client, IprotoClient):
        client.close()
    else:
        client.socket.close()


def reset(client: Client) -> None:
    """End it as a process does that has not."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    close(client)


def half_close(client: Client) -> None:
    """Send no more."""
    socket.socket.shutdown(client.socket, socket.SHUT_WR)


class TestHeldForRequestsInFlight:
    @pytest.mark.parametrize("end", [shut, reset, half_close])
    @pytest.mark.parametrize("kind", ["uvloop", "asyncio", "unix", "tls", "1.5"])
    def test_the_next_thing_goes_to_somebody_who_is_there(
        self, tmp_path: Path, kind: str, end: Callable[[Client], None]
    ) -> None:
        options: dict[str, Any] = {}
        certificates = Certificates(tmp_path) if kind == "tls" else None
        places = [Address("127.0.0.1")]
        if certificates is not None:
            places.append(Address.parse_listen(certificates.listen()))
        if kind == "unix":
            places.append(Address(path=str(tmp_path / "socket")))
        if kind == "1.5":
            options["listen_1_5"] = (Address("127.0.0.1"),)
        loop = "asyncio" if kind == "asyncio" else "uvloop"
        with serve(tmp_path, loop, listen=tuple(places), **options) as service:
            port = list(service.running.server.listeners)[-1].address.port
            dying: Client
            if kind == "1.5":
                dying = Client15("127.0.0.1", port)
                for _ in range(3):
                    dying.send(CALL_15, call_body(b"wait"))
            else:
                path = str(tmp_path / "socket")
                tls = certificates.context() if certificates is not None else None
                dying = IprotoClient(path, 0) if kind == "unix" else IprotoClient("127.0.0.1", port, tls=tls)
                for _ in range(3):
                    call(dying, "wait")
            service.until(lambda: len(service.line) == 3)
            others = [service.waiter() for _ in range(NET_MSG_MAX)]
            dying.send(PING_15 if isinstance(dying, Client15) else PING)
            service.until_held()

            end(dying)

            assert service.gone.acquire(timeout=20)
            assert service.waiting() == len(others)
            assert service.running.connect().call("give", "thing").ok
            assert others[0].receive().data == ["thing"]
            assert service.running.server.state.hung_up_while_held == 1
            assert len(service.running.server.state.hangups) == 0
            close(dying)

    def test_who_sends_no_more_has_answers_to_all_that_was_sent_before(self, tmp_path: Path) -> None:
        with serve(tmp_path) as service:
            others = [service.waiter() for _ in range(NET_MSG_MAX)]
            client = service.running.connect()
            syncs = [call(client, "wait") for _ in range(2)]
            service.until_held()
            # They stay in the system's buffers, as the end does.
            requests = b""
            for number in range(1, 1001):
                syncs.append(1000 + number)
                name, arguments = ("step", [number]) if number % 100 else ("wait", [])
                requests += frame(CALL, {FUNCTION_NAME: name, TUPLE: arguments}, sync=syncs[-1])
            client.send_bytes(requests)
            half_close(client)
            answers = [client.receive() for _ in syncs]
            assert {answer.sync for answer in answers} == set(syncs)
            assert all(answer.data == [] for answer in answers)
            assert client.closed_by_server()
            assert [number for number, _ in service.steps] == [n for n in range(1, 1001) if n % 100]
            assert service.waiting() == len(others)

    @pytest.mark.parametrize("name", ["tutorial", "legacy", "tubes"])
    def test_who_sends_no_more_is_given_no_task_that_it_could_not_acknowledge(
        self, start_server: StartServer, name: str
    ) -> None:
        application = f"queue_lua_compat.{name}:app"
        server = start_server([application], ["--net-msg-max", str(NET_MSG_MAX)])
        put, take = CALLS[name]
        with ExitStack() as opened:
            clients = [opened.enter_context(IprotoClient.at(server.address)) for _ in range(2 + NET_MSG_MAX)]
            giver, dying, *others = clients
            if name == "tubes":
                assert giver.call("queue.create_tube", "t", "fifo").ok
            if name == "legacy":
                assert giver.call(*put, "first").ok
                assert giver.call("queue.truncate", 0, "t").ok
            for client in (dying, dying, *others):
                call(client, *take)
            # The second one is held: it is carried out when the first has been given up.
            assert giver.request(PING).ok
            half_close(dying)
            assert [dying.receive().data for _ in range(2)] == [[], []]
            assert dying.closed_by_server()
            assert giver.call(*put, "task").ok
            assert "task" in str(others[0].receive().data)

    def test_who_sends_no_more_does_not_stay_for_procedures_that_go_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "END_GRACE", 0.01)
        with serve(tmp_path) as service:
            client = service.running.connect()
            for _ in range(NET_MSG_MAX):
                call(client, "hours")
            call(client, "step", 1)
            service.until_held()
            half_close(client)
            assert client.closed_by_server()
            assert service.gone.acquire(timeout=20)
            assert service.steps == []

    def test_who_was_held_before_is_noticed_again(self, tmp_path: Path) -> None:
        with serve(tmp_path) as service:
            giver = service.running.connect()
            others = [service.waiter() for _ in range(NET_MSG_MAX - 1)]
            client = service.running.connect()
            call(client, "wait")
            client.send(PING)
            service.until_held()
            for _ in range(NET_MSG_MAX):
                assert giver.call("give", "thing").ok
            assert [client.receive().ok for _ in range(2)] == [True, True]
            assert [other.receive().data for other in others] == [["thing"]] * len(others)
            others = [service.waiter() for _ in range(NET_MSG_MAX)]
            call(client, "wait")
            client.send(PING)
            reset(client)
            assert service.gone.acquire(timeout=20)
            assert service.waiting() == len(others)

    def test_where_the_system_cannot_watch_it_all_goes_on_and_the_log_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def refuse(*arguments: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with caplog.at_level(logging.WARNING), serve(tmp_path) as service:
            monkeypatch.setattr(service.running.server.state.hangups, "watch", refuse)
            client = service.running.connect()
            for _ in range(NET_MSG_MAX):
                call(client, "wait")
            client.send(PING)
            service.until_held()
            giver = service.running.connect()
            assert giver.call("give", 1).ok
            assert client.receive().data == [1]
            assert client.receive().ok
        assert "the end of a held connection will not be seen" in caplog.messages


class TestHeldForUnreadAnswers:
    @staticmethod
    def unread(service: Service) -> tuple[IprotoClient, list[int]]:
        """A client with a call that waits, which does not read its large answers."""
        client = IprotoClient.at(service.running.server.box.listen[0], receive_buffer=4096)
        syncs = [call(client, "wait")]
        syncs += [call(client, "big", 1_000_000) for _ in range(20)]
        service.until_held()
        return client, syncs

    def test_who_sends_no_more_waits_for_nothing_and_gets_all_answers(self, tmp_path: Path) -> None:
        with serve(tmp_path, write_high_water=65536) as service:
            client, syncs = self.unread(service)
            half_close(client)
            service.until(lambda: len(service.line) == 0)
            assert {client.receive().sync for _ in syncs} == set(syncs)
            assert client.closed_by_server()

    def test_who_is_gone_is_seen_to_be(self, tmp_path: Path) -> None:
        with serve(tmp_path, write_high_water=65536) as service:
            client, _ = self.unread(service)
            reset(client)
            assert service.gone.acquire(timeout=20)
            assert service.waiting() == 0


class TestStandingInTheLine:
    def test_who_sends_no_more_waits_for_nothing_before_its_last_turn(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fair_scheduler, "SHARE", 0.0)
        monkeypatch.setattr(fair_scheduler, "SHARE_ALONE", 0.0)
        with serve(tmp_path) as service:
            client = service.running.connect()
            call(client, "wait")
            service.until(lambda: len(service.line) == 1)
            requests = [AT_ONCE + 1, 0, *range(1, 100)]
            client.send_bytes(
                b"".join(frame(CALL, {FUNCTION_NAME: "step", TUPLE: [number]}) for number in requests)
            )
            service.barrier.wait(20)
            half_close(client)
            service.barrier.wait(20)
            for _ in range(1 + len(requests)):
                assert client.receive().ok
            assert client.closed_by_server()
            assert service.steps[0] == (AT_ONCE + 1, 1)
            assert service.steps[-1] == (99, 0)


class TestNotHeld:
    def test_who_sends_no_more_is_answered_and_closed(self, tmp_path: Path) -> None:
        with serve(tmp_path) as service:
            client = service.waiter()
            half_close(client)
            assert client.receive().data == []
            assert client.closed_by_server()

    def test_nobody_is_watched_who_was_never_held(self, tmp_path: Path) -> None:
        with serve(tmp_path) as service:
            client = service.waiter()
            for number in range(100):
                assert client.call("step", number + 1).ok
            assert len(service.running.server.state.hangups) == 0

    def test_who_reads_nothing_and_cannot_be_understood_waits_for_nothing(self, tmp_path: Path) -> None:
        with serve(tmp_path) as service:
            client = IprotoClient.at(service.running.server.box.listen[0], receive_buffer=4096)
            call(client, "wait")
            service.until(lambda: len(service.line) == 1)
            # In one piece: once its answer is not read, nothing more is received.
            client.send_bytes(frame(CALL, {FUNCTION_NAME: "big", TUPLE: [10_000_000]}) + b"\xff")
            service.until(lambda: len(service.line) == 0)
            client.close()
