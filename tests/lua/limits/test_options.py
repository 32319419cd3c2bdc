"""The options of `serve` for Lua code."""

from __future__ import annotations

from pathlib import Path

import pytest

from iproto_server.config.config import Config, ConfigError, load_config
from tests.iproto_client import IprotoClient
from tests.lua.limits.conftest import LuaClient, StartLua
from tests.running_server import RunningServer

PYTHON_APPLICATION = "queue_lua_compat.tutorial:app"


class TestValues:
    def test_are_those_of_all_sources(self, tmp_path: Path) -> None:
        file = tmp_path / "server.toml"
        file.write_text('lua = true\nlua_memory = "1G"\nlua_jit = "off"\n')
        config = load_config({}, {"IPROTO_SERVER_LUA_TIME_LIMIT": "2.5"}, file)
        assert (config.lua, config.lua_memory, config.lua_jit, config.lua_time_limit) == (
            True,
            2**30,
            "off",
            2.5,
        )

    def test_are_no_limits_by_default(self) -> None:
        config = Config()
        assert (config.lua, config.lua_memory, config.lua_jit, config.lua_time_limit) == (
            False,
            None,
            "on",
            None,
        )

    def test_a_time_limit_needs_the_interpreter(self) -> None:
        with pytest.raises(ConfigError) as raised:
            load_config({"lua_time_limit": "1"})
        assert str(raised.value) == "--lua-time-limit: it needs --lua-jit off: compiled code runs on"

    @pytest.mark.parametrize(
        ("name", "value"),
        [("lua_memory", "1M"), ("lua_memory", "x"), ("lua_jit", "maybe"), ("lua_time_limit", "0")],
    )
    def test_wrong_ones_are_refused(self, name: str, value: str) -> None:
        with pytest.raises(ConfigError, match=rf"^--{name.replace('_', '-')}: "):
            load_config({name: value})


class TestLuaBesidePython:
    @pytest.fixture
    def beside(self, lua_beside_python: LuaClient) -> LuaClient:
        return lua_beside_python

    def test_clients_evaluate_lua_code(self, beside: LuaClient) -> None:
        assert beside.eval("return 1 + ..., 'x'", 2).data == [3, "x"]

    def test_box_is_configured(self, beside: LuaClient) -> None:
        text = "return type(box.cfg), box.cfg.read_only, box.info.status, box.space.queue.name"
        assert beside.eval(text).data == ["table", False, "running", "queue"]

    def test_box_is_that_of_the_application(self, beside: LuaClient) -> None:
        with IprotoClient.at(beside.server.address) as client:
            [task] = client.call("queue.put", {"to": "alice"}).data
        text = "return box.space.queue:get{...} ~= nil, box.space.queue:count()"
        assert beside.eval(text, task["id"]).data == [True, 1]

    def test_definitions_are_seen_at_once(self, beside: LuaClient) -> None:
        beside.eval("box.schema.space.create('made'):create_index('primary')")
        assert beside.eval("return box.space.made:insert{1, 'x'}").data == [[1, "x"]]
        with IprotoClient.at(beside.server.address) as client:
            assert client.everything(client.space_id("made")).data == [[1, "x"]]

    def test_clients_call_functions_that_lua_code_defines(self, beside: LuaClient) -> None:
        beside.eval("function double(x) require('fiber').sleep(0.001) return 2 * x end")
        with IprotoClient.at(beside.server.address) as client:
            assert client.call("double", 4).data == [8]

    def test_procedures_of_python_come_first(self, beside: LuaClient) -> None:
        beside.eval("rawset(_G, 'queue', {stats = function() return 'Lua' end})")
        with IprotoClient.at(beside.server.address) as client:
            assert client.call("queue.stats").data != ["Lua"]


@pytest.fixture(scope="module")
def lua_beside_python(start_lua: StartLua) -> LuaClient:
    return start_lua("--lua", application=PYTHON_APPLICATION)


def test_without_an_application_there_is_lua_only(start_lua: StartLua, tmp_path: Path) -> None:
    with RunningServer(tmp_path, [], ["--lua"]) as server:
        LuaClient(server).eval("box.schema.space.create('s'):create_index('primary') box.space.s:put{5}")
    with RunningServer(tmp_path, [], ["--lua"]) as server:
        assert LuaClient(server).eval("return box.space.s:select()").data == [[[5]]]


def test_without_lua_eval_is_refused(start_lua: StartLua) -> None:
    python = start_lua(application=PYTHON_APPLICATION)
    assert python.eval("return 1").failure == (5, "This server does not support EVAL requests")
    with IprotoClient.at(python.server.address) as client:
        assert client.call("tostring", 1).failure == (33, "Procedure 'tostring' is not defined")


def test_guest_needs_execute_on_the_universe(start_lua: StartLua) -> None:
    python = start_lua("--lua", "--guest", "none", application=PYTHON_APPLICATION)
    assert python.eval("return 1").failure == (42, "Execute access to universe '' is denied for user 'guest'")


def test_without_the_jit_nothing_is_compiled(start_lua: StartLua) -> None:
    assert start_lua("--lua-jit", "off").eval("return (jit.status())").data == [False]
    assert start_lua().eval("return (jit.status())").data == [True]


def test_they_are_no_options_of_box_cfg(start_lua: StartLua) -> None:
    assert start_lua().eval("box.cfg{lua_memory = 100000000}").failure == (
        59,
        "Incorrect value for option 'lua_memory': unexpected option",
    )


@pytest.mark.parametrize("guest", ["none", "all"])
def test_guest_of_a_lua_application_has_rights_by_the_option_only(
    start_lua: StartLua, tmp_path: Path, guest: str
) -> None:
    application = tmp_path / "init.lua"
    application.write_text("box.cfg{}")
    answer = start_lua("--guest", guest, application=str(application)).eval("return 1")
    assert answer.ok == (guest == "all")
