"""The legacy queue's functions for consumers: taking tasks, and completing or releasing them."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial
from typing import Any

from iproto_server import STILL_WAITING, Box, BoxError, Tuple, Waiter, pack
from queue_lua_compat.legacy.arguments import microseconds, several, text
from queue_lua_compat.legacy.queue_space import QueueSpace
from queue_lua_compat.legacy.state import QueueState
from queue_lua_compat.legacy.task import (
    CID,
    CREATED,
    DATA,
    DELAYED,
    DONE,
    IPRI,
    MICROSECONDS,
    MIDDLE_IPRI,
    NEXT_EVENT,
    READY,
    STATUS,
    STATUSES,
    TAKEN,
    TTL,
    TTR,
    TUBE,
    Row,
    Task,
    end_of,
    task_of,
)
from queue_lua_compat.lua_numbers import at_least_one, number
from queue_lua_compat.policies.attempts import Cause


class Consumer:
    """Functions for consumers.

    Parameters:
        queue: the queue.
    """

    def __init__(self, queue: QueueState) -> None:
        self._queue = queue

    def take(
        self, box: Box, space: object = None, tube: object = None, timeout: object = None, *_: object
    ) -> Task | Waiter | None:
        """Take the first ready task.

        Parameters:
            space: the space.
            tube: the tube.
            timeout: seconds to wait for one; nil or negative: indefinitely.

        Returns: the task; no value if none arrived in time.
        """
        task: Task | Waiter | None = self._take_or_wait(space, tube, timeout)
        return task

    def take_many(
        self,
        box: Box,
        space: object = None,
        tube: object = None,
        n: object = None,
        timeout: object = None,
        *_: object,
    ) -> list[Task] | Waiter | None:
        """Take the first ready tasks, waiting only if there is none.

        Parameters:
            space: the space.
            tube: the tube.
            n: the maximum number.
            timeout: as for `take`.

        Returns: the tasks; no value if none arrived in time.
        """
        tasks: list[Task] | Waiter | None = self._take_or_wait(space, tube, timeout, at_least_one(n, "n"))
        return tasks

    def _take_or_wait(self, space: object, tube: object, timeout: object, *count: int) -> Any:
        queue_space, tube = self._queue.registry.find(space), text(tube, "tube")
        seconds = math.inf if timeout is None else number(timeout, "timeout")
        if count:
            found: object = queue_space.take_many(tube, *count) or STILL_WAITING
        else:
            found = queue_space.take(tube)
        if found is not STILL_WAITING:
            return found
        if seconds == 0:
            self._queue.statistics.count(queue_space.label, tube, "take_timeout")
            return None
        waiter = queue_space.wait_queue(tube).park(math.inf, None, count)
        if 0 < seconds < math.inf and waiter.timer is not None:
            # A timer of its own, to count timeouts.
            waiter.timer.cancel()
            waiter.timer = self._queue.box.clock.call_later(
                seconds, partial(self._time_out, waiter, queue_space.label, tube)
            )
        return waiter

    def _time_out(self, waiter: Waiter, label: str, tube: str) -> None:
        self._queue.statistics.add(label, tube, "take_timeout")
        waiter.finish()

    # -- for the owner of a task --

    def touch(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """Restart the time to run of a task.

        Parameters:
            space: the space.
            task_id: a task that this connection has taken.

        Returns: the task.

        Raises:
            BoxError: there is no such task, or this connection has not taken it.
        """
        queue_space, row = self._own_task(space, task_id, "touch")
        event = min(queue_space.now() + row[TTR], end_of(row))
        queue_space.owners.touch(row[0])
        return self._updated(queue_space, row, "touch", ("=", NEXT_EVENT, event))

    def ack(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """Delete a completed task.

        Parameters, returns, raises: as `touch`; the task as it was.
        """
        return self._ack(space, task_id)

    def ack_many(self, box: Box, space: object = None, *task_ids: Any) -> list[Task]:
        """Delete completed tasks, or none if this connection does not own one of them.

        Parameters:
            space: the space.
            task_ids: a list of the ids, or the ids as separate arguments.

        Returns: the tasks as they were.

        Raises:
            BoxError: as `ack`, for the first task that is refused.
        """
        with box.in_transaction():
            return [self._ack(space, task_id) for task_id in several(task_ids)]

    def _ack(self, space: object, task_id: object) -> Task:
        queue_space, row = self._own_task(space, task_id, "ack")
        taken_at = queue_space.owners.moment(row[0])
        queue_space.space.delete(row[0])
        queue_space.times.of(row[TUBE]).acknowledged(taken_at)
        self._queue.count(queue_space, row, "ack")
        return task_of(row)

    def release(
        self,
        box: Box,
        space: object = None,
        task_id: object = None,
        delay: object = None,
        ttl: object = None,
        *_: object,
    ) -> Task:
        """Release a task to its former place in the order.

        Parameters:
            space, task_id: as for `touch`.
            delay: seconds after which it is ready again.
            ttl: a new time to live in seconds, starting now, plus the delay; nothing, or zero, keeps
                the old one.

        Returns, raises: as `touch`. A task that has reached its `release_limit` is done.
        """
        queue_space, row = self._own_task(space, task_id, "release")
        now = queue_space.now()
        wait, more_life = microseconds(delay, "delay"), microseconds(ttl, "ttl")
        failure = queue_space.fail(row, Cause.RELEASE)
        if failure is not None:
            if failure.is_final:
                return self._ended(queue_space, row, "release")
            wait = wait or round((failure.delay or 0) * MICROSECONDS)
        life = max(more_life + now - row[CREATED], 0) + wait if more_life else row[TTL]
        end = row[CREATED] + life
        return self._updated(
            queue_space,
            row,
            "release",
            ("=", STATUS, DELAYED if wait else READY),
            ("=", NEXT_EVENT, min(now + wait, end) if wait else end),
            ("=", TTL, life),
            ("=", CID, 0),
        )

    def requeue(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """Release a task to the end of the order.

        Parameters, returns, raises: as `touch`.
        """
        queue_space, row = self._own_task(space, task_id, "requeue")
        failure = queue_space.fail(row, Cause.RELEASE)
        if failure is not None and failure.is_final:
            return self._ended(queue_space, row, "requeue")
        last = queue_space.in_order.max([row[TUBE], READY])
        ipri = MIDDLE_IPRI if last is None else last[IPRI] + 1
        task = queue_space.make_ready(row, ("=", IPRI, ipri))
        self._queue.count(queue_space, row, "requeue")
        return task_of(task)

    def bury(self, box: Box, space: object = None, task_id: object = None, *_: object) -> Task:
        """Bury a task: it is not taken until it is dug up.

        Parameters, returns, raises: as `touch`.
        """
        queue_space, row = self._own_task(space, task_id, "bury")
        task = queue_space.bury(row)
        self._queue.count(queue_space, row, "bury")
        return task_of(task)

    def done(self, box: Box, space: object = None, task_id: object = None, *data: Any) -> Task:
        """Mark a task as done and replace its data; it remains until its time to live ends.

        Parameters:
            space, task_id: as for `touch`.
            data: the new fields of its data.

        Returns, raises: as `touch`.
        """
        queue_space, row = self._own_task(space, task_id, "done")
        taken_at = queue_space.owners.moment(row[0])
        fields = list(row[:DATA])
        fields[STATUS], fields[NEXT_EVENT], fields[CID] = DONE, end_of(row), 0
        grows = len(pack(list(data))) > len(pack(list(row[DATA:])))
        with nullcontext() if grows else box.beyond_memory_limit():
            task = queue_space.space.replace([*fields, *data])
        queue_space.times.of(row[TUBE]).acknowledged(taken_at)
        self._queue.count(queue_space, row, "done")
        return task_of(task)

    def _ended(self, queue_space: QueueSpace, row: Row, counter: str) -> Task:
        """Return a task that was ended by its queue's policy."""
        self._queue.count(queue_space, row, counter)
        return [row[0], row[TUBE], STATUSES[DONE], *row[DATA:]]

    def _own_task(self, space: object, task_id: object, what: str) -> tuple[QueueSpace, Tuple]:
        """Find a task of the current session. Raises BoxError if it has not taken the task."""
        queue_space, row = self._queue.task(space, task_id)
        if row[STATUS] != TAKEN:
            raise BoxError.procedure("Task is not taken")
        if queue_space.owners.sessions.get(row[0]) != self._queue.box.session.id():
            raise BoxError.procedure(f"Only consumer that took the task can it {what}")
        return queue_space, row

    def _updated(self, queue_space: QueueSpace, row: Row, counter: str, *operations: Any) -> Task:
        task = queue_space.space.update(row[0], operations)
        assert task is not None
        self._queue.count(queue_space, row, counter)
        return task_of(task)
