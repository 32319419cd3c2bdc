"""The rows of the tutorial's queue as tasks, whatever code keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from iproto_server import Box, BoxError, IteratorType, Space, TaskInfo, TaskState, Tuple
from queue_lua_compat.listed_tasks import NANOSECONDS, ListedTasks
from queue_lua_compat.task_times import EARLIEST
from queue_lua_compat.tutorial.space import READY, RUN_AT, STATUS, TAKEN, WAITING

STATES: Final = {READY: TaskState.READY, TAKEN: TaskState.TAKEN, WAITING: TaskState.DELAYED}
_STATUSES: Final = {state: status for status, state in STATES.items()}
_DATA: Final = 3


class TutorialRows(ListedTasks):
    """The tasks of the tutorial's queue. Derived classes set the space."""

    dialect: ClassVar[str] = "tutorial"
    box: Box
    space: Space

    # -- figures --

    def counts(self) -> dict[TaskState, int]:
        """See `ManagedQueue`."""
        self.space.readable()
        count = self.space.index["status"].tree.count
        return {state: count(IteratorType.EQ, [status]) for status, state in STATES.items()}

    def oldest_ready(self) -> float | None:
        """See `ManagedQueue`."""
        return self.oldest_of((row[0], _created(row)) for row in self.in_order(TaskState.READY, None))

    # -- tasks --

    def described(self, row: Tuple, **fields: Any) -> TaskInfo:
        """Describe a stored task.

        Parameters:
            row: its row.
            fields: what the row does not tell: values of `TaskInfo`.

        Raises:
            BoxError: its status is unknown.
        """
        task_id = row[0]
        state = STATES.get(row[STATUS])
        if state is None:
            raise BoxError.procedure(f"the task {task_id} has the unknown status {row[STATUS]!r}")
        created = _created(row)
        if state == TaskState.DELAYED:
            fields["due"] = float(row[RUN_AT])
        return TaskInfo(
            task_id, state, row.get(_DATA), None if created is None else created / NANOSECONDS, **fields
        )

    def row(self, task_id: int | str) -> Tuple | None:
        """See `ManagedTasks`."""
        return self.space.get(self.number_of(task_id))

    def in_order(self, state: TaskState | None, after: int | str | None) -> Iterator[Tuple]:
        """See `ManagedTasks`."""
        last = None if after is None else self.number_of(after)
        if state is None:
            every = self.space.index["primary"]
            yield from every.pairs() if last is None else every.pairs([last], iterator="GT")
            return
        status = _STATUSES.get(state)
        if status is None:
            return
        index = self.space.index["status"]
        rows = index.pairs([status]) if last is None else index.pairs([status, last], iterator="GT")
        for row in rows:
            if row[STATUS] != status:
                return
            yield row


def _created(row: Tuple) -> int | None:
    """Return when a task was put, in nanoseconds since 1970: its id, unless a client has inserted it."""
    task_id = row[0]
    return task_id if type(task_id) is int and task_id > EARLIEST else None
