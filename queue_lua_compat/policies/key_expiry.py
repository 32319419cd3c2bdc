"""Removes the unique keys of all queues whose time is over, with one timer."""

from __future__ import annotations

import math
from typing import Any, Final

from iproto_server import Box, DueTimer
from queue_lua_compat.policies.spaces import UNIQUE_KEYS, PolicySpace

EXPIRES: Final = 4
MICROSECONDS: Final = 1_000_000

_KEPT: Final = "queue_lua_compat.policies.key_expiry"
_SLICE: Final = 500
"""Keys that are removed before the event loop goes on."""
_READ_ONLY_PAUSE: Final = 60.0
"""Seconds until the next attempt on a read-only instance."""


class KeyExpiry:
    """The timer for the key that expires next.

    Parameters:
        box: the box.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        self._space = PolicySpace(box, UNIQUE_KEYS)
        self.timer = DueTimer(box, self._remove_expired, "unique keys that have expired")

    def _remove_expired(self) -> float:
        """Remove expired keys, a limited number at a time, and return when the next one expires."""
        space = self._space.find()
        if space is None:
            return math.inf
        now = self.timer.now()
        if self._box.is_read_only:
            return now + _READ_ONLY_PAUSE
        rows = space.index["expires"].select([1], iterator="GE", limit=_SLICE + 1)
        for row in rows[:_SLICE]:
            moment: float = row[EXPIRES] / MICROSECONDS
            if moment > now:
                return moment
            space.delete([row[0], row[1]])
        return now if len(rows) > _SLICE else math.inf


def key_expiry(box: Box) -> DueTimer:
    """Return the timer of a box, which code that a reload has loaded replaces by one of its own."""
    kept: dict[str, Any] = box.keep(_KEPT, dict)
    if kept.get("generation") != box.generation:
        before, timer = kept.get("timer"), KeyExpiry(box).timer
        if before is not None:
            box.on_commit(before.stop)
        kept.update(generation=box.generation, timer=timer)
        box.on_rollback(kept.clear)  # which stops the timer
        timer.begin()
    return kept["timer"]  # type: ignore[no-any-return]
