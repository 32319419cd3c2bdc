"""The modules have the names that a real Tarantool's modules have."""

from __future__ import annotations

import pytest

from tests.lua.modules.alike import assert_alike
from tests.lua.snippets import OurLua, TarantoolLua

NAMES = """
local function names(t)
    local found = {}
    for name, value in pairs(t) do
        -- Some functions of Tarantool are functions of C.
        local kind = type(value) == 'cdata' and 'function' or type(value)
        found[#found + 1] = name .. ' ' .. kind
    end
    table.sort(found)
    return found
end
"""


@pytest.mark.real_tarantool
@pytest.mark.parametrize(
    "table",
    [
        "string",
        "utf8",
        "require('clock')",
        "require('crypto')",
        "require('crypto').cipher",
        "require('crypto').cipher.aes128",
        "require('crypto').digest",
        "require('crypto').hmac",
        "require('digest')",
        "require('digest').crc32",
        "require('digest').murmur",
        "require('decimal')",
        "require('errno')",
        "require('fio')",
        "require('fio').c.flag",
        "require('fio').path",
        "require('fun')",
        "require('json')",
        "require('json').cfg",
        "require('strict')",
        "require('tap')",
        "require('tarantool')",
        "require('tarantool').build",
        "require('uri')",
        "require('uuid')",
        "require('yaml')",
        "os",
        "coroutine",
    ],
)
def test_names_are_alike(ours: OurLua, real: TarantoolLua, table: str) -> None:
    assert_alike(ours, real, f"{NAMES} return names({table})")


@pytest.mark.real_tarantool
def test_all_functions_of_tables_are_there(ours: OurLua, real: TarantoolLua) -> None:
    # `require('table.clear')` adds one to them.
    snippet = f"require('table.clear') {NAMES} return names(table)"
    assert_alike(ours, real, snippet)


def test_modules_can_be_loaded_again(ours: OurLua) -> None:
    snippet = """
        for _, name in ipairs{'clock', 'crypto', 'digest', 'errno', 'fun', 'strict', 'tap', 'uri', 'utf8'} do
            local before = require(name)
            package.loaded[name] = nil
            assert(type(require(name)) == 'table')
            package.loaded[name] = before
        end
        return true
    """
    assert ours.run(snippet) == "ok true"


def test_lua_code_may_declare_the_same_functions_of_c(ours: OurLua) -> None:
    snippet = """
        local ffi = require('ffi')
        require('clock') require('errno')
        ffi.cdef[[
            struct timespec { long tv_sec; long tv_nsec; };
            int clock_gettime(int clock, struct timespec *time);
            char *strerror(int number);
        ]]
        return ffi.string(ffi.C.strerror(0))
    """
    assert ours.run(snippet) == 'ok "Success"'
