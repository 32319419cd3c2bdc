"""The tutorial's queue for operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from iproto_server import Box, Space, TaskInfo, TaskState, Tuple, WaitQueue
from queue_lua_compat.listed_tasks import NANOSECONDS
from queue_lua_compat.managed_tasks import ManagedTasks
from queue_lua_compat.policies.queue_policy import QueuePolicy
from queue_lua_compat.task_owners import TaskOwners
from queue_lua_compat.task_times import TaskTimes
from queue_lua_compat.tutorial.rows import TutorialRows
from queue_lua_compat.tutorial.space import READY, RUN_AT, STATUS, TAKEN


class ManagedTutorialQueue(TutorialRows, ManagedTasks):
    """The queue, named like its space.

    Parameters:
        box: the box.
        space: the queue's space.
        put: the procedure `queue.put`.
        owners: the owners of taken tasks.
        waiting: the waiting calls.
        times: the queue's durations.
        calls: returns the number of calls by name, without takes and acknowledgements.
        policy: the queue's policy.
        run_until: when the times to run of taken tasks are over, in seconds since 1970, by their keys.
    """

    repairs: ClassVar[frozenset[str]] = frozenset({"put", "release", "delete", "move"})

    def __init__(
        self,
        box: Box,
        space: Space,
        put: Callable[..., Mapping[str | int, object]],
        owners: TaskOwners,
        waiting: WaitQueue,
        times: TaskTimes,
        calls: Callable[[], Mapping[str, int]],
        policy: QueuePolicy,
        run_until: Mapping[object, float],
    ) -> None:
        super().__init__(box, space.name, "tutorial", times, policy)
        self.space = space
        self._put = put
        self._owners = owners
        self._waiting = waiting
        self._calls = calls
        self._run_until = run_until

    @property
    def options(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return self.policy.task_option_names | {"delay"}

    # -- figures --

    def calls(self) -> dict[str, int]:
        """See `ManagedQueue`. Calls that are undone later are counted as well."""
        return {**self._calls(), **self.times.numbers}

    def consumers_waiting(self) -> int:
        """See `ManagedQueue`."""
        return len(self._waiting)

    # -- tasks --

    def info(self, row: Tuple) -> TaskInfo:
        """See `ListedTasks`."""
        task_id = row[0]
        session = self._owners.sessions.get(task_id) if row[STATUS] == TAKEN else None
        return self.described(
            row,
            due=self._run_until.get(task_id),
            session=session,
            taken_at=None if session is None else self.taken_at(row),
            touched_at=self._owners.touched_at(task_id),
            details=self.policy.details(task_id),
        )

    def taken_at(self, row: Tuple) -> float | None:
        """See `ManagedTasks`."""
        moment = self._owners.moment(row[0])
        return None if moment is None else moment / NANOSECONDS

    # -- actions --

    def put(self, data: object, options: Mapping[str, object]) -> TaskInfo:
        """See `ManagedQueue`."""
        self.check_options(options)
        task = self._put(self.box, data, dict(options) or None)
        return self.info_of_put(task["id"], data)  # type: ignore[arg-type]

    def release(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        if task.state == TaskState.READY:
            raise self.already(task)
        released = self.space.update(row[0], (("=", STATUS, READY), ("=", RUN_AT, 0)))
        assert released is not None
        return self.info(released)

    def delete(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        self.space.delete(row[0])
        return task
