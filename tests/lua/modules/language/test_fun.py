"""The module fun: lazy iterators."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import assert_alike
from tests.lua.snippets import OurLua, TarantoolLua

FUN = "local fun = require('fun') return "


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("fun.iter{1, 2}:totable()", "{[1]=1,[2]=2}"),
        ("fun.iter{a = 1}:tomap()", '{["a"]=1}'),
        ("fun.iter('ab'):totable()", '{[1]="a",[2]="b"}'),
        ("fun.iter(pairs{7, 8}):totable()", "{[1]=7,[2]=8}"),
        ("tostring(fun.range(3))", '"<generator>"'),
        ("fun.range(1, 9, 4):totable()", "{[1]=1,[2]=5,[3]=9}"),
        ("fun.range(2, 0):totable()", "{[1]=2,[2]=1,[3]=0}"),
        ("fun.tabulate(function(x) return 2 * x end):take(3):totable()", "{[1]=0,[2]=2,[3]=4}"),
        ("fun.rands(3, 4):take(2):totable()", "{[1]=3,[2]=3}"),
        ("fun.range(9):drop(2):take(2):totable()", "{[1]=3,[2]=4}"),
        ("fun.range(9):take_while(function(x) return x < 3 end):totable()", "{[1]=1,[2]=2}"),
        ("fun.range(4):filter(function(x) return x % 2 == 0 end):totable()", "{[1]=2,[2]=4}"),
        ("fun.grep('^a', {'ab', 'ba'}):totable()", '{[1]="ab"}'),
        ("fun.range(4):foldl(function(sum, x) return sum + x end, 0)", "10"),
        ("fun.enumerate{'x', 'y'}:tomap()", '{[1]="x",[2]="y"}'),
        ("fun.zip({1, 2}, 'ab'):tomap()", '{[1]="a",[2]="b"}'),
        ("fun.chain({1}, 'a', fun.range(2)):totable()", '{[1]=1,[2]="a",[3]=1,[4]=2}'),
        ("fun.cycle{1, 2}:take(3):totable()", "{[1]=1,[2]=2,[3]=1}"),
        ("fun.range(3):map(fun.operator.unm):min()", "-3"),
        ("fun.nth(2, {5, 6}), fun.head('xy'), fun.index('y', 'xy')", '6 "x" 2'),
        ("fun.is_prefix_of({1}, fun.range(3)), fun.length('abc'), fun.is_null{}", "true 3 true"),
    ],
)
def test_iterators(ours: OurLua, expression: str, expected: str) -> None:
    assert ours.run(FUN + expression) == f"ok {expected}"


def test_iterators_are_lazy(ours: OurLua) -> None:
    snippet = (
        "local fun, seen = require('fun'), {} "
        "local it = fun.range(100):map(function(x) seen[#seen + 1] = x return x end):take(2) "
        "local before = #seen return before, it:totable(), #seen"
    )
    assert ours.run(snippet) == "ok 0 {[1]=1,[2]=2} 2"


def test_an_iterator_is_of_use_in_a_loop(ours: OurLua) -> None:
    snippet = (
        "local sum = 0 for _, x, y in require('fun').zip({1, 2}, {3, 4}) do sum = sum + x * y end return sum"
    )
    assert ours.run(snippet) == "ok 11"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("fun.iter(5)", "object 5 of type \\034number\\034 is not iterable"),
        ("fun.iter()", "invalid iterator"),
        ("fun.head{}", "head: iterator is empty"),
        ("fun.min{}", "min: iterator is empty"),
        ("fun.nth(0, {1})", "invalid first argument to nth"),
        ("fun.take('x', {1})", "invalid first argument to take_while"),
        ("fun.range(1, 2, 0)", "step must not be zero"),
        ("fun.rands(2, 2)", "empty interval"),
    ],
)
def test_bad_arguments(ours: OurLua, expression: str, message: str) -> None:
    assert ours.run(FUN + expression).endswith(f': {message}"')


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "expression",
    [
        "fun.range(0)",
        "fun.split(2, {1, 2, 3})",
        "fun.zip({1, 2}, 'ab')",
        "fun.chain({1, 2}, {3})",
        "fun.intersperse(0, fun.zip({1, 2}, {3, 4})):map(function(...) return {...} end):totable()",
        "fun.drop_n(1, {1, 2, 3}):nth(1), fun.drop_n(1, {1, 2, 3}):length()",
        "fun.remove_if(function(x) return x > 1 end, {1, 2, 3}):totable(), fun.operator.neq(1, 2)",
        "fun.min({0 / 0, 1}), fun.max({0 / 0, 1}), fun.min({1, 0 / 0})",
        "fun.max({'b', 1})",
        "fun.length(fun.range(3).gen, fun.range(3).param, 1)",
        "fun.iter(setmetatable({1, 2}, {__pairs = function(t) return next, {x = 5} end})):totable()",
        "fun.map(function() end, {1}):tomap()",
        "fun.tabulate():take(1):totable()",
        "fun.chain({1}, fun.range(0), {2}):totable(), fun.chain({1}, {}, {2}):totable()",
    ],
)
def test_odd_calls_are_alike(ours: OurLua, real: TarantoolLua, expression: str) -> None:
    assert_alike(ours, real, FUN + expression)


@pytest.mark.real_tarantool
def test_names_are_alike(ours: OurLua, real: TarantoolLua) -> None:
    names = (
        "local function names(t) local found = {} for name in pairs(t) do found[#found + 1] = name end "
        "table.sort(found) return found end "
    )
    modules = (
        "names(fun), names(fun.operator), names(getmetatable(fun.iter{}).__index), names(getmetatable(fun))"
    )
    assert_alike(ours, real, f"local fun = require('fun') {names} return {modules}")
