"""Compiled code in LuaJIT: what it counts on is there."""

from __future__ import annotations

import pytest

from iproto_server.lua.runtime import Runtime
from iproto_server.native import module
from tests.lua.snippets import OurLua

NATIVE = (
    "local native, ffi = require('internal.native'), require('ffi') "
    "local msgpack = native.msgpack_functions(native.encoding) "
)


def test_lupa_exports_the_functions_of_luajit() -> None:
    from lupa import luajit21

    module.loaded.load_lua(luajit21.__file__)


def test_another_library_lacks_them() -> None:
    with pytest.raises(OSError, match=r"_native.* has no function lua_gettop"):
        module.loaded.load_lua(module.loaded.__file__)


def test_a_library_that_is_not_loaded_is_an_error() -> None:
    with pytest.raises(OSError, match="nowhere"):
        module.loaded.load_lua("nowhere.so")


def test_objects_of_luajit_are_laid_out_as_compiled_code_reads_them(ours: OurLua) -> None:
    snippet = (
        "local packed = msgpack.encode({-5LL, 18446744073709551615ULL, native.tuple_new(1, 'a')}) "
        "return packed, msgpack.decode(packed, 12)"
    )
    assert ours.run(NATIVE + snippet) == (
        r'ok "\147\251\207\255\255\255\255\255\255\255\255\146\001\161a" seq:{[1]=1,[2]="a"} 16'
    )


def test_other_objects_are_refused(ours: OurLua) -> None:
    setup = (
        "native.setup{null = ffi.new('void *'), an_int64 = -5LL, a_uint64 = 5ULL, a_tuple = %s, "
        "a_float = ffi.new('float'), a_double = ffi.new('double'), a_text = ffi.new('char *'), "
        "a_const_text = ffi.new('const char *'), encoding = native.encoding}"
    )
    for a_tuple in ("nil", "5", "ffi.new('struct { uint64_t a; }', 7)"):
        assert ours.run(f"{NATIVE}return {setup % a_tuple}") == "ok false"
    assert ours.run(f"{NATIVE}return native.setup{{}}, #native.tuple_new(1)") == "ok false 1"


def test_what_is_missing_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from lupa import luajit21

    monkeypatch.setattr(luajit21, "__file__", module.loaded.__file__)
    runtime = Runtime()
    chunk = runtime.load(b"return require('internal.native')", b"=chunk")
    with pytest.raises(
        RuntimeError, match=r"compiled code cannot use this LuaJIT: .* has no function lua_gettop"
    ):
        runtime.call(chunk)


def test_several_states_of_lua_have_the_same_types(ours: OurLua) -> None:
    other = Runtime()
    chunk = other.load(
        b"require('ffi').cdef('struct mine { int a; };') "
        b"return #require('internal.box.values.tuple').new(1, 2)",
        b"=chunk",
    )
    assert other.call(chunk) == 2
    assert ours.run("return #require('internal.box.values.tuple').new(1, 2, 3)") == "ok 3"
