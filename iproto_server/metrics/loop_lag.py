"""Event-loop latency: the time that a request may wait before the loop reads it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from iproto_server.managed_queue import Histogram

WINDOW: Final = 15.0
"""Seconds over which `recent` has the largest measurement, at least; twice as many at most."""
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class LoopLag:
    """Measures the latency of the running loop with one timer.

    The latency is the delay of the timer. It misses a block of the loop shorter than a period that falls
    between two timers.

    Parameters:
        period: seconds between two measurements. Ten a second cost some 10 µs of CPU a second.
        clock: returns monotonic time in seconds; not the loop's, which uvloop reads only once per iteration.
    """

    def __init__(self, period: float = 0.1, clock: Callable[[], float] = time.monotonic) -> None:
        self._period = period
        self._clock = clock
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.last = 0.0
        """The newest measurement, in seconds."""
        self.max = 0.0
        """The largest measurement since `take`, in seconds."""
        self.measured = Histogram(BOUNDS)
        """All measurements, in seconds."""
        self._window_end = 0.0
        self._in_window = self._in_last_window = 0.0

    @property
    def recent(self) -> float:
        """The largest measurement of the last 15 to 30 seconds, in seconds; any number of readers may ask."""
        return max(self._in_window, self._in_last_window)

    def start(self) -> None:
        """Start measuring, on the running loop."""
        self._schedule(asyncio.get_running_loop())

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take(self) -> tuple[float, float]:
        """Return (last, max) in seconds and begin a new interval for max."""
        taken = self.last, self.max
        self.max = 0.0
        return taken

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = self._clock() + self._period
        self._timer = loop.call_later(self._period, self._measure, loop)

    def _measure(self, loop: asyncio.AbstractEventLoop) -> None:
        # Loops round their timers, so one may run slightly early.
        now = self._clock()
        self.last = max(0.0, now - self._due)
        if self.last > self.max:
            self.max = self.last
        if now >= self._window_end:
            # A window without measurements was blocked, so its end does not matter.
            self._in_last_window, self._in_window = self._in_window, 0.0
            self._window_end = now + WINDOW
        if self.last > self._in_window:
            self._in_window = self.last
        self.measured.observe(self.last)
        self._schedule(loop)
