"""Arguments of the tutorial's procedures: options, and lists for bulk calls."""

from __future__ import annotations

from typing import Any, Final

from iproto_server import BoxError
from queue_lua_compat.lua_numbers import number

PUT_OPTIONS: Final = ("delay",)
"""The tutorial's own options of put."""


def delay_of(options: object) -> float | None:
    """Return the delay in options, in seconds, or None. As in Lua, strings and lists have no options.

    Raises:
        BoxError: the options are not a map, or the delay is not a number.
    """
    if options is None or options is False or isinstance(options, (str, bytes, list)):
        return None
    if not isinstance(options, dict):
        raise BoxError.procedure(f"options must be a map, not {type(options).__name__}")
    delay = options.get("delay")
    if delay is None or delay is False:
        return None
    return number(delay, "delay")


def list_of(value: object, name: str) -> list[Any]:
    """Check that a value is a list.

    Raises:
        BoxError: it is not a list.
    """
    if not isinstance(value, list):
        raise BoxError.procedure(f"{name} must be a list")
    return value
