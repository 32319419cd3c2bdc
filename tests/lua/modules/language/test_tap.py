"""The module tap: its output."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import assert_alike, comparable
from tests.lua.modules.language.tap_output import WITH_OUTPUT
from tests.lua.snippets import OurLua, TarantoolLua


def described(*lines: str) -> str:
    """The description of a table of lines."""
    return "{" + ",".join(f'[{place}]="{line}"' for place, line in enumerate(lines, 1)) + "}"


def test_a_whole_test(ours: OurLua) -> None:
    body = (
        "t:plan(4) t:ok(true, 'right') t:is(1, 2, 'equal') "
        "t:test('inner', function(inner) inner:plan(2) inner:ok(true, 'deep') "
        "inner:diag('a %d', 5) inner:skip('x') end) "
        "t:fail('wrong') return t:check()"
    )
    lines = described(
        "TAP version 13",
        "1..4",
        "ok - right",
        "not ok - equal",
        "    # inner",
        "    1..2",
        "    ok - deep",
        "    # a 5",
        "    ok - x # skip",
        "    # inner: end",
        "ok - inner",
        "not ok - wrong",
        "# failed subtest: 2",
    )
    assert ours.run(WITH_OUTPUT % body) == f"ok {lines} true false"


def test_a_wrong_plan_fails(ours: OurLua) -> None:
    lines = described("TAP version 13", "1..2", "ok - one", "# bad plan: planned 2 run 1")
    assert ours.run(WITH_OUTPUT % "t:plan(2) t:ok(true, 'one') return t:check()") == f"ok {lines} true false"


ASSERTIONS = """
t:is(1, 1, 'is') t:is(1, '1', 'is') t:is(0/0, 0/0, 'is') t:isnt(1, 2, 'isnt') t:isnt(1, 1, 'isnt')
t:like('abc', 'b', 'like') t:like('abc', 'x', 'like') t:like(5, '5', 'like') t:unlike(nil, 'x', 'unlike')
t:isnil(nil, 'isnil') t:isnil(1, 'isnil') t:isstring('a', 'isstring') t:isstring(1, 'isstring')
t:isnumber(1, 'isnumber') t:istable({}, 'istable') t:isboolean(1, 'isboolean')
t:isfunction(print, 'isfunction') t:iscdata(1ULL, 'uint64_t', 'iscdata')
t:iscdata(1ULL, 'int64_t', 'iscdata') t:iscdata(5, 'int64_t', 'iscdata') t:isudata(5, 'thing', 'isudata')
t:is_deeply({a = {1}}, {a = {1}}, 'deep') t:is_deeply({a = {1}}, {a = {2}}, 'deep')
t:is_deeply({1}, {1, 2}, 'deep') t:is_deeply({1, 2}, {1}, 'deep') t:is_deeply(1, {}, 'deep')
t:is_deeply(0/0, 0/0, 'deep') t:is_deeply(1LL, 1, 'deep') local null = require('ffi').cast('void *', 0)
t:is_deeply({a = null}, {}, 'null') t:is_deeply({}, {a = null}, 'null') t:is(nil, null, 'null')
t:isnil(null, 'null') t.strict = true t:is_deeply({a = null}, {}, 'strict')
t:is_deeply({}, {a = null}, 'strict') t:is(nil, null, 'strict') t:isnt(nil, null, 'strict')
t:is_deeply({a = null}, {a = null}, 'strict') t:is_deeply(1, 1LL, 'strict') t:ok(false) t:ok(1, 5)
t:skip('skipped') t:diag('a\\nb') return t:test('inner', function() end)
"""


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "body",
    [
        ASSERTIONS,
        "t:test('planless', function(inner) inner:ok(true, 'one') end)",
        "t:test('a', function(a) a:plan(1) a:test('b', function(b) b:plan(1) b:ok(false, 'no') end) end)",
        "local q = t:test('later') q:plan(1) q:ok(true, 'yes') return q:check(), q.level",
        "return t:test('arguments', function(inner, ...) inner:plan(0) assert(... == 7) return 5 end, 7)",
        "t:test('error', function() error('no', 0) end)",
        "return getmetatable(t).__index, t.planned, t.total, t.failed, t.level, t.strict",
        "return tap.test('q', function(q) q:plan(0) end)",
    ],
)
def test_output_is_alike(ours: OurLua, real: TarantoolLua, body: str) -> None:
    assert_alike(ours, real, WITH_OUTPUT % body)


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "call", ["skip()", "diag()", "diag({})", "plan()", "isudata(5)", "like('a', '%')", "ok(false, 'x', 5)"]
)
def test_bad_arguments_are_alike(ours: OurLua, real: TarantoolLua, call: str) -> None:
    assert_alike(ours, real, WITH_OUTPUT % f"t:{call}")
    assert 'false "builtin: ' in comparable(ours.run(WITH_OUTPUT % f"t:{call}"))
