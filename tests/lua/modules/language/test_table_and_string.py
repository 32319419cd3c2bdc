"""Tarantool's additions to Lua's `table` and `string`."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import assert_alike
from tests.lua.snippets import OurLua, TarantoolLua


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("('a b  c'):split()", '{[1]="a",[2]="b",[3]="c"}'),
        ("('a,b,,c'):split(',')", '{[1]="a",[2]="b",[3]="",[4]="c"}'),
        ("('a.b.c'):split('.', 1)", '{[1]="a",[2]="b.c"}'),
        ("(' a  b '):split(nil, 1)", '{[1]="a",[2]="b "}'),
        ("('a'):ljust(3)", '"a  "'),
        ("('a'):rjust(3, '-')", '"--a"'),
        ("('a'):center(4, '*')", '"*a**"'),
        ("('abc'):startswith('bc', 2)", "true"),
        ("('abc'):startswith('bc')", "false"),
        ("('abc'):endswith('bc', 1, 3)", "true"),
        ("('a\\255'):hex()", '"61ff"'),
        ("string.fromhex('61fF')", '"a\\255"'),
        ("(' a '):strip()", '"a"'),
        ("('--a--'):lstrip('-')", '"a--"'),
        ("('[]a]['):rstrip('[]')", '"[]a"'),
    ],
)
def test_functions_of_texts(ours: OurLua, expression: str, expected: str) -> None:
    assert ours.run(f"return {expression}") == f"ok {expected}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("string.split(5)", "bad argument #1 to 'string.split' (string expected, got number)"),
        ("('a'):split('a', -1)", "bad argument #3 to 'string.split' (positive integer expected, got number)"),
        ("('a'):ljust('5')", "bad argument #2 to 'string.ljust' (positive integer expected, got string)"),
        ("('a'):rjust(5, '--')", "bad argument #3 to 'string.rjust' (char expected, got string)"),
        (
            "('a'):startswith('a', '1')",
            "bad argument #3 to 'string.startswith' (integer expected, got string)",
        ),
        (
            "('abc'):fromhex()",
            "bad argument #1 to 'string.fromhex' (even amount of chars expected, got odd amount)",
        ),
        ("('zz'):fromhex()", "bad argument #1 to 'string.fromhex' (hex string expected, got non hex chars)"),
        ("('a'):strip(5)", "bad argument #2 to 'string.strip' (string expected, got number)"),
    ],
)
def test_bad_arguments_name_the_function_and_the_type(ours: OurLua, call: str, message: str) -> None:
    assert ours.run(f"local result = {call} return result") == f'error "snippet:1: {message}"'


def test_a_copy_shares_tables_and_a_deep_copy_does_not(ours: OurLua) -> None:
    assert (
        ours.run("local t = {{1}} return table.copy(t)[1] == t[1], table.deepcopy(t)[1] == t[1]")
        == "ok true false"
    )


def test_a_deep_copy_keeps_circles_and_metatables(ours: OurLua) -> None:
    snippet = (
        "local t = setmetatable({}, {__index = {x = 5}}) t.self = t "
        "local c = table.deepcopy(t) return c == t, c.self == c, c.x"
    )
    assert ours.run(snippet) == "ok false true 5"


def test_a_metatable_makes_the_copy_itself(ours: OurLua) -> None:
    made = "local t = setmetatable({}, {__copy = function() return 'made' end}) "
    assert ours.run(made + "return table.copy(t), table.deepcopy{t}") == 'ok "made" {[1]="made"}'


def test_tables_of_a_size_are_made(ours: OurLua) -> None:
    assert ours.run("return table.new(4, 0), require('table.new') == table.new") == "ok {} true"


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "snippet",
    [
        "return ('a'):split('')",
        "return string.endswith('abc')",
        "return string.endswith(5, 'a')",
        "return string.endswith({}, '', 1)",
        "return ('abc'):startswith('', 10), ('abc'):startswith('a', -10), ('abc'):endswith('', 5, 1)",
        "return ('a'):ljust(2.7), ('a'):rjust(0 / 0), ('a'):center(math.huge)",
        "return ('\\t\\na\\v\\f\\r\\0'):strip(), (''):strip(5)",
        "return table.copy(5), table.deepcopy(nil), table.deepcopy{5ULL}",
        "return pcall(table.copy, setmetatable({1}, {__metatable = 'locked'}))",
        "return pcall(table.deepcopy, setmetatable({1}, {__metatable = 5}))",
        "return pcall(table.copy, setmetatable({1}, {__copy = 5}))",
        "return table.copy(setmetatable({1}, {__pairs = function() return next, {x = 5} end}))",
        "local t = setmetatable({}, {__copy = function() return {} end}) "
        "local c = table.deepcopy{t, t} return c[1] == c[2]",
        "local k = {} local c = table.deepcopy{[k] = 1} return next(c) == k, next(c)",
    ],
)
def test_odd_calls_are_alike(ours: OurLua, real: TarantoolLua, snippet: str) -> None:
    assert_alike(ours, real, snippet)
