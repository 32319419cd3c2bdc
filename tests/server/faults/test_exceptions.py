"""Whatever code of an application raises ends its own request: it is answered and logged, and all goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from tests.command_line import run_process
from tests.iproto_client import (
    AUTH,
    CALL,
    FUNCTION_NAME,
    INSERT,
    PING,
    SPACE_ID,
    TUPLE,
    USER_NAME,
    IprotoClient,
)
from tests.protocol.tarantool15.box15_client import CALL as CALL_15
from tests.protocol.tarantool15.box15_client import Client15, call_body
from tests.running_server import RunningServer
from tests.server.conftest import Connect
from tests.server.faults import raising_application
from tests.server.in_process import ServerInProcess
from tests.server.stream import Stream

APPLICATION = "tests.server.faults.raising_application:app"
TEXTS = {
    "WithoutTextError": "WithoutTextError: <exception str() failed>",
    "OwnBaseError": "OwnBaseError: x",
    "CancelledError": "CancelledError: x",
    "GeneratorExit": "GeneratorExit: x",
    "SystemExit": "SystemExit: x",
    "KeyboardInterrupt": "KeyboardInterrupt: x",
    "BaseException": "BaseException: x",
}
UNREADABLE = "UnreadableBoxError"
"""A `BoxError`, which is sent as it is, and not logged."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    options = ["--listen-1-5", "127.0.0.1:0"]
    directory = tmp_path_factory.mktemp("server")
    with RunningServer(directory, [APPLICATION], options) as server:
        yield server


@pytest.fixture(autouse=True)
def no_faults(connect: Connect) -> Iterator[None]:
    yield
    connect().call("fault.clear")


class Logged:
    """The lines that the server logs while a test runs."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._begin = len(server.process.lines)

    def count(self, text: str) -> int:
        return sum(text in line for line in self._server.process.lines[self._begin :])


@pytest.fixture
def logged(server: RunningServer) -> Logged:
    return Logged(server)


def is_alive(client: IprotoClient) -> bool:
    """Whether the connection stays, and nothing was kept of what was undone."""
    return client.request(PING).ok and client.call("box.space.log:len").data == [0]


@pytest.mark.parametrize("name", [*TEXTS, UNREADABLE])
class TestCalls:
    @pytest.mark.parametrize("procedure", ["plain", "async", "async.late"])
    def test_a_procedure_that_raises(
        self, client: IprotoClient, logged: Logged, procedure: str, name: str
    ) -> None:
        answer = client.call(procedure, name)
        assert answer.failure == (32, TEXTS.get(name, name))
        assert logged.count(f"raised {name}") == (name != UNREADABLE)
        assert is_alive(client)

    def test_a_coroutine_that_is_begun_beside_it(self, client: IprotoClient, name: str) -> None:
        assert client.call("async.beside", name).failure == (32, TEXTS.get(name, name))
        assert is_alive(client)

    def test_a_call_that_waits_and_then_raises(self, connect: Connect, logged: Logged, name: str) -> None:
        waiting, other = connect(), connect()
        waiting.send(CALL, {FUNCTION_NAME: "waits", TUPLE: [name]})
        assert waiting.request(PING).ok
        assert other.call("wake").data == ["woken"]
        assert waiting.receive().failure == (32, TEXTS.get(name, name))
        assert logged.count(f"raised {name}") == (name != UNREADABLE)
        assert is_alive(waiting)

    def test_a_call_whose_own_end_raises(self, connect: Connect, logged: Logged, name: str) -> None:
        waiting, other = connect(), connect()
        waiting.send(CALL, {FUNCTION_NAME: "waits.on_finish", TUPLE: [name]})
        assert waiting.request(PING).ok
        assert other.call("wake").data == ["woken"]
        assert waiting.receive().data == ["resumed"]
        assert logged.count("on_finish callback of a waiting call failed") == 1
        assert is_alive(waiting)

    def test_what_is_called_after_the_transaction(
        self, client: IprotoClient, logged: Logged, name: str
    ) -> None:
        assert client.call("on_commit", name).data == ["done"]
        assert client.call("on_rollback", name).failure == (32, "ZeroDivisionError: x")
        assert [each for each in client.call("seen").data[0] if isinstance(each, str)] == [
            "committed",
            "undone",
        ]
        assert logged.count("transaction callback failed") == 2
        assert is_alive(client)

    def test_a_result_that_raises_when_it_is_packed(self, client: IprotoClient, name: str) -> None:
        answer = client.call("answers", name)
        assert answer.failure[0] == 32
        assert is_alive(client)

    def test_in_a_stream(self, client: IprotoClient, name: str) -> None:
        stream = Stream(client, 7)
        stream.begin()
        assert stream.call("plain", name).failure == (32, TEXTS.get(name, name))
        assert stream.call("box.space.log:len").data == [0]
        assert stream.commit().ok
        assert is_alive(client)

    def test_over_the_protocol_of_1_5(self, server: RunningServer, connect: Connect, name: str) -> None:
        found = server.process.wait_for(r"listening on 127.0.0.1:(\d+), protocol of Tarantool 1.5")
        with Client15("127.0.0.1", int(found[1])) as client:
            for procedure in ("plain", "async"):
                answer = client.request(CALL_15, call_body(procedure.encode(), name.encode()))
                assert (answer.code, answer.message) == (0x33, f"Lua error: {TEXTS.get(name, name)}")
        assert is_alive(connect())


@pytest.mark.parametrize("name", TEXTS)
class TestTriggers:
    @pytest.mark.parametrize("place", ["on_replace", "before_replace"])
    def test_of_a_space(self, client: IprotoClient, logged: Logged, place: str, name: str) -> None:
        client.call("fault.set", place, name)
        number = client.call("box.space._space.index.name:get", "log").data[0][0]
        insert = client.request(INSERT, {SPACE_ID: number, TUPLE: [9, "x"]})
        assert insert.failure == client.call("box.space.log:insert", [9, "x"]).failure == (32, TEXTS[name])
        assert logged.count(f"raised {name}") == 2
        assert is_alive(client)

    def test_of_a_connect(self, connect: Connect, logged: Logged, name: str) -> None:
        client = connect()
        client.call("fault.set", "on_connect", name)
        refused = connect()
        refused.send(PING)
        assert refused.receive().failure == (32, TEXTS[name])
        assert refused.closed_by_server()
        assert logged.count(f"a session trigger raised {name}") == 1
        client.call("fault.clear")
        assert is_alive(client)

    def test_of_a_disconnect(self, connect: Connect, logged: Logged, name: str) -> None:
        client, gone = connect(), connect()
        session_id = gone.call("box.session.id").data[0]
        client.call("fault.set", "on_disconnect", name)
        gone.close()
        while ["gone", session_id] not in client.call("seen").data[0]:
            """The server hears of it a moment later."""
        assert logged.count("an on_disconnect trigger failed") >= 1
        assert logged.count(TEXTS[name]) >= 1
        assert is_alive(client)

    def test_of_an_authentication(self, client: IprotoClient, logged: Logged, name: str) -> None:
        client.call("fault.set", "on_auth", name)
        answer = client.request(AUTH, {USER_NAME: "guest", TUPLE: []})
        assert answer.failure == (32, TEXTS[name])
        assert logged.count(f"raised {name}") == 1
        assert is_alive(client)


@pytest.mark.parametrize("name", TEXTS)
class TestWhatNobodyHasCalled:
    def test_a_timer(self, client: IprotoClient, logged: Logged, name: str) -> None:
        client.call("timer", name)
        while "the next timer" not in client.call("seen").data[0]:
            """It comes a moment later."""
        assert logged.count("a timer's function failed") == 1
        assert is_alive(client)

    def test_a_watcher(self, client: IprotoClient, logged: Logged, name: str) -> None:
        client.call("fault.set", "watcher", name)
        for value in (1, 2):
            client.call("box.broadcast", "key", value)
            while ["told", value] not in client.call("seen").data[0]:
                """It comes a moment later."""
        assert logged.count("a watcher of key failed") == 2
        client.call("fault.clear")
        client.call("box.broadcast", "key", None)
        assert is_alive(client)


@pytest.mark.parametrize("name", [*TEXTS, UNREADABLE])
def test_a_background_task(tmp_path: Path, name: str) -> None:
    with RunningServer(tmp_path, [APPLICATION]) as server, IprotoClient.at(server.address) as client:
        client.call("fault.set", "background", name)
        client.call("background.go_on")
        server.process.wait_for("a background task of raising failed")
        assert is_alive(client)


def test_a_coroutine_that_cancels_itself_has_failed(client: IprotoClient, logged: Logged) -> None:
    assert client.call("async.cancels_itself").failure == (32, "CancelledError: ")
    assert logged.count("raised CancelledError") == 1
    assert is_alive(client)


def test_a_setup_that_raises_is_why_the_server_does_not_start(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        code = "\n".join(
            (
                "from iproto_server import Application",
                "from tests.server.faults.raising_application import make",
                "app = Application('refusing')",
                "@app.setup",
                "def setup(box):",
                f"    raise make({name!r})",
            )
        )
        (tmp_path / "refusing.py").write_text(code)
        done = run_process("serve", "refusing:app", "--listen", "127.0.0.1:0", directory=tmp_path)
        assert done.returncode == 1
        assert f"the setup of refusing raised {name}" in done.stderr
        assert done.stderr.endswith(f"iproto-server: the application's setup failed: {text}\n")


def test_counters_that_raise(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ServerInProcess(tmp_path, [raising_application.app], loop=uvloop.new_event_loop()) as server:
        client = server.connect()
        for name in TEXTS:
            client.call("fault.set", "metrics", name)

            async def names() -> set[str]:
                return {name for name, _ in server.server.metrics()}

            assert "server.errors" in server.run(names())
            assert "raising.one" not in server.run(names())
            client.call("fault.clear")
            assert "raising.one" in server.run(names())
    failures = [record for record in caplog.records if record.msg == "the counters of %s failed"]
    assert len(failures) == len(TEXTS)  # once each, however often they are asked for
