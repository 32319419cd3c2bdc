"""The clock interface of the box; tests use `ManualClock`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

_SECOND = 10**9
"""Nanoseconds. An integer: dividing by a float would round twice."""

_NEVER = 100 * 365 * 86400.0
"""The longest delay of a timer, in seconds; longer ones are shortened, as by an event loop."""


class Timer(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call; does nothing after it has run."""


class Clock(Protocol):
    """Wall-clock time and timers."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970; may step back, as any wall clock."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` after `delay` seconds of monotonic time."""

    def call_at(self, moment: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once the wall clock has reached a moment, even if the clock steps.

        Parameters:
            moment: seconds since 1970.
            callback: the function.
        """


class ManualClock:
    """A clock that stands still until a test advances it.

    Parameters:
        now_ns: the initial time, in nanoseconds since 1970.
    """

    def __init__(self, now_ns: int = 1_600_000_000_000_000_000) -> None:
        self._wall_ns = now_ns
        self._steady_ns = 0
        self._timers: list[_ManualTimer] = []

    def time_ns(self) -> int:
        """The time that was last set."""
        return self._wall_ns

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` when `advance` passes `delay` seconds from now."""
        timer = _ManualTimer(self._steady_ns + round(min(delay, _NEVER) * 1e9), callback, self._timers)
        self._timers.append(timer)
        return timer

    def call_at(self, moment: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` when `advance` passes a moment of the wall clock, in seconds since 1970."""
        moment = min(moment, self._wall_ns / 1e9 + _NEVER)
        whole = math.floor(moment)
        # A float of seconds is exact to some hundred nanoseconds, so the time is rounded up to microseconds:
        # callers that compare in seconds or in microseconds both find that the moment has come.
        moment_ns = -(-(whole * _SECOND + math.floor((moment - whole) * _SECOND) - 150) // 1000) * 1000
        while moment_ns / _SECOND < moment:
            moment_ns += 1000
        timer = _ManualTimer(moment_ns - self._wall_ns + self._steady_ns, callback, self._timers)
        timer.is_of_wall_clock = True
        self._timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Advance the clock; due timers run in order, each at its own time.

        Parameters:
            seconds: the time to advance; negative values count as 0.
        """
        end_ns = self._steady_ns + round(seconds * 1e9)
        while True:
            due = min((t for t in self._timers if t.at_ns <= end_ns), key=lambda t: t.at_ns, default=None)
            if due is None:
                break
            self._timers.remove(due)
            self._move_to(max(due.at_ns, self._steady_ns))
            due.callback()
        # A callback may have advanced the clock further.
        self._move_to(max(end_ns, self._steady_ns))

    def set_wall_clock(self, now_ns: int) -> None:
        """Step the wall clock, forwards or back; monotonic time does not change.

        Timers of `call_at` that become due run with the next `advance`, which may be by 0.
        """
        for timer in self._timers:
            if timer.is_of_wall_clock:
                timer.at_ns += self._wall_ns - now_ns
        self._wall_ns = now_ns

    @property
    def pending(self) -> int:
        """The number of active timers."""
        return len(self._timers)

    def _move_to(self, steady_ns: int) -> None:
        self._wall_ns += steady_ns - self._steady_ns
        self._steady_ns = steady_ns


class _ManualTimer:
    __slots__ = ("_timers", "at_ns", "callback", "is_of_wall_clock")

    def __init__(self, at_ns: int, callback: Callable[[], None], timers: list[_ManualTimer]) -> None:
        self.at_ns = at_ns
        self.callback = callback
        self.is_of_wall_clock = False
        self._timers = timers

    def cancel(self) -> None:
        if self in self._timers:
            self._timers.remove(self)
