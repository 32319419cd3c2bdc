"""The modules clock, errno, strict and tarantool."""

from __future__ import annotations

import errno
import os

import pytest

from iproto_server.lua.runtime import Runtime
from tests.lua.modules.alike import assert_alike
from tests.lua.snippets import OurLua, TarantoolLua


@pytest.mark.parametrize("clock", ["realtime", "time", "monotonic", "proc", "thread"])
def test_clocks_advance_in_seconds_and_nanoseconds(ours: OurLua, clock: str) -> None:
    snippet = (
        f"local clock = require('clock') local before = clock.{clock}() local after = clock.{clock}64() "
        "return type(before), tonumber(after) / 1e9 >= before, tonumber(after) / 1e9 < before + 60"
    )
    assert ours.run(snippet) == 'ok "number" true true'


def test_bench_gives_the_time_and_the_results(ours: OurLua) -> None:
    snippet = (
        "local t = require('clock').bench(function(...) return ... end, 'a', 'b') "
        "return #t, t[1] >= 0, t[2], t[3]"
    )
    assert ours.run(snippet) == 'ok 3 true "a" "b"'


def test_error_numbers_have_names_and_texts(ours: OurLua) -> None:
    snippet = "local errno = require('errno') return errno.ENOENT, errno.strerror(errno.ENOENT), errno.NOSUCH"
    assert ours.run(snippet) == f'ok {errno.ENOENT} "No such file or directory" nil'


def test_the_last_error_number_can_be_set(ours: OurLua) -> None:
    snippet = "local errno = require('errno') errno(errno.EEXIST) return errno(), errno.strerror()"
    assert ours.run(snippet) == f'ok {errno.EEXIST} "File exists"'


def test_no_error_number_can_be_added(ours: OurLua) -> None:
    assert ours.run("require('errno').EMINE = 1").endswith("Can't create new errno constants\"")


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "snippet",
    [
        "return getmetatable(require('errno')).__index",
        "return require('errno').strerror('x')",
        "return require('errno').strerror({})",
        "return require('errno')('x')",
        "return require('errno').strerror(-1), require('errno').strerror(9999)",
        "return require('clock').bench()",
        "return require('clock').bench(5)",
    ],
)
def test_odd_calls_are_alike(ours: OurLua, real: TarantoolLua, snippet: str) -> None:
    assert_alike(ours, real, snippet)


STRICT = (
    "local strict = require('strict') strict.on() local ok, results = true, {pcall(function() %s end)} "
    "strict.off() return unpack(results, 1, 3)"
)


def test_strict_refuses_undeclared_variables(ours: OurLua) -> None:
    assert (
        ours.run(STRICT % "return undeclared")
        == "ok false \"snippet:1: variable 'undeclared' is not declared\" nil"
    )
    assert (
        ours.run(STRICT % "undeclared = 1")
        == "ok false \"snippet:1: assign to undeclared variable 'undeclared'\" nil"
    )


def test_a_main_chunk_declares_variables(ours: OurLua) -> None:
    assert (
        ours.run(STRICT % "loadstring('declared = 1; declared = nil')() return declared") == "ok true nil nil"
    )


def test_without_strict_variables_need_no_declaration(ours: OurLua) -> None:
    assert ours.run("require('strict').on() require('strict').off() return undeclared") == "ok nil"


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "body",
    [
        "_G[{}] = 5",
        "return _G[5]",
        "rawset(_G, 'raw', 1) return raw",
        "setfenv(function() undeclared = 1 end, _G)()",
        "return pcall(loadstring('a = 1'))",
    ],
)
def test_strict_is_alike(ours: OurLua, real: TarantoolLua, body: str) -> None:
    assert_alike(ours, real, STRICT % body)


def test_the_process_and_its_version(ours: OurLua) -> None:
    snippet = (
        "local t = require('tarantool') return t.pid(), t.uptime() > 0, t.package, "
        "t.version:match('^2%.6%.0') ~= nil, _TARANTOOL == t.version, type(t.build.target)"
    )
    assert ours.run(snippet) == f'ok {os.getpid()} true "Tarantool" true true "string"'


def test_a_server_may_announce_another_version() -> None:
    runtime = Runtime({"announced_version": lambda: b"2.11.0"})
    chunk = runtime.load(b"return require('tarantool').version, _TARANTOOL", b"=chunk")
    assert runtime.call(chunk) == (b"2.11.0", b"2.11.0")
