"""Arguments of clients, treated as by the module's Lua code, with the errors that Lua would raise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeGuard

from iproto_server import Box, BoxError
from queue_lua_compat.lua_numbers import LUA_EXACT, shown
from queue_lua_compat.tubes.driver import Options


class NotGiven:
    """The type of `NOT_GIVEN`."""

    __slots__ = ()


NOT_GIVEN: Final = NotGiven()
"""The value of an omitted argument, where that differs from nil."""

Procedure = Callable[..., Any]


def options_of(value: object, name: str) -> Options:
    """Copy options to a dict. Nil and false stand for none; a list has numbers as names.

    Parameters:
        value: the client's value.
        name: the variable's name in Lua's error.

    Raises:
        BoxError: it is a value without fields.
    """
    if value is None or value is False:
        return {}
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value, 1))  # type: ignore[arg-type]
    raise BoxError.procedure(f"attempt to index local '{name}' (a {lua_type(value)} value)")


def call_options(value: object) -> Options:
    """Return the options of a call that only reads them; a string has none.

    Raises:
        BoxError: as `options_of`.
    """
    if value is None or isinstance(value, (str, bytes)):
        return {}
    return options_of(value, "opts")


def chosen(options: Options, name: str, default: Any) -> Any:
    """Return an option, or the default instead of nil and false."""
    value = options.get(name)
    return default if value is None or value is False else value


def number(value: object, other: str = "{} with number") -> int | float:
    """Check that a value can be compared with a number.

    Parameters:
        value: the client's value.
        other: the end of Lua's error, with the type of the value in it.

    Raises:
        BoxError: it is not a number.
    """
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BoxError.procedure(f"attempt to compare {other.format(lua_type(value))}")
    if math.isnan(value):
        raise BoxError.procedure("a number is expected, not NaN")
    return value


def is_lua_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number in Lua: larger integers have another type there."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, float) or abs(value) < LUA_EXACT


def whole(value: object) -> object:
    """Convert a number as Lua's queue does: a float without a fraction is an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def lua_type(value: object) -> str:
    """Return Lua's name for the type of a value of a call."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, (str, bytes)):
        return "string"
    return "table" if isinstance(value, (list, tuple, dict)) else "cdata"


def as_text(value: object) -> object:
    """Decode bytes as Lua does; return other values unchanged."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def as_procedure(function: Callable[..., object], most: int) -> Procedure:
    """Create a procedure that passes its arguments to a function, and ignores surplus ones as Lua does.

    Parameters:
        function: the function.
        most: the maximum number of its arguments.
    """

    def procedure(box: Box, *arguments: object) -> object:
        return function(*arguments[:most])

    return procedure


def lua_text(value: object) -> str:
    """Format a value like Lua's `tostring`."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    return shown(value) if isinstance(value, (int, float)) else str(as_text(value))
