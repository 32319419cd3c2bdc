"""Calls of a tube for many tasks.

The module has no `…_many` (they are requested in its issue 124). They use a driver's calls for single tasks,
so they work for all types of tubes, including those of applications; `put_many` and `ack_many` take effect
completely or not at all. The others depend on the backlog: clients get them in slices (see `Box.in_slices`),
applications as a part of their transaction.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from iproto_server import Box, BoxError, Space, Steps, Tuple, Waiter, WaitQueue
from queue_lua_compat.long_calls import TAKES, take_steps
from queue_lua_compat.lua_numbers import shown
from queue_lua_compat.task_times import TaskTimes
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import count_of, number
from queue_lua_compat.tubes.atomic import atomic
from queue_lua_compat.tubes.context import TubeContext
from queue_lua_compat.tubes.driver import TAKEN, TASK_ID, TubeDriver
from queue_lua_compat.tubes.tube.tube_policy import TubePolicy

logger = logging.getLogger("queue_lua_compat.tubes")


class BulkCalls(ABC):
    """The calls of a tube for many tasks.

    Attributes:
        box, name, number, space, raw, waiting, times, policy: as in `Tube`.
    """

    box: Box
    name: str
    number: int
    space: Space
    times: TaskTimes
    raw: TubeDriver
    waiting: WaitQueue
    policy: TubePolicy
    _context: TubeContext

    @abstractmethod
    def put(self, data: object, options: object = None) -> Tuple | Waiter | None:
        """Add a task."""

    @abstractmethod
    def _wake_soon(self) -> None:
        """Wake the waiting calls in the next iteration of the event loop."""

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

        Returns: the tasks, in the order of single takes; None if none arrived in time.

        Raises:
            BoxError: the count is not a positive integer, or the timeout is not a number.
        """
        if not self._context.is_running("take_many"):
            return None
        most = _count_of(count)
        seconds = timestamps.LONGEST if timeout is None or timeout is False else number(timeout, "timeout")
        tasks = self.box.in_slices(take_steps(self._take_one, most), size=TAKES)
        if tasks or timestamps.span(seconds) == 0 or self.box.session.current.is_ended:
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

    # -- in slices --

    @atomic
    def kick(self, count: object = None) -> int | None:
        """Make buried tasks ready.

        Parameters:
            count: the maximum number; by default one.

        Returns: the number of kicked tasks.
        """
        return self.box.in_one_slice(self.kick_steps(count))

    def kick_steps(self, count: object = None) -> Steps[int | None]:
        """Make buried tasks ready, one in each step; as `kick`."""
        if not self._context.is_running("kick"):
            return None
        wanted = 1 if count is None or count is False else count_of(count)
        if math.isnan(wanted):
            return 0
        kicked, most = 0, max(int(min(wanted, self.space.len())), 0)
        while kicked < most and self.raw.kick(1):
            kicked += 1
            yield
        return kicked if kicked < wanted else int(wanted)

    @atomic
    def release_all(self) -> None:
        """Release all taken tasks of all sessions."""
        self.box.in_one_slice(self.release_all_steps())

    def release_all_steps(self) -> Steps[None]:
        """Release all taken tasks, one in each step."""
        if not self._context.is_running("release_all"):
            return
        released = 0
        for task in self.raw.tasks_by_state(TAKEN):
            self.raw.release(task[TASK_ID], {})
            released += 1
            yield
        logger.info('queue: [tube "%s"] released tasks: %d', self.name, released)

    @atomic
    def truncate(self) -> None:
        """Remove all tasks."""
        self.box.in_one_slice(self.truncate_steps())

    def truncate_steps(self) -> Steps[None]:
        """Remove the tasks that there are now: at once, or one in each step if the policy has their rows."""
        if not self._context.is_running("truncate"):
            return
        if self.policy.has_rows:
            last = self.space.index[0].max()
            for task in self.space.index[0].pairs():
                if last is None or task[TASK_ID] > last[TASK_ID]:
                    return
                self.space.delete(task[TASK_ID])
                self.times.removed(task[TASK_ID])
                yield
        self.box.on_rollback(self._wake_soon)
        self.raw.truncate()
        self.times.ready_since.clear()
        self.policy.truncated()

    # -- takes --

    def take_up_to(self, most: int) -> list[Tuple]:
        """Take up to `most` tasks at once."""
        with self.box.in_transaction():
            return self.box.in_one_slice(take_steps(self._take_one, most))

    def _take_one(self) -> Tuple | None:
        # A coroutine, or a later slice, may run after the client has disconnected: the task would stay taken.
        if self.policy.is_paused or self.box.session.current.is_ended:
            return None
        task = self.raw.take()
        return None if task is None else self.raw.normalize_task(task)


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
