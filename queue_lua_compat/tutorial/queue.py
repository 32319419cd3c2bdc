"""Procedures of the tutorial's queue.

A task is ready (R) until a connection takes it, and taken (T) until that connection acknowledges it, releases
it or closes. A delayed task is waiting (W).

The Lua original polls for delayed tasks once a second and relies on its procedures being the only writers.
This implementation uses a timer and a trigger on the space, so tasks that a client inserts directly also wake
waiting takes and are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from iproto_server import (
    Application,
    Box,
    IteratorType,
    ManagedQueue,
    TupleMap,
    Waiter,
    packed_arguments,
)
from queue_lua_compat.long_calls import TAKES, take_steps
from queue_lua_compat.lua_numbers import at_least_one, number
from queue_lua_compat.policies.attempts import Cause
from queue_lua_compat.policies.failures import ReportedFailure
from queue_lua_compat.tutorial.arguments import (
    PUT_OPTIONS,
    RELEASE_OPTIONS,
    delay_of,
    list_of,
    wants_text,
    with_text,
)
from queue_lua_compat.tutorial.management import ManagedTutorialQueue
from queue_lua_compat.tutorial.space import (
    READY,
    TAKEN,
    WAITING,
)
from queue_lua_compat.tutorial.tasks import NOT_GIVEN, QueueTasks, Task, gone_task, not_found


class TutorialQueue(QueueTasks):
    """The procedures of the queue, its counters, and its view for operators.

    Parameters:
        application: the application that provides its procedures, hooks and counters.
    """

    def __init__(self, application: Application) -> None:
        application.setup(self.setup)
        application.on_reload(self.replaced)
        application.metrics(self.counters)
        application.queues(self.managed)
        for name in ("put", "take", "ack", "release", "touch", "stats", "put_many", "take_many", "ack_many"):
            application.procedure(f"queue.{name}")(getattr(self, name))

    # -- procedures --

    @packed_arguments(0)
    def put(self, box: Box, data: object = NOT_GIVEN, options: object = None, *_: object) -> Task:
        """Add a task. Its id is the time in nanoseconds, or one more than the last id when that is not less.

        Parameters:
            data: anything.
            options: `{"delay": seconds}` makes the task ready only after that time; with `id_as_text` the
                answered id is a text; others are those of `policies.options`, and `ttr`.

        Returns: the task; that which was put with the same `unique_key`, if there is one.

        Raises:
            BoxError: an option is wrong, or the queue is draining.
        """
        if self._policy.is_draining:
            raise self._policy.refusal()
        delay, own, as_text = None, None, False
        if options is not None:
            delay, as_text = delay_of(options), wants_text(options)
            if isinstance(options, dict):
                own = self._policy.task_options(options, PUT_OPTIONS)
                found = None if own is None else self._policy.find_unique(own)
                if found is not None:
                    before = self._put_before(*found, None if data is NOT_GIVEN else data)
                    return with_text(before) if as_text else before
        time_ns, kept = self._time_ns, self._kept  # calling an attribute that is no method costs more
        task_id = time_ns()
        if task_id <= kept["last_id"]:
            task_id = kept["last_id"] + 1
        if delay is None:
            row = [task_id, READY, 0, data]
        else:
            row = [task_id, WAITING, self._due_timer.now() + delay, data]
        if data is NOT_GIVEN:
            del row[-1]  # the space's format names the missing field in its error
        task = self._insert(row)
        kept["last_id"] = task[0]
        kept["put"] += 1
        if own is not None:
            assert isinstance(options, dict)
            self._policy.task_put(task[0], own, options)
        return with_text(task.as_map()) if as_text else task.as_map()

    def _put_before(self, key: Any, exists: bool, data: object) -> Task:
        """Return the task that was put with the same unique key."""
        task = self._space.get(key) if exists else None
        return gone_task(key, data) if task is None else task.as_map()

    def put_many(self, box: Box, tasks: object = NOT_GIVEN, options: object = None, *_: object) -> list[Task]:
        """Add many tasks, or none if one is refused.

        Parameters:
            tasks: a list of the tasks' data.
            options: as for `put`, for each task.

        Returns: the tasks.

        Raises:
            BoxError: `tasks` is not a list.
        """
        with box.in_transaction():
            return [self.put(box, data, options) for data in list_of(tasks, "tasks")]

    def take(
        self, box: Box, timeout: object = None, options: object = None, *_: object
    ) -> Task | Waiter | None:
        """Take the oldest ready task.

        Parameters:
            timeout: seconds to wait for one if there is none.
            options: with `{"id_as_text": true}` the id is a text.

        Returns: the task; no value if none arrived in time.
        """
        if options is not None and wants_text(options):
            return self._take_with_text(timeout)
        task = self._take_first()
        if task is not None:
            return task
        seconds = 0.0 if timeout is None else number(timeout, "timeout")
        if not seconds > 0:
            return None
        return self._waiting.park(seconds)

    def _take_with_text(self, timeout: object) -> Task | Waiter | None:
        task = self._take_first_with_text()
        if task is not None:
            return task
        seconds = 0.0 if timeout is None else number(timeout, "timeout")
        return self._waiting.park(seconds, None, (None, True)) if seconds > 0 else None

    def take_many(
        self, box: Box, n: object = None, timeout: object = None, options: object = None, *_: object
    ) -> list[Task] | Waiter | None:
        """Take the oldest ready tasks, waiting only if there is none.

        Parameters:
            n: the maximum number of tasks.
            timeout, options: as for `take`.

        Returns: the tasks; no value if none arrived in time.

        Raises:
            BoxError: `n` is not an integer of at least 1.
        """
        count = at_least_one(n, "n")
        as_text = wants_text(options)
        tasks: list[Task] | Waiter = box.in_slices(take_steps(self._taking(as_text), count), size=TAKES)
        if tasks:
            return tasks
        seconds = 0.0 if timeout is None else number(timeout, "timeout")
        if not seconds > 0:
            return None
        return self._waiting.park(seconds, None, (count, as_text))

    def ack(self, box: Box, task_id: object = NOT_GIVEN, *_: object) -> TupleMap:
        """Remove a task that this connection has taken.

        Parameters:
            task_id: the task's id: an integer, a float that is one, or either as a string.

        Returns: the task as it was.

        Raises:
            BoxError: there is no such task, or this connection has not taken it.
        """
        key = self._own_task(task_id)
        task = self._space.delete(key)  # the trigger removes the owner
        if task is None:
            raise not_found(key)
        served_since = self._served_since  # calling an attribute that is no method costs more
        served_since(self._taken_at, key)
        return task.as_map()

    def ack_many(self, box: Box, task_ids: object = NOT_GIVEN, *_: object) -> list[TupleMap]:
        """Remove tasks that this connection has taken, or none if it does not own one of them.

        Parameters:
            task_ids: a list of ids, as for `ack`.

        Returns: the tasks as they were.

        Raises:
            BoxError: `task_ids` is not a list; as `ack`, for the first task that is refused.
        """
        with box.in_transaction():
            return [self.ack(box, task_id) for task_id in list_of(task_ids, "ids")]

    def release(self, box: Box, task_id: object = NOT_GIVEN, options: object = None, *_: object) -> Task:
        """Make a task that this connection has taken ready again, unless it has reached its `release_limit`.

        Parameters:
            task_id: as for `ack`.
            options: `{"delay": seconds}` makes it ready only after that time; those of `ReportedFailure`.

        Returns: the task. For a failure that is reported there is a further field `failure`: a map of
            `attempts`, `delay` and `ended`.

        Raises:
            BoxError: as `ack`.
        """
        key = self._own_task(task_id)
        delay = delay_of(options)
        if isinstance(options, dict):
            self._policy.check_names(options, RELEASE_OPTIONS, "release")
        if self._space.get(key) is None:
            raise not_found(key)
        report = ReportedFailure.of(options) if isinstance(options, dict) else None
        task = self._fail(key, Cause.RELEASE, delay, report)
        self._kept["release"] += 1
        return task

    def touch(self, box: Box, task_id: object = NOT_GIVEN, *_: object) -> TupleMap:
        """Restart the time to run of a task that this connection has taken.

        Parameters:
            task_id: as for `ack`.

        Returns: the task.

        Raises:
            BoxError: as `ack`.
        """
        key = self._own_task(task_id)
        task = self._space.get(key)
        if task is None:
            raise not_found(key)
        self._start_time_to_run(key)
        self._owners.touch(key)
        return task.as_map()

    def stats(self, box: Box, *_: object) -> dict[str, int]:
        """Return the number of tasks, in all and by status."""
        return self.counters(box)

    def counters(self, box: Box) -> dict[str, int]:
        """Return the four counters of the rows that the caller sees, for `queue.stats` and Graphite."""
        # Counting in the engine's index adds nothing to a stream's read set, so it causes no conflicts.
        count = self._ready.tree.count
        return {
            "total": len(self._space.core()),
            "ready": count(IteratorType.EQ, [READY]),
            "waiting": count(IteratorType.EQ, [WAITING]),
            "taken": count(IteratorType.EQ, [TAKEN]),
        }

    def managed(self, box: Box) -> Iterable[ManagedQueue]:
        """Return the queue for operators."""
        return [
            ManagedTutorialQueue(
                box,
                self._space,
                self.put,
                self._owners,
                self._waiting,
                self._times,
                self._calls,
                self._policy,
                self._run_until,
            ),
            *self._dead_letters.managed(self._requeue),
        ]

    def _calls(self) -> dict[str, int]:
        """Return the numbers of calls by name, without takes and acknowledgements."""
        return {"put": self._kept["put"], "release": self._kept["release"]}
