"""Log lines about Lua code that keeps the event loop busy, for the watchdog's thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from iproto_server.logging.log_setup import event
from iproto_server.native._native import long_lua, watch_lua

logger = logging.getLogger("iproto_server.lua")

TOO_LONG: Final = 0.05
"""Seconds after which Lua code is reported."""

INTERVAL: Final = 10.0
"""Seconds between two lines."""

LONGEST_WAIT: Final = 1.0


class LuaReports:
    """Finds Lua code that runs for too long, and makes a log line of it, at most one per `INTERVAL`.

    Parameters:
        clock: returns steady time in seconds.
        take_report: returns the seconds of a long run and its traceback; None without one.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        take_report: Callable[[], tuple[float, str | None] | None] = long_lua,
    ) -> None:
        self._clock = clock
        self._take_report = take_report
        self._next = clock()
        self._count = 0

    def wait(self, descriptor: int, seconds: float, left: float, grace: float, second_grace: float) -> bytes:
        """Wait for signals, for a long run of Lua code, or for a time; see `watch_lua`."""
        return watch_lua(descriptor, min(seconds, LONGEST_WAIT), TOO_LONG, left, grace, second_grace)

    def take(self) -> Callable[[], None] | None:
        """Return a function that logs what was found; None if nothing is to be logged.

        The field `count` is the number of long runs since the last line.
        """
        report = self._take_report()
        if report is None:
            return None
        self._count += 1
        now = self._clock()
        if now < self._next:
            return None
        self._next = now + INTERVAL
        count, self._count = self._count, 0
        seconds, traceback = report
        return partial(
            event,
            logger,
            logging.WARNING,
            "Lua code keeps the event loop busy",
            seconds=round(seconds, 3),
            count=count,
            traceback=in_one_line(traceback),
        )


def in_one_line(traceback: str | None) -> str:
    """Return a traceback of Lua with its innermost frame first; None is that of compiled code."""
    if traceback is None:
        return "none: the code is compiled (JIT)"
    frames = [line.strip() for line in traceback.splitlines()[1:]]
    return "; ".join(frames) or "none"
