"""The LuaJIT: chunks, functions of Python, and what Lua code cannot reach."""

from __future__ import annotations

import pytest

from iproto_server.lua.runtime import HostError, Runtime
from tests.lua.snippets import OurLua, TarantoolLua


def test_a_chunk_returns_its_values(ours: OurLua) -> None:
    assert ours.run("return 1, 'a\\0b', nil, {1, x = 2}") == 'ok 1 "a\\000b" nil {[1]=1,["x"]=2}'


def test_an_error_names_its_line(ours: OurLua) -> None:
    assert ours.run("\nerror('no')") == 'error "snippet:2: no"'


def test_a_chunk_that_cannot_be_compiled_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError, match="name:1: unexpected symbol near '='"):
        Runtime().load(b"= 1", b"=name")


def test_lua_code_cannot_reach_python(ours: OurLua) -> None:
    assert ours.run("return python, package.loaded.python, pcall(require, 'python')").startswith("ok nil nil")


def test_a_missing_module_says_where_it_was_looked_for(ours: OurLua) -> None:
    described = ours.run("return pcall(require, 'no.such')")
    assert "module 'no.such' not found" in described
    assert "no field package.preload['no.such']" in described


def test_a_module_of_tarantool_that_is_missing_is_named(ours: OurLua) -> None:
    assert ours.run("return pcall(require, 'swim')") == (
        "ok false \"module 'swim' not found: Tarantool has it, this server does not; "
        'docs/LUA.md lists the modules there are"'
    )


def test_an_error_of_a_function_of_python_is_an_error_of_lua() -> None:
    def refuse(text: bytes) -> None:
        raise HostError(f"refused: {text.decode()}")

    runtime = Runtime({"refuse": refuse})
    chunk = runtime.load(b"local host = ...; return pcall(host.refuse, 'a text')", b"=chunk")
    assert runtime.call(chunk, runtime.host) == (False, b"refused: a text")


def test_an_exception_of_python_has_no_attributes_in_lua() -> None:
    def fail() -> None:
        raise ValueError("a bug")

    runtime = Runtime({"fail": fail})
    text = b"local host = ...; local _, why = pcall(host.fail); return pcall(function() return why.args end)"
    assert runtime.call(runtime.load(text, b"=chunk"), runtime.host)[0] is False


@pytest.mark.real_tarantool
def test_a_real_tarantool_describes_values_alike(ours: OurLua, real: TarantoolLua) -> None:
    snippet = "return 1, 2.5, -0, 1e300, 'ü\\n', nil, true, {1, {2}}, {a = {}}, 1ULL, -1LL, function() end"
    assert ours.run(snippet) == real.run(snippet)
