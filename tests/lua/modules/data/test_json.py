"""The module json: examples that a real Tarantool agrees with."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import described
from tests.lua.snippets import OurLua, TarantoolLua

PREAMBLE = "local json, ffi = require('json'), require('ffi') "


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.encode(nil)", 'ok "null"'),
        ("json.encode(true)", 'ok "true"'),
        ("json.encode('a')", 'ok "\\034a\\034"'),
        ("json.encode(1)", 'ok "1"'),
        ("json.encode(-0)", 'ok "0"'),
        ("json.encode(1.5)", 'ok "1.5"'),
        ("json.encode(1/3)", 'ok "0.33333333333333"'),
        ("json.encode(1e15)", 'ok "1000000000000000"'),
        ("json.encode(1e300)", 'ok "1e+300"'),
        ("json.encode(2^53)", 'ok "9007199254740992"'),
        ("json.encode(18446744073709551615ULL)", 'ok "18446744073709551615"'),
        ("json.encode(-5LL)", 'ok "-5"'),
        ("json.encode(json.NULL)", 'ok "null"'),
        ("json.encode(1/0)", 'ok "inf"'),
        ("json.encode(0/0)", 'ok "nan"'),
        ("json.encode(ffi.new('float', 0.5))", 'ok "0.5"'),
        ("json.encode(ffi.new('bool', true))", 'ok "true"'),
    ],
)
def test_scalars_are_encoded(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.encode('\"\\\\/')", 'ok "\\034\\092\\034\\092\\092\\092/\\034"'),
        (
            "json.encode('\\n\\t\\r\\b\\f\\0\\127')",
            'ok "\\034\\092n\\092t\\092r\\092b\\092f\\092u0000\\092u007f\\034"',
        ),
        ("json.encode('é日😀')", 'ok "\\034\\195\\169\\230\\151\\165\\240\\159\\152\\128\\034"'),
        ("json.encode('\\255')", 'ok "\\034\\255\\034"'),
    ],
)
def test_texts_are_quoted(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.encode({})", 'ok "[]"'),
        ("json.encode({1, 2, {3}})", 'ok "[1,2,[3]]"'),
        ("json.encode({a = 1})", 'ok "{\\034a\\034:1}"'),
        ("json.encode({[1] = 1, [3] = 3})", 'ok "[1,null,3]"'),
        ("json.encode({[1] = 1, [30] = 3})", 'ok "{\\03430\\034:3,\\0341\\034:1}"'),
        ("json.encode({[2] = 'x', [2^53] = 1})", 'ok "[null,\\034x\\034]"'),
        ("json.encode({[-1] = 1})", 'ok "{\\034-1\\034:1}"'),
        ("json.encode({[1LL] = 2})", 'ok "{\\0341\\034:2}"'),
        ("json.encode({1, a = 2})", 'ok "{\\0341\\034:1,\\034a\\034:2}"'),
    ],
)
def test_tables_are_arrays_or_maps(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.encode(setmetatable({a = 1}, {__serialize = 'seq'}))", 'ok "[]"'),
        ("json.encode(setmetatable({1, 2}, {__serialize = 'map'}))", 'ok "{\\0341\\034:1,\\0342\\034:2}"'),
        (
            "json.encode(setmetatable({1}, {__serialize = function(t) return 'x' .. t[1] end}))",
            'ok "\\034x1\\034"',
        ),
        ("json.encode(setmetatable({1}, {__serialize = 'other'}))", 'error "invalid __serialize value"'),
        ("json.encode(setmetatable({}, {__serialize = function() error('no', 0) end}))", 'error "no"'),
        ("json.encode(setmetatable({}, json.map_mt))", 'ok "{}"'),
        ("json.encode(setmetatable({}, json.array_mt))", 'ok "[]"'),
    ],
)
def test_serialize_decides_how_a_table_is_encoded(
    lua: OurLua | TarantoolLua, expression: str, result: str
) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.encode()", "error \"bad argument #1 to '?' (expected 1 or 2 arguments)\""),
        ("json.encode(1, 2, 3)", "error \"bad argument #1 to '?' (expected 1 or 2 arguments)\""),
        ("json.encode(1, 2)", 'error "attempt to index a number value"'),
        ("json.encode(print)", "error \"unsupported Lua type 'function'\""),
        ("json.encode(coroutine.create(print))", "error \"unsupported Lua type 'thread'\""),
        ("json.encode({[true] = 1})", 'error "table key must be a number or string"'),
        ("json.encode({[1.5] = 1})", 'error "table key must be a number or string"'),
        ("json.encode({f = print})", "error \"unsupported Lua type 'function'\""),
        ("json.encode(ffi.new('int[2]'))", "error \"unsupported Lua type 'cdata'\""),
        ("(function() local t = {} t[1] = t return json.encode(t) end)()", 'error "Too high nest level"'),
    ],
)
def test_what_cannot_be_encoded_is_an_error(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.encode({{{}}}, {encode_max_depth = 1})", 'error "Too high nest level"'),
        ("json.encode({{{}}}, {encode_max_depth = 2, encode_deep_as_nil = true})", 'ok "[[null]]"'),
        ("json.encode(1/3, {encode_number_precision = 3})", 'ok "0.333"'),
        ("json.encode({print}, {encode_invalid_as_nil = true})", 'ok "[null]"'),
        ("type(json.encode({print}, {encode_use_tostring = true}))", 'ok "string"'),
        ("json.encode(1/0, {encode_invalid_numbers = false})", 'error "number must not be NaN or Inf"'),
        ("json.encode({[100] = 1}, {encode_sparse_convert = false})", 'error "excessively sparse array"'),
        (
            "json.encode({[100] = 1}, {encode_sparse_ratio = 0})",
            (
                "ok "
                '"[null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,'
                "null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,nu"
                "ll,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null"
                ",null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,n"
                "ull,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,nul"
                "l,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,"
                'null,1]"'
            ),
        ),
        ("#json.encode({[100] = 1}, {encode_sparse_safe = 100})", "ok 498"),
        (
            "json.encode(setmetatable({1}, {__serialize = 'map'}), {encode_load_metatables = false})",
            'ok "[1]"',
        ),
        (
            "json.decode('[[1]]', {decode_max_depth = 1})",
            'error "Found too many nested data structures (2) on line 1 at character 2"',
        ),
        (
            "json.decode('nan', {decode_invalid_numbers = false})",
            'error "Expected value but found invalid token on line 1 at character 1"',
        ),
        ("getmetatable(json.decode('[1]', {decode_save_metatables = false}))", "ok nil"),
        ("json.encode(1/3)", 'ok "0.33333333333333"'),
    ],
)
def test_options_of_a_call(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            (
                "(function() local own = json.new() own.cfg{encode_number_precision = 2} return "
                "own.encode(1/3), json.encode(1/3) end)()"
            ),
            'ok "0.33" "0.33333333333333"',
        ),
        ("json.new().cfg.encode_max_depth", "ok 128"),
        (
            (
                "(function() local own = json.new() own.cfg{encode_max_depth = 1} return "
                "own.cfg.encode_max_depth end)()"
            ),
            "ok 1",
        ),
        ("json.cfg()", "error \"bad argument #2 to '?' (table expected, got no value)\""),
        ("json.cfg(1)", "error \"bad argument #2 to '?' (table expected, got number)\""),
        ("json.new().cfg{unknown = 1}", "ok"),
    ],
)
def test_options_of_a_serializer(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.decode('null') == nil, type(json.decode('null'))", 'ok true "cdata"'),
        ("json.decode('true')", "ok true"),
        ("json.decode(' [1, -2, 1.5, 1e2] ')", "ok seq:{[1]=1,[2]=-2,[3]=1.5,[4]=100}"),
        ('json.decode(\'{"a": {"b": []}}\')', 'ok map:{["a"]=map:{["b"]=seq:{}}}'),
        (
            "json.decode('\"\\\\u00e9\\\\ud83d\\\\ude00\\\\n\\\\/\"')",
            'ok "\\195\\169\\240\\159\\152\\128\\010/"',
        ),
        ("json.decode('99999999999999')", "ok 99999999999999"),
        ("json.decode('100000000000000')", "ok cdata:ctype<int64_t>:100000000000000LL"),
        ("json.decode('9223372036854775808')", "ok cdata:ctype<uint64_t>:9223372036854775808ULL"),
        ("json.decode('18446744073709551616')", "ok cdata:ctype<uint64_t>:18446744073709551615ULL"),
        ("json.decode('-9223372036854775808')", "ok cdata:ctype<int64_t>:-9223372036854775808LL"),
        ("json.decode('-0')", "ok 0"),
        ("json.decode('1e400')", "ok inf"),
        ("json.decode('inf')", "ok inf"),
        ("json.decode('-nan')", "ok nan"),
        ("json.decode(5)", "ok 5"),
        ('json.decode(\'{"a": 1, "a": 2}\')', 'ok map:{["a"]=2}'),
        ("json.decode('\"a\\nb\"')", 'ok "a\\010b"'),
    ],
)
def test_texts_are_decoded(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.decode()", "error \"bad argument #1 to '?' (expected 1 or 2 arguments)\""),
        ("json.decode({})", "error \"bad argument #1 to '?' (string expected, got table)\""),
        ("json.decode('')", 'error "Expected value but found T_END on line 1 at character 1"'),
        ("json.decode('[1')", 'error "Expected comma or array end but found T_END on line 1 at character 3"'),
        ("json.decode('[1,]')", 'error "Expected value but found T_ARR_END on line 1 at character 4"'),
        ("json.decode('{')", 'error "Expected object key string but found T_END on line 1 at character 2"'),
        (
            "json.decode('{1: 2}')",
            'error "Expected object key string but found T_INT on line 1 at character 2"',
        ),
        ("json.decode('{\"a\" 1}')", 'error "Expected colon but found T_INT on line 1 at character 6"'),
        (
            "json.decode('{\"a\": 1,}')",
            'error "Expected object key string but found T_OBJ_END on line 1 at character 9"',
        ),
        ("json.decode('tru')", 'error "Expected value but found invalid token on line 1 at character 1"'),
        ("json.decode('01')", 'error "Expected value but found invalid token on line 1 at character 1"'),
        (
            "json.decode('\"a')",
            'error "Expected value but found unexpected end of string on line 1 at character 3"',
        ),
        (
            "json.decode('\"\\\\q\"')",
            'error "Expected value but found invalid escape code on line 1 at character 2"',
        ),
        (
            "json.decode('\"\\\\ud83d\"')",
            'error "Expected value but found invalid unicode escape code on line 1 at character 2"',
        ),
        ("json.decode('1 2')", 'error "Expected the end but found T_INT on line 1 at character 3"'),
        (
            "json.decode('[1]\\n\\n x')",
            'error "Expected the end but found invalid token on line 3 at character 2"',
        ),
        ("json.decode('[\\0')", 'error "JSON parser does not support UTF-16 or UTF-32"'),
        ("json.decode('x\\0')", 'error "JSON parser does not support UTF-16 or UTF-32"'),
        (
            "json.decode(('['):rep(129))",
            'error "Found too many nested data structures (129) on line 1 at character 129"',
        ),
    ],
)
def test_wrong_texts_are_errors(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("json.encode(json.decode('[]')), json.encode(json.decode('{}'))", 'ok "[]" "{}"'),
        ('json.encode(json.decode(\'{"a": [], "b": {}}\').b)', 'ok "{}"'),
        (
            ("getmetatable(json.decode('[1]')).__serialize, getmetatable(json.decode('{}')).__serialize"),
            'ok "seq" "map"',
        ),
    ],
)
def test_decoded_tables_are_encoded_alike(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"{PREAMBLE}return {expression}") == result
