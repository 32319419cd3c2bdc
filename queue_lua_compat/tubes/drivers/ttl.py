"""Tasks with a time: delays, times to live, times to run. What `fifottl` and `utubettl` share.

The rows begin `task_id, status, next_event, ttl, ttr, pri, created`, and an index `watch` has them by their
status and the moment at which something is due: the end of the delay of a delayed task, of the life of a
ready or buried one, of the time to run of a taken one. All are microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from iproto_server import Box, Space, Tuple
from queue_lua_compat.due_timer import DueTimer
from queue_lua_compat.tubes import timestamps
from queue_lua_compat.tubes.arguments import chosen, number, whole
from queue_lua_compat.tubes.driver import (
    BURIED,
    DELAYED,
    READY,
    STATUS,
    TAKEN,
    OnTaskChange,
    Options,
    TubeDriver,
    follow,
    unfollow,
)

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

_DUE_BATCH: Final = 1000

OperationsFor = Callable[[Tuple], tuple[tuple[str, int, object], ...]]
"""The operations that change a task, which may depend on what it is."""


def set_defaults(options: Options) -> None:
    """Put into a new tube's options what they leave open: tasks live and run for a hundred years."""
    options["ttl"] = chosen(options, "ttl", timestamps.LONGEST)
    options["ttr"] = chosen(options, "ttr", options["ttl"])
    options["pri"] = chosen(options, "pri", 0)


def end_of_life(task: Tuple) -> int:
    """The moment at which a task is removed."""
    end: int = task[CREATED] + task[TTL]
    return min(end, timestamps.NEVER)


class TimedDriver(TubeDriver):
    """A driver whose tasks have times. It tells the rules; the order of tasks is its subclasses' business.

    Attributes:
        due: when something is due next.
    """

    def __init__(self, box: Box, space: Space, on_task_change: OnTaskChange, options: Options) -> None:
        super().__init__(box, space, on_task_change, options)
        self.due = self._event()

    def _event(self) -> DueTimer:
        return DueTimer(self.box, self._do_due, f"what is due in the tube {self.space.name}")

    # -- the timer --

    def start(self) -> None:
        """Follow the changes of the space, and look for what is due."""
        follow(self.space, self._row_changed, self._row_undone)
        self.due.stop()
        self.due = self._event()
        self.due.begin()

    def stop(self) -> None:
        """Let nothing become due any more."""
        self.due.stop()
        unfollow(self.box, self.space.name, self._row_changed)

    def _row_changed(self, old: Tuple | None, new: Tuple | None) -> None:
        if new is not None:
            self.due.schedule(timestamps.in_seconds(new[NEXT_EVENT]))

    def _row_undone(self, old: Tuple | None, new: Tuple | None) -> None:
        if old is not None:
            self.due.schedule_immediately(timestamps.in_seconds(old[NEXT_EVENT]))

    def _do_due(self) -> float:
        """Do what is due, a limited number of tasks at a time; answer when to come again."""
        now = self.due.now()
        next_moment = math.inf
        left = _DUE_BATCH
        watch = self.space.index["watch"]
        # Ready ones come after those that become ready, whose life may be over as well.
        for state in (DELAYED, TAKEN, READY, BURIED):
            for task in watch.pairs([state]):
                moment = timestamps.in_seconds(task[NEXT_EVENT])
                if moment > now:
                    next_moment = min(next_moment, moment)
                    break
                if left == 0:
                    return now
                left -= self.due.attempt(self._expire, task)
        return next_moment

    def _expire(self, task: Tuple) -> None:
        """The moment of a task has come."""
        if task[STATUS] == DELAYED:
            self._make_ready(task, "delay")
        elif task[STATUS] == TAKEN:
            self._make_ready(task, "ttr")
        else:
            removed = self.delete(task[0])
            self.on_task_change(removed, "ttl")

    def _make_ready(self, task: Tuple, event: str) -> Tuple:
        """Make a task ready until the end of its life."""
        return self.change(task, event, ("=", STATUS, READY), ("=", NEXT_EVENT, end_of_life(task)))

    # -- what happens to tasks --

    def times_of_new(self, options: Options) -> list[Any]:
        """The fields from `status` to `created` of a new task.

        Parameters:
            options: the call's: `ttl`, `ttr`, `delay` in seconds, `pri`.

        Raises:
            BoxError: one of them is no number.
        """
        ttl = chosen(options, "ttl", self.options.get("ttl"))
        ttr = chosen(options, "ttr", self.options.get("ttr"))
        pri = whole(chosen(options, "pri", chosen(self.options, "pri", 0)))
        delay = options.get("delay")
        if delay is not None and number(delay, "number with {}") > 0:
            state = DELAYED
            ttl = number(ttl) + delay
            next_event = timestamps.moment_after(self.box, delay)
        else:
            state = READY
            next_event = timestamps.moment_after(self.box, ttl)
        return [state, next_event, timestamps.span(ttl), timestamps.span(ttr), pri, timestamps.now(self.box)]

    def change(self, task: Tuple, event: str, *operations: tuple[str, int, object]) -> Tuple:
        """Update a task that is there, and tell."""
        changed = self.space.update([task[0]], operations)
        assert changed is not None
        self.on_task_change(changed, event)
        return changed

    def make_taken(self, task: Tuple) -> Tuple:
        """Make a task taken until its time to run, or its life, is over."""
        until = min(timestamps.now(self.box) + task[TTR], end_of_life(task))
        return self.change(task, "take", ("=", STATUS, TAKEN), ("=", NEXT_EVENT, until))

    def is_expired(self, task: Tuple) -> bool:
        """Whether a task's life is over, although it is still there."""
        return end_of_life(task) <= timestamps.now(self.box)

    def touch(self, task_id: object, delta: int) -> Tuple | None:
        """Give a task more time to run and to live."""
        return self._changed_at(
            task_id, "touch", lambda _: tuple(("+", field, delta) for field in (NEXT_EVENT, TTL, TTR))
        )

    def release(self, task_id: object, options: Options) -> Tuple | None:
        """Make a task ready again, or delayed with the option `delay`, which it lives longer then."""
        delay = options.get("delay")
        if delay is None or not number(delay, "number with {}") > 0:
            return self._changed_at(task_id, "release", _until_end_of_life(READY))
        until = timestamps.moment_after(self.box, delay)
        longer = timestamps.span(delay)
        return self._changed_at(
            task_id,
            "release",
            lambda _: (("=", STATUS, DELAYED), ("=", NEXT_EVENT, until), ("+", TTL, longer)),
        )

    def bury(self, task_id: object) -> Tuple | None:
        """Set a task aside, until the end of its life."""
        return self._changed_at(task_id, "bury", _until_end_of_life(BURIED))

    def kick(self, count: int) -> int:
        """Make buried tasks ready, in the order in which they would be taken. Returns: how many."""
        for kicked in range(count):
            task = self.space.index["status"].first([BURIED])
            if task is None:
                return kicked
            self.change(task, "kick", ("=", STATUS, READY))
        return count

    def _changed_at(self, task_id: object, event: str, operations_for: OperationsFor) -> Tuple | None:
        task = self.space.get(task_id)
        return None if task is None else self.change(task, event, *operations_for(task))


def _until_end_of_life(state: str) -> OperationsFor:
    return lambda task: (("=", STATUS, state), ("=", NEXT_EVENT, end_of_life(task)))
