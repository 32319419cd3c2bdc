"""A thread that sees what the event loop cannot: that it does not turn, and that a stop does not end.

Python calls signal handlers between two bytecodes of the main thread, and uvloop its own ones when the loop
turns. A procedure that loops for ever keeps both from the second SIGTERM. So the wakeup descriptor, which the
C handler of Python writes each signal's number to in whatever state the main thread is, leads to this thread;
it passes the numbers on to the loop.

Source: Python reference, `signal.set_wakeup_fd`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final

logger = logging.getLogger("iproto_server.watchdog")

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that stop the server."""

END_GRACE: Final = 5.0
"""A stop that has not ended so many seconds after its deadline is ended by the watchdog."""

SECOND_SIGNAL_GRACE: Final = 3.0
"""After a second signal it is ended within so many seconds."""

REPORT_WITHIN: Final = 1.0
"""Seconds that the last line of the log may take: nobody may be reading it."""

BEAT_INTERVAL: Final = 0.25
"""Seconds between two heartbeats of the loop. One costs a timer, some 10 µs."""

_LOOP_MODULE: Final = "iproto_server.server.process"
"""Where the event loop runs, which is of no interest when something in it is stuck."""

_WAKE: Final = b"\0"
"""Tells the thread to look at its deadline; signals have other numbers."""


class StillRunning(Exception):
    """Not raised: the traceback of what the main thread does is logged with it."""


class Watchdog:
    """Ends the process when its stop does not, and knows since when the loop has not turned.

    Parameters:
        stop_timeout: answers how many seconds a stop may take that a signal asks for.
        end: ends the process with an exit status, at once; it is called in the watchdog's thread.
        clock: steady time in seconds.
    """

    def __init__(
        self,
        stop_timeout: Callable[[], float],
        end: Callable[[int], object] = os._exit,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stop_timeout = stop_timeout
        self._end = end
        self._clock = clock
        self._main = threading.main_thread()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._next: int | None = None
        self._due: float | None = None
        self._status = 0
        self._signals = 0
        self._is_closed = False
        self._beaten = clock()
        self._beat_timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Watch from now on. To be called in the main thread by the running loop, after it has set its own
        wakeup descriptor."""
        loop = asyncio.get_running_loop()
        self._beat(loop)
        previous = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        # The loop closes its own end when it stops running; the copy stays what it is.
        self._next = None if previous < 0 else os.dup(previous)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; for a process that goes on when the server has stopped."""
        self._is_closed = True
        os.write(self._writer, _WAKE)
        self._thread.join()
        if self._beat_timer is not None:
            self._beat_timer.cancel()
        for descriptor in (self._reader, self._writer, self._next):
            if descriptor is not None:
                os.close(descriptor)

    @property
    def blocked_for(self) -> float:
        """Seconds since the loop has turned last, as far as a heartbeat tells; 0 while it does turn."""
        return max(0.0, self._clock() - self._beaten - BEAT_INTERVAL)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        self._beaten = self._clock()
        self._beat_timer = loop.call_later(BEAT_INTERVAL, self._beat, loop)

    # -- in the thread --

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        while not self._is_closed:
            left = None if self._due is None else max(0.0, self._due - self._clock())
            if left is not None and left <= 0:
                self._end_process()
                return
            if poll.poll(None if left is None else left * 1000 + 1):
                for number in os.read(self._reader, 4096):
                    self._signalled(number)

    def _signalled(self, number: int) -> None:
        """A signal has come: pass it on, and note by when the process has to end."""
        if number in STOP_SIGNALS:
            self._signals += 1
            self._status = self._status or 128 + number
            if self._signals == 1:
                self._due = self._clock() + self._stop_timeout() + END_GRACE
            elif self._signals == 2:
                due = self._clock() + SECOND_SIGNAL_GRACE
                self._due = due if self._due is None else min(due, self._due)
        if self._next is not None and number:
            try:
                os.write(self._next, bytes((number,)))
            except OSError:
                """The loop reads no more: it has ended, or is full of signals."""

    def _end_process(self) -> None:
        """Log what the main thread does, and end the process, whatever state it is in."""
        # The log may be a pipe that nobody reads, and its lock the main thread's.
        report = threading.Thread(target=self._report, name="watchdog report", daemon=True)
        report.start()
        report.join(REPORT_WITHIN)
        self._end(self._status)

    def _report(self) -> None:
        stack = stack_of(self._main)
        threads = ", ".join(thread.name for thread in threading.enumerate() if not thread.daemon)
        logger.error(
            "the stop does not end: ending the process with status %d; its main thread is here",
            self._status,
            exc_info=(StillRunning, StillRunning(f"threads: {threads}"), stack),
        )


def stack_of(thread: threading.Thread) -> TracebackType | None:
    """Where a running thread is, as a traceback; None for one that has ended.

    The main thread's begins below the event loop.
    """
    frame: FrameType | None = sys._current_frames().get(thread.ident or 0)
    stack: TracebackType | None = None
    while frame is not None and frame.f_globals.get("__name__") != _LOOP_MODULE:
        stack = TracebackType(stack, frame, frame.f_lasti, frame.f_lineno or 1)
        frame = frame.f_back
    return stack
