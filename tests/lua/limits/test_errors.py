"""No error of Lua code ends the server, wherever it is raised."""

from __future__ import annotations

import pytest

from tests.lua.limits.conftest import LuaClient

ERRORS = {
    "a text": ("error('boom')", "eval:1: boom"),
    "nothing": ("error()", "nil"),
    "a table that has no text": (
        "error(setmetatable({}, {__tostring = function() error('ts') end}))",
        "eval:1: ts",
    ),
    "in a metamethod": (
        "return tostring(setmetatable({}, {__tostring = function() error('ts') end}))",
        "eval:1: ts",
    ),
    "in an order function": ("table.sort({3, 2, 1}, function() error('cmp') end)", "eval:1: cmp"),
    "of an order function that is none": (
        "local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function() return true end)",
        "eval:1: invalid order function for sorting",
    ),
    "in __serialize": (
        "return setmetatable({}, {__serialize = function() error('ser') end})",
        "eval:1: ser",
    ),
    "an object in __serialize": (
        "return setmetatable({}, {__serialize = function() box.error(box.error.UNKNOWN) end})",
        "Unknown error",
    ),
    "__serialize that returns its argument": (
        "return setmetatable({}, {__serialize = function(x) return x end})",
        "__serialize returns its own argument",
    ),
    "a result that is no value": ("return function() end", "unsupported Lua type 'function'"),
    "a result that contains itself": ("local t = {} t[1] = t return t", "Too high nest level - 129"),
    "a cancelled fiber": ("fiber.self():cancel()", "fiber is cancelled"),
    "recursion": ("local function f() return 1 + f() end return f()", "eval:1: stack overflow"),
    "recursion through pcall": (
        "local function f() return pcall(f) end return f()",
        "stack overflow",
    ),
    "recursion from Lua to the box and back": (
        "local t t = setmetatable({}, {__serialize = function() numbers:replace{1, t} return {1} end}) "
        "numbers:replace{1, t}",
        "stack overflow",
    ),
    "nested JSON": (
        "return require('json').decode(('['):rep(1e6))",
        "Found too many nested data structures (129) on line 1 at character 129",
    ),
    "too many results": ("return unpack({}, 1, 1e6)", "too many results to unpack"),
    "a yield of no fiber": ("coroutine.yield(1)", "attempt to yield across C-call boundary"),
}


@pytest.mark.parametrize(("text", "message"), ERRORS.values(), ids=list(ERRORS))
def test_is_answered(lua: LuaClient, text: str, message: str) -> None:
    code, found = lua.eval(text).failure
    assert code in (0, 32)
    assert message in found


INSIDE = {
    "a trigger": (
        "local function f() error('trigger') end numbers:on_replace(f) local ok, why = "
        "pcall(numbers.replace, numbers, {1}) numbers:on_replace(nil, f) return ok, tostring(why)",
        [False, "eval:1: trigger"],
    ),
    "a trigger of a trigger": (
        "local function f(old, new) numbers:replace{new[1] + 1} end numbers:on_replace(f) local ok, why = "
        "pcall(numbers.replace, numbers, {1}) numbers:on_replace(nil, f) return ok, tostring(why)",
        [False, "Can not execute a nested statement: nesting limit reached"],
    ),
    "on_commit": (
        "box.begin() box.on_commit(function() error('commit') end) numbers:replace{4} box.commit() "
        "return numbers:get{4}",
        [[4]],
    ),
    "on_rollback": (
        "box.begin() box.on_rollback(function() error('rollback') end) numbers:replace{5} box.rollback() "
        "return numbers:get{5} == nil",
        [True],
    ),
    "finalizers": (
        "for i = 1, 100 do getmetatable(newproxy(true)).__gc = function() error('gc') end end "
        "collectgarbage() collectgarbage() return 1",
        [1],
    ),
    "finalizers of cdata": (
        "local ffi = require('ffi') for i = 1, 100 do "
        "ffi.gc(ffi.new('int[10]'), function() error('gc') end) end collectgarbage() return 1",
        [1],
    ),
    "finalizers that yield": (
        "local ffi = require('ffi') for i = 1, 100 do "
        "ffi.gc(ffi.new('int[1]'), function() fiber.sleep(0) end) end collectgarbage() return 1",
        [1],
    ),
    "finalizers that change data": (
        "local ffi = require('ffi') for i = 1, 9 do "
        "ffi.gc(ffi.new('int[1]'), function() numbers:replace{100 + i} end) end collectgarbage() "
        "return numbers:count() >= 0",
        [True],
    ),
    "the handler of an error": (
        "return xpcall(function() error('a') end, function() error('b') end)",
        [False, "error in error handling"],
    ),
    "a fiber": ("fiber.create(function() error('fiber') end) return 1", [1]),
    "a fiber, with an object that has no text": (
        "local t = setmetatable({}, {__tostring = function() error('ts') end}) "
        "fiber.create(function() error(t) end) return 1",
        [1],
    ),
    "fibers in each other": (
        "local function f(n) if n > 0 then fiber.create(f, n - 1) end end f(5000) return 1",
        [1],
    ),
    "coroutines in each other": (
        "local function f(n) if n == 0 then return 0 end return coroutine.wrap(f)(n - 1) end "
        "return (pcall(f, 1e5)) ~= nil",
        [True],
    ),
    "a fiber that yields without a reason": (
        "fiber.create(function() coroutine.yield(1, 2) end) return 1",
        [1],
    ),
}


@pytest.mark.parametrize(("text", "result"), INSIDE.values(), ids=list(INSIDE))
def test_ends_no_more_than_its_own_code(lua: LuaClient, text: str, result: list[object]) -> None:
    assert lua.eval(text).data == result


YIELDS = {
    "in a trigger on_replace": ("numbers:on_replace(f)", "numbers:on_replace(nil, f)", "numbers:replace{1}"),
    "in a trigger before_replace": (
        "numbers:before_replace(f)",
        "numbers:before_replace(nil, f)",
        "numbers:replace{1}",
    ),
    "in __serialize of a row": (
        "",
        "",
        "numbers:replace{1, setmetatable({}, {__serialize = f})}",
    ),
    "in an order function": ("", "", "table.sort({3, 2, 1}, f)"),
    "in a transaction": ("", "", "box.begin() f() box.commit()"),
    "in a caller's commit": (
        "",
        "",
        "box.begin() box.on_commit(f) numbers:replace{1} box.commit() error('-')",
    ),
}


@pytest.mark.parametrize(("before", "after", "code"), YIELDS.values(), ids=list(YIELDS))
def test_yields_in_wrong_places_are_errors(lua: LuaClient, before: str, after: str, code: str) -> None:
    [is_done] = lua.eval(
        f"local function f() fiber.sleep(0.001) end {before} "
        f"local ok = pcall(function() {code} end) {after} return ok"
    ).data
    assert is_done is False
    assert lua.eval("return box.is_in_txn(), numbers:count() >= 0").data == [False, True]
