"""Remembers the unique keys of tasks, so that a task is not put twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from iproto_server import Box, IteratorType
from queue_lua_compat.policies.key_expiry import EXPIRES, MICROSECONDS, key_expiry
from queue_lua_compat.policies.spaces import UNIQUE_KEYS, PolicySpace, move_rows, remove_first

_KEY: Final = 1
_TASK_ID: Final = 2
_UNIQUE_FOR: Final = 3


class UniqueKeys:
    """The rows of one queue in `_queue_unique_keys`. All calls need the rights of admin.

    Parameters:
        box: the box.
        queue: the queue's name.

    Attributes:
        queue: the same.
    """

    def __init__(self, box: Box, queue: str) -> None:
        self._box = box
        self._time_ns = box.clock.time_ns
        self.queue = queue
        self._space = PolicySpace(box, UNIQUE_KEYS)

    def open(self) -> None:
        """Remove expired keys, and each one that expires from now on."""
        key_expiry(self._box)

    def any(self) -> bool:
        """Whether there is a row."""
        space = self._space.find()
        return space is not None and space.index[0].first([self.queue]) is not None

    def find(self, key: str) -> tuple[Any, bool] | None:
        """Find the task that was put with a key.

        Returns: its id, and whether it still exists; None if there was none, or its key is forgotten.
        """
        space = self._space.find()
        row = None if space is None else space.get([self.queue, key])
        if row is None or 0 < row[EXPIRES] <= self._now():
            return None
        return row[_TASK_ID], not row[EXPIRES]

    def add(self, key: str, task_id: Any, unique_for: float) -> None:
        """Remember the key of a new task.

        Parameters:
            key: the key.
            task_id: the task's id.
            unique_for: the seconds that the key is remembered after the task is gone.
        """
        space = self._space.open()
        space.replace([self.queue, key, task_id, round(unique_for * MICROSECONDS), 0])

    def task_removed(self, task_id: Any) -> None:
        """Forget the key of a task that is gone, or let it expire."""
        space = self._space.find()
        if space is None:
            return
        for row in list(space.index["task"].select([self.queue, task_id])):
            if row[EXPIRES]:
                continue  # an earlier task with that id
            if row[_UNIQUE_FOR]:
                expires = self._now() + row[_UNIQUE_FOR]
                space.update([self.queue, row[_KEY]], (("=", EXPIRES, expires),))
                key_expiry(self._box).schedule(expires / MICROSECONDS)
            else:
                space.delete([self.queue, row[_KEY]])

    def tasks_removed(self, is_gone: Callable[[Any], bool]) -> None:
        """Handle the removal of all tasks for whose ids a function returns True."""
        space = self._space.find()
        if space is None:
            return
        index = space.index[0]
        key: list[Any] = [self.queue]
        # Keys that are only remembered are many, and those of tasks may be few.
        count = index.tree.count
        if space.index["expires"].tree.count(IteratorType.EQ, [0]) < count(IteratorType.EQ, key):
            index, key = space.index["expires"], [0]
        for row in list(index.pairs(key)):
            if row[0] == self.queue and not row[EXPIRES] and is_gone(row[_TASK_ID]):
                self.task_removed(row[_TASK_ID])

    def rename(self, queue: str) -> None:
        """See `Attempts.rename`."""
        move_rows(self._space, self.queue, queue)

    def remove_first(self) -> bool:
        """Remove one row, of a task or of a key that is remembered. Returns: whether there was one."""
        return remove_first(self._space, self.queue)

    def _now(self) -> int:
        return self._time_ns() // 1000
