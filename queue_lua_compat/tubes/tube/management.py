"""A tube for operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from iproto_server import BoxError, TaskInfo, TaskState, Tuple
from queue_lua_compat.managed_tasks import ManagedTasks
from queue_lua_compat.tubes.driver import TASK_ID
from queue_lua_compat.tubes.rows import TubeRows
from queue_lua_compat.tubes.statistics import Statistics
from queue_lua_compat.tubes.tube.tube import Tube


class ManagedTube(TubeRows, ManagedTasks):
    """A tube of any type.

    Parameters:
        tube: the tube.
        statistics: the counters of all tubes.
    """

    repairs: ClassVar[frozenset[str]] = frozenset({"put", "release", "kick", "bury", "delete", "move"})

    def __init__(self, tube: Tube, statistics: Statistics) -> None:
        super().__init__(tube.box, tube.name, tube.kind, tube.times, tube.policy)
        self._tube, self.space, self.raw = tube, tube.space, tube.raw
        self._statistics = statistics

    @property
    def options(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return (self._tube.raw.put_options or frozenset()) | self.policy.task_option_names

    # -- figures --

    def calls(self) -> dict[str, int]:
        """See `ManagedQueue`."""
        return self._statistics.of(self.name)["calls"]

    def consumers_waiting(self) -> int:
        """See `ManagedQueue`."""
        return len(self._tube.waiting)

    # -- tasks --

    def taken_by(self, task_id: object) -> Tuple | None:
        """See `TubeRows`."""
        return self._tube.taken_by(task_id)

    def created(self, row: Tuple) -> int | None:
        """See `TubeRows`."""
        return self._tube.created(row)

    def policy_details(self, task_id: int) -> Mapping[str, object]:
        """See `TubeRows`."""
        return self.policy.details(task_id)

    def _creations(self, rows: Iterator[Tuple]) -> Iterator[tuple[int, int | None]]:
        """Tasks that a driver stores without a time count from the start at most."""
        since = self._tube.put_times.since
        for task_id, created in super()._creations(rows):
            yield task_id, since if created is None else created

    # -- actions --

    def put(self, data: object, options: Mapping[str, object]) -> TaskInfo:
        """See `ManagedQueue`."""
        self.check_options(options)
        task = self._tube.put(data, dict(options))
        if not isinstance(task, Tuple):
            self._check_running(self.box.is_read_only)
            raise BoxError.procedure(f'there is no room in the queue "{self.name}"')
        return self.info_of_put(task[TASK_ID], data)

    def release(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        if task.state == TaskState.READY:
            raise self.already(task)
        self._check_running(self._tube.free(row[TASK_ID]) is None)
        return self.existing(task_id)[1]

    def bury(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        if task.state == TaskState.BURIED:
            raise self.already(task)
        self._check_running(self._tube.bury(row[TASK_ID]) is None)
        return self.existing(task_id)[1]

    def delete(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        self._check_running(self._tube.delete(row[TASK_ID]) is None)
        return task

    def kick(self, count: int) -> int:
        """See `ManagedQueue`."""
        kicked = self._tube.kick(count)
        self._check_running(kicked is None)
        return kicked or 0

    def configure(self, options: Mapping[str, object]) -> None:
        """See `ManagedQueue`."""
        self._tube.policy.check(options)
        super().configure(options)

    def requeue(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        origin = self._origin()
        row = self.existing(task_id)[0]
        self._check_running(self._tube.delete(row[TASK_ID]) is None)
        with self.box.beyond_memory_limit():
            adopted = origin.raw.adopt(row)
        return ManagedTube(origin, self._statistics).info(adopted)

    def _origin(self) -> Tube:
        """Return the tube whose dead letters this one has."""
        if self.dead_letters_of is None:
            raise self.lacks("requeue")
        origin = self._tube.sibling(self.dead_letters_of)
        if origin is None:
            raise BoxError.procedure(f'there is no tube "{self.dead_letters_of}" any more')
        if origin.kind != self.kind:
            raise BoxError.procedure(f'the tube "{origin.name}" is {origin.kind} now, not {self.kind}')
        return origin

    def _check_running(self, is_not: bool) -> None:
        if is_not:
            raise BoxError.procedure("the tubes do not run while the server is read-only")
