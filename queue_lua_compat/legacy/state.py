"""State that all functions of the legacy queue share: its spaces and its counters."""

from __future__ import annotations

from iproto_server import Box, BoxError, Tuple
from queue_lua_compat.legacy.arguments import text
from queue_lua_compat.legacy.queue_space import QueueSpace
from queue_lua_compat.legacy.registry import Registry
from queue_lua_compat.legacy.statistics import Statistics
from queue_lua_compat.legacy.task import TUBE, Row


class QueueState:
    """The spaces and counters of the queue. The queue sets the attributes when the server starts.

    Attributes:
        box: the box.
        statistics: the counters.
        registry: the spaces.
    """

    box: Box
    statistics: Statistics
    registry: Registry

    def task(self, space: object, task_id: object) -> tuple[QueueSpace, Tuple]:
        """Find a task and its space.

        Raises:
            BoxError: there is no such task.
        """
        queue_space = self.registry.find(space)
        row = queue_space.space.get(text(task_id, "task id"))
        if row is None:
            raise BoxError.procedure("Task not found")
        return queue_space, row

    def count(self, queue_space: QueueSpace, row: Row, counter: str) -> None:
        """Add one to a counter of a task's tube."""
        self.statistics.count(queue_space.label, row[TUBE], counter)
