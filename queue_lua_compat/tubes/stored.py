"""Tubes in files: their spaces by the names of fields, also those of types that derive from ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iproto_server import StoredQueue, TaskState
from queue_lua_compat.tubes.driver import STATES, STATUS

_STATES: Final = {stored: TaskState(name) for name, stored in STATES.items()}
_TIMES: Final = ["task_id", "status", "next_event", "ttl", "ttr", "pri", "created"]
_NEXT_EVENT, _CREATED = 2, 6
_LAYOUTS: Final = (
    [*_TIMES, "data"],
    [*_TIMES, "utube", "data"],
    ["task_id", "status", "data"],
    ["task_id", "status", "utube", "data"],
)


def stored_queues(spaces: Mapping[str, Sequence[str]]) -> list[StoredQueue]:
    """Find the tubes.

    Parameters:
        spaces: the names of fields, by the name of the space.
    """
    found = []
    for name, fields in spaces.items():
        layout = next((each for each in _LAYOUTS if list(fields[: len(each)]) == each), None)
        if layout is not None:
            is_timed = _TIMES[-1] in layout
            found.append(
                StoredQueue(
                    name,
                    "tube",
                    _STATES,
                    state=STATUS,
                    created=_CREATED if is_timed else None,
                    due=_NEXT_EVENT if is_timed else None,
                )
            )
    return found
