"""The end of a connection whose requests are held, and which is not read from therefore."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from iproto_server.config.address import Address
from iproto_server.native._native import REQUESTS_AT_ONCE
from iproto_server.server.connection import connection as module
from iproto_server.server.connection import fair_scheduler
from tests.config.certificates import Certificates
from tests.conftest import StartServer
from tests.iproto_client import CALL, FUNCTION_NAME, PING, TUPLE, IprotoClient, frame
from tests.protocol.tarantool15.box15_client import CALL as CALL_15
from tests.protocol.tarantool15.box15_client import PING as PING_15
from tests.protocol.tarantool15.box15_client import Client15, call_body
from tests.server.connection.service import (
    NET_MSG_MAX,
    Client,
    Service,
    call,
    close,
    half_close,
    reset,
    serve,
    shut,
)

CALLS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "tutorial": (("queue.put",), ("queue.take", 3600)),
    "legacy": (("queue.put", 0, "t", 0, 0, 3600, 0), ("queue.take", 0, "t", 3600)),
    "tubes": (("queue.tube.t:put",), ("queue.tube.t:take", 3600)),
}
"""How a task is put, its data behind, and how one is waited for."""


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
            others = [service.waiter()]
            service.fill()
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
            others = [service.waiter()]
            service.fill()
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

    def test_a_socket_is_closed_that_procedures_go_on_behind_and_its_requests_still_run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "END_GRACE", 0.01)
        with serve(tmp_path) as service:
            client = service.fill()
            call(client, "step", 1)
            service.until_held()
            half_close(client)
            assert client.closed_by_server()
            assert service.steps == []
            service.end_work()
            assert service.gone.acquire(timeout=20)
            assert service.steps == [(1, 0)]

    def test_who_was_held_before_is_noticed_again(self, tmp_path: Path) -> None:
        with serve(tmp_path) as service:
            giver = service.running.connect()
            service.fill()
            client = service.running.connect()
            call(client, "wait")
            client.send(PING)
            service.until_held()
            service.end_work()
            assert client.receive().ok
            assert giver.call("give", "thing").ok
            assert client.receive().data == ["thing"]
            others = [service.waiter()]
            service.fill()
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
            client = service.fill()
            client.send(PING)
            service.until_held()
            service.end_work()
            assert [client.receive().ok for _ in range(NET_MSG_MAX + 1)] == [True] * (NET_MSG_MAX + 1)
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
            requests = [REQUESTS_AT_ONCE + 1, 0, *range(1, 100)]
            client.send_bytes(
                b"".join(frame(CALL, {FUNCTION_NAME: "step", TUPLE: [number]}) for number in requests)
            )
            service.barrier.wait(20)
            half_close(client)
            service.barrier.wait(20)
            for _ in range(1 + len(requests)):
                assert client.receive().ok
            assert client.closed_by_server()
            assert service.steps[0] == (REQUESTS_AT_ONCE + 1, 1)
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
