"""A limit of the memory of Lua's objects: code that exceeds it gets an error, and its memory is freed."""

from __future__ import annotations

import pytest

from tests.lua.limits.conftest import LuaClient, StartLua


@pytest.fixture(scope="module")
def lua(start_lua: StartLua) -> LuaClient:
    return start_lua("--lua-memory", "64M")


TOO_MUCH = {
    "numbers": "local t = {} for i = 1, 1e9 do t[i] = i end",
    "tables": "local t = {} for i = 1, 1e9 do t[i] = {} end",
    "a text": "return #('x'):rep(2^30)",
    "a text that grows": "local s = ('x'):rep(1e6) while true do s = s .. s end",
    "cdata": "local ffi = require('ffi') return ffi.new('char[?]', 2^27)",
    "code that handles the error": "local t = {} while true do pcall(function() t = {t} end) t = {t} end",
    "a value in __serialize": (
        "numbers:replace{1, setmetatable({}, {__serialize = function() return ('x'):rep(2^27) end})}"
    ),
    "closures": "local f = function() end while true do local g = f f = function() return g end end",
    "coroutines": "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
}


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=list(TOO_MUCH))
def test_too_much_is_an_error(lua: LuaClient, text: str) -> None:
    assert lua.eval(text).failure == (32, "not enough memory")
    assert lua.eval("numbers:replace{7, ('x'):rep(1e6)} return #numbers:get{7}[2]").data == [1_000_000]


def test_fibers_get_it_too(lua: LuaClient) -> None:
    text = (
        "local done fiber.create(function() fiber.sleep(0) "
        "local ok, why = pcall(function() local t = {} for i = 1, 1e9 do t[i] = {} end end) "
        "done = tostring(why) end) "
        "for _ = 1, 1000 do if done then break end fiber.sleep(0.005) end return done"
    )
    assert lua.eval(text).data == ["not enough memory"]


def test_what_is_in_use_may_fill_it(lua: LuaClient) -> None:
    assert lua.eval("kept = {} for i = 1, 1e9 do kept[i] = {} end").failure == (32, "not enough memory")
    assert lua.eval("return numbers:get{7}[1]").data == [7]
    assert lua.eval("kept = nil collectgarbage() return collectgarbage('count') < 32768").data == [True]


def test_a_trigger_gets_it_when_a_client_changes_data(lua: LuaClient) -> None:
    lua.eval("function big() local t = {} for i = 1, 1e9 do t[i] = {} end end numbers:on_replace(big)")
    [is_done, why] = lua.eval(
        "local ok, why = pcall(numbers.replace, numbers, {8}) return ok, tostring(why)"
    ).data
    assert (is_done, why) == (False, "not enough memory")
    lua.eval("numbers:on_replace(nil, big)")
    assert lua.eval("return numbers:get{8} == nil").data == [True]


def test_without_a_limit_there_is_none(start_lua: StartLua) -> None:
    assert start_lua().eval("return #('x'):rep(2^27)").data == [2**27]
