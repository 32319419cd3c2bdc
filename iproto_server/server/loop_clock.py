"""The box's clock in a server: the machine's time, and timers of the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from iproto_server.box.clock import Timer

logger = logging.getLogger("iproto_server.server")


class LoopClock:
    """The machine's clock and the event loop's timers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_stopped = False

    @staticmethod
    def time_ns() -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` after `delay` seconds, unless the clock has been stopped by then."""
        return self._loop.call_later(delay, self._ring, callback)

    def stop(self) -> None:
        """Let no timer go off any more."""
        self._is_stopped = True

    def _ring(self, callback: Callable[[], None]) -> None:
        if self._is_stopped:
            return
        try:
            callback()
        except BaseException:
            # An application's code: what it raises must not end the event loop.
            logger.exception("a timer's function failed")
