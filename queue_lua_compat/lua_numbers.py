"""Numbers in the forms that clients of Lua queues use: also as strings, and with Lua's suffixes."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from iproto_server import BoxError, ErrorCode

_DECIMAL = re.compile(r"\s*[-+]?[0-9]+(?:U?LL)?\s*", re.ASCII | re.IGNORECASE)
_HEXADECIMAL = re.compile(r"\s*[-+]?0x[0-9a-f]+(?:U?LL)?\s*", re.ASCII | re.IGNORECASE)
_SHOWN_MAX: Final = 40
LUA_EXACT: Final = 10**14
"""From here on Lua holds integers as 64-bit values and prints them with the suffix LL or ULL."""


def number(value: object, name: str, unit: str = " of seconds") -> float:
    """Convert a number that may be a string.

    Parameters:
        value: the client's value.
        name: the name of the parameter, for the error.
        unit: the unit of the number, for the error.

    Raises:
        BoxError: it is not a number.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        result = float(value)
    elif isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode("ascii", "replace")
        try:
            if "_" in text:
                raise ValueError
            result = float(int(text, 16)) if _HEXADECIMAL.fullmatch(text) else float(text)
        except (ValueError, OverflowError):
            raise BoxError.procedure(f"{name} must be a number{unit}, not {described(text)}") from None
    else:
        raise BoxError.procedure(f"{name} must be a number{unit}, not {described(value)}")
    if math.isnan(result):
        raise BoxError.procedure(f"{name} must be a number{unit}, not NaN")
    return result


def whole(value: object, name: str) -> int:
    """Convert an integer that may be a string.

    Raises:
        BoxError: it is not an integer.
    """
    given = number(value, name, "")
    if not given.is_integer():
        raise BoxError.procedure(f"{name} must be a whole number, not {given:.14g}")
    return int(given)


def at_least_one(value: object, name: str) -> int:
    """Convert a positive integer that may be a string.

    Raises:
        BoxError: it is not an integer of at least 1.
    """
    given = whole(value, name)
    if given < 1:
        raise BoxError.procedure(f"{name} must be at least 1, not {given}")
    return given


def key_of(task_id: object) -> Any:
    """Convert an id to a key; it may be an integer, a float, or either as a string.

    Raises:
        BoxError: EXACT_MATCH, the number of the error in Tarantool if Lua's `tonumber64` finds no number.
    """
    if isinstance(task_id, (int, float)) and not isinstance(task_id, bool):
        return task_id
    if isinstance(task_id, bytes):
        task_id = task_id.decode("latin-1")
    if isinstance(task_id, str):
        digits = task_id.strip().rstrip("ULul")
        if _DECIMAL.fullmatch(task_id):
            return int(digits)
        if _HEXADECIMAL.fullmatch(task_id):
            return int(digits, 16)
    raise BoxError.with_message(
        ErrorCode.EXACT_MATCH,
        f"the id must be a number, or a whole one as a text, not {described(task_id)}",
        type="ClientError",
    )


def described(value: object) -> str:
    """Describe an argument in an error: texts in quotes and not too long, lists and maps by their type."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= _SHOWN_MAX else f'"{value[:_SHOWN_MAX]}…"'
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, (list, tuple)):
        return "a list"
    return str(value) if isinstance(value, (int, float)) else f"the {type(value).__name__} {value}"


def shown(key: object) -> str:
    """Format an id like Lua's `%s`."""
    if isinstance(key, float):
        return f"{key:.14g}"
    if isinstance(key, int) and abs(key) >= LUA_EXACT:
        return f"{key}ULL" if key > 0 else f"{key}LL"
    return str(key)
