"""Runaway recursion and errors without a text are errors of Lua: the process goes on."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from iproto_server.lua.fibers import FiberRuntime, run
from tests.lua.snippets import OurLua

RECURSION = {
    "a function": "local function f() return f() + 1 end return pcall(f)",
    "an index": (
        "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) "
        "return pcall(function() return t[1] end)"
    ),
    "a comparison": (
        "local m = {} m.__lt = function(a, b) return not (a < b) end local a = setmetatable({}, m) "
        "return pcall(function() return a < setmetatable({}, m) end)"
    ),
    "tostring": (
        "local t = setmetatable({}, {__tostring = function(t) return tostring(t) .. '!' end}) "
        "return pcall(tostring, t)"
    ),
    "gsub": "local function f(s) return (s:gsub('.', f)) end return pcall(f, 'x')",
    "sort": (
        "local function f() table.sort({1, 2}, function(a, b) f() return a < b end) end return pcall(f)"
    ),
    "coroutines": "local function f() return coroutine.wrap(f)() end return pcall(f)",
    "__serialize": (
        "local t t = setmetatable({}, {__serialize = function() return {require('json').encode(t)} end}) "
        "return pcall(require('json').encode, t)"
    ),
    "a deep copy": ("local t = {} for _ = 1, 1e6 do t = {t} end return pcall(table.deepcopy, t)"),
    "a deep document": "return pcall(require('yaml').decode, ('['):rep(1e6))",
    "an error handler": "return xpcall(error, function() error('again') end)",
}

MAIN = """
import sys
from tests.lua.snippets import OurLua
ours = OurLua()
print(ours.run(sys.argv[1])[:200])
print(ours.run("return 'still here'"))
"""


@pytest.mark.parametrize("name", RECURSION)
def test_runaway_recursion_is_an_error(name: str) -> None:
    """In a process of its own, because it would end with it."""
    done = subprocess.run(
        [sys.executable, "-c", MAIN, RECURSION[name]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    first, last = done.stdout.splitlines()
    assert first.startswith("ok false")
    assert last == 'ok "still here"'


def test_an_error_without_a_text_ends_its_fiber_alone(ours: OurLua) -> None:
    snippet = (
        "local fiber = require('fiber') "
        "local f = fiber.create(error, setmetatable({}, {__tostring = function() error('no') end})) "
        "return f:status()"
    )
    assert ours.run(snippet) == 'ok "dead"'


def test_an_error_without_a_text_reaches_python() -> None:
    loop = asyncio.new_event_loop()
    runtime = FiberRuntime(loop)
    text = b"error(setmetatable({}, {__tostring = function() error('no') end}))"
    try:
        with pytest.raises(RuntimeError, match="a value without a text"):
            loop.run_until_complete(run(runtime, runtime.load(text, b"=chunk")))
    finally:
        loop.close()


def test_a_yield_outside_of_coroutines_is_an_error(ours: OurLua) -> None:
    assert ours.run("return pcall(coroutine.yield, 1)") == (
        'ok false "attempt to yield across C-call boundary"'
    )
