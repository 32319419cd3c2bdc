"""What clients give to the older queue's functions: every number may come as text."""

from __future__ import annotations

from typing import Any, Final

from iproto_server import BoxError
from queue_lua_compat.legacy.task import DEFAULT_PRIORITY, HIGHEST_PRIORITY, MICROSECONDS
from queue_lua_compat.lua_numbers import number

_LONGEST: Final = 100 * 366 * 86_400
"""Seconds. What is to take longer, infinity among it, is to take a hundred years."""


def microseconds(value: object, name: str, default: int = 0) -> int:
    """A time that is given in seconds.

    Parameters:
        value: the seconds, as a number or as text.
        name: what it is, for the error.
        default: what it is when nothing is given, or nothing above zero, in seconds.

    Raises:
        BoxError: it is no number.
    """
    seconds = 0.0 if value is None else number(value, name)
    if not seconds > 0:
        return default * MICROSECONDS
    return max(round(min(seconds, _LONGEST) * MICROSECONDS), 1)


def stored_priority(value: object) -> int:
    """What is stored for a priority of -127 to 127, higher first: 0 to 255, lower first.

    Raises:
        BoxError: it is no number.
    """
    given = 0.0 if value is None else number(value, "pri", "")
    priority = int(min(max(given + DEFAULT_PRIORITY, 0), HIGHEST_PRIORITY))
    return HIGHEST_PRIORITY - priority


def text(value: object, name: str) -> str:
    """A text; bytes are taken for one, too, as a client of Tarantool 1.5 could give any as a tube's name.

    Raises:
        BoxError: it is none.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    raise BoxError.procedure(f"{name} must be a string, not {type(value).__name__}")


def several(values: tuple[Any, ...]) -> list[Any]:
    """The last arguments of a function for many: one list, or its elements one after the other."""
    if len(values) == 1 and isinstance(values[0], list):
        return values[0]
    return list(values)
