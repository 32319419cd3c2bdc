"""Statements of a console: what they show is what a real Tarantool shows."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.lua.console.random_statements import console_snippet
from tests.lua.modules.alike import assert_alike, comparable
from tests.lua.snippets import OurLua, TarantoolLua
from tests.programs import require_program

COUNT = int(os.environ.get("LUA_SNIPPETS", "300"))
SEED = int(os.environ.get("LUA_SEED", "20"))

PREAMBLE = "local console = require('console') console.eval('\\\\set output yaml') "


def shown(ours: OurLua, *statements: str) -> str:
    """What our console shows for the last of some statements."""
    calls = " ".join(f"last = console.eval([==[{statement}]==])" for statement in statements)
    return ours.run(f"{PREAMBLE} local last {calls} return last")


def test_values_are_shown_as_yaml(ours: OurLua) -> None:
    assert shown(ours, "1, 'a', nil") == r'ok "---\010- 1\010- a\010- null\010...\010"'


def test_a_statement_without_values_is_an_empty_document(ours: OurLua) -> None:
    assert shown(ours, "x = 1") == r'ok "---\010...\010"'


def test_an_error_is_shown_as_a_map(ours: OurLua) -> None:
    assert shown(ours, "error('bad')") == r'ok "---\010- error: bad\010...\010"'


def test_lua_is_another_format(ours: OurLua) -> None:
    assert shown(ours, "\\set output lua", "1, {2, a = {}}, nil") == 'ok "1, {[1] = 2, a = {}}, nil;"'


def test_each_value_that_cannot_be_shown_as_lua_is_an_error_of_its_own(ours: OurLua) -> None:
    value = "setmetatable({}, {__serialize = 5})"
    reason = r"console: exception while formatting output: \092\034invalid __serialize value\092\034"
    expected = rf'ok "1, {{error = \034{reason}\034}}, 2;"'
    assert shown(ours, "\\set output lua", f"1, {value}, 2") == expected


def test_a_huge_sparse_array_is_shown_as_a_map(ours: OurLua) -> None:
    assert shown(ours, "\\set output lua", "{[2^31] = 2}") == 'ok "{[2147483648] = 2};"'


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "snippet",
    [
        "return console.eval(nil)",
        "return console.eval()",
        "return console.eval(5)",
        "return console.eval({})",
        "return select('#', console.eval('\\\\quit'))",
        "return console.eos()",
        "console.eval('\\\\set output lua') return console.eos()",
        "return console.delimiter()",
        "return console.delimiter(';')",
        "return console.eval('\\\\set delimiter ;')",
        "return console.ac(true)",
        "return console.on_start(), console.on_start(print)",
        "return console.on_start(5)",
        "return console.on_client_disconnect({})",
        "return console.get_default_output()",
        "return console.set_default_output()",
        "return console.set_default_output('xml')",
        "return console.set_default_output('lua,no')",
        "console.set_default_output('lua,block') return console.get_default_output(), console.eval('{1}')",
        "return console.eval('setmetatable({}, {__serialize = 5})')",
        "return console.eval('setmetatable({}, {__serialize = function() error(\\'no\\') end})')",
        "return console.listen({})",
        "return console.listen('no port')",
    ],
)
def test_functions_are_those_of_a_real_tarantool(ours: OurLua, real: TarantoolLua, snippet: str) -> None:
    assert_alike(ours, real, f"{PREAMBLE} {snippet}")


@pytest.mark.real_tarantool
def test_random_statements_are_alike(ours: OurLua) -> None:
    random = Random(SEED)
    with TarantoolLua(require_program("tarantool", "tarantool")) as real:
        # Its loops are compiled wrongly now and then, and it frees the options of the Lua format too early.
        real.run("jit.off() collectgarbage('stop')")
        for _ in range(COUNT):
            snippet = console_snippet(random)
            assert comparable(ours.run(snippet)) == comparable(real.run(snippet)), snippet
