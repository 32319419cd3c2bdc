"""What is given beside a task to the tutorial's queue: options, and lists for many."""

from __future__ import annotations

from typing import Any

from iproto_server import BoxError
from queue_lua_compat.lua_numbers import number


def delay_of(options: object) -> float | None:
    """The delay among a call's options, in seconds, or None. As in Lua, a text or list has no options in it.

    Raises:
        BoxError: the options are no map, or the delay is no number of seconds.
    """
    if options is None or options is False or isinstance(options, str | bytes | list):
        return None
    if not isinstance(options, dict):
        raise BoxError.procedure(f"options must be a map, not {type(options).__name__}")
    delay = options.get("delay")
    if delay is None or delay is False:
        return None
    return number(delay, "delay")


def list_of(value: object, name: str) -> list[Any]:
    """A list.

    Raises:
        BoxError: it is none.
    """
    if not isinstance(value, list):
        raise BoxError.procedure(f"{name} must be a list")
    return value
