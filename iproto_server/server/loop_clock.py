"""The box's clock in a server: system time and timers of the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from iproto_server.box.clock import Timer

logger = logging.getLogger("iproto_server.server")

STEP_CHECK: Final = 0.1
"""Seconds between two checks for a step of the wall clock; a check takes about 1 µs."""
_STEP_NS: Final = 10_000_000
"""Minimum step in nanoseconds: a change of the difference between wall clock and steady time."""
_NEVER: Final = 100 * 365 * 86400.0
"""Longest delay of a loop timer, in seconds."""


class LoopClock:
    """System time and the event loop's timers.

    Loops know only steady time. While timers for wall clock times are set, the wall clock is checked
    regularly; after a step (the clock was set, the machine was suspended) these timers are set again.

    Parameters:
        loop: the event loop.
        time_ns: returns the wall clock time, in nanoseconds since 1970.
        steady_ns: returns steady time, in nanoseconds.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        time_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._loop = loop
        self.time_ns = time_ns
        self._steady_ns = steady_ns
        self._is_stopped = False
        self._wall_timers: dict[_WallTimer, None] = {}
        self._difference = 0
        self._is_watching = False

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` after `delay` seconds, unless the clock has been stopped by then."""
        return self._loop.call_later(delay, self._ring, callback)

    def call_at(self, moment: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` at a time in seconds since 1970, unless the clock has been stopped by then.

        If the wall clock steps past that time, `callback` is called within `STEP_CHECK` seconds.
        """
        timer = _WallTimer(moment, callback, self._wall_timers)
        self._wall_timers[timer] = None
        if not self._is_watching:
            self._is_watching = True
            self._difference = self.time_ns() - self._steady_ns()
            self._loop.call_later(STEP_CHECK, self._look_for_step)
        self._set(timer)
        return timer

    def stop(self) -> None:
        """Cancel all timers, also future ones."""
        self._is_stopped = True
        for timer in list(self._wall_timers):
            timer.cancel()

    def _set(self, timer: _WallTimer) -> None:
        if timer.handle is not None:
            timer.handle.cancel()
        delay = min(max(timer.moment - self.time_ns() / 1e9, 0.0), _NEVER)
        timer.handle = self._loop.call_later(delay, self._ring_at, timer)

    def _look_for_step(self) -> None:
        if not self._wall_timers or self._is_stopped:
            self._is_watching = False
            return
        difference = self.time_ns() - self._steady_ns()
        if abs(difference - self._difference) >= _STEP_NS:
            self._difference = difference
            for timer in self._wall_timers:
                self._set(timer)
        self._loop.call_later(STEP_CHECK, self._look_for_step)

    def _ring_at(self, timer: _WallTimer) -> None:
        self._wall_timers.pop(timer, None)
        self._ring(timer.callback)

    def _ring(self, callback: Callable[[], None]) -> None:
        if self._is_stopped:
            return
        try:
            callback()
        except BaseException:
            # An application's exception must not end the event loop.
            logger.exception("a timer's function failed")


class _WallTimer:
    """A call at a wall clock time."""

    __slots__ = ("_timers", "callback", "handle", "moment")

    def __init__(self, moment: float, callback: Callable[[], None], timers: dict[_WallTimer, None]) -> None:
        self.moment = moment
        self.callback = callback
        self.handle: asyncio.TimerHandle | None = None
        self._timers = timers

    def cancel(self) -> None:
        """Cancel the call."""
        self._timers.pop(self, None)
        if self.handle is not None:
            self.handle.cancel()
