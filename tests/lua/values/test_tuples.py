"""Tuples of Lua: `box.tuple`."""

from __future__ import annotations

import pytest

from tests.lua.snippets import OurLua, TarantoolLua
from tests.lua.values.alike import PREFIX, assert_alike, run

TUPLE = "local t = box.tuple.new{1, 'a', {2, b = 3}, box.NULL, true, 1.5, -5} "
NAMED = (
    "local native = require('internal.native') "
    "require('internal.box.values.tuple').define_format(1000, {'id', 'name', 'size', 'update', 'a.b'}) "
    "local t = native.tuple_of(native.tuple_row(box.tuple.new{1, 'n', {x = {y = 5}}, 'upd', 'ab', 6}), 1000) "
)
"""As a tuple of a space with these fields."""

CREATION = [
    "",
    "1",
    "1, 2, nil, 3",
    "nil",
    "{a = 1}",
    "{1, a = 1}",
    "setmetatable({1, 2}, {__serialize = 'map'})",
    "setmetatable({1, 2}, {__serialize = function() return {3} end})",
    "setmetatable({1, 2}, {__serialize = function() return 3 end})",
    "setmetatable({1, 2}, {__serialize = function() error('x') end})",
    "setmetatable({1, a = 2}, {__serialize = 'seq'})",
    "{1, [30] = 2}",
    "{{1, [30] = 2}}",
    "{print}",
    "print",
    "'x'",
    "box.NULL",
    "box.tuple.new{1, 2}",
    "box.tuple.new{1, 2}, 3",
    "{box.tuple.new{1, 2}, 3}",
    "{{a = 1}, 'text', 1.5, 2LL, 18446744073709551615ULL, box.NULL, true}",
    "{require('ffi').new('int8_t[3]')}",
    "{require('uuid').NULL}",
    "{require('uuid').new(), require('decimal').new('1.5')}",
]

TEXTS = [
    r"'q\'uote', 'new\nline', '\xff', {}, setmetatable({}, {__serialize = 'map'}), {a = {b = 1}}",
    "0.1, 1e100, 1/0, -1/0, 0/0, 1e15, 100000000000000ULL, -1LL, 1e20, 123456789.123456789, 3.0",
    (
        r"'tab\t', '\"dq\"', 'back\\s', '\0', 'é', '\x7f', '\x01', 'x', 'yes', 'null', '~', '1', '', ' a ', "
        r"('x'):rep(300)"
    ),
    "require('uuid').new(), require('decimal').new('1.5'), require('ffi').new('float', 1.1)",
    "{[3] = 1}, {}, {{[5.5] = 1}}, {[true] = 3}, {[('k'):rep(200)] = {1}}",
    "('a b '):rep(50), ('long '):rep(40) .. '\\n' .. ('x '):rep(50)",
]

METHODS = [
    f"t:{call}"
    for name, arguments in {
        "totable": [
            "",
            "2",
            "2, 3",
            "-1",
            "1, -2",
            "5, 2",
            "8",
            "1, 100",
            "0",
            "'x'",
            "nil, 2",
            "1, 0",
            "1.7, 2.9",
        ],
        "unpack": ["", "2", "2, 3", "-2", "0", "3, 2", "8", "1, 20"],
        "slice": [
            "0",
            "0, 2",
            "-2",
            "1, -1",
            "",
            "7",
            "8",
            "2, 1",
            "0, 100",
            "0, -100",
            "'x'",
            "1.5",
            "-7",
            "-8",
            "0, 7",
            "0, 8",
            "2, 2",
            "'1'",
            "nil",
            "0, nil",
            "0, 0",
            "1, 'x'",
            "0, -7",
            "0, -6",
        ],
        "transform": [
            "1, 1",
            "1, 1, 'z'",
            "1, 0, 'z'",
            "2, 2, 'z', 'y'",
            "-1, 1, 'e'",
            "8, 0, 'e'",
            "",
            "1",
            "9, 0, 1",
            "0, 1",
            "1, 100",
            "1, -1",
            "-8, 1",
            "-7, 1",
            "'x', 1",
            "1, 'x'",
            "1, 1, {1}, {a = 2}, print",
            "1, 1, nil",
            "1, 1, nil, 5",
            "8, 1",
            "7, 5",
            "1, 7",
            "1, 7, 1",
            "1.5, 1",
            "2, -2, 'q'",
        ],
        "find": [
            "'a'",
            "1",
            "2, 'a'",
            "true",
            "box.NULL",
            "nil",
            "99",
            "",
            "1, 2, 3",
            "0, 1",
            "-1, -5",
            "'x', 'a'",
            "1LL",
        ],
        "findall": ["'a'", "1", "2, true", "'q'", "", "0, 'a'", "-1, 'a'"],
        "next": ["", "1", "7", "0", "8", "100", "-1", "'x'", "1.5", "nil", "{}", "7.5"],
        "tomap": [
            "",
            "5",
            "{names_only = 5}",
            "{names_only = false}",
            "nil",
            "{names_only = true}",
            "{foo = 1}",
            "{}, 5",
        ],
        "bsize": [""],
    }.items()
    for call in [f"{name}({each})" for each in arguments]
]

EXPRESSIONS = [
    (
        "#t, t[1], t[2], t[4], t[5], t[6], t[7], t[8], t[0], t[-1], t[1.5], t['1'], t[true], t.x, t[2^32 + "
        "1], t[2LL], t[{}]"
    ),
    "t.size, t.format, t.row, t.data, t[' size']",
    (
        "t['[1]'], t['[3][1]'], t['[3].b'], t['[3][\"b\"]'], t['[9]'], t['['], t['x.y'], t['[3].c'], "
        "t['[3].b.c'], t['']"
    ),
    (
        "t['[4]'], t['[0]'], t['[3]b'], t['[2][1]'], t['.b'], t['[3] .b'], t['[-1]'], t['[1'], "
        "t[\"[3]['b']\"], t['[*]']"
    ),
    "t['[4294967297]'], t['[99999999999999999999]'], t['[3]..b'], t['[3].'], t['[3][\"\"]'], t['[3]_']",
    "box.tuple.is(t), box.tuple.is(1), box.tuple.is({}), box.tuple.is(box.NULL), pcall(box.tuple.is)",
    "getmetatable(t:totable()) == require('msgpack').array_mt, type(t)",
    "t:pairs():length(), t:pairs():nth(2), t:pairs(5):totable(), #t:pairs():take(2):totable()",
    "t == 5, 5 == t, t == nil, nil ~= t, t == box.NULL, box.NULL == t, t ~= 5, t == 'x'",
    "t == {}",
    "t == print",
    "t < t",
    "t + 1",
    "t .. 'x'",
    "t()",
    "require('json').encode(box.tuple.new{1, {a = 2}}), require('json').encode{box.tuple.new{1}, 2}",
    (
        "require('yaml').encode(box.tuple.new{1, 'a', {2}}), require('yaml').encode{box.tuple.new{1}, "
        "{box.tuple.new{}}}"
    ),
    "require('msgpack').encode(t), require('msgpack').encode{t}",
    "box.tuple.find(t, 'a'), box.tuple.slice(t, 1, 2), box.tuple.totable(t, 1, 2)",
    "box.tuple.totable()",
    "box.tuple.totable({})",
    "box.tuple.slice({}, 1)",
    "box.tuple.transform(5, 1, 1)",
    "box.tuple.tomap({})",
    "box.tuple.next({})",
    "box.tuple.find()",
    "box.tuple.pairs({})",
    "box.tuple.bsize()",
]

STATEMENTS = [
    "local found = {} for k, v in pairs(t) do found[#found + 1] = {k, v} end return found",
    "local found = {} for k, v in ipairs(t) do found[#found + 1] = {k, v} end return found",
    "local found = {} for k, v in t:pairs(5) do found[#found + 1] = {k, v} end return found",
    (
        "local found = {} for k, v in t:pairs() do for j, w in t:pairs() do found[#found + 1] = k + j end "
        "end return found"
    ),
    (
        "local gen, param, state = t:pairs() return gen(param, 2), pcall(gen, param, -1), pcall(gen, param, "
        "'x'), gen(param, 7)"
    ),
    "t[1] = 5",
    "t.x = 5",
    "local copy = t:totable() copy.x = 1 return getmetatable(copy), copy.x",
]


@pytest.mark.real_tarantool
@pytest.mark.parametrize("arguments", CREATION)
def test_creation_is_alike(ours: OurLua, real: TarantoolLua, arguments: str) -> None:
    assert_alike(ours, real, f"return box.tuple.new({arguments})")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("fields", TEXTS)
def test_texts_are_alike(ours: OurLua, real: TarantoolLua, fields: str) -> None:
    assert_alike(ours, real, f"return tostring(box.tuple.new{{{fields}}})")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("expression", METHODS + EXPRESSIONS)
def test_expressions_are_alike(ours: OurLua, real: TarantoolLua, expression: str) -> None:
    assert_alike(ours, real, f"{TUPLE}return {expression}")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_are_alike(ours: OurLua, real: TarantoolLua, statement: str) -> None:
    assert_alike(ours, real, TUPLE + statement)


@pytest.mark.real_tarantool
def test_names_in_box_tuple_are_alike(ours: OurLua, real: TarantoolLua) -> None:
    assert_alike(ours, real, "local names = {} for k in pairs(box.tuple) do names[k] = true end return names")


def test_equal_tuples_have_the_same_fields(ours: OurLua) -> None:
    """Tarantool compares places in memory, where a space has each of its tuples once."""
    snippet = "local new = box.tuple.new return new{1} == new{1}, new{1} == new{2}, new{1} ~= new{1, 2}"
    assert run(ours, f"return (function() {snippet} end)()") == "ok true false true"


def test_fields_have_names(ours: OurLua) -> None:
    snippet = (
        "return t.id, t.name, t.size.x.y, t.update, t['a.b'], t['size.x.y'], t.x, t['name[1]'], type(t.find)"
    )
    assert ours.run(PREFIX + NAMED + snippet) == 'ok 1 "n" 5 "upd" "ab" 5 nil nil "function"'


def test_a_name_of_a_field_that_is_nil_is_nil_or_a_method(ours: OurLua) -> None:
    snippet = "local t = native.tuple_of(native.tuple_row(box.tuple.new{2, nil, nil, nil}), 1000) "
    assert ours.run(PREFIX + NAMED + snippet + "return t.name, type(t.update), t['[2]'], t[2] == nil") == (
        'ok nil "function" nil true'
    )


def test_maps_have_names_of_fields(ours: OurLua) -> None:
    described = ours.run(
        PREFIX + NAMED + "t = native.tuple_of(native.tuple_row(t:transform(3, 4)), 1000) return t:tomap()"
    )
    assert described == 'ok {[1]=1,[2]="n",["id"]=1,["name"]="n"}'
    named = ours.run(PREFIX + NAMED + "return t:tomap{names_only = true}")
    assert '["a.b"]="ab"' in named
    assert "[1]" not in named


def test_changed_tuples_have_names_of_fields(ours: OurLua) -> None:
    snippet = (
        "local update = box.tuple.update "
        "return update(t, {{'=', 'name', 'z'}}).name, box.tuple.upsert(t, {{'=', 'name', 'y'}}).name, "
        "update(t, {{'=', 'size.x.y', 6}})['size.x.y'], update(t, {}).name, t:transform(1, 1).name, "
        "pcall(update, t, {{'=', 'nosuch', 1}})"
    )
    assert ours.run(PREFIX + NAMED + snippet) == (
        'ok "z" "y" 6 "n" nil false cdata:ctype<const struct error>:Field \'nosuch\' was not found in the '
        "tuple"
    )


def test_a_tuple_may_be_large(ours: OurLua) -> None:
    snippet = (
        "local big = {} for place = 1, 100000 do big[place] = place end local t = box.tuple.new(big) "
        "local sum = 0 for _, value in t:pairs() do sum = sum + value end return #t, t[100000], sum, "
        "#t:totable()"
    )
    assert run(ours, snippet) == "ok 100000 100000 5000050000 100000"


def test_tuple_of_takes_packed_arrays_only(ours: OurLua) -> None:
    for row in (r"'\1'", r"'\146\1'", r"'\145\1\1'", "nil"):
        described = ours.run(f"return require('internal.native').tuple_of({row}, 0)")
        assert described.endswith('tuple_of() takes a packed array and the number of a format"')


def test_a_search_from_a_number_without_a_next_one_ends(ours: OurLua) -> None:
    # Tarantool searches for ever.
    snippet = "return t:find(2^53, 'q'), #t:findall(2^53, 'q'), t:find(0/0, 1), #t:findall(-1e300, 1)"
    assert ours.run(PREFIX + "local t = box.tuple.new{1, 2, 3} " + snippet) == "ok nil 0 nil 0"
