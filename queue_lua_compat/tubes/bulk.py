"""Bulk calls of a tube: each takes effect completely or not at all.

The module has no such calls (they are requested in its issue 124). They use a driver's calls for single
tasks, so they work for all types of tubes, including those of applications.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from iproto_server import Box, BoxError, Tuple, Waiter, WaitQueue
from queue_lua_compat.lua_numbers import shown
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import number
from queue_lua_compat.tubes.context import TubeContext
from queue_lua_compat.tubes.driver import TubeDriver
from queue_lua_compat.tubes.tube_policy import TubePolicy


class BulkCalls(ABC):
    """The bulk calls of a tube.

    Attributes:
        box, number, raw, waiting, policy: as in `Tube`.
    """

    box: Box
    number: int
    raw: TubeDriver
    waiting: WaitQueue
    policy: TubePolicy
    _context: TubeContext

    @abstractmethod
    def put(self, data: object, options: object = None) -> Tuple | Waiter | None:
        """Add a task."""

    @abstractmethod
    def ack(self, task_id: object) -> Tuple | None:
        """Remove a task that the session has taken."""

    def put_many(self, tasks: object = None) -> list[Tuple] | None:
        """Add tasks, in the given order.

        Parameters:
            tasks: a list with `[data]` or `[data, options]` for each task; the options are those of `put`.

        Returns: the tasks, in that order.

        Raises:
            BoxError: a task cannot be put, or would have to wait for room; then none is put.
        """
        if not self._context.is_running("put_many"):
            return None
        given = [_task_of(task, place) for place, task in enumerate(_list_of(tasks, "tasks"), 1)]
        put: list[Tuple] = []
        with self.box.in_transaction():
            for place, (data, options) in enumerate(given, 1):
                task = _about(f"task {place}", self.put, data, options)
                if not isinstance(task, Tuple):
                    raise BoxError.procedure(f"task {place}: there is no room for it")
                put.append(task)
        return put

    def take_many(self, count: object = None, timeout: object = None) -> list[Tuple] | Waiter | None:
        """Take up to `count` tasks, waiting only if there is none.

        At most one task of a sub-queue is taken, as only one at a time may be taken.

        Parameters:
            count: the maximum number.
            timeout: seconds to wait for the first; without it, indefinitely.

        Returns: the tasks, in the order of single takes; None if none arrived
            in time.

        Raises:
            BoxError: the count is not a positive integer, or the timeout is not a number.
        """
        if not self._context.is_running("take_many"):
            return None
        most = _count_of(count)
        seconds = timestamps.LONGEST if timeout is None or timeout is False else number(timeout)
        if self.box.session.current.is_ended:
            return None
        tasks = self.take_up_to(most)
        if tasks or timestamps.span(seconds) == 0:
            return tasks or None
        seconds = min(seconds, timestamps.LONGEST)
        return self._context.consumers.park(self.waiting, self.number, seconds, (most,))

    def ack_many(self, task_ids: object = None) -> list[Tuple] | None:
        """Remove tasks that the session has taken.

        Parameters:
            task_ids: a list of their ids.

        Returns: the tasks with the state `DONE`, in that order.

        Raises:
            BoxError: a task is not taken by the session, or is listed twice; then none is removed.
        """
        if not self._context.is_running("ack_many"):
            return None
        done: list[Tuple] = []
        with self.box.in_transaction():
            for task_id in _list_of(task_ids, "ids"):
                task = _about(f"task {shown(task_id)}", self.ack, task_id)
                if task is not None:
                    done.append(task)
        return done

    def take_up_to(self, most: int) -> list[Tuple]:
        """Take up to `most` tasks."""
        tasks: list[Tuple] = []
        if self.policy.is_paused:
            return tasks
        with self.box.in_transaction():
            while len(tasks) < most and (task := self.raw.take()) is not None:
                tasks.append(self.raw.normalize_task(task))
        return tasks


def _list_of(value: object, name: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise BoxError.procedure(f"{name} must be a list")
    return list(value)


def _task_of(value: object, place: int) -> tuple[object, object]:
    """Split an element of `put_many` into data and options."""
    if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= 2:
        raise BoxError.procedure(f"task {place} must be [data] or [data, options]")
    return value[0], value[1] if len(value) == 2 else None


def _count_of(value: object) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 1 and value % 1 == 0:
        return int(value)
    raise BoxError.procedure("the number of tasks must be a whole number above zero")


def _about(what: str, function: Callable[..., Any], *arguments: object) -> Any:
    """Call a function, and prefix the text of its error with its subject."""
    try:
        return function(*arguments)
    except BoxError as error:
        raise BoxError.with_message(error.code, f"{what}: {error.message}") from error
