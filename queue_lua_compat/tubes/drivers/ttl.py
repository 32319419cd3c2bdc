"""Tasks with delays, times to live and times to run: the common part of `fifottl` and `utubettl`.

Rows begin with `task_id, status, next_event, ttl, ttr, pri, created`. The index `watch` orders them by status
and `next_event`: the end of a delayed task's delay, of a ready or buried task's life, of a taken task's time
to run. All times are in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from iproto_server import Box, DueTimer, Space, Tuple
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import PRIORITY_MAX, chosen, number, priority
from queue_lua_compat.tubes.driver import (
    BURIED,
    DELAYED,
    READY,
    STATUS,
    TAKEN,
    TASK_ID,
    OnTaskChange,
    Options,
    TubeDriver,
    follow,
    unfollow,
)
from queue_lua_compat.tubes.drivers.fifo import free_id

NEXT_EVENT: Final = 2
TTL: Final = 3
TTR: Final = 4
PRI: Final = 5
CREATED: Final = 6

TIMED_FORMAT: Final = (
    ("task_id", "unsigned"),
    ("status", "string"),
    ("next_event", "unsigned"),
    ("ttl", "unsigned"),
    ("ttr", "unsigned"),
    ("pri", "unsigned"),
    ("created", "unsigned"),
)
WATCH_PARTS: Final = ((1, "string"), (2, "unsigned"))

_UNLIMITED: Final = timestamps.LONGEST * timestamps.MICROSECONDS

OperationsFor = Callable[[Tuple], tuple[tuple[str, int, object], ...]]
"""Returns the update operations for a task."""


def set_defaults(options: Options) -> None:
    """Add the defaults to a new tube's options: a hundred years to live and to run."""
    options["ttl"] = chosen(options, "ttl", timestamps.LONGEST)
    options["ttr"] = chosen(options, "ttr", options["ttl"])
    options["pri"] = chosen(options, "pri", 0)


def end_of_life(task: Tuple) -> int:
    """Return the time at which a task is removed."""
    end: int = task[CREATED] + task[TTL]
    return end if end < timestamps.NEVER else timestamps.NEVER


class TimedDriver(TubeDriver):
    """A driver of tasks with times. Subclasses define the order of tasks.

    Attributes:
        due: the timer for the next event.
        ids, states: the indexes by id and by state.
    """

    has_delays = True
    has_dead_letters = True
    put_options: ClassVar[frozenset[str]] = frozenset({"ttl", "ttr", "pri", "delay"})
    status_order: ClassVar[tuple[int, ...]] = (PRI, TASK_ID)

    def __init__(self, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> None:
        super().__init__(box, space, on_task_change, options)
        self.ids, self.states = space.index[0], space.index["status"]
        self.due = self._event()

    def _event(self) -> DueTimer:
        return DueTimer(self.box, self._do_due, f"due tasks of the tube {self.space.name}")

    # -- the timer --

    def start(self) -> None:
        """Follow the changes of the space, and process events that are due."""
        follow(self.space, self._row_changed, self._row_undone)
        self.due.stop()
        self.due = self._event()
        self.due.begin()

    def stop(self) -> None:
        """Cancel the timer."""
        self.due.stop()
        unfollow(self.box, self.space.name, self._row_changed)

    def _row_changed(self, old: Tuple | None, new: Tuple | None) -> None:
        if new is not None:
            self.due.schedule(timestamps.in_seconds(new[NEXT_EVENT]))

    def _row_undone(self, old: Tuple | None, new: Tuple | None) -> None:
        if old is not None:
            self.due.schedule_immediately(timestamps.in_seconds(old[NEXT_EVENT]))

    def _do_due(self) -> float:
        """Process due events, a limited number at a time, and return when the next one is due."""
        watch = self.space.index["watch"]
        # Ready tasks come last: those that became ready just now may have expired as well.
        return min(
            self.due.process(
                watch.pairs([state]), lambda task: timestamps.in_seconds(task[NEXT_EVENT]), self._expire
            )
            for state in (DELAYED, TAKEN, READY, BURIED)
        )

    def _expire(self, task: Tuple) -> None:
        """Process the event of a task."""
        if task[STATUS] == DELAYED:
            self._make_ready(task, "delay")
        elif task[STATUS] == TAKEN:
            self._make_ready(task, "ttr")
        else:
            removed = self.delete(task[0])
            self.on_task_change(removed, "ttl")

    def _make_ready(self, task: Tuple, event: str) -> Tuple:
        """Make a task ready until it expires."""
        return self.change(task, event, ("=", STATUS, READY), ("=", NEXT_EVENT, end_of_life(task)))

    # -- for operators --

    def created(self, task: Tuple) -> int | None:
        """See `TubeDriver`."""
        created: int = task[CREATED]
        return created

    def due_at(self, task: Tuple) -> int | None:
        """See `TubeDriver`."""
        if task[STATUS] == TAKEN and task[TTR] >= _UNLIMITED:
            return None
        due: int = task[NEXT_EVENT]
        return due if task[STATUS] in (DELAYED, TAKEN) and due < timestamps.NEVER else None

    def details(self, task: Tuple) -> dict[str, object]:
        """See `TubeDriver`. The default of a hundred years, and longer times, are left out."""
        spans = {"ttl": task[TTL], "ttr": task[TTR]}
        return {"pri": task[PRI]} | {
            name: span / timestamps.MICROSECONDS for name, span in spans.items() if span < _UNLIMITED
        }

    # -- changes of tasks --

    def times_of_new(self, options: Options) -> list[Any]:
        """Compute the fields from `status` to `created` of a new task.

        Parameters:
            options: the options of the call: `ttl`, `ttr`, `delay` in seconds, `pri`.

        Raises:
            BoxError: an option is not a number.
        """
        ttl = chosen(options, "ttl", self.options.get("ttl"))
        ttr = chosen(options, "ttr", self.options.get("ttr"))
        pri = chosen(options, "pri", chosen(self.options, "pri", 0))
        delay = options.get("delay")
        if delay is not None and number(delay, "delay") > 0:
            state = DELAYED
            ttl = number(ttl, "ttl") + delay
            next_event = timestamps.moment_after(self.box, delay)
        else:
            state = READY
            next_event = timestamps.moment_after(self.box, ttl, "ttl")
        life, run = timestamps.span(ttl, "ttl"), timestamps.span(ttr, "ttr")
        if type(pri) is not int or not 0 <= pri <= PRIORITY_MAX:
            pri = priority(pri)
        return [state, next_event, life, run, pri, timestamps.now(self.box)]

    def adopt(self, task: Tuple) -> Tuple:
        """Store a task of another tube, with its priority and its time to run."""
        times = self.times_of_new({"pri": task[PRI]})
        times[TTR - STATUS] = task[TTR]
        adopted = self.space.insert([free_id(self.space, task[TASK_ID]), *times, *task[CREATED + 1 :]])
        self.on_task_change(adopted, "put")
        return adopted

    def change(self, task: Tuple, event: str | None, *operations: tuple[str, int, object]) -> Tuple:
        """Update an existing task, and report the change."""
        changed = self.space.update([task[0]], operations)
        assert changed is not None
        self.on_task_change(changed, event)
        return changed

    def make_taken(self, task: Tuple) -> Tuple:
        """Make a task taken until its time to run or its life ends."""
        until, end = timestamps.now(self.box) + task[TTR], end_of_life(task)
        if until > end:
            until = end
        return self.change(task, "take", ("=", STATUS, TAKEN), ("=", NEXT_EVENT, until))

    def is_expired(self, task: Tuple) -> bool:
        """Whether a task that still exists has outlived its time."""
        return end_of_life(task) <= timestamps.now(self.box)

    def touch(self, task_id: object, delta: int) -> Tuple | None:
        """Extend a task's time to run and its time to live."""
        return self._extend(task_id, delta, NEXT_EVENT, TTL, TTR)

    def prolong(self, task_id: object, delta: int) -> Tuple | None:
        """Extend the present attempt, and the time to live; the next attempt has the old time to run."""
        return self._extend(task_id, delta, NEXT_EVENT, TTL)

    def _extend(self, task_id: object, delta: int, *fields: int) -> Tuple | None:
        return self._changed_at(task_id, "touch", lambda _: tuple(("+", field, delta) for field in fields))

    def release(self, task_id: object, options: Options) -> Tuple | None:
        """Make a task ready again, or delayed with the option `delay`, which extends its time to live."""
        delay = options.get("delay")
        if delay is None or not number(delay, "delay") > 0:
            return self._changed_at(task_id, "release", _until_end_of_life(READY))
        return self._delay(task_id, delay, "release")

    def postpone(self, task_id: object, seconds: float) -> None:
        """Make a ready task delayed, which extends its time to live."""
        self._delay(task_id, seconds, None)

    def _delay(self, task_id: object, seconds: object, event: str | None) -> Tuple | None:
        until = timestamps.moment_after(self.box, seconds)
        longer = timestamps.span(seconds)
        return self._changed_at(
            task_id,
            event,
            lambda task: (
                *(("=", STATUS, DELAYED), ("=", NEXT_EVENT, until)),
                ("=", TTL, min(task[TTL] + longer, timestamps.NEVER)),
            ),
        )

    def bury(self, task_id: object) -> Tuple | None:
        """Bury a task until it expires."""
        return self._changed_at(task_id, "bury", _until_end_of_life(BURIED))

    def kick(self, count: int) -> int:
        """Make buried tasks ready, in the order of takes, and return their number."""
        for kicked in range(count):
            task = self.states.first([BURIED])
            if task is None:
                return kicked
            self.change(task, "kick", ("=", STATUS, READY))
        return count

    def _changed_at(self, task_id: object, event: str | None, operations_for: OperationsFor) -> Tuple | None:
        task = self.space.get(task_id)
        return None if task is None else self.change(task, event, *operations_for(task))


def _until_end_of_life(state: str) -> OperationsFor:
    return lambda task: (("=", STATUS, state), ("=", NEXT_EVENT, end_of_life(task)))
