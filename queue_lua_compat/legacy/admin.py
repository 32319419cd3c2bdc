"""The older queue's functions for those who look after tubes, whoever has put or taken the tasks."""

from __future__ import annotations

from typing import Any, Final

from iproto_server import Box, BoxError
from queue_lua_compat.legacy.arguments import text
from queue_lua_compat.legacy.state import QueueState
from queue_lua_compat.legacy.task import BURIED, STATUS, Task, meta_of, task_of
from queue_lua_compat.lua_numbers import whole

_ALL: Final = 2**32 - 1


class Admin:
    """Looks after tubes.

    Parameters:
        queue: the queue.
    """

    def __init__(self, queue: QueueState) -> None:
        self._queue = queue

    def dig(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """Make a task ready that was buried.

        Parameters:
            space: the space.
            task_id: the task.

        Returns: the task.

        Raises:
            BoxError: there is no such task, or it is not buried.
        """
        queue_space, row = self._queue.task(space, task_id)
        if row[STATUS] != BURIED:
            raise BoxError.procedure("Task is not buried")
        task = queue_space.make_ready(row)
        self._queue.count(queue_space, row, "dig")
        return task_of(task)

    def kick(
        self, box: Box, space: object = None, tube: object = None, count: object = None, *_: object
    ) -> int:
        """Make buried tasks ready.

        Parameters:
            space: the space.
            tube: the tube.
            count: how many at the most; one when nothing is given.

        Returns: how many.
        """
        queue_space, tube = self._queue.registry.find(space), text(tube, "tube")
        limit = 1 if count is None else whole(count, "count")
        if limit < 1:
            return 0
        rows = queue_space.in_order.select([tube, BURIED], limit=min(limit, _ALL))
        for row in rows:
            queue_space.make_ready(row)
            self._queue.count(queue_space, row, "dig")
        return len(rows)

    def delete(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """Delete a task, whatever its status, and whoever has it.

        Parameters:
            space: the space.
            task_id: the task.

        Returns: the task as it was.

        Raises:
            BoxError: there is no such task.
        """
        queue_space, row = self._queue.task(space, task_id)
        queue_space.space.delete(row[0])
        self._queue.count(queue_space, row, "delete")
        return task_of(row)

    def truncate(self, box: Box, space: object = None, tube: object = None, *_: object) -> int:
        """Delete all tasks of a tube.

        Parameters:
            space: the space.
            tube: the tube.

        Returns: how many.
        """
        queue_space = self._queue.registry.find(space)
        rows = queue_space.in_order.select([text(tube, "tube")])
        for row in rows:
            queue_space.space.delete(row[0])
        return len(rows)

    def meta(self, box: Box, space: object = None, task_id: object = None, *_: object) -> list[Any]:
        """What is known of a task.

        Parameters:
            space: the space.
            task_id: the task.

        Returns: id, tube, status, event (when something is due), ipri, pri (0 to 255), cid (the session that
            has it), created, ttl, ttr, cbury and ctaken (how often it was buried and taken), now. The moments
            are microseconds since 1970, the times are seconds.

        Raises:
            BoxError: there is no such task.
        """
        queue_space, row = self._queue.task(space, task_id)
        self._queue.count(queue_space, row, "meta")
        return meta_of(row, queue_space.now())

    def peek(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """A task.

        Parameters:
            space: the space.
            task_id: the task.

        Raises:
            BoxError: there is no such task.
        """
        queue_space, row = self._queue.task(space, task_id)
        self._queue.count(queue_space, row, "peek")
        return task_of(row)

    def statistics(self, box: Box, space: object = None, tube: object = None, *_: object) -> list[str]:
        """The counters of the tubes to which something was done since the start.

        Parameters:
            space: only those of this space.
            tube: only that of this tube.

        Returns: a name, its value, a name, its value …; all of them text.
        """
        label = None if space is None else self._queue.registry.with_label(space)
        wanted = None if tube is None else text(tube, "tube")
        answer: list[str] = []
        for (of_space, of_tube), counters in self._counted().items():
            if label in (None, of_space) and wanted in (None, of_tube):
                for name, value in counters.items():
                    answer += (f"space{of_space}.{of_tube}.{name}", str(value))
        return answer

    def counters(self, box: Box) -> dict[str, int]:
        """The same for Graphite."""
        return {
            f"space{space}.{tube}.{name}": value
            for (space, tube), counters in self._counted().items()
            for name, value in counters.items()
        }

    def _counted(self) -> dict[tuple[str, str], dict[str, int]]:
        spaces = {queue_space.label: queue_space for queue_space in self._queue.registry.spaces.values()}
        counted = {}
        for (label, tube), counters in self._queue.statistics.counters.items():
            counted[label, tube] = counters | (spaces[label].tasks(tube) if label in spaces else {})
        return counted
