"""The dead letters of the tutorial's queue: tasks that have failed too often, in a space of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from iproto_server import Box, BoxError, IteratorType, Space, TaskInfo, TaskState, Tuple
from queue_lua_compat.listed_tasks import NANOSECONDS
from queue_lua_compat.managed_tasks import ManagedTasks
from queue_lua_compat.policies.queue_policy import DEAD_LETTERS, QueuePolicy
from queue_lua_compat.task_times import EARLIEST, TaskTimes
from queue_lua_compat.tutorial.space import READY, SPACE, create_space

NAME: Final = f"{SPACE}{DEAD_LETTERS}"
_DATA: Final = 3


class DeadLetters:
    """The dead letters of a box.

    Parameters:
        box: the box.
        times: the durations of the queue.
    """

    def __init__(self, box: Box, times: TaskTimes) -> None:
        self._box = box
        self._times = times
        self.policy = QueuePolicy(box, NAME, (), {}, _nothing, _nothing)

    def start(self) -> None:
        """Load the policy, and follow changes of the space."""
        self.policy.start(lambda key: self._exists(key))
        if self.policy.dead_letters_of is not None:
            self._follow(self._box.space[NAME])

    def open(self) -> None:
        """Create the space unless it exists.

        Raises:
            BoxError: there is a space of that name for something else.
        """
        if self.policy.dead_letters_of is not None and NAME in self._box.space:
            return
        if NAME in self._box.space:
            raise BoxError.procedure(f'the space "{NAME}" exists, and has no dead letters of "{SPACE}"')
        self._follow(create_space(self._box, NAME))
        self.policy.forget()
        self.policy.mark_dead_letters_of(SPACE)

    def add(self, task: Tuple, policy: QueuePolicy) -> None:
        """Store a dead letter.

        Parameters:
            task: the task's row.
            policy: that of the queue, which has counted its attempts.
        """
        with self._box.beyond_memory_limit():
            self._box.session.su("admin", self._add, task, policy)

    def _add(self, task: Tuple, policy: QueuePolicy) -> None:
        self.open()
        policy.hand_over(task[0], self.policy, task[0])
        self._box.space[NAME].replace([task[0], READY, 0, *task[_DATA:]])

    def managed(self, requeue: Callable[[Tuple], Tuple]) -> list[ManagedDeadLetters]:
        """Return the dead letters for operators, if there is a space of them.

        Parameters:
            requeue: stores a task in the queue, and returns its row.
        """
        if self.policy.dead_letters_of is None or NAME not in self._box.space:
            return []
        return [ManagedDeadLetters(self._box, self._box.space[NAME], self._times, self.policy, requeue)]

    def _exists(self, key: object) -> bool:
        return NAME in self._box.space and self._box.space[NAME].get(key) is not None

    def _follow(self, space: Space) -> None:
        space.on_replace(self._changed)

    def _changed(self, old: Tuple | None, new: Tuple | None) -> None:
        if old is not None and new is None and self.policy.has_rows:
            self.policy.task_removed(old[0])


class ManagedDeadLetters(ManagedTasks):
    """The dead letters for operators. Nothing takes them.

    Parameters:
        box: the box.
        space: their space.
        times: the durations of the queue.
        policy: their policy.
        requeue: stores a task in the queue, and returns its row.
    """

    dialect: ClassVar[str] = "tutorial"
    repairs: ClassVar[frozenset[str]] = frozenset({"delete"})

    def __init__(
        self,
        box: Box,
        space: Space,
        times: TaskTimes,
        policy: QueuePolicy,
        requeue: Callable[[Tuple], Tuple],
    ) -> None:
        super().__init__(box, NAME, "tutorial", times, policy)
        self._space = space
        self._requeue = requeue

    @property
    def actions(self) -> frozenset[str]:
        """See `ManagedQueue`. There are no takes or puts to pause."""
        return frozenset({"delete", "requeue"})

    @property
    def options(self) -> frozenset[str]:
        """See `ManagedQueue`."""
        return frozenset()

    def waits(self) -> None:
        """See `ManagedQueue`."""

    def services(self) -> None:
        """See `ManagedQueue`."""

    def counts(self) -> dict[TaskState, int]:
        """See `ManagedQueue`."""
        self._space.readable()
        return {TaskState.READY: self._space.index["status"].tree.count(IteratorType.ALL, [])}

    def calls(self) -> dict[str, int]:
        """See `ManagedQueue`."""
        return {}

    def oldest_ready(self) -> float | None:
        """See `ManagedQueue`. The age is that of the task."""
        return self.oldest_of((row[0], _created(row)) for row in self.in_order(TaskState.READY, None))

    def consumers_waiting(self) -> int:
        """See `ManagedQueue`."""
        return 0

    def info(self, row: Tuple) -> TaskInfo:
        """See `ManagedTasks`."""
        created = _created(row)
        return TaskInfo(
            row[0],
            TaskState.READY,
            row.get(_DATA),
            None if created is None else created / NANOSECONDS,
            details=self.policy.details(row[0]),
        )

    def taken_at(self, row: Tuple) -> float | None:
        """See `ManagedTasks`."""
        return None

    def row(self, task_id: int | str) -> Tuple | None:
        """See `ManagedTasks`."""
        return self._space.get(self.number_of(task_id))

    def in_order(self, state: TaskState | None, after: int | str | None) -> Iterator[Tuple]:
        """See `ManagedTasks`."""
        if state not in (None, TaskState.READY):
            return
        index = self._space.index["primary"]
        yield from (index.pairs() if after is None else index.pairs([self.number_of(after)], iterator="GT"))

    def put(self, data: object, options: Mapping[str, object]) -> TaskInfo:
        """See `ManagedQueue`."""
        raise self.lacks("put")

    def release(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        raise self.lacks("release")

    def delete(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        self._space.delete(row[0])
        return task

    def requeue(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        row, task = self.existing(task_id)
        self._space.delete(row[0])
        with self.box.beyond_memory_limit():
            requeued = self._requeue(row)
        return TaskInfo(requeued[0], TaskState.READY, task.data, task.created)


def _created(row: Tuple) -> int | None:
    task_id = row[0]
    return task_id if type(task_id) is int and task_id > EARLIEST else None


def _nothing() -> None:
    """Dead letters have neither waiting calls nor dead letters of their own."""
