"""LuaJIT with Tarantool's modules.

LuaJIT comes with the package lupa (the extra `lua`). Texts of Lua are bytes in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from iproto_server.lua.errors import HostError
from iproto_server.lua.functions import FUNCTIONS

__all__ = ["HostError", "LuaIsMissing", "Runtime"]

MODULES: Final = Path(__file__).parent / "modules"
"""One file for each module that `require` finds without a path: `net.box` is `net/box.lua`."""

TOPICS: Final = ("data", "language", "system")
"""Folders of `MODULES` that are no part of a module's name."""

_MODULE_NAME: Final = re.compile(rb"[a-z0-9_]+(\.[a-z0-9_]+)*")

MISSING: Final = (
    "Lua needs LuaJIT, which the package lupa has on Linux (glibc, x86_64 and aarch64): "
    "pip install 'iproto-server[lua]'"
)

Function = Callable[..., Any]


class LuaIsMissing(Exception):
    """LuaJIT is not installed, or lupa has none for this platform."""


def _luajit() -> Any:
    try:
        from lupa import luajit21
    except ImportError:
        raise LuaIsMissing(MISSING) from None
    return luajit21


class Runtime:
    """A LuaJIT.

    Parameters:
        functions: functions of Python that modules may call, by name, beside `FUNCTIONS`. Their arguments are
            bytes, numbers, booleans, None and Lua objects; a `HostError` becomes an error of Lua.

    Attributes:
        host: the functions as a table of Lua, whose functions raise errors.

    Raises:
        LuaIsMissing: LuaJIT is not installed.
    """

    def __init__(self, functions: Mapping[str, Function] = {}) -> None:
        luajit = _luajit()
        self._error: type[Exception] = luajit.LuaError
        # Texts stay bytes, and Lua code cannot reach Python but by `functions`.
        self._lua: Any = luajit.LuaRuntime(
            encoding=None,
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_no_attribute,
        )
        self._lua.execute(b"python, package.loaded.python = nil, nil")
        available = {**FUNCTIONS, **functions}
        host = self._lua.table_from({name.encode(): _answering(each) for name, each in available.items()})
        self._load: Function = self._lua.eval(b"function(text, name) return loadstring(text, name) end")
        self._tostring: Function = self._lua.eval(b"tostring")
        self._require: Function = self._lua.eval(b"function(name) return require(name) end")
        prelude = self.load(
            (MODULES / "internal" / "prelude.lua").read_bytes(), b"@builtin/internal/prelude.lua"
        )
        self.host = self.call(prelude, host, _module_text)

    def load(self, text: bytes, name: bytes) -> Function:
        """Compile a chunk.

        Parameters:
            text: the chunk.
            name: its name in error messages, with `@` in front of a file's.

        Returns:
            A function of Lua.

        Raises:
            SyntaxError: it is no chunk; with LuaJIT's message.
        """
        found = self._load(text, name)
        if isinstance(found, tuple):
            raise SyntaxError(found[1].decode("utf-8", "replace"))
        return found  # type: ignore[no-any-return]

    def require(self, name: str) -> Any:
        """Return a module, loading it if it is not loaded yet."""
        return self.call(self._require, name.encode())

    def text(self, value: object) -> str:
        """Return a value as Lua's `tostring` shows it; bytes that are no UTF-8 are replaced.

        A value whose `__tostring` fails is described by that error.
        """
        try:
            shown = self.call(self._tostring, value)
        except RuntimeError as error:
            return f"a value without a text: {error}"
        return shown.decode("utf-8", "replace") if isinstance(shown, bytes) else str(shown)

    def call(self, function: Function, *arguments: object) -> Any:
        """Call a function of Lua. Returns one value, or a tuple of several.

        Raises:
            RuntimeError: an error of Lua, with its message.
        """
        try:
            return function(*arguments)
        except self._error as error:
            raise RuntimeError(str(error)) from error


def _no_attribute(owner: object, name: object, is_setting: bool) -> NoReturn:
    """Refuse Lua code the attributes of Python objects, which an exception in a function may bring to it."""
    raise AttributeError("Lua code has no access to attributes of Python objects")


def _answering(function: Function) -> Function:
    """A function that answers (True, values …) or (False, message), for `internal/prelude.lua`."""

    def answer(*arguments: Any) -> tuple[Any, ...]:
        try:
            result = function(*arguments)
        except HostError as error:
            return False, str(error).encode()
        except MemoryError:
            return False, b"not enough memory"
        return (True, *result) if isinstance(result, tuple) else (True, result)

    return answer


def _module_text(name: bytes) -> bytes | None:
    """The text of a module; None if there is none of that name."""
    if not _MODULE_NAME.fullmatch(name):
        return None
    *folders, last = name.decode().split(".")
    if folders and folders[0] in TOPICS:
        return None
    for topic in ("", *TOPICS):
        path = MODULES.joinpath(topic, *folders, f"{last}.lua")
        if path.is_file():
            return path.read_bytes()
    return None
