"""Arguments of clients, treated as by the module's Lua code, with the errors that Lua would raise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeGuard

from iproto_server import Box, BoxError, ErrorCode
from queue_lua_compat.lua_numbers import LUA_EXACT, described, shown
from queue_lua_compat.lua_numbers import number as text_number


class NotGiven:
    """The type of `NOT_GIVEN`."""

    __slots__ = ()


NOT_GIVEN: Final = NotGiven()
"""The value of an omitted argument, where that differs from nil."""

Procedure = Callable[..., Any]

PRIORITY_MAX: Final = 2**64 - 1


def options_of(value: object, name: str) -> dict[str, Any]:
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


def call_options(value: object, *, are_read: bool) -> dict[str, Any]:
    """Return the options of a call that only reads them; a string has none.

    Parameters:
        value: the client's value.
        are_read: whether the module's driver reads options in such a call; else it accepts any value.

    Raises:
        BoxError: as `options_of`.
    """
    if value is None or isinstance(value, (str, bytes)):
        return {}
    if not are_read and not isinstance(value, (dict, list, tuple)):
        return {}
    return options_of(value, "opts")


def chosen(options: dict[str, Any], name: str, default: Any) -> Any:
    """Return an option, or the default instead of nil and false."""
    value = options.get(name)
    return default if value is None or value is False else value


def number(value: object, name: str, unit: str = " of seconds") -> int | float:
    """Check that a value is a number.

    Parameters:
        value: the client's value.
        name: the name of the argument or option, for the error.
        unit: the unit of the number, for the error.

    Raises:
        BoxError: it is not a number.
    """
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BoxError.procedure(f"{name} must be a number{unit}, not {described(value)}")
    if math.isnan(value):
        raise BoxError.procedure(f"{name} must be a number{unit}, not NaN")
    return value


def is_lua_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number in Lua: larger integers have another type there."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, float) or abs(value) < LUA_EXACT


def whole(value: object) -> object:
    """Convert a number as Lua's queue does: a float without a fraction is an integer, if that has 64 bits."""
    is_whole = isinstance(value, float) and value.is_integer() and -(2**63) <= value < 2**64
    return int(value) if is_whole else value  # type: ignore[call-overload]


def priority(value: object) -> int:
    """Convert a priority.

    Raises:
        BoxError: FIELD_TYPE, as the module's space refuses it: it is not an unsigned number.
    """
    given = whole(value)
    if type(given) is not int or not 0 <= given <= PRIORITY_MAX:
        text = f"pri must be a whole number from 0 to {PRIORITY_MAX}, not {described(value)}"
        raise BoxError.with_message(ErrorCode.FIELD_TYPE, text, type="ClientError")
    return given


def count_of(value: object) -> int | float:
    """Convert a number of tasks, which may be a text as for Lua's `for`.

    Raises:
        BoxError: it is not a number, or so large that it has another type in Lua.
    """
    given = value
    if isinstance(value, (str, bytes)):
        try:
            given = text_number(value, "count", "")
        except BoxError:
            given = None
    if not is_lua_number(given):
        raise BoxError.procedure(f"count must be a number below {LUA_EXACT}, not {described(value)}")
    return given


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
