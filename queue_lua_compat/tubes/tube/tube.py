"""A tube: the calls of clients and applications, for any driver.

Source: README of github.com/tarantool/queue.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from iproto_server import STILL_WAITING, BoxError, ErrorCode, Space, Steps, Tuple, Waiter, pack
from queue_lua_compat.long_calls import WOKEN_MAX
from queue_lua_compat.lua_numbers import shown
from queue_lua_compat.policies.attempts import Cause
from queue_lua_compat.policies.failures import REPORT_OPTIONS, ReportedFailure
from queue_lua_compat.policies.options import QueueOptions
from queue_lua_compat.task_times import TaskTimes
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import (
    NOT_GIVEN,
    call_options,
    number,
    options_of,
)
from queue_lua_compat.tubes.atomic import atomic
from queue_lua_compat.tubes.context import TubeContext
from queue_lua_compat.tubes.driver import (
    BURIED,
    DONE,
    READY,
    STATUS,
    TAKEN,
    TASK_ID,
    Options,
    TubeDriver,
    follow,
    unfollow,
    with_state,
)
from queue_lua_compat.tubes.put_times import PutTimes
from queue_lua_compat.tubes.system.grants import grant_to_role, grant_to_user
from queue_lua_compat.tubes.system.system_spaces import QUEUE, CurrentSpace
from queue_lua_compat.tubes.system.system_spaces import TAKEN as TAKEN_SPACE
from queue_lua_compat.tubes.tube.bulk import BulkCalls
from queue_lua_compat.tubes.tube.tube_policy import TubePolicy
from queue_lua_compat.tubes.wait_queues import TAKING, forget_wait_queues, wait_queue_of

logger = logging.getLogger("queue_lua_compat.tubes")

_RELEASE_OPTIONS: Final = frozenset({"delay", *REPORT_OPTIONS})
_KEPT: Final = "queue_lua_compat.tubes.times"
_TAKEN_TIME: Final = 4
_FIRST_TAKEN: Final = 5

TaskCallback = Callable[[Tuple | None, str | None], object]
"""Called with a task's row and the event when a task of a tube changes."""


class Tube(BulkCalls):
    """One tube.

    All methods run within the current transaction. All return None while the queue is not running, as on a
    read-only instance.

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

    # -- for clients --

    @atomic
    def put(self, data: object = NOT_GIVEN, options: object = None) -> Tuple | Waiter | None:
        """Add a task.

        Parameters:
            data: anything.
            options: what the driver has: `ttl`, `ttr`, `delay`, `pri`, …

        Returns: the task; None when a limited tube has no room.
        """
        if not self._context.is_running("put"):
            return None
        if self.policy.is_draining:
            raise self.policy.refusal()
        given = call_options(options)
        if data is NOT_GIVEN:
            raise BoxError(ErrorCode.FIELD_MISSING, len(self.space.format()))
        own = self.policy.task_options(given, self._known_options) if given else None
        if own is not None:
            return self._put_with(data, given, own)
        task = self.raw.put(data, given)
        return self.raw.normalize_task(task) if isinstance(task, Tuple) else task

    def _put_with(self, data: object, given: Options, own: QueueOptions) -> Tuple | None:
        """Add a task with options of the policy, unless there was one with its unique key."""
        self.policy.check_driver(own)
        found = self.policy.find_unique(own)
        if found is not None:
            task_id, exists = found
            before = self.raw.peek(task_id) if exists else None
            if before is not None:
                return self.raw.normalize_task(before)
            return Tuple(pack([task_id, DONE, data]))
        if given.get("timeout"):
            # The put may be served later, when nothing is known of these options.
            raise BoxError.procedure(f"a put with {', '.join(sorted(self.policy.own(given)))} has no timeout")
        task = self.raw.put(data, given)
        if not isinstance(task, Tuple):
            return None
        self.policy.task_put(task[TASK_ID], own, given)
        return self.raw.normalize_task(task)

    @atomic
    def take(self, timeout: object = None) -> Tuple | Waiter | None:
        """Take a task.

        Parameters:
            timeout: seconds to wait for one; without it, indefinitely.

        Returns: the task; None if none arrived in time.
        """
        if not self._context.is_running("take"):
            return None
        seconds = timestamps.LONGEST if timeout is None or timeout is False else number(timeout, "timeout")
        if self.box.session.current.is_ended:
            # A coroutine may continue after its client has disconnected: the task would stay taken.
            return None
        task = None if self.policy.is_paused else self.raw.take()
        if task is not None:
            return self.raw.normalize_task(task)
        if timestamps.span(seconds) == 0:
            return None
        return self._context.consumers.park(self.waiting, self.number, min(seconds, timestamps.LONGEST))

    @atomic
    def touch(
        self, task_id: object = NOT_GIVEN, delta: object = None, options: object = None
    ) -> Tuple | None:
        """Extend the time of a task that the session has taken.

        Parameters:
            task_id: the task's id.
            delta: seconds; without it, or if it is not positive, nothing changes.
            options: `keep_ttr`: whether the stored `ttr` stays as it is; the module adds the seconds to it.
        """
        if not self._context.is_running("touch") or delta is None:
            return None
        seconds = number(delta, "delta")
        if seconds <= 0:
            return None
        self._check_taken(task_id)
        longer = timestamps.NEVER if seconds > timestamps.LONGEST else timestamps.span(seconds)
        self._context.statistics.count(self.name, "touch")
        keeps = isinstance(options, dict) and options.get("keep_ttr") is True
        return self._normalized((self.raw.prolong if keeps else self.raw.touch)(task_id, longer))

    @atomic
    def ack(self, task_id: object = NOT_GIVEN) -> Tuple | None:
        """Remove a task that the session has taken, and return its row with the state `DONE`."""
        if not self._context.is_running("ack"):
            return None
        self._check_taken(task_id)
        self._find(task_id)
        taken = self._taken.current().delete([self.number, task_id])
        task = self.raw.delete(task_id)
        self.times.acknowledged(None if taken is None else first_taken(taken) * 1000)
        self._context.statistics.count_acknowledged(self.name)
        if task is None:
            return None
        # Drivers return it with that state, but those of applications may forget to.
        return self.raw.normalize_task(task if task[STATUS] == DONE else with_state(task, DONE))

    @atomic
    def release(self, task_id: object = NOT_GIVEN, options: object = None) -> Tuple | None:
        """Release a task that the session has taken.

        Parameters:
            task_id: the task's id.
            options: `delay`: seconds until it is ready, if the driver supports delays; those of
                `ReportedFailure`.

        Returns: the task; with the state `DONE` if it has reached its `release_limit`. For a failure that is
            reported there is a further field: a map of `attempts`, `delay` and `ended`.
        """
        if not self._context.is_running("release"):
            return None
        self._check_taken(task_id)
        self._taken.current().delete([self.number, task_id])
        self._find(task_id)
        given = call_options(options)
        if given:
            self.policy.check_names(given, _RELEASE_OPTIONS, "release")
        report = ReportedFailure.of(given)
        failure = self.policy.failed(task_id, Cause.RELEASE, None if report is None else report.max_failures)
        ended: str | None = None
        if failure is not None and failure.is_final:
            self._context.statistics.count(self.name, "release")
            task, ended = self.policy.end(task_id, failure), failure.policy.value
        elif report is not None and report.is_over(failure):
            task, ended = self.raw.bury(task_id), "bury"
        else:
            if failure is not None and failure.delay and (report or given.get("delay") is None):
                given["delay"] = failure.delay
            task = self.raw.release(task_id, given)
        normalized = self._normalized(task)
        if report is None or normalized is None:
            return normalized
        delay = 0 if ended else given.get("delay") or 0
        return Tuple(pack([*normalized, report.answer(failure, delay, ended)]))

    def peek(self, task_id: object = NOT_GIVEN) -> Tuple | None:
        """Return a task. Raises BoxError if it does not exist."""
        if not self._context.is_running("peek"):
            return None
        return self.raw.normalize_task(self._find(task_id))

    @atomic
    def bury(self, task_id: object = NOT_GIVEN) -> Tuple | None:
        """Bury a task, taken or not."""
        if not self._context.is_running("bury"):
            return None
        task = self.peek(task_id)
        assert task is not None
        if self._is_taken_here(task_id):
            self._taken.current().delete([self.number, task_id])
        if task[STATUS] == BURIED:
            return task
        return self._normalized(self.raw.bury(task_id))

    @atomic
    def delete(self, task_id: object = NOT_GIVEN) -> Tuple | None:
        """Remove a task, taken or not, and return its row with the state `DONE`."""
        if not self._context.is_running("delete"):
            return None
        self._find(task_id)
        return self._normalized(self.raw.delete(task_id))

    @atomic
    def drop(self) -> bool | None:
        """Remove the tube, which must not be in use.

        Returns: True.

        Raises:
            BoxError: a call waits in the tube, or a task of it is taken.
        """
        return self.box.in_one_slice(self.drop_steps())

    def drop_steps(self) -> Steps[bool | None]:
        """Remove the tube in the first step, and a row of its policy in each other one."""
        if not self._context.is_running("drop"):
            return None
        if self.box.space[QUEUE].get([self.name]) is None:
            raise BoxError.procedure("Tube not found")
        if self._context.consumers.is_waited_for(self.number):
            raise BoxError.procedure("There are consumers connected the tube")
        if self._taken.current().index["task"].first([self.number]) is not None:
            raise BoxError.procedure("There are taken tasks in the tube")
        self._context.forget(self.name)
        self.stop()
        self.raw.drop()
        self.box.space[QUEUE].delete([self.name])
        self._context.statistics.forget(self.name)
        forget_wait_queues(self.box, self.name)
        self.box.on_commit(lambda: self._kept_times.pop(self.name, None))
        # A new tube of that name removes the rows that are left.
        yield from self.policy.forget_steps(lambda: self.name not in self._context.tubes)
        return True

    @atomic
    def free(self, task_id: object) -> Tuple | None:
        """Make a task ready that is delayed, buried, or taken by any session."""
        if not self._context.is_running("free"):
            return None
        if self._find(task_id)[STATUS] == BURIED and self.policy.has_rows:
            self.policy.kicked(task_id)
        return self._normalized(self.raw.release(task_id, {}))

    # -- for administrators --

    def grant(self, user: str, options: object = None) -> None:
        """Grant a user access to the tube.

        Parameters:
            user: the user's name.
            options: `call` for the procedures of clients, `truncate` for that procedure.
        """
        if not self._context.is_running("grant"):
            return
        grant_to_user(self.box, self.raw, self.name, user, options_of(options, "args"))

    def grant_role(self, role: str, options: object = None) -> None:
        """Grant a role access to the tube; as `grant`.

        Raises:
            BoxError: the driver does not support roles.
        """
        if not self._context.is_running("grant"):
            return
        grant_to_role(self.box, self.raw, self.name, role, options_of(options, "args"))

    def on_task_change(self, callback: TaskCallback | None = None) -> TaskCallback | None:
        """Set a function to call with the row and the event whenever a task changes.

        It runs within the transaction that changes the task; an exception undoes the change.

        Parameters:
            callback: the function; None for none.

        Returns: the previous function.
        """
        before, self.callback = self.callback, callback
        return before

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

    def sibling(self, name: str) -> Tube | None:
        """Return another tube."""
        tube: Tube | None = self._context.tubes.get(name)
        return tube

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


def first_taken(row: Tuple) -> int:
    """Return when the task of a row of `_queue_taken_2` was taken, in microseconds since 1970."""
    taken: int = row[_FIRST_TAKEN] if len(row) > _FIRST_TAKEN else row[_TAKEN_TIME]
    return taken


def last_touched(row: Tuple) -> int | None:
    """Return when the task of such a row was touched last; None if it never was."""
    return row[_TAKEN_TIME] if len(row) > _FIRST_TAKEN else None
