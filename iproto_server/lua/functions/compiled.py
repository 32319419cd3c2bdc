"""The compiled module, for `internal/native.lua`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from iproto_server.lua.errors import HostError


def compiled_module() -> bytes:
    """Let the compiled module find LuaJIT's functions.

    Returns:
        The path of the compiled module, for `package.loadlib`.

    Raises:
        HostError: there is no compiled module, or lupa's LuaJIT does not have these functions.
    """
    from lupa import luajit21

    from iproto_server.compiled_module import NotCompiledError

    try:
        from iproto_server.native import module

        module.loaded.load_lua(luajit21.__file__)
    except NotCompiledError as error:
        raise HostError(str(error)) from error
    except OSError as error:
        raise HostError(f"compiled code cannot use this LuaJIT: {error}") from error
    return str(module.loaded.__file__).encode()


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {"compiled_module": compiled_module}
