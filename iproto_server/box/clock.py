"""Time as the box knows it, so that tests can hold it in their hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

_SECOND = 10**9
"""Nanoseconds. An integer: dividing by a float would round twice."""

_NEVER = 100 * 365 * 86400.0
"""Seconds after which a timer that is set for later, or for infinity, calls: what an event loop does, too."""


class Timer(Protocol):
    """A call that is to come."""

    def cancel(self) -> None:
        """Do not call any more; harmless when it has already called."""


class Clock(Protocol):
    """Wall-clock time, and calls in the future."""

    def time_ns(self) -> int:
        """Nanoseconds since 1970; like every wall clock it may step back."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` after `delay` seconds of steady time."""

    def call_at(self, moment: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` when the wall clock shows a moment, or later, though it may step forward or back.

        Parameters:
            moment: seconds since 1970.
            callback: what to call.
        """


class ManualClock:
    """A clock that stands still until it is told to move.

    Parameters:
        now_ns: the first time, in nanoseconds since 1970.
    """

    def __init__(self, now_ns: int = 1_600_000_000_000_000_000) -> None:
        self._wall_ns = now_ns
        self._steady_ns = 0
        self._timers: list[_ManualTimer] = []

    def time_ns(self) -> int:
        """The time it was last moved to."""
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
        # As a number of seconds it has to have come, and such a number is exact to some hundred nanoseconds:
        # whoever counts in microseconds has to find that it has come, too.
        moment_ns = -(-(whole * _SECOND + math.floor((moment - whole) * _SECOND) - 150) // 1000) * 1000
        while moment_ns / _SECOND < moment:
            moment_ns += 1000
        timer = _ManualTimer(moment_ns - self._wall_ns + self._steady_ns, callback, self._timers)
        timer.is_of_wall_clock = True
        self._timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass: the timers that come due run in their order, each at its own moment.

        Parameters:
            seconds: how much time; what is below zero is no time.
        """
        end_ns = self._steady_ns + round(seconds * 1e9)
        while True:
            due = min((t for t in self._timers if t.at_ns <= end_ns), key=lambda t: t.at_ns, default=None)
            if due is None:
                break
            self._timers.remove(due)
            self._move_to(max(due.at_ns, self._steady_ns))
            due.callback()
        # A timer's function may have let more time pass itself.
        self._move_to(max(end_ns, self._steady_ns))

    def set_wall_clock(self, now_ns: int) -> None:
        """Step the wall clock, forwards or back; steady time does not move.

        Timers of `call_at` that come due by it run with the next `advance`, be it by no time.
        """
        for timer in self._timers:
            if timer.is_of_wall_clock:
                timer.at_ns += self._wall_ns - now_ns
        self._wall_ns = now_ns

    @property
    def pending(self) -> int:
        """How many timers are set."""
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
