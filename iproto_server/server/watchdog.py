"""A thread that reports a blocked event loop, and ends the process if a stop does not finish.

Python calls signal handlers between two bytecodes of the main thread, and uvloop calls its own once per loop
iteration. An endless loop in a procedure therefore blocks the second SIGTERM. Python's C handler, however,
always writes the signal's number to the wakeup descriptor. This thread reads that descriptor, and passes the
numbers on to the loop.

With Lua, a thread in compiled code comes before this one: a call of a client keeps Python's lock while its
Lua code runs, so that no thread that needs the lock can look.

Source: Python reference, `signal.set_wakeup_fd`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final

from iproto_server.logging.log_setup import event

if TYPE_CHECKING:
    from iproto_server.lua.long_runs import LuaReports

logger = logging.getLogger("iproto_server.watchdog")

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that stop the server."""

END_GRACE: Final = 5.0
"""Seconds after the deadline of a stop at which the watchdog ends the process."""

SECOND_SIGNAL_GRACE: Final = 3.0
"""Seconds after a second signal at which the watchdog ends the process."""

REPORT_WITHIN: Final = 1.0
"""Seconds for writing the last log line, which may block if nothing reads the log."""

BEAT_INTERVAL: Final = 0.25
"""Seconds between two heartbeats of the loop. Each costs a timer, about 10 µs."""

_LOOP_MODULE: Final = "iproto_server.server.process"
"""The module that runs the event loop; logged tracebacks begin below it."""

_WAKE: Final = b"\0"
"""Wakes the thread to check its deadline; no signal has this number."""


class StillRunning(Exception):
    """Carries the main thread's traceback to the log; never raised."""


def _no_fields(frame: FrameType) -> Mapping[str, object]:
    return {}


class Watchdog:
    """Ends the process if its stop does not finish, and reports how long the loop has been blocked.

    Parameters:
        stop_timeout: returns the time limit of a stop, in seconds.
        too_long: returns the time for which the loop may be blocked unnoticed, in seconds.
        describe: returns the log's fields about what runs, from the main thread's innermost frame; called in
            another thread.
        end: ends the process at once with an exit status; called in the watchdog's thread.
        clock: returns steady time in seconds.
        has_lua: whether to watch Lua code, too.
    """

    def __init__(
        self,
        stop_timeout: Callable[[], float],
        too_long: Callable[[], float] = lambda: math.inf,
        describe: Callable[[FrameType], Mapping[str, object]] = _no_fields,
        end: Callable[[int], object] = os._exit,
        clock: Callable[[], float] = time.monotonic,
        has_lua: bool = False,
    ) -> None:
        self._lua: LuaReports | None = None
        if has_lua:
            from iproto_server.lua.long_runs import LuaReports

            self._lua = LuaReports(clock)
        self._stop_timeout = stop_timeout
        self._too_long = too_long
        self._describe = describe
        self._is_reported = False
        self._end = end
        self._clock = clock
        self._main = threading.main_thread()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._source = self._reader
        self._next: int | None = None
        self._due: float | None = None
        self._status = 0
        self._signals = 0
        self._is_closed = False
        self._beaten = clock()
        self._beat_timer: asyncio.TimerHandle | None = None
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start watching; call it in the running loop, after that has set its own wakeup descriptor."""
        loop = asyncio.get_running_loop()
        self._beat(loop)
        previous = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        # The loop closes its descriptor when it stops; the copy stays open.
        self._next = None if previous < 0 else os.dup(previous)
        if self._lua is not None:
            self._source = self._lua.start(
                self._reader, self._stop_timeout() + END_GRACE, SECOND_SIGNAL_GRACE
            )
        self._thread.start()

    def close(self) -> None:
        """Stop watching, in a process that outlives the server."""
        self._is_closed = True
        os.write(self._writer, _WAKE)
        self._thread.join()
        if self._beat_timer is not None:
            self._beat_timer.cancel()
        if self._lua is not None:
            self._lua.stop()
        for descriptor in {self._reader, self._source, self._writer, self._next}:
            if descriptor is not None:
                os.close(descriptor)

    @property
    def blocked_for(self) -> float:
        """Seconds since the last heartbeat was due; 0 while the loop runs."""
        return max(0.0, self._clock() - self._beaten - BEAT_INTERVAL)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        blocked, self._beaten = self.blocked_for, self._clock()
        if self._is_reported:
            self._is_reported = False
            event(logger, logging.WARNING, "the event loop runs again", blocked_seconds=round(blocked, 3))
        self._beat_timer = loop.call_later(BEAT_INTERVAL, self._beat, loop)

    # -- in the thread --

    def _watch(self) -> None:
        while not self._is_closed:
            left = math.inf if self._due is None else max(0.0, self._due - self._clock())
            if left <= 0:
                self._end_process()
                return
            self._look()
            for number in self._wait(min(left, self._too_long() / 2)):
                self._signalled(number)

    def _wait(self, seconds: float) -> bytes:
        """Wait for signals, at most for a time in seconds. Returns their numbers."""
        poll = select.poll()  # which takes all descriptors, unlike select()
        poll.register(self._source, select.POLLIN)
        ready = poll.poll(None if seconds == math.inf else seconds * 1000 + 1)
        signals = os.read(self._source, 4096) if ready else b""
        report = None if self._lua is None else self._lua.take()
        if report is not None:
            # Logging may block: on a full pipe, or on a lock that the main thread holds.
            threading.Thread(target=report, name="watchdog report", daemon=True).start()
        return signals

    def _look(self) -> None:
        """Report the loop, once, if it has been blocked for too long."""
        if self._is_reported or self.blocked_for <= self._too_long():
            return
        frame = sys._current_frames().get(self._main.ident or 0)
        if frame is None:
            return
        self._is_reported = True
        report = partial(
            event,
            logger,
            logging.WARNING,
            "the event loop is blocked",
            blocked_seconds=round(self.blocked_for, 3),
            **position_of(frame),
            **self._describe(frame),
        )
        # Logging may block: on a full pipe, or on a lock that the main thread holds.
        threading.Thread(target=report, name="watchdog report", daemon=True).start()

    def _signalled(self, number: int) -> None:
        """Pass a signal on to the loop; a stop signal sets the deadline of the process."""
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
                """The loop has ended, or its buffer is full."""

    def _end_process(self) -> None:
        """Log the main thread's position, and end the process in any state."""
        # Logging may block: on a full pipe, or on a lock that the main thread holds.
        report = threading.Thread(target=self._report, name="watchdog report", daemon=True)
        report.start()
        report.join(REPORT_WITHIN)
        self._end(self._status)

    def _report(self) -> None:
        stack = stack_of(self._main)
        threads = ", ".join(thread.name for thread in threading.enumerate() if not thread.daemon)
        logger.error(
            "the stop does not finish: ending the process with status %d; position of its main thread:",
            self._status,
            exc_info=(StillRunning, StillRunning(f"threads: {threads}"), stack),
        )


def position_of(frame: FrameType) -> Mapping[str, object]:
    """Return the log's fields that say where a frame is."""
    return {"function": frame.f_code.co_qualname, "line": f"{frame.f_code.co_filename}:{frame.f_lineno}"}


def stack_of(thread: threading.Thread) -> TracebackType | None:
    """Return a running thread's position as a traceback; None if it has ended.

    The main thread's traceback begins below the event loop.
    """
    frame: FrameType | None = sys._current_frames().get(thread.ident or 0)
    stack: TracebackType | None = None
    while frame is not None and frame.f_globals.get("__name__") != _LOOP_MODULE:
        stack = TracebackType(stack, frame, frame.f_lasti, frame.f_lineno or 1)
        frame = frame.f_back
    return stack
