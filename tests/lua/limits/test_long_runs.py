"""Lua code that keeps the event loop busy is in the log, and cannot keep the server from ending."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server.lua.long_runs import INTERVAL, LuaReports, in_one_line
from iproto_server.testing.logged_process import LoggedProcess
from iproto_server.testing.serving import serve
from tests.iproto_client import EVAL, EXPRESSION, TUPLE, IprotoClient
from tests.lua.limits.conftest import APPLICATION, StartLua

TRIES = 60
"""Evaluations of long code until one is logged: after a slow start, there is none for ten seconds."""


def evaluate(process: LoggedProcess, text: str) -> None:
    """Begin to evaluate a text, which does not end."""
    with IprotoClient.at(address_of(process)) as client:
        client.send(EVAL, {EXPRESSION: f"io.stderr:write('evaluating\\n') {text}", TUPLE: []})
        process.wait_for("evaluating")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LoggedProcess]:
    process = serve([str(APPLICATION), "--listen", "127.0.0.1:0", "--stop-timeout", "0"], tmp_path).process
    yield process
    if process.running:
        process.kill()


def address_of(process: LoggedProcess) -> str:
    return str(process.wait_for(r"listening on (\S+)")[1])


class TestAServer:
    def test_logs_where_long_lua_code_is(self, start_lua: StartLua) -> None:
        lua = start_lua()
        text = (
            "local function work() local t = os.clock() while os.clock() - t < 0.4 do end end\n"
            "local function caller() work() return 1 end\nreturn caller()"
        )
        for _ in range(TRIES):
            assert lua.eval(text).data == [1]
            found = re.search(r'warn Lua code keeps .*traceback="(.*\'work\'.*)"', lua.server.process.output)
            if found is not None:
                break
        assert found is not None
        assert found[1].index("eval:1: in function 'work'") < found[1].index("eval:2: ")

    @pytest.mark.slow
    def test_ends_by_a_second_signal_while_lua_code_is_interpreted(self, server: LoggedProcess) -> None:
        evaluate(server, "jit.off(true) while true do local t = {} end")
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGINT)
        assert server.wait() in (128 + signal.SIGTERM, 128 + signal.SIGINT)

    @pytest.mark.slow
    def test_ends_by_a_second_signal_while_compiled_code_runs(self, server: LoggedProcess) -> None:
        evaluate(server, "while true do end")
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGTERM)
        assert server.wait() == 128 + signal.SIGTERM
        assert "iproto-server: Lua code does not end: ending the process" in server.output


class TestReports:
    """At most one line in ten seconds, which counts the others."""

    def test_are_limited(self, caplog: pytest.LogCaptureFixture) -> None:
        now = 1000.0
        reports = LuaReports(lambda: now, lambda: (0.0625, "stack traceback:\n\ta:1: in b\n\tc:2: in d"))
        log = reports.take()
        assert log is not None
        log()
        [record] = caplog.records
        assert record.getMessage() == "Lua code keeps the event loop busy"
        fields = {"seconds": 0.062, "count": 1, "traceback": "a:1: in b; c:2: in d"}
        assert getattr(record, "fields", {}) == fields
        now += INTERVAL / 2
        assert reports.take() is None
        assert reports.take() is None
        now += INTERVAL
        log = reports.take()
        assert log is not None
        log()
        assert getattr(caplog.records[-1], "fields", {})["count"] == 3

    def test_are_none_without_long_code(self) -> None:
        assert LuaReports(lambda: 0.0, lambda: None).take() is None

    def test_of_compiled_code_have_no_traceback(self) -> None:
        assert in_one_line(None) == "none: the code is compiled (JIT)"
        assert in_one_line("stack traceback:\n") == "none"
