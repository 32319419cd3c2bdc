"""The legacy queue's functions for administrators, independent of the tasks' owners."""

from __future__ import annotations

from typing import Any

from iproto_server import Box, BoxError, Steps, Waiter
from queue_lua_compat.legacy.arguments import text
from queue_lua_compat.legacy.queue_space import QueueSpace
from queue_lua_compat.legacy.state import QueueState
from queue_lua_compat.legacy.task import BURIED, CREATED, ID, STATUS, Task, meta_of, task_of
from queue_lua_compat.lua_numbers import whole


class Admin:
    """Functions for administrators.

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
    ) -> int | Waiter:
        """Make buried tasks ready, in slices (see `Box.in_slices`).

        Parameters:
            space: the space.
            tube: the tube.
            count: the maximum number; by default one.

        Returns: the number of kicked tasks.
        """
        queue_space, tube = self._queue.registry.find(space), text(tube, "tube")
        limit = 1 if count is None else whole(count, "count")
        return box.in_slices(self.kick_steps(queue_space, tube, limit))

    def kick_steps(self, queue_space: QueueSpace, tube: str, limit: int) -> Steps[int]:
        """Make up to `limit` buried tasks ready, one in each step, and return their number."""
        kicked = 0
        while kicked < limit:
            row = queue_space.in_order.first([tube, BURIED])
            if row is None:
                break
            queue_space.make_ready(row)
            self._queue.count(queue_space, row, "dig")
            kicked += 1
            yield
        return kicked

    def delete(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """Delete a task in any status, whichever session owns it.

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

    def truncate(self, box: Box, space: object = None, tube: object = None, *_: object) -> int | Waiter:
        """Delete the tasks that a tube has now, in slices (see `Box.in_slices`).

        Tasks that are put meanwhile stay. In the original, other calls run between two deletions, too.

        Parameters:
            space: the space.
            tube: the tube.

        Returns: the number of deleted tasks, when all of them are deleted.
        """
        return box.in_slices(_truncate_steps(self._queue.registry.find(space), text(tube, "tube")))

    def meta(self, box: Box, space: object = None, task_id: object = None, *_: object) -> list[Any]:
        """Return all properties of a task.

        Parameters:
            space: the space.
            task_id: the task.

        Returns: id, tube, status, event (the next due time), ipri, pri (0 to 255), cid (the owning session),
            created, ttl, ttr, cbury and ctaken (how often it was buried and taken), now. Times are
            microseconds since 1970, durations are seconds.

        Raises:
            BoxError: there is no such task.
        """
        queue_space, row = self._queue.task(space, task_id)
        self._queue.count(queue_space, row, "meta")
        return meta_of(row, queue_space.now())

    def peek(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """Return a task.

        Parameters:
            space: the space.
            task_id: the task.

        Raises:
            BoxError: there is no such task.
        """
        queue_space, row = self._queue.task(space, task_id)
        self._queue.count(queue_space, row, "peek")
        return task_of(row)

    def statistics(
        self, box: Box, space: object = None, tube: object = None, *_: object
    ) -> list[str] | Waiter:
        """Return the counters of the tubes used since the start, those of many in slices.

        Parameters:
            space: restricts the result to one space.
            tube: restricts the result to one tube.

        Returns: a list of names and values: a name, its value, a name, its value …; all are strings.
        """
        label = None if space is None else self._queue.registry.with_label(space)
        wanted = None if tube is None else text(tube, "tube")
        return box.in_slices(self._statistics_steps(label, wanted), for_answer_only=True)

    def _statistics_steps(self, label: str | None, wanted: str | None) -> Steps[list[str]]:
        answer: list[str] = []
        for of_space, of_tube in list(self._queue.statistics.counters):
            if label in (None, of_space) and wanted in (None, of_tube):
                for name, value in self._counted(of_space, of_tube).items():
                    answer += (f"space{of_space}.{of_tube}.{name}", str(value))
                yield
        return answer

    def counters(self, box: Box) -> dict[str, int]:
        """Return the same counters for Graphite."""
        return {
            f"space{space}.{tube}.{name}": value
            for space, tube in self._queue.statistics.counters
            for name, value in self._counted(space, tube).items()
        }

    def _counted(self, label: str, tube: str) -> dict[str, int]:
        counters = self._queue.statistics.counters.get((label, tube), {})
        for queue_space in self._queue.registry.spaces.values():
            if queue_space.label == label:
                return counters | queue_space.tasks(tube)
        return counters


def _truncate_steps(space: QueueSpace, tube: str) -> Steps[int]:
    """Delete the tasks that a tube has now, one in each step, and return their number.

    Tasks that change their status meanwhile may pass the place that is looked at, so it begins again until
    there are none.
    """
    newest = max(space.kept["last_created"], space.now())
    deleted, before = 0, -1
    while deleted > before:
        before = deleted
        for row in space.in_order.pairs([tube]):
            if row[CREATED] <= newest and space.space.delete(row[ID]) is not None:
                deleted += 1
            yield
    return deleted
