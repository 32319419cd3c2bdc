"""Log lines about Lua code that keeps the event loop busy, for the watchdog's thread."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import Final

from iproto_server.logging.log_setup import event
from iproto_server.native._native import long_lua, unwatch_lua, watch_lua

logger = logging.getLogger("iproto_server.lua")

TOO_LONG: Final = 0.05
"""Seconds after which Lua code is reported."""

INTERVAL: Final = 10.0
"""Seconds between two lines."""


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

    def start(self, signals: int, grace: float, second_grace: float) -> int:
        """Start to watch; see `watch_lua`.

        Parameters:
            signals: a pipe from which numbers of signals are read.
            grace: seconds from the first signal to stop to the end of the process.
            second_grace: the same from the second one.

        Returns:
            A pipe to read them from instead; 0 says that `take` may have something.
        """
        reader, self._next_writer = os.pipe()
        os.set_blocking(self._next_writer, False)
        watch_lua(signals, self._next_writer, TOO_LONG, grace, second_grace)
        return reader

    def stop(self) -> None:
        """End what `start` has begun; the pipe ends."""
        unwatch_lua()
        os.close(self._next_writer)

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
