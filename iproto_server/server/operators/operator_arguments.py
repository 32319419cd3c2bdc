"""The arguments of the procedures `operator.…`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from iproto_server.errors import BoxError
from iproto_server.managed_queue import TaskState

PAGE_MAX: Final = 1000
"""The maximum number of tasks, or queues, in an answer, and of tasks in a repair."""


def options_of(value: object, *names: str) -> Mapping[str, Any]:
    """Return a map of options; only these names are allowed."""
    if value is None:
        return {}
    # An empty map of a Lua client is an empty list.
    if value == []:
        return {}
    if not isinstance(value, Mapping):
        raise BoxError.procedure("options must be a map")
    for name in value:
        if name not in names:
            raise BoxError.procedure(f"there is no option {name!r}; the options are {', '.join(names)}")
    return value


def limit_of(options: Mapping[str, Any], default: int) -> int:
    """Return the option `limit`: 1 to `PAGE_MAX`."""
    limit = options.get("limit")
    if limit is None:
        return default
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= PAGE_MAX:
        raise BoxError.procedure(f"limit must be 1 to {PAGE_MAX}")
    return limit


def is_duration(value: object) -> bool:
    """Return whether a value is a finite number of seconds, 0 or more."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf  # type: ignore[operator]


def state_of(value: object) -> TaskState:
    """Return the state of that name."""
    try:
        return TaskState(value)  # type: ignore[arg-type]  # a wrong one is refused
    except ValueError:
        names = ", ".join(state.value for state in TaskState)
        raise BoxError.procedure(f"state must be one of {names}, not {value!r}") from None


def id_of(value: object) -> int | str:
    """Return the id of a task: an integer or a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise BoxError.procedure(f"an id must be a number or a text, not {value!r}")
    if not isinstance(value, float):
        return value
    if not value.is_integer():
        raise BoxError.procedure(f"an id must be an integer or a text, not {value!r}")
    return int(value)
