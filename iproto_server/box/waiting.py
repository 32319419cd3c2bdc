"""Calls that wait: park a waiter now, answer it later.

A procedure that has nothing to answer yet returns a `Waiter`; the connection goes on with its other requests.
The server is told when the waiter is done. Nothing here knows about coroutines, so an application in another
language can wait the same way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iproto_server.box.box import Box
    from iproto_server.box.clock import Timer
    from iproto_server.box.session import Session


class _StillWaiting:
    """The type of `STILL_WAITING`."""

    __slots__ = ()


STILL_WAITING: Final = _StillWaiting()
"""What a waiter's `resume` returns when there is nothing for it after all: it keeps its place."""


class Waiter:
    """A call that is answered later.

    Attributes:
        session: the caller.
        is_done: whether it was answered, timed out or was given up.
        result: what the procedure would have returned, once done.
        error: what the procedure would have raised, once done.
    """

    __slots__ = ("_on_done", "error", "is_done", "result", "resume", "session", "timer")

    def __init__(self, session: Session, resume: Callable[[], object]) -> None:
        self.session = session
        self.resume = resume
        self.timer: Timer | None = None
        self.is_done = False
        self.result: object = None
        self.error: Exception | None = None
        self._on_done: Callable[[Waiter], None] | None = None

    def on_done(self, callback: Callable[[Waiter], None]) -> None:
        """Call `callback` once when the waiter is done (at once when it is)."""
        if self.is_done:
            callback(self)
        else:
            self._on_done = callback

    def finish(self, result: object = None, error: Exception | None = None) -> None:
        """Answer the call; harmless when it was answered before."""
        if self.is_done:
            return
        self.is_done = True
        self.result = result
        self.error = error
        self.session.on_close.pop(self, None)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self._on_done is not None:
            self._on_done(self)


class WaitQueue:
    """Waiters in a line: the first to come is the first to be served.

    Parameters:
        box: the box whose clock times them out and as whose sessions they resume.
    """

    def __init__(self, box: Box) -> None:
        self._box = box
        self._line: deque[Waiter] = deque()
        self._gone = 0
        self._is_waking = False
        self._wakes_to_come = 0

    def __len__(self) -> int:
        return len(self._line) - self._gone

    def park(self, timeout: float, resume: Callable[[], object]) -> Waiter:
        """Put the current session at the end of the line.

        Parameters:
            timeout: seconds after which the call is answered without a value.
            resume: what to try when woken, run as the waiting session and in a transaction of its own; its
                result (or what it raises) is the answer, unless it is `STILL_WAITING`.

        Returns: what the procedure has to return.
        """
        box = self._box
        waiter = Waiter(box.session.current, resume)
        waiter.timer = box.clock.call_later(timeout, lambda: self._give_up(waiter))
        waiter.session.on_close[waiter] = lambda: self._give_up(waiter)
        self._line.append(waiter)
        return waiter

    def wake(self, count: int = 1) -> int:
        """Let up to `count` waiters try, first come first served, until one finds nothing.

        Call it outside of a transaction (`box.on_commit(line.wake)`).

        Returns: how many were answered.
        """
        if self._is_waking:
            # What a waiter does when it resumes may wake others: they get their turn when it is through.
            self._wakes_to_come += count
            return 0
        self._is_waking = True
        served = 0
        try:
            while served < count and self._serve_first():
                served += 1
                count += self._wakes_to_come
                self._wakes_to_come = 0
        finally:
            self._is_waking = False
            self._wakes_to_come = 0
        return served

    def _serve_first(self) -> bool:
        """Let the first in the line try; whether it was answered."""
        line = self._line
        while line and line[0].is_done:
            line.popleft()
            self._gone -= 1
        if not line:
            return False
        waiter = line[0]
        try:
            result = self._box.run(waiter.session, waiter.resume)
        except Exception as error:  # noqa: BLE001  # whatever the procedure raised is the answer to its caller
            line.popleft()
            waiter.finish(error=error)
            return True
        if result is STILL_WAITING:
            return False
        line.popleft()
        waiter.finish(result)
        return True

    def _give_up(self, waiter: Waiter) -> None:
        """The time is over, or nobody is there any more to answer to."""
        if waiter.is_done:
            return
        self._gone += 1
        waiter.finish()
        # They leave the line when they get to its front, or all at once when they are half of it.
        if not self._is_waking and self._gone > len(self._line) // 2:
            self._line = deque(waiting for waiting in self._line if not waiting.is_done)
            self._gone = 0
