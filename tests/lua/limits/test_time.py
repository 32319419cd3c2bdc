"""A limit of the time that Lua code runs without a yield."""

from __future__ import annotations

import pytest

from tests.lua.limits.conftest import LuaClient, StartLua

MESSAGE = "Lua code has run for more than 0.2 s without a yield (lua_time_limit)"


@pytest.fixture(scope="module")
def lua(start_lua: StartLua) -> LuaClient:
    return start_lua("--lua-jit", "off", "--lua-time-limit", "0.2")


ENDLESS = {
    "a loop": "while true do end",
    "a loop that handles errors": "while true do pcall(function() while true do end end) end",
    "a loop in a module": "return require('fun').duplicate(1):length()",
    "a loop in a coroutine": "coroutine.wrap(function() while true do end end)()",
    "a loop in __serialize": "return setmetatable({}, {__serialize = function() while true do end end})",
    "changes of data": "while true do numbers:replace{1} end",
    "fibers that are started": "while true do fiber.new(function() end) end",
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=list(ENDLESS))
def test_endless_code_gets_an_error(lua: LuaClient, text: str) -> None:
    code, message = lua.eval(text).failure
    assert code == 32
    assert message.endswith(MESSAGE)
    assert lua.eval("return 1").data == [1]


def test_the_error_has_a_position(lua: LuaClient) -> None:
    assert lua.eval("local n = 0\nwhile true do\nn = n + 1\nend").failure[1] in (
        f"eval:2: {MESSAGE}",
        f"eval:3: {MESSAGE}",
    )


def test_a_fiber_that_yields_may_run_for_long(lua: LuaClient) -> None:
    text = "local n, t = 0, os.clock() while os.clock() - t < 0.5 do n = n + 1 fiber.yield() end return n > 1"
    assert lua.eval(text).data == [True]


def test_other_fibers_go_on(lua: LuaClient) -> None:
    text = (
        "local other = fiber.new(function() fiber.sleep(0) while true do end end) "
        "other:set_joinable(true) local counted = 0 "
        "local function count() for _ = 1, 100 do counted = counted + 1 fiber.yield() end end "
        "local counter = fiber.new(count) counter:set_joinable(true) "
        "local ok, why = other:join() counter:join() return ok, tostring(why), counted"
    )
    is_done, why, counted = lua.eval(text).data
    assert is_done is False
    assert why.endswith(MESSAGE)
    assert counted == 100


def test_a_trigger_has_the_time_of_its_statement(lua: LuaClient) -> None:
    text = (
        "local function f() while true do end end numbers:on_replace(f) "
        "fiber.new(function() numbers:on_replace(nil, f) end) return numbers:replace{2}"
    )
    assert lua.eval(text).failure[1].endswith(MESSAGE)
    assert lua.eval("return numbers:get{2} == nil, #numbers:on_replace()").data == [True, 0]
