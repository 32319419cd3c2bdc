"""Arguments of the legacy queue's functions: numbers may be strings."""

from __future__ import annotations

from typing import Any, Final

from iproto_server import BoxError
from queue_lua_compat.legacy.task import DEFAULT_PRIORITY, HIGHEST_PRIORITY, MICROSECONDS
from queue_lua_compat.lua_numbers import described, number

_LONGEST: Final = 100 * 366 * 86_400
"""The maximum duration in seconds, a hundred years; longer ones, also infinity, are reduced to it."""


def microseconds(value: object, name: str, default: int = 0) -> int:
    """Convert a duration in seconds.

    Parameters:
        value: the seconds, as a number or a string.
        name: the name of the parameter, for the error.
        default: the result in seconds if the value is missing or not positive.

    Raises:
        BoxError: it is not a number.
    """
    seconds = 0.0 if value is None else number(value, name)
    if not seconds > 0:
        return default * MICROSECONDS
    return max(round(min(seconds, _LONGEST) * MICROSECONDS), 1)


def stored_priority(value: object) -> int:
    """Convert a priority of -127 to 127, highest first, to the stored form: 0 to 255, lowest first.

    Raises:
        BoxError: it is not a number.
    """
    given = 0.0 if value is None else number(value, "pri", "")
    priority = int(min(max(given + DEFAULT_PRIORITY, 0), HIGHEST_PRIORITY))
    return HIGHEST_PRIORITY - priority


def text(value: object, name: str) -> str:
    """Convert a string; bytes are accepted, as a tube's name could be any bytes in Tarantool 1.5.

    Raises:
        BoxError: it is not a string.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    raise BoxError.procedure(f"{name} must be a string, not {described(value)}")


def several(values: tuple[Any, ...]) -> list[Any]:
    """Return the last arguments of a bulk call: one list, or its elements as separate arguments."""
    if len(values) == 1 and isinstance(values[0], list):
        return values[0]
    return list(values)
