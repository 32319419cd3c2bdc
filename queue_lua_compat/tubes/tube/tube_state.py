"""The state of a tube beside its driver: owners, waiting calls, durations, and what follows each change."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from iproto_server import STILL_WAITING, BoxError, Space, Tuple
from queue_lua_compat.long_calls import WOKEN_MAX
from queue_lua_compat.lua_numbers import shown
from queue_lua_compat.policies.attempts import Cause
from queue_lua_compat.task_times import TaskTimes
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import (
    NOT_GIVEN,
)
from queue_lua_compat.tubes.context import TubeContext
from queue_lua_compat.tubes.driver import (
    READY,
    STATUS,
    TAKEN,
    TASK_ID,
    Options,
    TubeDriver,
    follow,
    unfollow,
)
from queue_lua_compat.tubes.put_times import PutTimes
from queue_lua_compat.tubes.rows import first_taken
from queue_lua_compat.tubes.system.system_spaces import TAKEN as TAKEN_SPACE
from queue_lua_compat.tubes.system.system_spaces import CurrentSpace
from queue_lua_compat.tubes.tube.bulk import BulkCalls
from queue_lua_compat.tubes.tube.tube_policy import TubePolicy
from queue_lua_compat.tubes.wait_queues import TAKING, wait_queue_of

logger = logging.getLogger("queue_lua_compat.tubes")

_KEPT: Final = "queue_lua_compat.tubes.times"

TaskCallback = Callable[[Tuple | None, str | None], object]
"""Called with a task's row and the event when a task of a tube changes."""


class TubeState(BulkCalls):
    """A tube without the calls of clients.

    Parameters:
        context: the objects that all tubes share.
        name: the name of the tube and of its space.
        kind: the type: the name of the driver.
        number: the id in `_queue`.
        driver: the driver's class.
        options: the options, as stored in `_queue`.

    Attributes:
        raw: the driver.
        waiting: the calls that wait for a task.
        callback: called when a task changes; None for none.
        times: the durations of tasks.
        put_times: when tasks were put whose rows do not tell.
        policy: the tube's policy.
    """

    def __init__(
        self,
        context: TubeContext,
        name: str,
        kind: str,
        number: int,
        driver: type[TubeDriver],
        options: Options,
    ) -> None:
        self._context = context
        self.box = context.box
        self._transactions = context.box.transactions
        self.name = name
        self.kind = kind
        self.number = number
        self.options = options
        self.space: Space = self.box.space[name].beyond_memory_limit()  # inserts are limited
        self._taken = CurrentSpace(self.box, TAKEN_SPACE)
        self._session = self.box.session
        self.callback: TaskCallback | None = None
        self.waiting = wait_queue_of(self.box, name, TAKING, self._take_again)
        self._waiters = self.waiting.waiters
        self.raw = driver.new(self.box, self.space, self._task_changed, options)
        self._known_options = (self.raw.put_options or frozenset()) | {"timeout"}
        kept: dict[str, Any] = self._kept_times.setdefault(name, {})
        self.times = TaskTimes(self.box, kept)
        self.put_times = PutTimes(self.box, kept)
        self.policy = TubePolicy(context, name, kind, self.raw, options, self.wake_all)
        self.policy.logs_unknown = self.raw.put_options is not None

    # -- start and stop --

    def start(self) -> None:
        """Release tasks of ended sessions, and start the driver."""
        self.policy.start(lambda task_id: self.raw.peek(task_id) is not None)
        self.release_orphans()
        follow(self.space, self._row_changed, self._row_undone)
        self.raw.start()

    def stop(self) -> None:
        """Stop the driver."""
        self.raw.stop()
        unfollow(self.box, self.name, self._row_changed)

    def discard(self) -> None:
        """Stop for good: a reload has replaced this code, and the queue does not run any more.

        Without its driver and its policy, which refer to the tube, it is freed at once. The garbage collector
        would have to look at all tubes.
        """
        self.stop()
        del self.raw, self.policy

    def release_orphans(self) -> None:
        """Release the taken tasks without an existing session."""
        released = 0
        for task in self.raw.tasks_by_state(TAKEN):
            taken = self._taken.current().get([self.number, task[TASK_ID]])
            if taken is None or not self._context.sessions.is_known(taken[3]):
                self.raw.release(task[TASK_ID], {})
                released += 1
        if released:
            logger.info('queue: [tube "%s"] released tasks: %d', self.name, released)

    # -- for the queue --

    def give_back(self, task_id: object) -> None:
        """Release a task of an ended session."""
        self._taken.current().delete([self.number, task_id])
        task = self.raw.peek(task_id)
        if task is None or task[STATUS] != TAKEN:
            return
        failure = None if self.raw.is_expired(task) else self.policy.failed(task_id, Cause.DISCONNECT)
        if failure is not None and failure.is_final:
            self.policy.end(task_id, failure)
        else:
            delay = None if failure is None else failure.delay
            self.raw.release(task_id, {"delay": delay} if delay else {})

    def taken_by(self, task_id: object) -> Tuple | None:
        """Return the row of `_queue_taken_2` about a task, or None."""
        return self._taken.current().get([self.number, task_id])

    def created(self, task: Tuple) -> int | None:
        """Return when a task was put, in nanoseconds since 1970; None if that is unknown."""
        stored = self.raw.created(task)
        return self.put_times.of(task[TASK_ID]) if stored is None else stored * 1000

    # -- internal --

    @property
    def _kept_times(self) -> dict[str, dict[str, Any]]:
        return self.box.keep(_KEPT, dict)

    def _take_again(self, most: int | None = None) -> object:
        """Try again to serve a waiting call; `most` is set for a bulk call."""
        if self.policy.is_paused:
            return STILL_WAITING
        if most is not None:
            return self.take_up_to(min(most, WOKEN_MAX)) or STILL_WAITING
        task = self.raw.take()
        return STILL_WAITING if task is None else self.raw.normalize_task(task)

    def _normalized(self, task: Tuple | None) -> Tuple | None:
        return None if task is None else self.raw.normalize_task(task)

    def _find(self, task_id: object) -> Tuple:
        """Return a task's row. Raises BoxError if it does not exist."""
        task = self.raw.peek([] if task_id is NOT_GIVEN else [task_id])
        if task is None:
            raise BoxError.procedure(f"Task {shown(task_id)} not found")
        return task

    def _is_taken_here(self, task_id: object) -> bool:
        """Whether the current session owns the task."""
        session_uuid = self._context.sessions.identify(self._session.current.id)
        taken = self._taken.current().get(
            [self.number, task_id] if task_id is not NOT_GIVEN else [self.number]
        )
        return taken is not None and taken[3] == session_uuid

    def _check_taken(self, task_id: object) -> None:
        if not self._is_taken_here(task_id):
            raise BoxError.procedure("Task was not taken")

    def _task_changed(self, task: Tuple | None, event: str | None) -> None:
        """Handle a change reported by the driver: record the owner, count, and wake a waiting call."""
        if self.callback is not None:
            self.callback(task, event)
        if task is None:
            return
        box = self.box
        state = task[STATUS]
        taken, number, task_id = self._taken.current(), self.number, task[TASK_ID]
        key = [number, task_id]
        before = taken.get(key)
        if before is not None:
            taken.delete(key)
        if state == READY:
            if event is None:
                # The row is unchanged, so no trigger has reported that the task can be taken.
                box.on_commit(self._wake)
            elif event == "put":
                if self.times.ready_since:
                    self.times.removed(task[TASK_ID])
                if self.raw.created(task) is None:
                    self.put_times.note(task[TASK_ID])
            else:
                self.times.became_ready(task[TASK_ID])
        elif state == TAKEN:
            if event == "take":
                self.times.taken(task_id, self.created(task))
            connection_id = self._session.current.id
            session_uuid = self._context.sessions.identify(connection_id)
            row = [number, task_id, connection_id, session_uuid, timestamps.now(box)]
            if event == "touch" and before is not None:
                row.append(first_taken(before))  # the module's own field tells of the last touch
            taken.insert(row)
        if event == "ttr":
            self.policy.timed_out(task)
        elif event == "kick" and self.policy.has_rows:
            self.policy.kicked(task_id)
        if event == "delete":
            if self.times.ready_since:
                self.times.removed(task[TASK_ID])
            self._context.statistics.count_removed(self.name)
        elif event is not None:
            self._context.statistics.count(self.name, event)

    def _row_changed(self, old: Tuple | None, new: Tuple | None) -> None:
        """Wake a waiting call if a task has become ready, whichever client changed it."""
        if new is None:
            if old is not None and self.policy.has_rows:
                self.policy.task_removed(old[TASK_ID])
            return
        if new[STATUS] != READY:
            return
        # A stream's transaction may stay open for long: calls that wait are looked for after its commit.
        if self._waiters or self._transactions.interactive is not None:
            self.box.on_commit(self._wake)

    def _wake(self) -> None:
        if self._waiters:
            self.waiting.wake()

    def _row_undone(self, old: Tuple | None, new: Tuple | None) -> None:
        # If the log could not be written, others have seen the change and acted on it: let them try again.
        if old is not None and self._waiters and old[STATUS] == READY:
            self._wake_soon()

    def _wake_soon(self) -> None:
        self.box.clock.call_later(0.0, self.wake_all)

    def wake_all(self) -> None:
        """Wake all waiting calls, one after the other, until one finds no task."""
        self.waiting.wake(len(self.waiting))
