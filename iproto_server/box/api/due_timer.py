"""One timer for the earliest of many deadlines, such as those of all tasks of a queue."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from iproto_server.box.api.box import Box
from iproto_server.box.clock import Timer

logger = logging.getLogger("iproto_server.due_timer")

RETRY_AFTER: Final = 1.0
"""Seconds between two attempts."""
_NANOSECONDS: Final = 1_000_000_000
_KEPT: Final = "iproto_server.due_timer"


class DueTimer:
    """Calls a function when the earliest of many deadlines is reached.

    Deadlines are seconds since 1970 by the wall clock; the timer follows the clock when it is stepped.

    Parameters:
        box: the box.
        on_due: processes everything that is due and returns the next deadline, or infinity if there is none.
            It runs in a transaction of the server's own session. When it raises, or its transaction is rolled
            back later, it is called again after `RETRY_AFTER` seconds.
        what: the subject of log messages: "delayed tasks".

    Attributes:
        at: the deadline for which the timer is set; infinity if it is not set.
        timer: the timer, if it is set.
    """

    def __init__(self, box: Box, on_due: Callable[[], float], what: str) -> None:
        self._box = box
        self._on_due = on_due
        self._what = what
        self.at = math.inf
        self.timer: Timer | None = None
        self._is_stopped = False
        self._failed = 0
        self._cause: BaseException | None = None

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
        self.set(math.inf)
        self._is_stopped = True

    def schedule(self, moment: float) -> None:
        """Schedule a deadline for when the running transaction has committed.

        Parameters:
            moment: the deadline, in seconds since 1970.
        """
        # A stream's transaction may stay open for long: its deadlines are compared with others on commit.
        if moment < self.at or self._box.transactions.interactive is not None:
            self._box.on_commit(partial(self._schedule_earlier, moment))

    def schedule_immediately(self, moment: float) -> None:
        """Schedule a deadline whether the running transaction commits or not: for a trigger's `undo`."""
        if self._is_stopped:
            self._pass_to_successor(moment)
        elif moment < self.at:
            self.set(moment)

    def run(self) -> None:
        """Process what is due, and set the timer for the next deadline."""
        self.set(math.inf)
        try:
            moment = self._box.run(self._box.session.background, self._run)
        except BaseException:
            # Another application's trigger may raise anything; the rollback has set the timer again.
            logger.exception("cannot deal with %s, trying again", self._what)
        else:
            # `on_due` may have scheduled an earlier deadline.
            if moment < self.at:
                self.set(moment)

    def attempt(self, function: Callable[..., object], *arguments: object) -> bool:
        """Process one due item. A failed one is retried after `RETRY_AFTER` seconds; others go ahead.

        Parameters:
            function: called with the arguments; when it raises, its changes are rolled back.
            arguments: its arguments.

        Returns: True if the function has succeeded.
        """
        try:
            self._box.atomic(function, *arguments)
        except BaseException as error:  # noqa: BLE001  # another application's trigger may raise anything
            self._failed += 1
            self._cause = self._cause or error
            return False
        return True

    def set(self, moment: float) -> None:
        """Set the timer to a deadline in seconds since 1970; infinity cancels it."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        self.at = moment
        if moment != math.inf and not self._is_stopped:
            self.timer = self._box.clock.call_at(moment, self.run)

    def now(self) -> float:
        """Return the wall clock time in seconds since 1970."""
        return self._box.clock.time_ns() / _NANOSECONDS

    def _run(self) -> float:
        self._box.on_rollback(self._retry)
        self._failed, self._cause = 0, None
        moment = self._on_due()
        if self._cause is None:
            return moment
        logger.error(
            "cannot deal with %d of %s, trying again", self._failed, self._what, exc_info=self._cause
        )
        self._cause = None
        return min(moment, self.now() + RETRY_AFTER)

    def _retry(self) -> None:
        self.schedule_immediately(self.now() + RETRY_AFTER)

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
        if moment <= self.now():
            self.run()
        else:
            self.set(moment)
