"""The time limit of a block in the main thread, by the signal SIGALRM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


def check_time_limit(seconds: float) -> None:
    """Check a time limit.

    Raises:
        ValueError: it is not positive, or there is no limit here.
    """
    if not seconds > 0:
        raise ValueError(f"time_limit is more than 0 seconds, or None for no limit, not {seconds!r}")
    if not hasattr(signal, "setitimer"):
        raise ValueError("time_limit: this system has no SIGALRM")
    if threading.current_thread() is not threading.main_thread():
        raise ValueError("time_limit: only the main thread can be interrupted")


class Alarm:
    """Raises TimeoutError in the running code when a time is over, and every second from then on until `end`:
    code that swallows the error goes on otherwise.

    Parameters:
        seconds: the time.
        around: the functions around the block; nothing is raised in them.

    Attributes:
        error: what was raised, or would have been; None before the end of the time.
    """

    def __init__(self, seconds: float, *around: Callable[..., object]) -> None:
        self._seconds = seconds
        self._around = {function.__code__ for function in around}
        self.error: TimeoutError | None = None
        self._before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)

    def end(self) -> bool:
        """Stop it, and return whether the time was over."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)
        return self.error is not None

    def _ring(self, number: int, frame: FrameType | None) -> None:
        text = f"the block took longer than its time limit of {self._seconds:g} s"
        self.error = TimeoutError(text)
        while frame is not None:
            if frame.f_code in self._around:
                return
            frame = frame.f_back
        raise self.error
