"""Remembers the unique keys of tasks, so that a task is not put twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from iproto_server import Box, Space
from queue_lua_compat.policies.spaces import UNIQUE_KEYS, PolicySpace

_KEY: Final = 1
_TASK_ID: Final = 2
_UNIQUE_FOR: Final = 3
_EXPIRES: Final = 4
_MICROSECONDS: Final = 1_000_000

_PUTS: Final = 16
"""Expired keys are removed after so many puts with a key, as many as these and as many again."""


class UniqueKeys:
    """The rows of one queue in `_queue_unique_keys`. All calls need the rights of admin.

    Parameters:
        box: the box.
        queue: the queue's name.
    """

    def __init__(self, box: Box, queue: str) -> None:
        self._time_ns = box.clock.time_ns
        self._queue = queue
        self._space = PolicySpace(box, UNIQUE_KEYS)
        self._puts = 0

    def any(self) -> bool:
        """Whether there is a row."""
        space = self._space.find()
        return space is not None and space.index[0].first([self._queue]) is not None

    def find(self, key: str) -> tuple[Any, bool] | None:
        """Find the task that was put with a key.

        Returns: its id, and whether it still exists; None if there was none, or its key is forgotten.
        """
        space = self._space.find()
        row = None if space is None else space.get([self._queue, key])
        if row is None or 0 < row[_EXPIRES] <= self._now():
            return None
        return row[_TASK_ID], not row[_EXPIRES]

    def add(self, key: str, task_id: Any, unique_for: float) -> None:
        """Remember the key of a new task, and forget some that have expired.

        Parameters:
            key: the key.
            task_id: the task's id.
            unique_for: the seconds that the key is remembered after the task is gone.
        """
        space = self._space.open()
        space.replace([self._queue, key, task_id, round(unique_for * _MICROSECONDS), 0])
        self._puts += 1
        if self._puts % _PUTS == 0:
            self._remove_expired(space)

    def _remove_expired(self, space: Space) -> None:
        now = self._now()
        for row in space.index["expires"].select([1], iterator="GE", limit=2 * _PUTS):
            if row[_EXPIRES] > now:
                break
            space.delete([row[0], row[_KEY]])

    def task_removed(self, task_id: Any) -> None:
        """Forget the key of a task that is gone, or let it expire."""
        space = self._space.find()
        if space is None:
            return
        for row in list(space.index["task"].select([self._queue, task_id])):
            if row[_EXPIRES]:
                continue  # an earlier task with that id
            if row[_UNIQUE_FOR]:
                expires = self._now() + row[_UNIQUE_FOR]
                space.update([self._queue, row[_KEY]], (("=", _EXPIRES, expires),))
            else:
                space.delete([self._queue, row[_KEY]])

    def tasks_removed(self, is_gone: Callable[[Any], bool]) -> None:
        """Handle the removal of all tasks for whose ids a function returns True."""
        space = self._space.find()
        if space is not None:
            for row in list(space.index[0].pairs([self._queue])):
                if not row[_EXPIRES] and is_gone(row[_TASK_ID]):
                    self.task_removed(row[_TASK_ID])

    def _now(self) -> int:
        return self._time_ns() // 1000
