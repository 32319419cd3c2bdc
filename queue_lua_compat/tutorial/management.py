"""The tutorial's queue for operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from iproto_server import Box, BoxError, IteratorType, Space, TaskInfo, TaskState, Tuple, WaitQueue
from queue_lua_compat.managed_tasks import NANOSECONDS, ManagedTasks
from queue_lua_compat.policies.queue_policy import QueuePolicy
from queue_lua_compat.task_owners import TaskOwners
from queue_lua_compat.task_times import EARLIEST, TaskTimes
from queue_lua_compat.tutorial.space import READY, RUN_AT, STATUS, TAKEN, WAITING

STATES: Final = {READY: TaskState.READY, TAKEN: TaskState.TAKEN, WAITING: TaskState.DELAYED}
_STATUSES: Final = {state: status for status, state in STATES.items()}
_DATA: Final = 3


class ManagedTutorialQueue(ManagedTasks):
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

    dialect: ClassVar[str] = "tutorial"
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
        self._space = space
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

    def counts(self) -> dict[TaskState, int]:
        """See `ManagedQueue`."""
        self._space.readable()
        count = self._space.index["status"].tree.count
        return {state: count(IteratorType.EQ, [status]) for status, state in STATES.items()}

    def calls(self) -> dict[str, int]:
        """See `ManagedQueue`. Calls that are undone later are counted as well."""
        return {**self._calls(), **self.times.numbers}

    def oldest_ready(self) -> float | None:
        """See `ManagedQueue`."""
        return self.oldest_of((row[0], _created(row)) for row in self.in_order(TaskState.READY, None))

    def consumers_waiting(self) -> int:
        """See `ManagedQueue`."""
        return len(self._waiting)

    # -- tasks --

    def info(self, row: Tuple) -> TaskInfo:
        """See `ManagedTasks`."""
        task_id = row[0]
        state = STATES.get(row[STATUS])
        if state is None:
            raise BoxError.procedure(f"the task {task_id} has the unknown status {row[STATUS]!r}")
        created = _created(row)
        session = self._owners.sessions.get(task_id) if state == TaskState.TAKEN else None
        return TaskInfo(
            task_id,
            state,
            row.get(_DATA),
            None if created is None else created / NANOSECONDS,
            due=float(row[RUN_AT]) if state == TaskState.DELAYED else self._run_until.get(task_id),
            session=session,
            taken_at=None if session is None else self.taken_at(row),
            touched_at=self._owners.touched_at(task_id),
            details=self.policy.details(task_id),
        )

    def taken_at(self, row: Tuple) -> float | None:
        """See `ManagedTasks`."""
        moment = self._owners.moment(row[0])
        return None if moment is None else moment / NANOSECONDS

    def row(self, task_id: int | str) -> Tuple | None:
        """See `ManagedTasks`."""
        return self._space.get(self.number_of(task_id))

    def in_order(self, state: TaskState | None, after: int | str | None) -> Iterator[Tuple]:
        """See `ManagedTasks`."""
        last = None if after is None else self.number_of(after)
        if state is None:
            every = self._space.index["primary"]
            yield from every.pairs() if last is None else every.pairs([last], iterator="GT")
            return
        status = _STATUSES.get(state)
        if status is None:
            return
        index = self._space.index["status"]
        rows = index.pairs([status]) if last is None else index.pairs([status, last], iterator="GT")
        for row in rows:
            if row[STATUS] != status:
                return
            yield row

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
        released = self._space.update(row[0], (("=", STATUS, READY), ("=", RUN_AT, 0)))
        assert released is not None
        return self.info(released)

    def delete(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        self._space.delete(row[0])
        return task


def _created(row: Tuple) -> int | None:
    """Return when a task was put, in nanoseconds since 1970: its id, unless a client has inserted it."""
    task_id = row[0]
    return task_id if type(task_id) is int and task_id > EARLIEST else None
