"""The common part of the queues that operators see: tasks, what a dialect lacks, wrong input, moves, ages."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from iproto_server import Box, BoxError, ManagedQueue, TaskInfo, TaskState, Tuple
from queue_lua_compat.lua_numbers import shown

_LOOKED_AT_MAX: Final = 20_000
"""The maximum number of tasks that are looked at in one piece."""

_AGES_MAX: Final = 200
"""The maximum number of tasks, or of priorities, among which the oldest one is searched for."""

_TAKEN_MAX: Final = 100
"""The maximum number of taken tasks among which the one that was taken first is searched for."""

NANOSECONDS: Final = 10**9


class ListedTasks(ABC):
    """The tasks of a queue for operators; see `iproto_server.ManagedQueue`.

    Parameters:
        box: the box.
        name: the queue's name.
        kind: its type.
    """

    dialect: ClassVar[str]

    def __init__(self, box: Box, name: str, kind: str) -> None:
        self.box = box
        self.name = name
        self.kind = kind

    @property
    @abstractmethod
    def actions(self) -> frozenset[str]:
        """See `ManagedQueue`."""

    @property
    @abstractmethod
    def options(self) -> frozenset[str]:
        """See `ManagedQueue`."""

    # -- figures --

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self.box.clock.time_ns() / NANOSECONDS

    def ready_since(self, task_id: Any) -> int | None:
        """Return since when a task has been ready again that was not ready when it was put.

        Returns:
            The time in nanoseconds since 1970; None if it was ready from its put on, or if this is unknown.
        """
        return None

    def age(self, task_id: Any, created: int | None) -> float | None:
        """Return for how many seconds a ready task has been ready; None if that is unknown.

        Parameters:
            task_id: the task.
            created: when it was put, in nanoseconds since 1970; None if that is unknown.
        """
        since = self.ready_since(task_id)
        since = created if since is None else since
        return None if since is None else max(self.box.clock.time_ns() - since, 0) / NANOSECONDS

    def oldest_of(self, tasks: Iterable[tuple[Any, int | None]]) -> float | None:
        """Return the greatest age among the first tasks of one group; see `oldest_of_groups`."""
        return self.oldest_of_groups([tasks])

    def oldest_of_groups(self, groups: Iterable[Iterable[tuple[Any, int | None]]]) -> float | None:
        """Return the greatest age among the first tasks of groups, and a limited number of all.

        Parameters:
            groups: ids and times of creation of ready tasks, each group in the order of their creation. After
                a task that has been ready since then there is none older in its group.
        """
        oldest: float | None = None
        left = _AGES_MAX
        for group in groups:
            for task_id, created in group:
                left -= 1
                age = self.age(task_id, created)
                oldest = age if oldest is None or (age is not None and age > oldest) else oldest
                if not left:
                    return oldest
                if self.ready_since(task_id) is None:
                    break
        return oldest

    def oldest_taken(self) -> float | None:
        """See `WatchedQueue`. Of many taken tasks, only the first in the queue are looked at."""
        rows = itertools.islice(self.in_order(TaskState.TAKEN, None), _TAKEN_MAX)
        moments = [moment for row in rows if (moment := self.taken_at(row)) is not None]
        return max(self.now() - min(moments), 0.0) if moments else None

    # -- tasks --

    @abstractmethod
    def info(self, row: Tuple) -> TaskInfo:
        """Describe a stored task."""

    @abstractmethod
    def taken_at(self, row: Tuple) -> float | None:
        """Return when a taken task was taken, in seconds since 1970; None if that is unknown."""

    @abstractmethod
    def row(self, task_id: int | str) -> Tuple | None:
        """Return the row of a task, or None.

        Parameters:
            task_id: its id; one that is a number may be given as a text.

        Raises:
            BoxError: the id is of another type than ids of this dialect.
        """

    @abstractmethod
    def in_order(self, state: TaskState | None, after: int | str | None) -> Iterator[Tuple]:
        """Return the rows of tasks; as `ManagedQueue.tasks`."""

    def tasks(
        self,
        state: TaskState | None,
        *,
        limit: int,
        after: int | str | None = None,
        older: float | None = None,
    ) -> list[TaskInfo]:
        """See `ManagedQueue`."""
        found: list[TaskInfo] = []
        if limit < 1:
            return found
        for looked_at, info in enumerate(self.walk(state, after=after, older=older)):
            if looked_at >= _LOOKED_AT_MAX and older is not None:
                raise BoxError.procedure(
                    f"more than {_LOOKED_AT_MAX} tasks would have to be looked at in one piece: walk them"
                )
            if info is not None:
                found.append(info)
                if len(found) >= limit:
                    break
        return found

    def walk(
        self, state: TaskState | None, *, after: int | str | None = None, older: float | None = None
    ) -> Generator[TaskInfo | None, None, None]:
        """See `WalkedQueue`."""
        latest = None if older is None else self.now() - older
        for row in self.in_order(state, after):
            info = self.info(row)
            since = info.taken_at if info.state == TaskState.TAKEN else info.created
            yield info if latest is None or (since is not None and since <= latest) else None

    def task(self, task_id: int | str) -> TaskInfo | None:
        """See `ManagedQueue`."""
        row = self.row(task_id)
        return None if row is None else self.info(row)

    def existing(self, task_id: int | str) -> tuple[Tuple, TaskInfo]:
        """Return a task's row and its description. Raises BoxError if there is no such task."""
        row = self.row(task_id)
        if row is None:
            raise BoxError.procedure(f'there is no task {shown(task_id)} in the queue "{self.name}"')
        return row, self.info(row)

    def info_of_put(self, task_id: int | str, data: object) -> TaskInfo:
        """Describe the task that a put has answered; if only its key is remembered, it is done."""
        return self.task(task_id) or TaskInfo(task_id, TaskState.DONE, data)

    def after(self, task_id: int | str) -> Tuple:
        """Return the row of the task after which a page begins. Raises BoxError if it does not exist."""
        row = self.row(task_id)
        if row is None:
            raise BoxError.procedure(
                f'the task {shown(task_id)} has left the queue "{self.name}" meanwhile:'
                " begin again with the first page"
            )
        return row

    # -- actions --

    @abstractmethod
    def put(self, data: object, options: Mapping[str, object]) -> TaskInfo:
        """See `ManagedQueue`."""

    @abstractmethod
    def delete(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""

    def bury(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        raise self.lacks("bury")

    def kick(self, count: int) -> int:
        """See `ManagedQueue`."""
        raise self.lacks("kick")

    def requeue(self, task_id: int | str) -> TaskInfo:
        """See `ManagedQueue`."""
        raise self.lacks("requeue")

    def move(self, task_id: int | str, target: ManagedQueue) -> TaskInfo:
        """See `ManagedQueue`."""
        if "put" not in target.actions:
            raise BoxError.procedure(f'nothing can be put into the queue "{target.name}"')
        if target.name == self.name:
            raise BoxError.procedure(f'the queue "{self.name}" cannot be the target of its own tasks')
        # The task takes the place of itself, so this gives memory back.
        with self.box.in_transaction(), self.box.beyond_memory_limit():
            task = self.delete(task_id)
            # The same name means the same, but for priorities.
            options = {
                name: value
                for name, value in task.details.items()
                if name in target.options and (name != "pri" or target.dialect == self.dialect)
            }
            if task.state == TaskState.DELAYED and task.due is not None and "delay" in target.options:
                options["delay"] = max(task.due - self.now(), 0.001)
            return target.put(task.data, options)

    # -- errors --

    def number_of(self, task_id: object) -> int | float:
        """Convert an id that is a number. Raises BoxError if it is none."""
        if isinstance(task_id, str) and task_id.isdecimal() and task_id.isascii() and len(task_id) <= 20:
            return int(task_id)
        if isinstance(task_id, bool) or not isinstance(task_id, int | float):
            raise BoxError.procedure(f'ids of the queue "{self.name}" are numbers, not {task_id!r}')
        return task_id

    def lacks(self, action: str) -> BoxError:
        """Return the error for an action that the dialect does not have."""
        has = ", ".join(sorted(self.actions))
        return BoxError.procedure(f'the queue "{self.name}" has no {action}, only {has}')

    def already(self, task: TaskInfo) -> BoxError:
        """Return the error for an action that would change nothing, or is not possible in a task's state."""
        return BoxError.procedure(f'the task {shown(task.id)} of the queue "{self.name}" is {task.state}')

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raise BoxError if there is an option that this queue does not have."""
        for name in options:
            if name not in self.options:
                has = ", ".join(sorted(self.options)) or "none"
                raise BoxError.procedure(f'the queue "{self.name}" has no option {name!r}; it has {has}')


def first_of_groups(index: Any, prefix: Mapping[int, object], by: tuple[int, ...]) -> Iterator[Tuple]:
    """Return the first row of each group of rows, of a limited number of groups.

    Parameters:
        index: the index. Its first parts are the fields of the prefix, then those that form the groups.
        prefix: the values of the fields that all rows have in common.
        by: the fields that form the groups.
    """
    common = list(prefix.values())
    row = index.first(common)
    for _ in range(_AGES_MAX):
        if row is None or any(row[field] != value for field, value in prefix.items()):
            return
        yield row
        row = next(index.pairs([*common, *(row[field] for field in by)], iterator="GT"), None)
