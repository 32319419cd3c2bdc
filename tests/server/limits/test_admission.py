"""Who may connect: limits in all, from an address, of a user."""

from __future__ import annotations

import hashlib
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from iproto_server import Application, Box, BoxError
from iproto_server.box.clock import ManualClock
from iproto_server.config.address import Address
from iproto_server.config.config import Config
from iproto_server.server.connection.connection import Connection
from iproto_server.server.limits import admission as module
from iproto_server.server.limits.admission import Admission
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from tests.config.certificates import Certificates
from tests.iproto_client import AUTH, PING, TUPLE, USER_NAME, Answer, IprotoClient
from tests.protocol.tarantool15.box15_client import Client15
from tests.server.in_process import ServerInProcess

SYSTEM = 115
PASSWORD = "secret"


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Where clients are closed at the end."""
    with ExitStack() as clients:
        yield clients


@contextmanager
def serve(directory: Path, **options: Any) -> Iterator[ServerInProcess]:
    application = Application("users")

    @application.setup
    def setup(box: Box) -> None:
        for name in ("alice", "bob"):
            box.schema.user.create(name, password=PASSWORD, if_not_exists=True)

    with ServerInProcess(directory, [application], loop=uvloop.new_event_loop(), **options) as running:
        yield running


def counters(running: ServerInProcess) -> dict[str, float]:
    async def look() -> dict[str, float]:
        return dict(running.server.metrics())

    found: dict[str, float] = running.run(look())
    return {
        name.removeprefix("server.connections."): value
        for name, value in found.items()
        if name.startswith("server.connections.") and value
    }


def until_connections(running: ServerInProcess, count: int) -> None:
    """Wait until the server knows that there are so many."""
    while counters(running).get("current", 0) != count:
        pass


def log_in(client: IprotoClient, user: str) -> Answer:
    hashed = hashlib.sha1(PASSWORD.encode()).digest()
    scramble = hashlib.sha1(client.salt[:20] + hashlib.sha1(hashed).digest()).digest()
    proof = bytes(a ^ b for a, b in zip(hashed, scramble, strict=True))
    return client.request(AUTH, {USER_NAME: user, TUPLE: ["chap-sha1", proof]})


class TestInAll:
    def test_who_comes_then_is_told_why_and_sent_away(
        self, tmp_path: Path, opened: ExitStack, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING), serve(tmp_path, max_connections=2) as running:
            place = running.server.box.listen[0]
            first, second = (opened.enter_context(IprotoClient.at(place)) for _ in range(2))
            for _ in range(100):
                with IprotoClient.at(place) as third:
                    refusal = third.receive()
                    assert refusal.failure == (SYSTEM, "Too many connections: max_connections is 2")
                    assert refusal.sync == 0
                    assert third.closed_by_server()
            assert first.request(PING).ok
            assert second.request(PING).ok
            assert counters(running) == {"current": 2, "accepted": 2, "refused.max_connections": 100}
            refused = [record for record in caplog.records if record.message == "refused a connection"]
            assert [record.__dict__["fields"]["reason"] for record in refused] == ["max_connections is 2"]
            second.close()
            until_connections(running, 1)
            with IprotoClient.at(place) as third:
                assert third.request(PING).ok

    def test_of_the_protocol_of_1_5_it_is_an_error_that_answers_nothing(
        self, tmp_path: Path, opened: ExitStack
    ) -> None:
        with serve(tmp_path, max_connections=1, listen_1_5=(Address("127.0.0.1"),)) as running:
            opened.enter_context(IprotoClient.at(running.server.box.listen[0]))
            client = Client15("127.0.0.1", list(running.server.listeners)[-1].address.port)
            refusal = client.receive()
            assert (refusal.kind, refusal.request_id) == (0, 0)
            assert refusal.message == "Too many connections: max_connections is 1"
            assert client.closed_by_server()

    def test_over_tls_those_count_that_have_not_shaken_hands(self, tmp_path: Path, opened: ExitStack) -> None:
        certificates = Certificates(tmp_path)
        listen = (Address.parse_listen(certificates.listen()),)
        with serve(tmp_path, max_connections=2, listen=listen) as running:
            host, _, port = running.server.box.listen[0].rpartition(":")
            silent = [
                opened.enter_context(socket.create_connection((host, int(port)), timeout=20))
                for _ in range(3)
            ]
            assert silent[2].recv(1) == b""
            assert counters(running) == {"accepted": 2, "refused.max_connections": 1}
            silent[0].close()
            while running.server.state.admission.connections != 1:
                pass
            with IprotoClient(host, int(port), tls=certificates.context()) as client:
                assert client.request(PING).ok
                assert counters(running)["failed_handshakes"] == 1

    def test_the_limit_can_change_while_the_server_runs(self, tmp_path: Path, opened: ExitStack) -> None:
        with serve(tmp_path, max_connections=1) as running:
            place = running.server.box.listen[0]
            client = opened.enter_context(IprotoClient.at(place))
            assert client.call("box.cfg", {"max_connections": 2}).ok
            assert opened.enter_context(IprotoClient.at(place)).request(PING).ok
            assert client.call("box.cfg", {"max_connections": 0}).failure[0] == 59
            assert client.call("box.cfg", {"max_connections": None}).ok
            assert running.server.state.admission.limit > 2
            assert client.call("box.cfg", {"max_connections": "many"}).failure[0] == 59

    @pytest.mark.parametrize(("descriptors", "limit"), [(1024, 960), (100, 50), (1_000_000, 999_936)])
    def test_by_default_there_may_be_as_many_as_there_are_descriptors_less_a_reserve(
        self, descriptors: int, limit: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "descriptor_limit", lambda: descriptors)
        assert admission(Config()).limit == limit


def test_the_system_looks_for_clients_whose_machine_is_gone(tmp_path: Path, opened: ExitStack) -> None:
    with serve(tmp_path) as running:
        opened.enter_context(IprotoClient.at(running.server.box.listen[0]))

        async def is_kept_alive() -> int:
            [connection] = running.server.state.connections
            assert isinstance(connection, Connection)
            own = connection._transport.get_extra_info("socket")
            found: int = own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            return found

        assert running.run(is_kept_alive()) == 1


class TestFromAnAddress:
    def test_others_and_unix_sockets_are_not_concerned(self, tmp_path: Path, opened: ExitStack) -> None:
        listen = (Address("127.0.0.1"), Address(path=str(tmp_path / "socket")))
        with serve(tmp_path, max_connections_per_address=1, listen=listen) as running:
            host, _, port = running.server.box.listen[0].rpartition(":")
            first = opened.enter_context(IprotoClient(host, int(port)))
            with IprotoClient(host, int(port)) as second:
                assert second.receive().failure == (
                    SYSTEM,
                    "Too many connections: 127.0.0.1 has 1, as max_connections_per_address allows",
                )
                assert second.closed_by_server()
            other = opened.enter_context(
                socket.create_connection((host, int(port)), 20, source_address=("127.0.0.2", 0))
            )
            assert len(other.recv(128, socket.MSG_WAITALL)) == 128
            for _ in range(3):
                assert opened.enter_context(IprotoClient(str(tmp_path / "socket"), 0)).request(PING).ok
            first.close()
            until_connections(running, 4)
            with IprotoClient(host, int(port)) as again:
                assert again.request(PING).ok
            assert counters(running)["refused.max_connections_per_address"] == 1

    def test_an_address_of_ipv4_is_the_same_on_a_socket_of_ipv6(self) -> None:
        some = admission(Config(max_connections_per_address=1))
        ticket = some.admit("::ffff:10.0.0.1", "[::ffff:10.0.0.1]:1")
        with pytest.raises(BoxError, match=r"10\.0\.0\.1 has 1"):
            some.admit("10.0.0.1", "10.0.0.1:2")
        ticket.give_back()
        ticket.give_back()
        some.admit("10.0.0.1", "10.0.0.1:3")
        assert some.connections == 1


class TestOfAUser:
    def test_a_login_above_the_limit_ends_the_connection(self, tmp_path: Path, opened: ExitStack) -> None:
        with serve(tmp_path, max_connections_per_user=2) as running:
            place = running.server.box.listen[0]
            clients = [opened.enter_context(IprotoClient.at(place)) for _ in range(4)]
            assert log_in(clients[0], "alice").ok
            assert log_in(clients[1], "alice").ok
            assert log_in(clients[1], "alice").ok
            assert log_in(clients[2], "alice").failure == (
                SYSTEM,
                "Too many connections: user 'alice' has 2, as max_connections_per_user allows",
            )
            assert clients[2].closed_by_server()
            assert log_in(clients[3], "bob").ok
            # Who becomes somebody else makes room, guest included.
            assert clients[0].request(AUTH, {USER_NAME: "guest", TUPLE: []}).ok
            assert log_in(clients[3], "alice").ok
            clients[1].close()
            until_connections(running, 2)
            assert log_in(clients[0], "alice").ok
            assert counters(running)["refused.max_connections_per_user"] == 1

    def test_a_login_that_had_to_wait_is_told_so_too(self, tmp_path: Path, opened: ExitStack) -> None:
        with serve(tmp_path, max_connections_per_user=1) as running:
            place = running.server.box.listen[0]
            assert log_in(opened.enter_context(IprotoClient.at(place)), "alice").ok
            client = opened.enter_context(IprotoClient.at(place))
            for _ in range(6):
                assert not client.request(AUTH, {USER_NAME: "alice", TUPLE: ["chap-sha1", b"x" * 20]}).ok
            assert log_in(client, "alice").failure[0] == SYSTEM
            assert client.closed_by_server()

    def test_a_wrong_password_is_not_counted(self, tmp_path: Path, opened: ExitStack) -> None:
        with serve(tmp_path, max_connections_per_user=1) as running:
            place = running.server.box.listen[0]
            wrong = opened.enter_context(IprotoClient.at(place))
            assert not wrong.request(AUTH, {USER_NAME: "alice", TUPLE: ["chap-sha1", b"x" * 20]}).ok
            assert log_in(opened.enter_context(IprotoClient.at(place)), "alice").ok
            assert wrong.request(PING).ok

    def test_guest_is_not_counted(self, tmp_path: Path, opened: ExitStack) -> None:
        with serve(tmp_path, max_connections_per_user=1) as running:
            for _ in range(3):
                client = opened.enter_context(IprotoClient.at(running.server.box.listen[0]))
                assert client.request(AUTH, {USER_NAME: "guest", TUPLE: []}).ok


def admission(config: Config) -> Admission:
    return Admission(lambda: config, RateLimitedLog(logging.getLogger("test"), ManualClock()))
