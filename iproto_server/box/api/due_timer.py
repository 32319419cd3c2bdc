"""One timer for the earliest of many deadlines, such as those of all tasks of a queue."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from iproto_server.box.api.box import Box
from iproto_server.box.backoff import pause_after
from iproto_server.box.clock import Timer
from iproto_server.box.tuple.tuple import Tuple

logger = logging.getLogger("iproto_server.due_timer")

PASS_SIZE: Final = 50
"""The number of items that one pass processes; the next pass follows in the next loop iteration."""
FAILING_MAX: Final = 1000
"""The number of failing items that are remembered. If there are more, whole passes pause."""
_NANOSECONDS: Final = 1_000_000_000
RESUME_INTERVAL: Final = 0.0001
"""Seconds between the passes of two timers that go on once the box is writable again."""
_KEPT: Final = "iproto_server.due_timer"
_PAUSED: Final = "iproto_server.due_timer: paused"


@dataclass(slots=True)
class _Failing:
    """An item whose last attempt failed.

    Attributes:
        failures: the number of attempts that failed one after another.
        since: the time of the last one, in seconds since 1970.
        pause: seconds until the next one.
    """

    failures: int
    since: float
    pause: float

    def left(self, now: float) -> float:
        """Seconds until the next attempt; none if the clock has stepped back."""
        return max(0.0, self.since + self.pause - now) if self.since <= now else 0.0


class DueTimer:
    """Calls a function when the earliest of many deadlines is reached.

    Deadlines are seconds since 1970 by the wall clock; the timer follows the clock when it is stepped. Each
    call of the function is a *pass*. A pass that raises, or whose changes are rolled back later because they
    could not be written, is repeated after a pause that grows from 1 to 30 seconds, and so is an item that
    fails alone. A box that becomes writable ends all pauses.

    Parameters:
        box: the box.
        on_due: processes what is due, usually with `process`, and returns the next deadline, or infinity if
            there is none. It runs in a transaction of the server's own session.
        what: the subject of log messages: "delayed tasks".

    Attributes:
        at: the next deadline; infinity if there is none.
        timer: the timer, if it is set.
    """

    def __init__(self, box: Box, on_due: Callable[[], float], what: str) -> None:
        self._box = box
        self._on_due = on_due
        self._what = what
        self.at = math.inf
        self.timer: Timer | None = None
        self._is_stopped = False
        self._is_in_pass = False
        # Passes that failed one after another, and the timer of the pause after them.
        self._failed_passes = 0
        self._pause: Timer | None = None
        # Items that failed, and the timer for the earliest of their next attempts.
        self._failing: dict[Hashable, _Failing] = {}
        self._next_attempt: Timer | None = None
        # The running pass: the items that it may still process, those that failed and why, and the seconds
        # until the next attempt at an item that fails.
        self._room = PASS_SIZE
        self._failed = 0
        self._cause: BaseException | None = None
        self._attempt_in = math.inf
        self._is_crowded = False

    def begin(self) -> None:
        """Start when the running transaction has committed; stop if it is rolled back after that."""
        successors = self._successors()
        before = successors.get(self._what)
        successors[self._what] = self
        if before is not None:
            self._box.on_rollback(partial(successors.__setitem__, self._what, before))
        self._box.on_commit(self.run)
        self._box.on_rollback(self.stop)

    def stop(self) -> None:
        """Stop for good; the code loaded by a reload has a timer of its own."""
        self._cancel_pauses()
        self.set(math.inf)
        self._is_stopped = True
        # Usually a method of an object that has the timer: without this cycle both are freed at once.
        self._on_due = _nothing_due

    def schedule(self, moment: float) -> None:
        """Schedule a deadline for when the running transaction has committed.

        Parameters:
            moment: the deadline, in seconds since 1970.
        """
        # A stream's transaction may stay open for long: its deadlines are compared with others on commit.
        if moment < self.at or self._box.transactions.interactive is not None:
            self._box.on_commit(partial(self._schedule_earlier, moment))

    def schedule_immediately(self, moment: float) -> None:
        """Schedule a deadline whether the running transaction commits or not: for a trigger's `undo`.

        Does nothing in a pass, which finds the next deadline itself: the deadline of an item that fails is
        over, and would make the next pass follow at once.
        """
        if self._is_stopped:
            self._pass_to_successor(moment)
        elif moment < self.at and not self._is_in_pass:
            self.set(moment)

    def run(self) -> None:
        """Begin a pass, also during a pause, and set the timer for the next deadline."""
        self._cancel_pauses()
        self.set(math.inf)
        try:
            moment = self._box.run(self._box.session.background, self._run)
        except BaseException:
            # Another application's trigger may raise anything.
            if self._pause is None:
                # There was no transaction that could be rolled back.
                self._begin_pause(self._failed_passes + 1)
            logger.exception("cannot process %s, trying again", self._what)
        else:
            # Callbacks of the commit may have scheduled an earlier deadline.
            if moment < self.at:
                self.set(moment)

    def process(
        self, rows: Iterable[Tuple], deadline: Callable[[Tuple], float], function: Callable[[Tuple], object]
    ) -> float:
        """Process the rows that are due, in a pass; a failing row leaves the others alone.

        Parameters:
            rows: the rows in the order of their deadlines; their first field identifies them.
            deadline: returns a row's deadline, in seconds since 1970.
            function: processes a row; when it raises, its changes are rolled back.

        Returns: the deadline of the first row that is not due, infinity if there is none, or the present if
            rows are left for the next pass.
        """
        now = self.now()
        for row in rows:
            moment = deadline(row)
            if moment > now:
                return moment
            if not self._room or self._is_crowded:
                return now
            self.attempt(row[0], function, row)
        return math.inf

    def attempt(self, key: Hashable, function: Callable[..., object], *arguments: object) -> float:
        """Process one due item, in a pass, unless its last attempt failed and the pause after it is not over.

        Parameters:
            key: identifies the item.
            function: called with the arguments; when it raises, its changes are rolled back.
            arguments: its arguments.

        Returns: 0 if the function has succeeded, else the seconds until the next attempt.
        """
        now = self.now()
        failing = self._failing.get(key)
        if failing is not None:
            pause = failing.left(now)
            if pause:
                self._attempt_in = min(self._attempt_in, pause)
                return pause
        self._room -= 1
        try:
            self._box.atomic(function, *arguments)
        except BaseException as error:  # noqa: BLE001  # another application's trigger may raise anything
            self._failed += 1
            self._cause = self._cause or error
            return self._remember(key, failing, now)
        if failing is not None:
            del self._failing[key]
        return 0.0

    @property
    def is_full(self) -> bool:
        """Whether the running pass has processed as many items as it may."""
        return self._room <= 0

    def set(self, moment: float) -> None:
        """Set the timer to a deadline in seconds since 1970; infinity cancels it. A pause comes first."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        self.at = moment
        if moment != math.inf and not self._is_stopped and self._pause is None:
            self.timer = self._box.clock.call_at(moment, self.run)

    def now(self) -> float:
        """Return the wall clock time in seconds since 1970."""
        return self._box.clock.time_ns() / _NANOSECONDS

    def _run(self) -> float:
        failures = self._failed_passes
        self._failed_passes = 0
        self._box.on_rollback(partial(self._pass_failed, failures + 1))
        self._room, self._failed, self._cause = PASS_SIZE, 0, None
        self._attempt_in, self._is_crowded = math.inf, False
        self._is_in_pass = True
        try:
            moment = self._on_due()
        finally:
            self._is_in_pass = False
        if self._cause is not None:
            logger.error(
                "cannot process some of %s, trying again: %d", self._what, self._failed, exc_info=self._cause
            )
            self._cause = None
        if self._is_crowded:
            self._begin_pause(failures + 1)
        elif self._attempt_in != math.inf and not self._is_stopped:
            # By steady time, so that a clock that steps back does not delay it.
            self._next_attempt = self._box.clock.call_later(self._attempt_in, self.run)
            self._paused()[self] = None
        return moment

    def _remember(self, key: Hashable, failing: _Failing | None, now: float) -> float:
        """Remember a failed attempt; return the seconds until the next one."""
        failures = 1 if failing is None else failing.failures + 1
        pause = pause_after(failures)
        if failing is None and len(self._failing) >= FAILING_MAX:
            # Items that have gone are not attempted again, so they are removed here.
            self._failing = {
                key: other for key, other in self._failing.items() if now - other.since < 2 * other.pause
            }
            self._is_crowded = len(self._failing) >= FAILING_MAX
        if not self._is_crowded:
            self._failing[key] = _Failing(failures, now, pause)
            self._attempt_in = min(self._attempt_in, pause)
        return pause

    def _pass_failed(self, failures: int) -> None:
        """Repeat a pass that was rolled back."""
        if self._is_stopped:
            self._pass_to_successor(self.now())
        elif failures > self._failed_passes:
            # Passes that were made before the failure was known are rolled back with it, the newest first.
            self._begin_pause(failures)

    def _begin_pause(self, failures: int) -> None:
        self._cancel_pauses()
        self._failed_passes = failures
        if not self._is_stopped:
            self._pause = self._box.clock.call_later(pause_after(failures), self.run)
            self._paused()[self] = None
        self.set(self.at)

    def _cancel_pauses(self) -> None:
        for timer in (self._pause, self._next_attempt):
            if timer is not None:
                timer.cancel()
                self._paused().pop(self, None)
        self._pause = self._next_attempt = None

    def _paused(self) -> dict[DueTimer, None]:
        """The timers of the box that wait until they try again."""
        return self._box.keep(_PAUSED, self._watch_writable)

    def _watch_writable(self) -> dict[DueTimer, None]:
        box, paused = self._box, dict[DueTimer, None]()

        def resume() -> None:
            for number, timer in enumerate(paused):
                timer._failing.clear()
                box.clock.call_later(number * RESUME_INTERVAL, timer._resume)

        box.when_writable.append(resume)
        return paused

    def _resume(self) -> None:
        if self._pause is not None or self._next_attempt is not None:
            self.run()

    def _successors(self) -> WeakValueDictionary[str, DueTimer]:
        return self._box.keep(_KEPT, WeakValueDictionary)

    def _pass_to_successor(self, moment: float) -> None:
        """Schedule a deadline with the timer of newer code: a stream's transaction outlived a reload."""
        successor = self._successors().get(self._what)
        if successor is not None and successor is not self:
            successor._schedule_earlier(moment)

    def _schedule_earlier(self, moment: float) -> None:
        if self._is_stopped:
            self._pass_to_successor(moment)
            return
        if moment >= self.at:
            return
        if moment <= self.now() and self._pause is None:
            self.run()
        else:
            self.set(moment)


def _nothing_due() -> float:
    return math.inf
