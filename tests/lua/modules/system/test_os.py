"""Tarantool's additions to os: examples that a real Tarantool agrees with."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import described
from tests.lua.snippets import OurLua, TarantoolLua


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            (
                "(function() os.setenv('LUA_TEST_A', 'a') local set = os.getenv('LUA_TEST_A') "
                "os.setenv('LUA_TEST_A', nil) return set, os.getenv('LUA_TEST_A') end)()"
            ),
            'ok "a" nil',
        ),
        (
            (
                "(function() os.setenv('LUA_TEST_B', 'a\\0b') local set = os.environ().LUA_TEST_B "
                "os.setenv('LUA_TEST_B') return set, os.environ().LUA_TEST_B end)()"
            ),
            'ok "a" nil',
        ),
        ("os.setenv('LUA_TEST_A', '')", "ok"),
    ],
)
def test_an_environment_variable_is_set_and_removed(
    lua: OurLua | TarantoolLua, expression: str, result: str
) -> None:
    assert described(lua, f"return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "type(os.environ()), os.environ().PATH == os.getenv('PATH'), os.environ().LUA_TEST_NONE",
            'ok "table" true nil',
        ),
        ("getmetatable(os.environ())", "ok nil"),
    ],
)
def test_the_environment_is_a_table(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "os.setenv(5, 'x')",
            ("error \"builtin: bad argument #1 to 'setenv' (cannot convert 'number' to 'const char *')\""),
        ),
        (
            "os.setenv(5)",
            ("error \"builtin: bad argument #1 to 'unsetenv' (cannot convert 'number' to 'const char *')\""),
        ),
        (
            "os.setenv('x', 5)",
            ("error \"builtin: bad argument #2 to 'setenv' (cannot convert 'number' to 'const char *')\""),
        ),
        (
            "os.setenv('x', {})",
            ("error \"builtin: bad argument #2 to 'setenv' (cannot convert 'table' to 'const char *')\""),
        ),
        (
            "os.setenv({}, 'x')",
            ("error \"builtin: bad argument #1 to 'setenv' (cannot convert 'table' to 'const char *')\""),
        ),
    ],
)
def test_wrong_names_and_values_are_errors(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"return {expression}") == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        (
            "type(os.time()), type(os.clock()), type(os.date()), type(os.tmpname), type(os.remove)",
            'ok "number" "number" "string" "function" "function"',
        ),
        ("os.date('!%Y-%m-%d', 0)", 'ok "1970-01-01"'),
    ],
)
def test_functions_of_lua_are_there(lua: OurLua | TarantoolLua, expression: str, result: str) -> None:
    assert described(lua, f"return {expression}") == result
