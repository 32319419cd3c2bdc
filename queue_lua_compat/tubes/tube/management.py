"""A tube for operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from iproto_server import BoxError, TaskInfo, TaskState, Tuple
from queue_lua_compat.managed_tasks import NANOSECONDS, ManagedTasks, first_of_groups
from queue_lua_compat.tubes.driver import READY, STATES, STATUS, TASK_ID
from queue_lua_compat.tubes.statistics import Statistics
from queue_lua_compat.tubes.timestamps import MICROSECONDS, in_seconds
from queue_lua_compat.tubes.tube.tube import Tube
from queue_lua_compat.tubes.tube.tube_state import first_taken, last_touched

_STATES: Final = {stored: TaskState(name) for name, stored in STATES.items()}
_STATUSES: Final = {state: stored for stored, state in _STATES.items()}
_CONNECTION: Final = 2
_DATA: Final = 2
_LARGEST: Final = 2**64 - 1


class ManagedTube(ManagedTasks):
    """A tube of any type.

    Parameters:
        tube: the tube.
        statistics: the counters of all tubes.
    """

    dialect: ClassVar[str] = "tube"
    repairs: ClassVar[frozenset[str]] = frozenset({"put", "release", "kick", "bury", "delete", "move"})

    def __init__(self, tube: Tube, statistics: Statistics) -> None:
        super().__init__(tube.box, tube.name, tube.kind, tube.times, tube.policy)
        self._tube = tube
        self._statistics = statistics

    @property
    def options(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return (self._tube.raw.put_options or frozenset()) | self.policy.task_option_names

    # -- figures --

    def counts(self) -> dict[TaskState, int]:
        """See `ManagedQueue`. Removed tasks are not stored."""
        counted = self._statistics.tasks(self.name)
        states = [TaskState.READY, TaskState.TAKEN, TaskState.BURIED]
        if "delay" in self.options or counted[TaskState.DELAYED]:
            states.insert(2, TaskState.DELAYED)
        return {state: counted[state] for state in states}

    def calls(self) -> dict[str, int]:
        """See `ManagedQueue`."""
        return self._statistics.of(self.name)["calls"]

    def oldest_ready(self) -> float | None:
        """See `ManagedQueue`. Tasks that a driver stores without a time count from the start at most."""
        index = self._tube.space.index["status"]
        order = self._tube.raw.status_order[:-1]
        if not order:
            return self.oldest_of(self._creations(index.pairs([READY])))
        return self.oldest_of_groups(
            self._creations(index.pairs([READY, *(row[field] for field in order)]))
            for row in first_of_groups(index, {STATUS: READY}, order)
        )

    def _creations(self, rows: Iterator[Tuple]) -> Iterator[tuple[int, int]]:
        since = self._tube.put_times.since
        for row in rows:
            if row[STATUS] != READY:
                return
            created = self._tube.created(row)
            yield row[TASK_ID], since if created is None else created

    def consumers_waiting(self) -> int:
        """See `ManagedQueue`."""
        return len(self._tube.waiting)

    # -- tasks --

    def info(self, row: Tuple) -> TaskInfo:
        """See `ManagedTasks`."""
        tube, task_id = self._tube, row[TASK_ID]
        state = _STATES.get(row[STATUS])
        if state is None:
            raise BoxError.procedure(f"the task {task_id} has the unknown state {row[STATUS]!r}")
        created, due = tube.created(row), tube.raw.due_at(row)
        taken = tube.taken_by(task_id) if state == TaskState.TAKEN else None
        touched = None if taken is None else last_touched(taken)
        return TaskInfo(
            task_id,
            state,
            tube.raw.normalize_task(row).get(_DATA),
            None if created is None else created / NANOSECONDS,
            due=None if due is None else in_seconds(due),
            session=None if taken is None else taken[_CONNECTION],
            taken_at=None if taken is None else first_taken(taken) / MICROSECONDS,
            touched_at=None if touched is None else touched / MICROSECONDS,
            details=tube.raw.details(row) | self.policy.details(task_id),
        )

    def taken_at(self, row: Tuple) -> float | None:
        """See `ManagedTasks`."""
        taken = self._tube.taken_by(row[TASK_ID])
        return None if taken is None else first_taken(taken) / MICROSECONDS

    def row(self, task_id: int | str) -> Tuple | None:
        """See `ManagedTasks`."""
        return self._tube.raw.peek(self._checked(task_id))

    def _checked(self, task_id: object) -> int:
        number = self.number_of(task_id)
        if not 0 <= number <= _LARGEST or number % 1:
            raise BoxError.procedure(f'ids of the queue "{self.name}" are whole numbers, not {task_id!r}')
        return int(number)

    def in_order(self, state: TaskState | None, after: int | str | None) -> Iterator[Tuple]:
        """See `ManagedTasks`."""
        space = self._tube.space
        if state is None:
            every = space.index[0]
            yield from every.pairs() if after is None else every.pairs([self._checked(after)], iterator="GT")
            return
        status, index, order = _STATUSES[state], space.index["status"], self._tube.raw.status_order
        if after is None:
            rows = index.pairs([status])
        elif order == (TASK_ID,):
            rows = index.pairs([status, self._checked(after)], iterator="GT")
        else:
            place = self.after(after)
            rows = index.pairs([status, *(place[field] for field in order)], iterator="GT")
        for row in rows:
            if row[STATUS] != status:
                return
            yield row

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
