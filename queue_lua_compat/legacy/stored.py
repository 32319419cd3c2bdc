"""Spaces of the legacy queue in files, by the names of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iproto_server import StoredQueue, TaskState
from queue_lua_compat.legacy.task import CREATED, FORMAT, NEXT_EVENT, STATUS, STATUSES, TUBE

_FIELDS: Final = [field["name"] for field in FORMAT][:-1]
_STATES: Final = {stored: TaskState(name) for stored, name in STATUSES.items()}


def stored_queues(spaces: Mapping[str, Sequence[str]]) -> list[StoredQueue]:
    """Find the spaces.

    Parameters:
        spaces: the names of fields, by the name of the space.
    """
    return [
        StoredQueue(name, "legacy", _STATES, state=STATUS, created=CREATED, due=NEXT_EVENT, tube=TUBE)
        for name, fields in spaces.items()
        if list(fields[: len(_FIELDS)]) == _FIELDS
    ]
