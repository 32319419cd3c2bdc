"""The tutorial's queue in files: its space by its name and fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iproto_server import StoredQueue
from queue_lua_compat.tutorial.rows import STATES
from queue_lua_compat.tutorial.space import RUN_AT, SPACE, STATUS

_FIELDS: Final = ["id", "status", "runat"]
_NANOSECONDS: Final = 10**9


def stored_queues(spaces: Mapping[str, Sequence[str]]) -> list[StoredQueue]:
    """Find the queue.

    Parameters:
        spaces: the names of fields, by the name of the space.
    """
    if list(spaces.get(SPACE, ())[: len(_FIELDS)]) != _FIELDS:
        return []
    return [
        StoredQueue(
            SPACE,
            "tutorial",
            STATES,
            state=STATUS,
            created=0,
            due=RUN_AT,
            created_unit=_NANOSECONDS,
            due_unit=1,
        )
    ]
