"""The settings of `queue.cfg`.

Source: README of github.com/tarantool/queue, "Set queue settings".
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from iproto_server import BoxError
from queue_lua_compat.tubes.arguments import lua_text, options_of

logger = logging.getLogger("queue_lua_compat.tubes")


def checked(options: object, temporary: Sequence[str]) -> dict[str, Any]:
    """Validate the settings to change.

    Parameters:
        options: the client's options.
        temporary: the names of the temporary tubes, which exclude `in_replicaset`.

    Returns: `in_replicaset`, by default off, and `ttr` if it was given.

    Raises:
        BoxError: an option is unknown or has an invalid value.
    """
    given = options_of(options, "opts")
    settings: dict[str, Any] = {"in_replicaset": False}
    for name, value in given.items():
        if name not in ("in_replicaset", "ttr"):
            raise BoxError.procedure(f"Unknown option {lua_text(name)}")
        if value is None:
            continue
        if name == "in_replicaset" and not isinstance(value, bool):
            raise BoxError.procedure(f"Invalid value of in_replicaset: {lua_text(value)}")
        if name == "ttr":
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not (is_number and value >= 0):
                raise BoxError.procedure(f"Invalid value of ttr: {lua_text(value)}")
        settings[name] = value
    if settings["in_replicaset"] and temporary:
        logger.error(
            "Queue: cannot set `in_replicaset = true`: temporary tube(s) exists: %s", ", ".join(temporary)
        )
        settings["in_replicaset"] = False
    return settings
