"""Errors of Lua: `box.error`."""

from __future__ import annotations

import pytest

from tests.lua.snippets import OurLua, TarantoolLua
from tests.lua.values.alike import PREFIX, assert_alike, run

ARGUMENTS = [
    "",
    "5",
    "5, 'a'",
    "5, 'a', 'b'",
    "5, 'a', 'b', 'c'",
    "{}",
    "{code = 5}",
    "{reason = 'x'}",
    "{code = 5, reason = 'x', type = 'Mine'}",
    "{type = 'Mine'}",
    "{type = 'ClientError', reason = 'r'}",
    "{code = '7', reason = 5}",
    "{code = 'x', reason = {}}",
    "{type = 5, reason = 'q'}",
    "{type = true, reason = 'q'}",
    "{type = ('t'):rep(100), reason = 'q'}",
    "{reason = ('x'):rep(600)}",
    "{reason = 'a\\0b', type = 'c\\0d'}",
    "{trace = {}, code = 3, errno = 5, reason = 't', prev = 1}",
    "setmetatable({}, {__index = function(_, key) return key == 'code' and 4 or 'z' end})",
    "'Mine', 'reason %d', 5",
    "'Mine'",
    "'Mine', 'x%d'",
    "'Mine', 5",
    "'', 'q'",
    "'5', 'q'",
    "99999",
    "99999, 'x'",
    "-1",
    "1.5",
    "2^32 + 5, 'a', 'b'",
    "0, 'x'",
    "7",
    "3, 5, 6",
    "16, 'x'",
    "16, 7",
    "1, nil",
    "1, true",
    "1, box.NULL",
    "1, box.error.new(0)",
    "nil",
    "true",
    "print",
    "box.NULL",
    "{5, 'a', 'b'}",
    "box.error.new(0), 1",
]

START = "local e, other = box.error.new{code = 5, reason = 'why'}, box.error.new(1, 'p') "

EXPRESSIONS = [
    (
        "e.code, e.type, e.message, e.trace, e.prev, e.errno, e.base_type, e.custom_type, e.reason, e.foo, "
        "e[1], e.is"
    ),
    "type(e.unpack), type(e.raise), type(e.match), type(e.set_prev), type(e.__serialize), type(e)",
    "e:unpack()",
    "e:match('y'), e:match('(w)(h)'), e:match('q')",
    "e:match()",
    "e.match('x')",
    "e.unpack()",
    "e.unpack(5)",
    "e.raise(5)",
    "e:raise()",
    "e.set_prev()",
    "e.set_prev(5)",
    "e:set_prev(5)",
    "e:set_prev(e)",
    "e:set_prev()",
    "e:set_prev(other), e.prev == other, e:unpack()",
    "e:set_prev(other), pcall(other.set_prev, other, e)",
    "e:set_prev(other), e:set_prev(nil), e.prev",
    "e:set_prev(other), e:set_prev(box.NULL), e.prev",
    "tostring(e), e == e, e == box.error.new{code = 5, reason = 'why'}, e == 5, e == nil, e == 'x'",
    (
        "require('json').encode(e), require('yaml').encode(e), require('json').encode{e}, "
        "require('yaml').encode{e}"
    ),
    "e .. 'x', 'x' .. e, e .. e",
    "#e",
    "e()",
    "e < other",
    "pairs(e)",
    "box.error.last(), box.error.clear()",
    "box.error.last(1)",
    "box.error.clear(1)",
    "box.error.set()",
    "box.error.set(5)",
    "box.error.set{}",
    "box.error.set(e), box.error.last() == e",
    "box.error.set(e, 5)",
    "box.error.set(e), box.error()",
    "pcall(box.error, e), box.error.last() == e",
    "pcall(e.raise, e), box.error.last()",
    "pcall(error, e), box.error.last()",
    "pcall(box.error, 5, 'a', 'b'), box.error.last()",
    "pcall(box.tuple.new, {a = 1}), box.error.last()",
    "pcall(box.tuple.new, {print}), box.error.last()",
    "pcall(box.tuple.update, box.tuple.new{1}, {{'?', 1, 1}}), box.error.last()",
    "pcall(require('json').encode, setmetatable({}, {__serialize = 5})), box.error.last()",
    "box.error.NO_SUCH_SPACE, box.error.NOSUCH, box.error[5]",
]

STATEMENTS = [
    "e.foo = 1",
    "e.code = 1",
    "local function raised() local _ = box.error{code = 5, reason = 'x'} end local _, raised_error = "
    "pcall(raised) "
    "return raised_error.trace",
    (
        "local function tail() return box.error{code = 5, reason = 'x'} end return pcall(function() local _ "
        "= tail() end)"
    ),
    "local call = loadstring('\\n\\nlocal _ = box.error{code = 5}', 'text') setfenv(call, {box = box}) "
    "local _, raised = pcall(call) return raised.trace",
    "local third = box.error.new(1, 'c') e:set_prev(other) other:set_prev(third) box.error.set(other) "
    "return e.prev, other.prev == third",
    (
        "local third = box.error.new(1, 'c') e:set_prev(other) third:set_prev(other) return e.prev, "
        "third.prev == other"
    ),
    (
        "local third = box.error.new(1, 'c') e:set_prev(other) other:set_prev(third) return "
        "pcall(third.set_prev, third, e)"
    ),
    "e:set_prev(other) pcall(box.error, other) return e.prev",
    "e:set_prev(other) e:set_prev(other) return e.prev == other",
    "local fiber = require('fiber') box.error.set(e) local inner fiber.create(function() inner = "
    "{box.error.last()} "
    "box.error.set(other) end) return box.error.last() == e, inner",
    "box.error.MINE = 1 local mine = box.error.MINE box.error.MINE = nil return mine",
]


@pytest.mark.real_tarantool
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_errors_are_alike(ours: OurLua, real: TarantoolLua, arguments: str) -> None:
    described = "return e, type(e) == 'cdata' and e:unpack()"
    assert_alike(
        ours, real, f"local ok, e = pcall(function() return box.error.new({arguments}) end) {described}"
    )
    clear = "box.error.clear() "
    assert_alike(
        ours, real, f"{clear}local ok, e = pcall(function() return box.error({arguments}) end) {described}"
    )
    assert_alike(ours, real, f"{clear}local e = box.error.new({arguments}) {described}")
    assert_alike(ours, real, f"{clear}local e = box.error({arguments}) {described}")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_are_alike(ours: OurLua, real: TarantoolLua, expression: str) -> None:
    assert_alike(ours, real, f"box.error.clear() {START}return {expression}")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_are_alike(ours: OurLua, real: TarantoolLua, statement: str) -> None:
    assert_alike(ours, real, START + statement)


@pytest.mark.real_tarantool
def test_numbers_are_alike(ours: OurLua, real: TarantoolLua) -> None:
    snippet = "local found = {} for name, number in pairs(box.error) do found[name] = number end "
    assert_alike(ours, real, snippet + "found.injection = nil return found")


OTHER_WORDS = {26, 33, 47, 68, 74, 75, 76, 95, 138, 160, 183, 184, 185}
"""Most of them cannot be made in Tarantool, where their wordings have conversions that Lua lacks."""


@pytest.mark.real_tarantool
def test_wordings_are_alike(ours: OurLua, real: TarantoolLua) -> None:
    for number in range(219):
        if number not in OTHER_WORDS:
            assert_alike(ours, real, f"return box.error.new({number}, 1, 2, 3, 4, 5)")


def test_all_wordings_can_be_made(ours: OurLua) -> None:
    for number in OTHER_WORDS:
        assert run(ours, f"return box.error.new({number}, 1, 2, 3, 4, 5)").startswith("ok cdata")


def test_states_of_errors_are_freed(ours: OurLua) -> None:
    snippet = (
        "local weak = setmetatable({}, {__mode = 'v'}) "
        "do local a, b = box.error.new(1, 'a'), box.error.new(1, 'b') a:set_prev(b) weak[1], weak[2] = a, b "
        "end "
        "collectgarbage() collectgarbage() return weak[1] == nil, weak[2] == nil"
    )
    assert ours.run(PREFIX + snippet) == "ok true true"


def test_a_cause_lives_as_long_as_its_effect(ours: OurLua) -> None:
    snippet = (
        "local a = box.error.new(1, 'a') a:set_prev(box.error.new(1, 'b')) collectgarbage() collectgarbage() "
        "return a.prev.message"
    )
    assert ours.run(PREFIX + snippet) == 'ok "Illegal parameters, b"'
