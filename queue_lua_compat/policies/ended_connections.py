"""Counts the connections that tasks have ended: the signs of a task that kills its consumers.

The counts are in memory alone, and only of tasks whose consumer has gone without an answer.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from iproto_server import Box

logger = logging.getLogger("queue_lua_compat.policies")

SUSPICIOUS: Final = 5
"""The number of ended connections from which a task is shown."""

_KNOWN_MAX: Final = 1000
"""The maximum number of tasks of a queue that are known with one ended connection, and with more."""

_KEPT: Final = "queue_lua_compat.ended_connections"


class EndedConnections:
    """The connections that the tasks of a queue have ended.

    Parameters:
        box: the box.
        queue: the queue's name.
    """

    def __init__(self, box: Box, queue: str) -> None:
        self._queue = queue
        self._kept: dict[str, tuple[dict[Any, int], dict[Any, int]]] = box.keep(_KEPT, dict)
        # A consumer ends with all tasks that it has taken: those with one end must not replace others.
        self._once, self._often = self._kept.get(queue) or ({}, {})

    def __bool__(self) -> bool:
        return bool(self._once or self._often)

    def __contains__(self, task_id: Any) -> bool:
        return task_id in self._once or task_id in self._often

    def __getitem__(self, task_id: Any) -> int:
        return self._often.get(task_id) or self._once.get(task_id, 0)

    def set(self, task_id: Any, count: int) -> None:
        """Store the number of connections that a task has ended; 0 forgets it."""
        self._once.pop(task_id, None)
        self._often.pop(task_id, None)
        if count:
            counts = self._once if count == 1 else self._often
            counts[task_id] = count
            if len(counts) > _KNOWN_MAX:
                del counts[next(iter(counts))]  # the one that ended a connection longest ago
            self._kept[self._queue] = self._once, self._often
        elif not self:
            self._kept.pop(self._queue, None)

    def warn(self, task_id: Any) -> None:
        """Log the name of a task that has ended several connections."""
        if self[task_id] >= SUSPICIOUS:
            logger.warning(
                "the task %s of the queue %s has ended %d connections of its consumers:"
                " see release_limit and disconnect_retry",
                task_id,
                self._queue,
                self[task_id],
            )

    def rename(self, queue: str) -> None:
        """Go on under another name of the queue."""
        known = self._kept.pop(self._queue, None)
        self._queue = queue
        if known is not None:
            self._kept[queue] = known

    def clear(self) -> None:
        """Forget all tasks."""
        self._once.clear()
        self._often.clear()
        self._kept.pop(self._queue, None)

    def suspicious(self) -> dict[Any, int]:
        """Return the tasks that have ended several connections, with the number of these."""
        return {task_id: count for task_id, count in self._often.items() if count >= SUSPICIOUS}
