"""What an application does wrong costs the request that did it, and nobody else."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from iproto_server.protocol.auth import scramble
from iproto_server.protocol.constants import Key, RequestType
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.server.conftest import Connect
from tests.server.faults import hostile_application
from tests.server.in_process import ServerInProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerInProcess]:
    with ServerInProcess(tmp_path, [hostile_application.app], loop=uvloop.new_event_loop()) as server:
        yield server


@pytest.fixture
def connect(server: ServerInProcess) -> Connect:
    return server.connect


@pytest.fixture
def client(connect: Connect) -> IprotoClient:
    return connect()


def park(client: IprotoClient, *arguments: object) -> int:
    return client.send(RequestType.CALL, {Key.FUNCTION_NAME: "park", Key.TUPLE: list(arguments)})


def wait_for_line(client: IprotoClient, length: int) -> None:
    while client.call("line").data != [length]:
        """Another connection's request may come a moment later."""


class TestEveryRequestIsAnswered:
    def test_a_trigger_that_raises_in_a_request(self, client: IprotoClient) -> None:
        client.call("fault.set", "on_replace")
        insert = client.request(
            RequestType.INSERT, {Key.SPACE_NAME: "log", Key.SPACE_ID: 0, Key.TUPLE: [9, "x"]}
        )
        assert insert.failure == (32, "ZeroDivisionError: on_replace")
        assert client.call("box.space.log:len").data == [0]

    def test_a_trigger_that_raises_in_a_call_of_the_box(self, client: IprotoClient) -> None:
        client.call("fault.set", "on_replace")
        assert client.call("box.space.log:insert", [9, "x"]).failure == (32, "ZeroDivisionError: on_replace")
        assert client.call("box.space.log:len").data == [0]

    def test_a_trigger_that_refuses_an_authentication(self, connect: Connect) -> None:
        client = connect()
        client.call("fault.set", "on_auth")
        proof = scramble("secret", base64.b64decode(client.greeting[64:108]))
        answer = client.request(RequestType.AUTH, {Key.USER_NAME: "alice", Key.TUPLE: ["chap-sha1", proof]})
        assert answer.failure == (32, "ZeroDivisionError: on_auth")
        assert client.call("box.session.user").data == ["guest"]

    def test_a_trigger_that_refuses_a_connection(self, connect: Connect) -> None:
        first = connect()
        first.call("fault.set", "on_connect")
        second = connect()
        second.send(RequestType.PING)
        assert second.receive().failure == (32, "ZeroDivisionError: on_connect")
        assert second.closed_by_server()
        assert first.request(RequestType.PING).status == 0

    def test_a_waiter_that_raises_or_answers_what_has_no_form(self, client: IprotoClient) -> None:
        for kind, text in (
            ("raise", "ZeroDivisionError: resumed"),
            ("unpackable", "unsupported Python type"),
        ):
            sync = park(client, kind)
            client.send(RequestType.CALL, {Key.FUNCTION_NAME: "wake", Key.TUPLE: []})
            answers = {answer.sync: answer for answer in (client.receive(), client.receive())}
            assert text in answers[sync].failure[1]
        assert client.request(RequestType.PING).status == 0

    def test_an_async_procedure_may_answer_with_a_waiter(self, client: IprotoClient) -> None:
        sync = client.send(RequestType.CALL, {Key.FUNCTION_NAME: "park.slow", Key.TUPLE: []})
        wait_for_line(client, 1)
        client.send(RequestType.CALL, {Key.FUNCTION_NAME: "wake", Key.TUPLE: []})
        answers = {answer.sync: answer for answer in (client.receive(), client.receive())}
        assert answers[sync].data == ["woken"]


class TestAfterTheTransaction:
    def test_what_fails_after_a_commit_keeps_neither_the_commit_nor_the_next_from_happening(
        self, client: IprotoClient
    ) -> None:
        assert client.call("commit.fails").data == [[1, "kept"]]
        assert client.call("seen").data == [["the next after the commit"]]
        assert client.call("box.space.log:select").data == [[[1, "kept"]]]

    def test_what_fails_after_a_rollback_does_neither(self, client: IprotoClient) -> None:
        assert client.call("rollback.fails").failure == (32, "no")
        assert client.call("seen").data == [["the next after the rollback"]]
        assert client.call("box.space.log:len").data == [0]

    def test_a_part_that_is_undone_alone_takes_back_what_it_wanted_to_be_called(
        self, client: IprotoClient
    ) -> None:
        client.call("savepoint")
        assert client.call("seen").data == [["undone", "commit"]]

    def test_so_does_a_rollback_in_a_procedure_that_goes_on(self, client: IprotoClient) -> None:
        client.call("rollback")
        assert client.call("seen").data == [["undone"]]
        assert client.call("box.space.log:select").data == [[[6, "kept"]]]

    def test_a_block_in_a_transaction_must_not_await(self, client: IprotoClient) -> None:
        assert "no await or commit inside" in client.call("await.inside").failure[1]
        assert [row[0] for row in client.call("box.space.log:select").data[0]] == [3]


class TestWhoCodeRunsAs:
    def test_a_nested_run_that_is_refused_leaves_the_caller_who_it_is(self, client: IprotoClient) -> None:
        assert client.call("as.admin").data[0] == [
            "Operation is not permitted when there is an active transaction ",
            "guest",
        ]

    def test_what_an_async_procedure_starts_beside_itself_runs_as_its_session(self, connect: Connect) -> None:
        first, second = connect(), connect()
        for client in (first, second):
            session_id = client.call("box.session.id").data[0]
            assert client.call("beside").data[0] == [[session_id, "guest", True]] * 4

    def test_an_async_procedure_that_becomes_another_user_does_so_alone(self, client: IprotoClient) -> None:
        syncs = [client.send(RequestType.CALL, {Key.FUNCTION_NAME: "su", Key.TUPLE: [gate]}) for gate in "ab"]
        while len(client.call("seen").data[0]) < 2:
            """Both are inside."""
        assert client.call("box.session.user").data == ["guest"]
        for gate, sync in zip("ab", syncs, strict=True):  # the first to come is the first to leave
            client.send(RequestType.CALL, {Key.FUNCTION_NAME: "gate.open", Key.TUPLE: [gate]})
            answers = {answer.sync: answer for answer in (client.receive(), client.receive())}
            assert answers[sync].data == ["guest"]
        assert client.call("box.session.user").data == ["guest"]


class TestLines:
    def test_who_fails_is_told_and_the_next_gets_the_turn(self, connect: Connect) -> None:
        first, second, other = connect(), connect(), connect()
        park(first, "raise")
        wait_for_line(other, 1)
        park(second)
        wait_for_line(other, 2)
        other.call("wake")
        assert first.receive().failure == (32, "ZeroDivisionError: resumed")
        assert second.receive().data[0][1] == "guest"

    def test_a_wake_in_a_transaction_waits_for_its_end(self, connect: Connect) -> None:
        waiting, other = connect(), connect()
        park(waiting)
        wait_for_line(other, 1)
        assert other.call("wake").data == [0]
        assert waiting.receive().status == 0

    def test_who_parks_and_then_raises_is_not_in_the_line(self, client: IprotoClient) -> None:
        assert client.call("park.raise").failure == (32, "parked, then raised")
        assert client.call("line").data == [0]
        client.call("wake")
        assert client.call("seen").data == [[]]

    def test_who_has_gone_leaves_the_line(self, connect: Connect) -> None:
        other = connect()
        for _ in range(5):
            gone = connect()
            park(gone)
            wait_for_line(other, 1)
            gone.close()
            wait_for_line(other, 0)


class TestDisconnect:
    def test_a_trigger_that_fails_does_not_keep_the_others_from_running(self, connect: Connect) -> None:
        other, gone = connect(), connect()
        session_id = gone.call("box.session.id").data[0]
        other.call("fault.set", "on_disconnect")
        gone.close()
        while other.call("seen").data != [[["gone", session_id]]]:
            """The server hears of it a moment later."""


class TestStop:
    def test_an_on_stop_function_that_fails_is_logged_and_the_stop_goes_on(
        self, start_server: StartServer
    ) -> None:
        server = start_server(["tests.server.faults.hostile_application:app"])
        server.stop()
        assert "an on_stop function of hostile failed" in server.process.output
        assert server.process.lines[-1].endswith("stopped")
