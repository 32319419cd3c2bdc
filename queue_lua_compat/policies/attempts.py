"""Counts the failed attempts of tasks, and keeps the options of single tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from iproto_server import Box, Tuple
from queue_lua_compat.policies.spaces import ATTEMPTS, PolicySpace, move_rows, remove_first

_TASK_ID: Final = 1
_OPTIONS: Final = 5


class Cause(StrEnum):
    """Why an attempt has failed, by the names of the counters."""

    RELEASE = "releases"
    TIMEOUT = "timeouts"
    DISCONNECT = "disconnects"


_COUNTERS: Final = {cause: number for number, cause in enumerate(Cause, 2)}


class Attempts:
    """The rows of one queue in `_queue_attempts`. All calls need the rights of admin.

    Parameters:
        box: the box.
        queue: the queue's name.

    Attributes:
        queue: the same.
    """

    def __init__(self, box: Box, queue: str) -> None:
        self.queue = queue
        self._space = PolicySpace(box, ATTEMPTS)

    def open(self) -> None:
        """Create the space unless it exists."""
        self._space.open()

    def any(self) -> bool:
        """Whether there is a row."""
        space = self._space.find()
        return space is not None and space.index[0].first([self.queue]) is not None

    def any_with(self, option: str) -> bool:
        """Whether there is a task with an option of its own."""
        space = self._space.find()
        return space is not None and any(
            option in row[_OPTIONS] for row in space.index[0].pairs([self.queue])
        )

    def count(self, task_id: Any, cause: Cause) -> Tuple:
        """Count a failed attempt, and return the task's row."""
        space = self._space.open()
        key = [self.queue, task_id]
        row = space.update(key, (("+", _COUNTERS[cause], 1),))
        if row is None:
            row = space.insert([*key, *(int(other is cause) for other in Cause), {}])
        return row

    def set_options(self, task_id: Any, options: Mapping[str, Any]) -> None:
        """Store the options of a new task."""
        self._space.open().replace([self.queue, task_id, 0, 0, 0, dict(options)])

    def options(self, task_id: Any) -> Mapping[str, Any]:
        """Return the options of a task."""
        row = self._get(task_id)
        return {} if row is None else row[_OPTIONS]

    def counts(self, task_id: Any) -> dict[str, int] | None:
        """Return the counters of a task by the names of the causes; None if nothing is stored."""
        row = self._get(task_id)
        return None if row is None else {cause.value: row[number] for cause, number in _COUNTERS.items()}

    def move(self, task_id: Any, other: Attempts, new_id: Any) -> None:
        """Hand the counters of a task over to another queue, without its options."""
        row = self._get(task_id)
        if row is not None:
            self.remove(task_id)
            other._space.open().replace([other.queue, new_id, *row[2:_OPTIONS], {}])

    def rename(self, queue: str) -> None:
        """Move the rows to another name of the queue; `queue` stays for the caller to change."""
        move_rows(self._space, self.queue, queue)

    def reset(self, task_id: Any) -> None:
        """Set the counters of a task to zero; its options stay."""
        space = self._space.find()
        if space is not None:
            space.update([self.queue, task_id], [("=", number, 0) for number in _COUNTERS.values()])

    def remove(self, task_id: Any) -> None:
        """Remove the row of a task, if there is one."""
        space = self._space.find()
        if space is not None:
            space.delete([self.queue, task_id])

    def remove_first(self) -> bool:
        """Remove one row. Returns: whether there was one."""
        return remove_first(self._space, self.queue)

    def remove_where(self, is_gone: Callable[[Any], bool]) -> None:
        """Remove the rows of tasks for whose ids a function returns True."""
        space = self._space.find()
        if space is not None:
            for row in list(space.index[0].pairs([self.queue])):
                if is_gone(row[_TASK_ID]):
                    self.remove(row[_TASK_ID])

    def _get(self, task_id: Any) -> Tuple | None:
        space = self._space.find()
        return None if space is None else space.get([self.queue, task_id])


def disconnects(row: Tuple) -> int:
    """Return the number of failed attempts in a row that ended with their consumer's connection."""
    count: int = row[_COUNTERS[Cause.DISCONNECT]]
    return count


def total(row: Tuple) -> int:
    """Return the number of failed attempts in a row."""
    return sum(row[number] for number in _COUNTERS.values())
