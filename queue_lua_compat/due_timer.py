"""The next moment at which something is due in a queue: one timer, whatever the number of tasks."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from iproto_server import Box, Timer
from queue_lua_compat.retries import RETRY_AFTER

logger = logging.getLogger("queue_lua_compat.next_event")

_NANOSECONDS: Final = 1_000_000_000
_KEPT: Final = "queue_lua_compat.due_timer"


class NextEvent:
    """Calls when the earliest of many moments has come.

    Moments are seconds since 1970, by the wall clock, wherever it steps.

    Parameters:
        box: the box.
        happen: does what is due, in a transaction of the server itself, and answers the next moment, or
            infinity for never. When it raises, or its transaction is undone later, it is called again soon.
        what: what is due, for the log: "delayed tasks".

    Attributes:
        at: the moment for which the timer is set; infinity: it is not.
        timer: the timer, if it is set.
    """

    def __init__(self, box: Box, happen: Callable[[], float], what: str) -> None:
        self._box = box
        self._happen = happen
        self._what = what
        self.at = math.inf
        self.timer: Timer | None = None
        self._is_stopped = False
        self._failed = 0
        self._cause: BaseException | None = None

    def begin(self) -> None:
        """Begin when the running transaction has committed; end when it is undone after that."""
        successors = self._successors()
        before = successors.get(self._what)
        successors[self._what] = self
        if before is not None:
            self._box.on_rollback(partial(successors.__setitem__, self._what, before))
        self._box.on_commit(self.run)
        self._box.on_rollback(self.stop)

    def stop(self) -> None:
        """Never call again: whoever comes next has a timer of its own."""
        self.set(math.inf)
        self._is_stopped = True

    def expect(self, moment: float) -> None:
        """Something will be due at that moment, once the running transaction has committed."""
        # What comes before it now may be over by then: a stream's transaction takes its time.
        self._box.on_commit(partial(self._come_earlier, moment))

    def expect_at_once(self, moment: float) -> None:
        """As `expect`, but whatever becomes of the transaction: for the undo of a trigger."""
        if self._is_stopped:
            self._leave_to_successor(moment)
        elif moment < self.at:
            self.set(moment)

    def run(self) -> None:
        """Do what is due, and set the timer for what comes next."""
        self.set(math.inf)
        try:
            moment = self._box.run(self._box.session.background, self._run)
        except BaseException:
            # A trigger that another application set may raise anything; undone, it has set the timer again.
            logger.exception("cannot deal with %s, trying again", self._what)
        else:
            # Unless what happened has brought something earlier.
            if moment < self.at:
                self.set(moment)

    def attempt(self, function: Callable[..., object], *arguments: object) -> bool:
        """Do one of the things that are due. Where that fails, it is tried again soon, and keeps no other.

        Parameters:
            function: what to call; what it has changed is undone when it raises.
            arguments: its arguments.

        Returns: whether it is done.
        """
        try:
            self._box.atomic(function, *arguments)
        except BaseException as error:  # noqa: BLE001  # a trigger of another application may raise anything
            self._failed += 1
            self._cause = self._cause or error
            return False
        return True

    def set(self, moment: float) -> None:
        """Let the timer call at that moment; infinity for never."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        self.at = moment
        if moment != math.inf and not self._is_stopped:
            self.timer = self._box.clock.call_at(moment, self.run)

    def now(self) -> float:
        """The wall clock, in seconds since 1970."""
        return self._box.clock.time_ns() / _NANOSECONDS

    def _run(self) -> float:
        self._box.on_rollback(self._retry)
        self._failed, self._cause = 0, None
        moment = self._happen()
        if self._cause is None:
            return moment
        logger.error(
            "cannot deal with %d of %s, trying again", self._failed, self._what, exc_info=self._cause
        )
        self._cause = None
        return min(moment, self.now() + RETRY_AFTER)

    def _retry(self) -> None:
        self.expect_at_once(self.now() + RETRY_AFTER)

    def _successors(self) -> WeakValueDictionary[str, NextEvent]:
        return self._box.keep(_KEPT, WeakValueDictionary)

    def _leave_to_successor(self, moment: float) -> None:
        """A stream's transaction ends after the code was loaded anew: it is the new code's affair."""
        successor = self._successors().get(self._what)
        if successor is not None and successor is not self:
            successor._come_earlier(moment)

    def _come_earlier(self, moment: float) -> None:
        if self._is_stopped:
            self._leave_to_successor(moment)
            return
        if moment >= self.at:
            return
        if moment <= self.now():
            self.run()
        else:
            self.set(moment)
