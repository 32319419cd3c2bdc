"""Busy polling: the event loop looks for the next request for some microseconds before it sleeps.

To sleep and to be woken takes tens of microseconds, most of all on virtual machines, and leaves the
processor's caches cold. A client that sends its next request right after a response does not pay for that. A
look that finds nothing costs processor time, so that the loop looks more seldom the more often it has found
nothing.

The kernel's busy polling of sockets (`net.core.busy_poll`) has the same aim.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final

MICROSECONDS: Final = 100
"""How long the loop looks, unless an option says otherwise."""

_SKIPPED_MAX: Final = 8
"""After looks without success the loop sleeps at once up to 2 to the power of this many times."""


def usual_microseconds() -> int:
    """Return how long the loop looks by default: not at all where it would keep clients from running."""
    return MICROSECONDS if len(os.sched_getaffinity(0)) > 1 else 0


class BusyPoll:
    """Has the loop look for requests after it has worked.

    Parameters:
        microseconds: how long it looks each time; 0: never.
        clock: returns steady time in seconds.
    """

    __slots__ = ("_clock", "_failures", "_is_looking", "_loop", "_seconds", "_skip", "_until")

    def __init__(self, microseconds: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._seconds = microseconds / 1e6
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_looking = False
        self._until = 0.0
        self._failures = self._skip = 0

    def worked(self) -> None:
        """Look for requests from now on: the loop has answered some."""
        if self._is_looking:
            # The last look has found these requests.
            self._until = self._clock() + self._seconds
            if self._failures:
                self._failures -= 1
        elif self._skip:
            self._skip -= 1
        elif self._seconds:
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._is_looking = True
            self._until = self._clock() + self._seconds
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        """Keep the loop from sleeping: while anything is to be called soon, it only looks at its sockets."""
        if self._clock() < self._until:
            assert self._loop is not None
            self._loop.call_soon(self._look)
            return
        self._is_looking = False
        self._skip = 1 << self._failures
        self._failures = min(self._failures + 1, _SKIPPED_MAX)
