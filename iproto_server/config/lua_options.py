"""The server's options for Lua code."""

from __future__ import annotations

from iproto_server.config import option_parsers as values
from iproto_server.config.option import CENTURY, Option

_LUA = "Lua"

LUA_MEMORY_MIN = 16 * 1024**2
"""The least value of the option `lua_memory`: the modules take a few megabytes."""

LUA_OPTIONS: tuple[Option, ...] = (
    Option(
        "lua",
        values.boolean,
        _LUA,
        "",
        "Let clients evaluate Lua code and call Lua's functions although no Lua file is served.",
    ),
    Option(
        "lua_memory",
        values.size(LUA_MEMORY_MIN, 2**63 - 1),
        _LUA,
        "BYTES",
        'Maximum memory of Lua\'s objects; code that exceeds it gets the error "not enough memory". Garbage '
        "counts until it is collected, so allow twice of what is in use.",
        default="no limit",
    ),
    Option(
        "lua_jit",
        values.one_of("mode of the JIT compiler", "on", "off"),
        _LUA,
        "on|off",
        "Whether LuaJIT compiles Lua code to machine code.",
        default="on",
    ),
    Option(
        "lua_time_limit",
        values.seconds(0.001, CENTURY),
        _LUA,
        "SECONDS",
        "Maximum time that Lua code runs without a yield; then it gets an error. Needs --lua-jit off.",
        default="no limit",
    ),
)
