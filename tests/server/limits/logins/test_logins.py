"""Logins over sockets: what failures are told, logged and counted, and who waits because of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from iproto_server.box.clock import ManualClock
from iproto_server.config.address import Address
from iproto_server.protocol.auth import scramble
from iproto_server.server.limits.login_delays import LoginDelays
from tests.iproto_client import AUTH, CALL, FUNCTION_NAME, PING, TUPLE, USER_NAME, IprotoClient, frame
from tests.server.faults.raising_application import app
from tests.server.in_process import ServerInProcess

REFUSED = (47, "User not found or supplied credentials are invalid")


class Logins:
    """A server with two users, and its clock."""

    def __init__(self, server: ServerInProcess) -> None:
        self.server = server
        self.clock = ManualClock()
        admin = server.connect()
        for name in ("ann", "ben"):
            assert admin.call("box.schema.user.create", name, {"password": "secret"}).ok
        assert admin.call("box.schema.user.create", "sessionless", {"password": "secret"}).ok
        assert admin.call("box.schema.user.revoke", "sessionless", "session", "universe").ok
        assert admin.call("box.schema.role.create", "role").ok

        def take_clock() -> None:
            server.server.box.clock = self.clock
            server.server.dispatcher.authentication.delays = LoginDelays(lambda: self.clock.time_ns() / 1e9)

        self.within(take_clock)

    def within(self, function: Callable[[], object]) -> object:
        async def call() -> object:
            return function()

        return self.server.run(call())

    def advance(self, seconds: float) -> None:
        self.within(lambda: self.clock.advance(seconds))

    def pending(self) -> object:
        """How many timers are set."""
        return self.within(lambda: self.clock.pending)

    def counter(self, name: str) -> object:
        return self.within(lambda: dict(self.server.server.metrics())[name])

    def connect(self) -> IprotoClient:
        return self.server.connect()

    def connect_by_unix(self) -> IprotoClient:
        return IprotoClient.at(self.server.server.box.listen[1].replace("unix/:", "unix:"))

    def fail(self, times: int, user: str = "ann", client: IprotoClient | None = None) -> None:
        client = client or self.connect()
        for _ in range(times):
            assert log_in(client, user, "wrong").failure == REFUSED


def body(client: IprotoClient, user: str, password: str) -> dict[int, object]:
    return {USER_NAME: user, TUPLE: ["chap-sha1", scramble(password, client.salt)]}


def log_in(client: IprotoClient, user: str, password: str = "secret"):  # type: ignore[no-untyped-def]
    return client.request(AUTH, body(client, user, password))


@pytest.fixture(params=["asyncio", "uvloop"])
def logins(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Logins]:
    loop = asyncio.new_event_loop() if request.param == "asyncio" else uvloop.new_event_loop()
    listen = (Address("127.0.0.1", 0), Address(path="logins.sock"))
    with ServerInProcess(tmp_path, [app], loop=loop, listen=listen, net_msg_max=2) as server:
        yield Logins(server)


class TestAnswers:
    @pytest.mark.parametrize("user", ["ann", "nobody", "role", "public", "admin", "sessionless", "", "guest"])
    def test_wrong_passwords_and_unknown_users_are_told_the_same(self, logins: Logins, user: str) -> None:
        client = logins.connect()
        assert log_in(client, user, "wrong").failure == REFUSED
        for items in ([], ["chap-sha1"], [5, bytes(20)]):
            answer = client.request(AUTH, {USER_NAME: user, TUPLE: items})
            if items or user != "guest":
                assert answer.failure == (20, "Invalid MsgPack - authentication request body")
        short = client.request(AUTH, {USER_NAME: user, TUPLE: ["chap-sha1", b"short"]})
        assert short.failure == (20, "Invalid MsgPack - invalid scramble size")
        assert client.request(AUTH, {USER_NAME: user, TUPLE: ["md5", b""]}).failure[0] == 249
        over_unix = logins.connect_by_unix()
        clear = over_unix.request(AUTH, {USER_NAME: user, TUPLE: ["pap-sha256", "wrong"]})
        assert clear.failure == REFUSED
        over_unix.close()

    def test_who_has_no_right_to_a_session_is_told_so_only_with_the_password(self, logins: Logins) -> None:
        answer = log_in(logins.connect(), "sessionless")
        assert answer.failure == (42, "Session access to universe '' is denied for user 'sessionless'")

    def test_what_is_malformed_is_no_guess(self, logins: Logins) -> None:
        client = logins.connect()
        for _ in range(20):
            assert client.request(AUTH, {USER_NAME: "ann", TUPLE: ["chap-sha1"]}).error_code == 20
        assert logins.counter("server.logins.failed") == 0
        assert log_in(client, "ann").ok


class TestDelays:
    def test_the_sixth_password_waits(self, logins: Logins) -> None:
        client = logins.connect()
        logins.fail(5, client=client)
        client.send(AUTH, body(client, "ann", "wrong"))
        other = logins.connect()
        assert other.request(PING).ok
        while logins.pending() != 1:
            """The server has read it a moment later."""
        logins.advance(0.09)
        assert logins.pending() == 1
        logins.advance(0.01)
        assert client.receive().failure == REFUSED
        assert logins.counter("server.logins.failed") == 6
        assert logins.counter("server.logins.delayed") == 1

    def test_a_right_one_waits_no_longer_than_a_second_whatever_others_try(self, logins: Logins) -> None:
        attackers = [logins.connect() for _ in range(20)]
        for attacker in attackers:
            for _ in range(10):
                attacker.send(AUTH, body(attacker, "ann", "wrong"))
        while logins.pending() != len(attackers):
            """The server has read them a moment later."""
        client = logins.connect()
        client.send(AUTH, body(client, "ann", "secret"))
        assert logins.connect().request(PING).ok
        while logins.pending() != len(attackers) + 1:
            """And this one, too."""
        logins.advance(1.0)
        assert client.receive().ok
        assert "'ann'" in client.call("box.session.user").failure[1]  # ann may not call it

    def test_others_do_not_wait(self, logins: Logins) -> None:
        client = logins.connect()
        logins.fail(5, client=client)
        for _ in range(3):
            client.send(AUTH, body(client, "ann", "wrong"))
        assert log_in(logins.connect(), "ben").ok
        over_unix = logins.connect_by_unix()
        assert log_in(over_unix, "ann").ok
        over_unix.close()
        assert logins.connect().call("box.session.user").data == ["guest"]

    def test_unix_sockets_go_by_user(self, logins: Logins) -> None:
        first, second = logins.connect_by_unix(), logins.connect_by_unix()
        logins.fail(5, client=first)
        second.send(AUTH, body(second, "ann", "secret"))
        while logins.pending() != 1:
            """It waits, on another connection."""
        assert log_in(first, "ben").ok
        logins.advance(0.1)
        assert second.receive().ok
        first.close()
        second.close()

    def test_unknown_users_wait_as_long(self, logins: Logins) -> None:
        client = logins.connect()
        logins.fail(5, "nobody", client)
        client.send(AUTH, body(client, "nobody", "x"))
        while logins.pending() != 1:
            """The server has read it a moment later."""
        logins.advance(0.1)
        assert client.receive().failure == REFUSED

    def test_the_requests_behind_it_wait_and_are_the_users(self, logins: Logins) -> None:
        client = logins.connect()
        logins.fail(5, client=client)
        client.send(AUTH, body(client, "ann", "secret"))
        behind = [client.send(CALL, {FUNCTION_NAME: "box.session.user", TUPLE: []}) for _ in range(50)]
        while logins.pending() != 1:
            """The server has read the first a moment later."""
        assert logins.connect().request(PING).ok
        logins.advance(0.1)
        assert client.receive().ok
        for sync in behind:
            answer = client.receive()
            # Guest may do everything here; ann has no right to call this, and so on.
            assert (answer.sync, answer.failure[0]) == (sync, 42)
            assert "'ann'" in answer.failure[1]

    @pytest.mark.parametrize("is_pipelined", [False, True])
    def test_what_is_behind_it_is_judged_when_it_is_through(self, logins: Logins, is_pipelined: bool) -> None:
        """A request larger than a stranger's may be, and what is no request."""
        access = logins.server.server.box.access

        def close_to_guest() -> None:
            access._is_open_to_guest = False
            access._sum_up()

        logins.within(close_to_guest)
        client = logins.connect()
        logins.fail(5, client=client)
        sent = frame(AUTH, body(client, "ann", "secret"), sync=1)
        sent += frame(CALL, {FUNCTION_NAME: "echo", TUPLE: ["x" * 100_000]}, sync=2)
        sent += b"\xc1"
        if is_pipelined:
            client.send_bytes(b"".join(frame(PING, sync=7) for _ in range(10)) + sent)
            assert {client.receive().sync for _ in range(10)} == {7}
        else:
            client.send_bytes(sent)
        while logins.pending() != 1:
            """The server has read it a moment later."""
        logins.advance(0.1)
        assert client.receive().ok
        answer = client.receive()
        assert (answer.sync, answer.error_code) == (2, 42)  # it was read; ann may call nothing
        assert client.receive().failure[0] == 20
        assert client.closed_by_server()

    def test_several_on_one_connection_wait_one_after_another(self, logins: Logins) -> None:
        client = logins.connect()
        logins.fail(5, client=client)
        syncs = [client.send(AUTH, body(client, "ann", "wrong")) for _ in range(4)]
        for sync, delay in zip(syncs, (0.1, 0.2, 0.4, 0.8), strict=True):
            while logins.pending() != 1:
                """Its turn comes a moment later."""
            logins.advance(delay - 0.01)
            assert logins.pending() == 1
            logins.advance(0.01)
            assert client.receive().sync == sync

    def test_they_are_no_requests_in_flight(self, logins: Logins) -> None:
        """`net_msg_max` is 2 here."""
        attackers = [logins.connect() for _ in range(30)]
        logins.fail(5)
        for attacker in attackers:
            attacker.send(AUTH, body(attacker, "ann", "wrong"))
            attacker.send(PING)
        while logins.pending() != len(attackers):
            """The server has read them a moment later."""
        assert logins.counter("server.requests_in_flight") == 0
        client, other = logins.connect(), logins.connect()
        client.send(CALL, {FUNCTION_NAME: "waits.on_finish", TUPLE: ["ZeroDivisionError"]})
        assert client.request(PING).ok
        assert other.call("wake").ok
        assert client.receive().data == ["resumed"]
        logins.advance(1.0)
        for attacker in attackers:
            assert attacker.receive().failure == REFUSED
            assert attacker.receive().ok

    @pytest.mark.parametrize("how", ["close", "shutdown"])
    def test_one_whose_client_has_gone_leaves_nothing_behind(self, logins: Logins, how: str) -> None:
        logins.fail(5)
        client = logins.connect()
        client.send(AUTH, body(client, "ann", "secret"))
        while logins.pending() != 1:
            """The server has read it a moment later."""
        if how == "shutdown":
            client.socket.shutdown(1)
            assert client.closed_by_server()  # and it is not told before its time, or at all
        else:
            client.close()
        while logins.pending():
            """The server hears of it a moment later."""
        while logins.within(lambda: len(logins.server.server.state.connections)) != 2:
            """Two are still there: the test's admin, and the one that has failed."""

    @pytest.mark.parametrize("password", ["secret", "wrong"])
    @pytest.mark.parametrize("how", ["close", "shutdown"])
    def test_requests_behind_one_whose_client_has_gone_run_if_the_password_is_right(
        self, logins: Logins, how: str, password: str
    ) -> None:
        logins.fail(5)
        client = logins.connect()
        client.send(AUTH, body(client, "ann", password))
        client.send(AUTH, {USER_NAME: "guest", TUPLE: []})
        client.send(CALL, {FUNCTION_NAME: "box.schema.user.create", TUPLE: ["made"]})
        while logins.pending() != 1:
            """The server has read it a moment later."""
        if how == "shutdown":
            client.socket.shutdown(1)
        else:
            client.close()
        connections = logins.server.server.state.connections
        while not logins.within(lambda: any(each.session.is_ended for each in connections)):
            """The server hears of it a moment later."""
        logins.advance(0.09)
        assert logins.pending() == 1
        logins.advance(0.01)
        while logins.within(lambda: len(connections)) != 2:
            """The session ends after the last request."""
        is_made = logins.connect().call("box.schema.user.exists", "made").data
        assert is_made == [password == "secret"]

    def test_a_stop_does_not_wait(self, logins: Logins) -> None:
        logins.fail(5)
        client = logins.connect()
        client.send(AUTH, body(client, "ann", "secret"))
        while logins.pending() != 1:
            """The server has read it a moment later."""
        state = logins.server.server.state

        def begin_to_stop() -> None:
            state.is_stopping = True
            for connection in list(state.connections):
                connection.stop_reading()
                connection.session.cancel_waits()

        logins.within(begin_to_stop)
        assert client.receive().ok
        assert logins.pending() == 0


class TestLog:
    def test_failures_are_few_lines_with_counts(
        self, logins: Logins, caplog: pytest.LogCaptureFixture
    ) -> None:
        name = "evil\nname" + "x" * 1000
        logins.fail(5)
        logins.fail(3, "nobody")
        logins.fail(1, name)
        logins.within(logins.server.server.state.rate_limited_log.close)
        records = [record for record in caplog.records if record.msg == "login failed"]
        fields = [record.__dict__["fields"] for record in records]
        assert {record.levelname for record in records} == {"WARNING"}
        # The first one, and the others together with the last name: names are of a client's choice.
        assert [(each["user"], each["count"]) for each in fields] == [("ann", 1), (name[:64], 8)]
        assert {each["address"] for each in fields} == {"127.0.0.1"}
