"""The tasks of the tutorial's queue, and what follows each change of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from iproto_server import (
    STILL_WAITING,
    Box,
    BoxError,
    DueTimer,
    ErrorCode,
    IncrementalDict,
    Tuple,
    TupleMap,
    WaitQueue,
)
from queue_lua_compat.long_calls import WOKEN_MAX, take_steps
from queue_lua_compat.lua_numbers import key_of, shown
from queue_lua_compat.policies.attempts import Cause
from queue_lua_compat.policies.failures import Failure, ReportedFailure
from queue_lua_compat.policies.options import QUEUE_OPTIONS, ReleaseLimitPolicy
from queue_lua_compat.policies.queue_policy import QueuePolicy
from queue_lua_compat.task_owners import TaskOwners
from queue_lua_compat.task_times import TaskTimes
from queue_lua_compat.tutorial.arguments import (
    with_text,
)
from queue_lua_compat.tutorial.dead_letters import DeadLetters
from queue_lua_compat.tutorial.space import (
    GONE,
    READY,
    RUN_AT,
    SPACE,
    STATUS,
    TAKEN,
    WAITING,
    create_space,
    newest_id,
)
from queue_lua_compat.tutorial.times_to_run import TimesToRun

logger = logging.getLogger("queue_lua_compat.tutorial")
_TAKE: Final = (("=", STATUS, TAKEN),)
_TAKE_BACK: Final = (("=", STATUS, READY),)
_RELEASE: Final = (("=", STATUS, READY), ("=", RUN_AT, 0))
_READY_KEY: Final = [READY]
_DATA: Final = 3
NOT_GIVEN: Final = object()
Task = TupleMap | dict[str | int, object]
"""A task as it is answered: the row by the names of its fields, or a copy with another id."""
_KEPT: Final = "queue_lua_compat.tutorial"


class QueueTasks:
    """The queue's state beside its space: owners of taken tasks, waiting calls, the last id, the timers."""

    # -- start --

    def setup(self, box: Box) -> None:
        """Create the space on the first start, release taken tasks, and set the triggers.

        A reload keeps the owners of taken tasks and waiting calls.
        """
        kept: dict[str, Any] = box.keep(_KEPT, dict)
        is_start = not kept
        self._box = box
        is_new = SPACE not in box.space
        self._space = create_space(box).beyond_memory_limit()  # inserts are limited
        self._session = box.session
        self._transactions = box.transactions
        self._time_ns = box.clock.time_ns
        self._ready = self._space.index["status"]
        self._by_runat = self._space.index["runat"]
        self._waiting = box.keep(f"{_KEPT}.waiting", partial(WaitQueue, box))
        self._waiting.resume_with(self._take_when_woken)
        self._waiters = self._waiting.waiters
        self._owners = TaskOwners(box, self._take_back, kept)
        self._touched = self._owners.touched.values
        self._taken_at: int | None = None  # when the task was taken that was deleted last
        self._times = TaskTimes(box, kept)
        self._ready_since = self._times.ready_since
        self._waited_since = self._times.waited.since
        self._served_since = self._times.served.since
        # The last task's id, and the numbers of calls. An object of a class of this module would survive a
        # reload together with the old code.
        self._kept: dict[str, int] = kept.setdefault("puts", {"last_id": 0, "put": 0, "release": 0})
        self._due_timer = DueTimer(box, self._ready_due, "delayed tasks")
        self._dead_letters = DeadLetters(box, self._times)
        self._policy = QueuePolicy(
            box, SPACE, (*QUEUE_OPTIONS, "ttr"), {}, self._wake_all, self._dead_letters.open
        )
        if is_new:
            self._policy.forget()
        self._policy.start(lambda key: self._space.get(key) is not None)
        self._dead_letters.start()
        until = kept.setdefault("times to run", IncrementalDict())
        self._times_to_run = TimesToRun(box, self._time_out, until)
        self._run_until = self._times_to_run.until
        if not self._kept["last_id"]:
            self._kept["last_id"] = newest_id(box, self._space)
        if is_start:
            self._start()
        self._space.on_replace(self._task_changed, undo=self._change_undone)
        box.space["_truncate"].on_replace(self._truncated)
        box.session.on_connect(self._connected)
        box.session.on_disconnect(self._disconnected)
        self._due_timer.begin()
        self._times_to_run.begin()

    def replaced(self, box: Box) -> None:
        """Stop the timers: new code has replaced this."""
        self._due_timer.stop()
        self._times_to_run.stop()

    def _start(self) -> None:
        """Release the tasks that were taken when the server stopped."""
        taken = list(self._ready.pairs([TAKEN]))
        for task in taken:
            self._space.update(task[0], _TAKE_BACK)
        if taken:
            logger.info("released tasks at start: %d", len(taken))

    def _insert(self, row: list[Any]) -> Tuple:
        """Insert a task, with the next free id if a client has inserted a row with its id."""
        while True:
            try:
                return self._space.insert(row)
            except BoxError as error:
                if error.code != ErrorCode.TUPLE_FOUND or self._space.get(row[0]) is None:
                    raise
                row[0] += 1

    # -- ownership --

    def _take_first(self) -> TupleMap | None:
        """Take the oldest ready task for the current session, if there is one."""
        session, policy = self._session.current, self._policy
        found = None if policy.is_paused else self._ready.first(_READY_KEY)
        if found is None or session.is_ended:
            # A coroutine may continue after its client has disconnected: nothing would release the task.
            return None
        key = found[0]
        task = self._space.update(key, _TAKE)
        assert task is not None
        waited_since = self._waited_since  # calling an attribute that is no method costs more
        self._owners.put(key, session.id, waited_since(key, key))
        if policy.limits_time:
            self._start_time_to_run(key)
        return task.as_map()

    def _take_first_with_text(self) -> dict[str | int, object] | None:
        task = self._take_first()
        return None if task is None else with_text(task)

    def _taking(self, as_text: bool) -> Callable[[], Task | None]:
        return self._take_first_with_text if as_text else self._take_first

    def _take_when_woken(self, count: int | None = None, as_text: bool = False) -> object:
        """Take one task, or with a count a list of up to that many."""
        take = self._taking(as_text)
        if count is not None:
            return self._box.in_one_slice(take_steps(take, min(count, WOKEN_MAX))) or STILL_WAITING
        task = take()
        return STILL_WAITING if task is None else task

    def _own_task(self, task_id: object) -> Any:
        """Return the key of a task that the current session has taken. Raises BoxError if it has not.

        A stream that sees an older state may not see a task that its client has taken since.
        """
        if task_id is NOT_GIVEN or task_id is False:
            raise BoxError.procedure("Task id required")
        key = task_id if type(task_id) is int else key_of(task_id)
        holder = self._owners.sessions.get(key)
        session_id = self._session.current.id
        if holder == session_id:
            return key
        if self._space.get(key) is None:
            raise not_found(key)
        if holder is None:
            raise BoxError.procedure(f"Task {shown(key)} not taken by anybody")
        raise BoxError.procedure(f"Task {shown(key)} taken by {holder}. Not you ({session_id})")

    # -- failed attempts --

    def _fail(
        self, key: Any, cause: Cause, delay: float | None = None, report: ReportedFailure | None = None
    ) -> Task:
        """Make a taken task ready again, or delayed, after a failed attempt; end it after too many.

        Parameters:
            key: the task's key.
            cause: why the attempt has failed.
            delay: the seconds until it is ready; None for those of the queue's policy.
            report: what the consumer reports; None: no failure.

        Returns: the task, with what the consumer is told.
        """
        failure = self._policy.failed(key, cause)
        if failure is not None:
            if failure.is_final:
                gone = self._end(key, failure)
                return (
                    gone if report is None else gone | {"failure": report.answer(failure, 0, failure.policy)}
                )
            if delay is None or (report is not None and failure.delay is not None):
                delay = failure.delay
        if delay is None:
            operations: tuple[tuple[str, int, object], ...] = _RELEASE
        else:
            operations = (("=", STATUS, WAITING), ("=", RUN_AT, self._due_timer.now() + delay))
        task = self._space.update(key, operations)
        assert task is not None
        if report is None:
            return task.as_map()
        return {**task.as_map(), "failure": report.answer(failure, delay or 0, None)}

    def _end(self, key: Any, failure: Failure) -> dict[str | int, object]:
        """Delete a task, or make it a dead letter, after its last attempt."""
        task = self._space.get(key)
        assert task is not None
        logger.warning("the task %s has reached its release_limit: %s", key, failure.policy)
        if failure.policy == ReleaseLimitPolicy.DLQ:
            self._dead_letters.add(task, self._policy)
        self._space.delete(key)
        return gone_task(key, task.get(_DATA))

    def _requeue(self, row: Tuple) -> Tuple:
        """Store a dead letter as a ready task again."""
        return self._insert([row[0], READY, 0, *row[_DATA:]])

    def _start_time_to_run(self, key: Any) -> None:
        ttr = self._policy.options_of(key).ttr
        if ttr is not None:
            self._times_to_run.start(key, ttr)

    def _time_out(self, key: Any) -> None:
        """Take a task away from its consumer, whose time to run is over."""
        task = self._space.get(key)
        if task is not None and task[STATUS] == TAKEN:
            logger.warning("the time to run of the task %s is over", key)  # a warning: it may repeat often
            self._fail(key, Cause.TIMEOUT)

    # -- changes of the space --

    def _task_changed(self, old: Tuple | None, new: Tuple | None) -> None:
        """Revoke ownership, and wake waiting calls, if necessary. Runs for every change of the space, by any
        client."""
        if new is None:
            if old is not None:
                self._taken_at = self._owners.remove(old[0])
                if self._ready_since:
                    self._times.removed(old[0])
                if self._run_until:
                    self._times_to_run.end(old[0])
                if self._touched:
                    self._owners.forget_touch(old[0])
                if self._policy.has_rows:
                    self._policy.task_removed(old[0])
            return
        status = new[STATUS]
        if status == TAKEN:
            return
        if old is not None:
            self._owners.remove(old[0])
            if self._run_until:
                self._times_to_run.end(old[0])
            if self._touched:
                self._owners.forget_touch(old[0])
        if status == READY:
            if old is not None and old[STATUS] != READY:
                self._times.became_ready(old[0])
            # A stream's transaction may stay open for long: waiting calls are looked for after its commit.
            if self._waiters or self._transactions.interactive is not None:
                self._box.on_commit(self._wake)
        elif status == WAITING:
            self._due_timer.schedule(new[RUN_AT])

    def _change_undone(self, old: Tuple | None, new: Tuple | None) -> None:
        """Handle the rollback of a change."""
        if old is None:
            return
        # If the log could not be written, others have seen the change and acted on it: let them try again.
        if old[STATUS] == READY and self._waiting:
            self._box.clock.call_later(0.0, self._wake)
        elif old[STATUS] == WAITING:
            self._due_timer.schedule_immediately(old[RUN_AT])
        elif self._policy.limits_time:
            self._start_time_to_run(old[0])

    def _truncated(self, old: Tuple | None, new: Tuple | None) -> None:
        """Revoke all ownership if a changed row of `_truncate` is about this space."""
        if new is None or new[0] != self._space.id or self._space.len():
            return
        self._owners.remove_all()
        self._policy.truncated()

    def _wake_all(self) -> None:
        self._waiting.wake(len(self._waiting))

    def _wake(self) -> None:
        if self._waiting:
            self._waiting.wake()

    # -- connections --

    def _connected(self) -> None:
        """Store the client's address for the log: a closed socket cannot be asked for it."""
        session = self._box.session
        session.storage.peer = session.peer()

    def _disconnected(self) -> None:
        """Make the tasks of a closed connection ready again."""
        session = self._box.session
        session.storage.destroyed = True
        count = self._owners.drop_session(session.id())
        if count:
            logger.info(
                "disconnected %s from %s, releasing its tasks: %d",
                session.id(),
                session.storage.peer,
                count,
            )

    def _take_back(self, key: Any) -> None:
        """Release a task whose owner has disconnected."""
        task = self._space.get(key)
        if task is not None and task[STATUS] == TAKEN:
            self._fail(key, Cause.DISCONNECT)

    # -- delayed tasks --

    def _ready_due(self) -> float:
        """Make due tasks ready, a limited number at a time, and return when the next is due, or inf."""
        return self._due_timer.process(
            self._by_runat.pairs([0], iterator="GT"), lambda task: float(task[RUN_AT]), self._make_ready
        )

    def _make_ready(self, task: Tuple) -> None:
        if task[STATUS] == WAITING:
            self._space.update(task[0], _RELEASE)
        else:
            logger.error("task %s has a time to run, but the status %s", task[0], task[STATUS])
            self._space.update(task[0], (("=", RUN_AT, 0),))


def gone_task(key: Any, data: object) -> dict[str | int, object]:
    """Return a task that does not exist any more."""
    return {"id": key, "status": GONE, "runat": 0, "data": data}


def not_found(key: Any) -> BoxError:
    return BoxError.procedure(f"Task {{{shown(key)}}} was not found")
