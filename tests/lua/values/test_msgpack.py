"""The module msgpack."""

from __future__ import annotations

import pytest

from tests.lua.snippets import OurLua, TarantoolLua
from tests.lua.values.alike import PREFIX, assert_alike, run

START = "local m, ffi = require('msgpack').new(), require('ffi') "

VALUES = [
    "",
    "nil",
    "1, 2",
    "1/0",
    "-1",
    "-2^63",
    "2^63",
    "2^64",
    "-2^63 - 1e10",
    "1.5",
    "-0.0",
    "ffi.new('double', 5)",
    "ffi.new('float', 1.5)",
    "ffi.new('int8_t', 5)",
    "ffi.new('uint8_t', 200)",
    "ffi.new('bool', true)",
    "ffi.new('void *')",
    "ffi.cast('void *', 1)",
    "ffi.cast('char *', 0)",
    "ffi.new('struct {int a;}')",
    "ffi.typeof('int')",
    "require('uuid').fromstr('9246f8f6-507c-4950-a92b-6a9a30004198')",
    "require('decimal').new('-123.4500'), nil",
    "print",
    "io.stdout",
    "coroutine.create(print)",
    "-5LL",
    "0xffffffffffffffffULL",
    "{print}",
    "{[print] = 1}",
    "{[1.5] = 1}",
    "{[0] = 1}",
    "{a = 1}",
    "{[1] = 1, [30] = 2}",
    "{[1] = 1, [3] = 2}",
    "{[10] = 1}",
    "{[11] = 1}",
    "{[2^31] = 1}",
    "{[{1}] = 1}",
    "setmetatable({1}, {__serialize = 'map'})",
    "setmetatable({1, 2}, {__serialize = 'seq'})",
    "setmetatable({a = 1}, {__serialize = 'seq'})",
    "setmetatable({1}, {__serialize = 'mapping'})",
    "setmetatable({1, 2}, {__serialize = 'array'})",
    "setmetatable({[1] = 1, [30] = 2}, {__serialize = 'sequence'})",
    "setmetatable({1, 2}, {__serialize = 'x'})",
    "setmetatable({1, 2}, {__serialize = 5})",
    "setmetatable({1, 2}, {__serialize = false})",
    "setmetatable({1, 2}, {__serialize = function() return 'x', 'y' end})",
    "setmetatable({1, 2}, {__serialize = function() return nil end})",
    "setmetatable({1, 2}, {__serialize = function() error('boo') end})",
    "setmetatable({1, 2}, {__serialize = function() return setmetatable({}, {__serialize = 'map'}) end})",
    "box.tuple.new{1, 2}",
    "{a = box.tuple.new{1, 2}}",
    "box.error.new{code = 5, reason = 'xyz'}",
    "{box.error.new{code = 5, reason = 'xyz'}}",
]

OPTIONS = {
    "encode_deep_as_nil = true": "deep(129)",
    "encode_max_depth = 3": "deep(4)",
    "encode_sparse_convert = false": "{[1] = 1, [30] = 2}",
    "encode_sparse_ratio = 0": "{[30] = 2}",
    "encode_sparse_safe = 40": "{[30] = 2}",
    "encode_sparse_safe = -1": "{[300] = 2}",
    "encode_invalid_numbers = false": "0/0",
    "encode_invalid_numbers = false, a = 1": "ffi.new('double', 1/0)",
    "encode_invalid_numbers = false, encode_invalid_as_nil = true": "{1/0, 1}",
    "encode_invalid_as_nil = true": "{print, ffi.new('struct {int a;}')}",
    "encode_use_tostring = true": "#{print}",
    "encode_load_metatables = false": "setmetatable({1, 2}, {__serialize = 'map'})",
}

TEXTS = [
    "",
    "5",
    "''",
    r"'\1'",
    r"'\1\2'",
    r"'\1\2', 2",
    r"'\1\2', 3",
    r"'\1\2', 0",
    r"'\1\2', -1",
    r"'\1\2', 1.5",
    r"'\1\2', 'x'",
    r"'\145'",
    r"'\145\145'",
    r"'\165ab'",
    r"'\129\1'",
    "{}",
    r"'\192'",
    r"'\207\255\255\255\255\255\255\255\255'",
    r"'\211\128\0\0\0\0\0\0\0'",
    r"'\202\63\192\0\0'",
    r"'\196\2ab'",
    r"'\212\5\0'",
    r"'\212\1\0'",
    r"'\212\2\0'",
    r"'\212\3\0'",
    r"'\216\2' .. ('x'):rep(16)",
    r"'\216\2' .. ('\255'):rep(16)",
    r"'\199\3\1\1\1\92'",
    r"'\129\203\127\248\0\0\0\0\0\0\1'",
    r"ffi.cast('const char *', '\1'), 1",
    r"ffi.cast('char *', ffi.cast('const char *', '\1')), 1",
    r"ffi.cast('const char *', '\1')",
    r"ffi.cast('const char *', '\1'), 0",
    r"ffi.cast('const char *', '\1'), -1",
    r"ffi.cast('const char *', '\145'), 1",
    "ffi.new('int')",
    "ffi.cast('void *', 0), 1",
]

POINTER = r"ffi.cast('const char *', '\146\1\2')"
HEADS = [
    "",
    POINTER,
    f"{POINTER}, 3",
    f"{POINTER}, 0",
    f"{POINTER}, -1",
    f"{POINTER}, 'x'",
    f"{POINTER}, 3, 4",
    "'x', 1",
]
HEADS += [r"ffi.cast('const char *', '\220\0'), 2", r"ffi.cast('const char *', '\220\0\5'), 3", "5, 6"]
HEADS += [r"ffi.cast('const char *', '\223\0\0\0\5'), 5", r"ffi.cast('const char *', '\130'), 1"]

SIZES = (0, 1, 2, 14, 15, 16, 17, 255, 256, 65535, 65536, 70000)
"""Sizes of maps, around those at which the head grows."""

DEEP = "local function deep(depth) local t = {} for _ = 2, depth do t = {t} end return t end "


@pytest.mark.real_tarantool
@pytest.mark.parametrize("value", VALUES)
def test_packing_is_alike(ours: OurLua, real: TarantoolLua, value: str) -> None:
    assert_alike(ours, real, f"{START}return m.encode({value})")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("size", SIZES)
def test_sizes_of_maps_are_alike(ours: OurLua, real: TarantoolLua, size: int) -> None:
    made = f"local t = {{}} for i = 1, {size} do t[-i] = {{a = i}} end "
    assert_alike(
        ours,
        real,
        f"{START}{made}local s = m.encode{{t, 7}} local d = m.decode(s)[1] "
        f"return #s, s:sub(1, 6), d[-1], d[-{size}]",
    )


@pytest.mark.real_tarantool
@pytest.mark.parametrize("depth", [127, 128, 129, 200])
def test_depths_are_alike(ours: OurLua, real: TarantoolLua, depth: int) -> None:
    assert_alike(ours, real, f"{START}{DEEP}return m.encode(deep({depth}))")
    assert_alike(ours, real, f"{DEEP}return #box.tuple.new(deep({depth}))")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("options", OPTIONS)
def test_options_are_alike(ours: OurLua, real: TarantoolLua, options: str) -> None:
    value = OPTIONS[options].removeprefix("#")
    packed = "#m.encode" if OPTIONS[options].startswith("#") else "m.encode"
    assert_alike(ours, real, f"{START}{DEEP}m.cfg{{{options}}} return {packed}({value})")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("arguments", TEXTS)
def test_unpacking_is_alike(ours: OurLua, real: TarantoolLua, arguments: str) -> None:
    assert_alike(ours, real, f"{START}return m.decode({arguments})")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("arguments", [r"'\1\2', 2", "5", r"'\1', 3", POINTER, "", r"'\1', 'x'"])
def test_unchecked_unpacking_is_alike(ours: OurLua, real: TarantoolLua, arguments: str) -> None:
    assert_alike(ours, real, f"{START}return m.decode_unchecked({arguments})")


@pytest.mark.real_tarantool
@pytest.mark.parametrize("name", ["decode_array_header", "decode_map_header"])
@pytest.mark.parametrize("arguments", HEADS)
def test_heads_are_alike(ours: OurLua, real: TarantoolLua, name: str, arguments: str) -> None:
    assert_alike(ours, real, f"{START}return m.{name}({arguments})")


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "snippet",
    [
        "local t = m.decode('\\146\\1\\2') t[3] = 3 return getmetatable(t), t",
        "local t = m.decode('\\129\\1\\2') t.a = 3 return getmetatable(t), t",
        "local t = m.decode('\\146\\1\\2') t[1] = 3 return t",
        "m.cfg{decode_save_metatables = false} return m.decode('\\146\\1\\129\\1\\2')",
        "return m.NULL == box.NULL, m.NULL == nil, m.array_mt == require('json').array_mt, type(m.map_mt)",
        "local names = {} for name, value in pairs(m) do names[name] = type(value) end return names",
        "local values = {} for name, value in pairs(m.cfg) do values[name] = value end return values",
        "return m.cfg()",
        "m.cfg(5)",
        "return m.new() == m, m.new().cfg == m.cfg",
        "m.cfg{encode_sparse_ratio = 0} return require('msgpack').encode{[30] = 1}",
        "return m.decode(m.encode{[{1}] = 1})",
    ],
)
def test_the_module_is_alike(ours: OurLua, real: TarantoolLua, snippet: str) -> None:
    assert_alike(ours, real, START + snippet)


ERRORS = (
    "local function unpacked(described) local p = m.encode(described) "
    "return m.decode('\\200' .. string.char(math.floor(#p / 256), #p % 256, 3) .. p) end "
)
ENTRY = "{[0] = '%s', [1] = 'file', [2] = 7, [3] = 'message', [4] = 2, [5] = 77%s}"


@pytest.mark.real_tarantool
@pytest.mark.parametrize("fields", ["", ", [6] = {custom_type = 'Mine'}", ", [6] = {object_type = 'a'}"])
@pytest.mark.parametrize(
    "kind",
    [
        "ClientError",
        "CustomError",
        "XlogGapError",
        "OutOfMemory",
        "SystemError",
        "SocketError",
        "TimedOut",
        "LuajitError",
        "ChannelIsClosed",
        "IllegalParams",
        "FiberIsCancelled",
        "LoggedError",
        "SwimError",
        "CollationError",
        "Other",
    ],
)
def test_errors_are_unpacked_alike(ours: OurLua, real: TarantoolLua, kind: str, fields: str) -> None:
    snippet = (
        f"local e = unpacked{{[0] = {{{ENTRY % (kind, fields)}}}}} return e, e:unpack(), e.code, e.errno"
    )
    assert_alike(ours, real, START + ERRORS + snippet)


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "described",
    [
        "{[0] = {}}",
        "{}",
        "1",
        "{a = 1}",
        "{[0] = {{[3] = 'text'}}}",
        "{[0] = {{[0] = 'ClientError', [3] = 'text'}}}",
        f"{{[0] = {{{ENTRY % ('ClientError', '')}, {ENTRY % ('XlogError', '')}}}}}",
    ],
)
def test_stacks_of_errors_are_unpacked_alike(ours: OurLua, real: TarantoolLua, described: str) -> None:
    snippet = f"local e = unpacked({described}) return e, e.prev, e.prev and e.prev.prev"
    assert_alike(ours, real, START + ERRORS + snippet)


def test_a_value_that_serializes_as_itself_is_an_error(ours: OurLua) -> None:
    """Tarantool crashes."""
    snippet = "return m.encode(setmetatable({}, {__serialize = function(t) return t end}))"
    assert run(ours, START + snippet).endswith('__serialize returns its own argument"')


def test_an_error_while_a_table_is_packed_leaves_all_in_order(ours: OurLua) -> None:
    snippet = (
        "local t, spoil = {}, nil for place = 1, 100 do t['k' .. place] = place end "
        "t.k50 = setmetatable({}, {__serialize = function() for key in pairs(t) do t[key] = nil end "
        "for place = 1, 1000 do t['n' .. place] = place end collectgarbage() return 1 end}) "
        "for _ = 1, 100 do pcall(m.encode, t) end return m.encode{1}"
    )
    assert ours.run(START + snippet) == r'ok "\145\001"'


def test_there_are_no_buffers(ours: OurLua) -> None:
    assert "there are no buffers" in ours.run(f"{START}return m.ibuf_decode()")
    assert "argument 2 must be of type 'struct ibuf'" in ours.run(f"{START}return m.encode(1, {{}})")


def test_a_truncated_text_is_not_read_behind_its_end(ours: OurLua) -> None:
    assert "invalid MsgPack" in ours.run(f"{START}return m.decode_unchecked('\\165a')")


def test_userdata_may_have_a_serializer(ours: OurLua) -> None:
    snippet = (
        "local proxy = newproxy(true) getmetatable(proxy).__index = {__serialize = function() return 'text' "
        "end} "
        "return m.encode(proxy)"
    )
    assert ours.run(PREFIX + START + snippet) == 'ok "\\164text"'
