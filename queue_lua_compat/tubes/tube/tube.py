"""A tube: the calls of clients and applications, for any driver.

Source: README of github.com/tarantool/queue.
"""

from __future__ import annotations

from typing import Final

from iproto_server import BoxError, ErrorCode, Steps, Tuple, Waiter, pack
from queue_lua_compat.policies.attempts import Cause
from queue_lua_compat.policies.failures import REPORT_OPTIONS, ReportedFailure
from queue_lua_compat.policies.options import QueueOptions
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import (
    NOT_GIVEN,
    call_options,
    number,
    options_of,
)
from queue_lua_compat.tubes.atomic import atomic
from queue_lua_compat.tubes.driver import (
    BURIED,
    DONE,
    STATUS,
    TASK_ID,
    Options,
    with_state,
)
from queue_lua_compat.tubes.rows import first_taken
from queue_lua_compat.tubes.system.grants import grant_to_role, grant_to_user
from queue_lua_compat.tubes.system.system_spaces import QUEUE
from queue_lua_compat.tubes.tube.tube_state import TaskCallback, TubeState
from queue_lua_compat.tubes.wait_queues import forget_wait_queues

_RELEASE_OPTIONS: Final = frozenset({"delay", *REPORT_OPTIONS})


class Tube(TubeState):
    """One tube.

    All methods run within the current transaction. All return None while the queue is not running, as on a
    read-only instance.
    """

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
        given = call_options(options, are_read=self.raw.put_options != frozenset())
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
        given = call_options(options, are_read=self.raw.has_delays)
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

    def sibling(self, name: str) -> Tube | None:
        """Return another tube."""
        tube: Tube | None = self._context.tubes.get(name)
        return tube
