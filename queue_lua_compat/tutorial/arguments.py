"""Arguments of the tutorial's procedures: options, and lists for bulk calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from iproto_server import BoxError
from queue_lua_compat.lua_numbers import described, number
from queue_lua_compat.policies.failures import REPORT_OPTIONS

ID_AS_TEXT: Final = "id_as_text"
"""The option of calls that answer tasks, for clients whose numbers are not exact above 2^53."""

PUT_OPTIONS: Final = ("delay", ID_AS_TEXT)
"""The tutorial's own options of put."""

RELEASE_OPTIONS: Final = ("delay", *REPORT_OPTIONS)
"""The options of release."""


def delay_of(options: object) -> float | None:
    """Return the delay in options, in seconds, or None. As in Lua, strings and lists have no options.

    Raises:
        BoxError: the options are not a map, or the delay is not a number.
    """
    if options is None or options is False or isinstance(options, (str, bytes, list)):
        return None
    if not isinstance(options, dict):
        raise BoxError.procedure(f"options must be a map, not {described(options)}")
    delay = options.get("delay")
    if delay is None or delay is False:
        return None
    return number(delay, "delay")


def wants_text(options: object) -> bool:
    """Return whether ids are to be texts.

    Raises:
        BoxError: the option is neither true nor false.
    """
    wanted = options.get(ID_AS_TEXT) if isinstance(options, dict) else None
    if wanted is None or isinstance(wanted, bool):
        return bool(wanted)
    raise BoxError.procedure(f"{ID_AS_TEXT} must be true or false, not {described(wanted)}")


def with_text(task: Mapping[Any, object]) -> dict[Any, object]:
    """Return a task whose id is a text, if it is an integer."""
    task_id = task["id"]
    return {**task, "id": str(task_id) if type(task_id) is int else task_id}


def list_of(value: object, name: str) -> list[Any]:
    """Check that a value is a list.

    Raises:
        BoxError: it is not a list.
    """
    if not isinstance(value, list):
        raise BoxError.procedure(f"{name} must be a list")
    return value
