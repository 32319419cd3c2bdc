"""The rows of a tube as tasks, whatever code keeps them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from iproto_server import BoxError, Space, TaskInfo, TaskState, Tuple
from queue_lua_compat.listed_tasks import NANOSECONDS, ListedTasks, first_of_groups
from queue_lua_compat.tubes.driver import READY, STATES, STATUS, TASK_ID, TubeDriver
from queue_lua_compat.tubes.statistics import tasks_by_state
from queue_lua_compat.tubes.timestamps import MICROSECONDS, in_seconds

_STATES: Final = {stored: TaskState(name) for name, stored in STATES.items()}
_STATUSES: Final = {state: stored for stored, state in _STATES.items()}
_CONNECTION: Final = 2
_DATA: Final = 2
_TAKEN_TIME: Final = 4
_FIRST_TAKEN: Final = 5
_LARGEST: Final = 2**64 - 1


class TubeRows(ListedTasks):
    """The tasks of a tube. Derived classes set the space, and the driver, which reads its rows."""

    dialect: ClassVar[str] = "tube"
    space: Space
    raw: TubeDriver

    @abstractmethod
    def taken_by(self, task_id: object) -> Tuple | None:
        """Return the row of `_queue_taken_2` about a task, or None."""

    @abstractmethod
    def created(self, row: Tuple) -> int | None:
        """Return when a task was put, in nanoseconds since 1970; None if that is unknown."""

    def policy_details(self, task_id: int) -> Mapping[str, object]:
        """Return what a policy has stored about a task."""
        return {}

    # -- figures --

    def counts(self) -> dict[TaskState, int]:
        """See `ManagedQueue`. Removed tasks are not stored."""
        counted = tasks_by_state(self.space)
        states = [TaskState.READY, TaskState.TAKEN, TaskState.BURIED]
        if "delay" in self.options or counted[TaskState.DELAYED]:
            states.insert(2, TaskState.DELAYED)
        return {state: counted[state] for state in states}

    def oldest_ready(self) -> float | None:
        """See `ManagedQueue`."""
        index = self.space.index["status"]
        order = self.raw.status_order[:-1]
        if not order:
            return self.oldest_of(self._creations(index.pairs([READY])))
        return self.oldest_of_groups(
            self._creations(index.pairs([READY, *(row[field] for field in order)]))
            for row in first_of_groups(index, {STATUS: READY}, order)
        )

    def _creations(self, rows: Iterator[Tuple]) -> Iterator[tuple[int, int | None]]:
        for row in rows:
            if row[STATUS] != READY:
                return
            yield row[TASK_ID], self.created(row)

    # -- tasks --

    def info(self, row: Tuple) -> TaskInfo:
        """See `ListedTasks`."""
        task_id = row[TASK_ID]
        state = _STATES.get(row[STATUS])
        if state is None:
            raise BoxError.procedure(f"the task {task_id} has the unknown state {row[STATUS]!r}")
        created, due = self.created(row), self.raw.due_at(row)
        taken = self.taken_by(task_id) if state == TaskState.TAKEN else None
        touched = None if taken is None else last_touched(taken)
        return TaskInfo(
            task_id,
            state,
            self.raw.normalize_task(row).get(_DATA),
            None if created is None else created / NANOSECONDS,
            due=None if due is None else in_seconds(due),
            session=None if taken is None else taken[_CONNECTION],
            taken_at=None if taken is None else first_taken(taken) / MICROSECONDS,
            touched_at=None if touched is None else touched / MICROSECONDS,
            details={**self.raw.details(row), **self.policy_details(task_id)},
        )

    def taken_at(self, row: Tuple) -> float | None:
        """See `ListedTasks`."""
        taken = self.taken_by(row[TASK_ID])
        return None if taken is None else first_taken(taken) / MICROSECONDS

    def row(self, task_id: int | str) -> Tuple | None:
        """See `ManagedTasks`."""
        return self.raw.peek(self._checked(task_id))

    def _checked(self, task_id: object) -> int:
        number = self.number_of(task_id)
        if not 0 <= number <= _LARGEST or number % 1:
            raise BoxError.procedure(f'ids of the queue "{self.name}" are whole numbers, not {task_id!r}')
        return int(number)

    def in_order(self, state: TaskState | None, after: int | str | None) -> Iterator[Tuple]:
        """See `ManagedTasks`."""
        space = self.space
        if state is None:
            every = space.index[0]
            yield from every.pairs() if after is None else every.pairs([self._checked(after)], iterator="GT")
            return
        status, index, order = _STATUSES[state], space.index["status"], self.raw.status_order
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


def first_taken(row: Tuple) -> int:
    """Return when the task of a row of `_queue_taken_2` was taken, in microseconds since 1970."""
    taken: int = row[_FIRST_TAKEN] if len(row) > _FIRST_TAKEN else row[_TAKEN_TIME]
    return taken


def last_touched(row: Tuple) -> int | None:
    """Return when the task of such a row was touched last; None if it never was."""
    return row[_TAKEN_TIME] if len(row) > _FIRST_TAKEN else None
