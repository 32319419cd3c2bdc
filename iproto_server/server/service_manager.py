"""Tells the service manager, systemd, what the server does, and that its event loop runs.

Source: sd_notify(3), sd_watchdog_enabled(3), systemd.service(5), `Type=notify-reload`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, MutableMapping
from typing import Final

logger = logging.getLogger("iproto_server.service_manager")

STATUS_INTERVAL: Final = 15.0
"""Seconds between two looks at the status while the server runs; an unchanged one is not sent."""

PROGRESS_INTERVAL: Final = 5.0
"""Seconds between two messages about a recovery."""

LEAST_EXTENSION: Final = 120.0
"""The least number of seconds for which a start that goes on asks, until its next message."""

SEND_TIMEOUT: Final = 1.0
"""Seconds for which a change of state may wait for a busy service manager."""

STATUS_MAX: Final = 500
"""Maximum number of characters of a status; systemd refuses messages of more than a page."""

_MICROSECONDS: Final = 1_000_000
_USEC_INFINITY: Final = 2**64 - 1


class ServiceManager:
    """The service manager that has started this process.

    A message that cannot be sent is a warning, once; the server runs on.

    Parameters:
        path: the socket for messages: an absolute path, or "@" and an abstract name; "": there is no service
            manager, and nothing is sent.
        watchdog: seconds within which it expects a sign of life; None: it expects none.
        clock: returns steady time in seconds.
    """

    def __init__(
        self, path: str = "", watchdog: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._watchdog = watchdog
        self._clock = clock
        self._address = b"\0" + os.fsencode(path[1:]) if path.startswith("@") else os.fsencode(path)
        self._socket: socket.socket | None = None
        self._describe: Callable[[], str] | None = None
        self._sent_status = ""
        self._is_stopping = False
        self._is_unreachable = False
        self._begun = self._due = clock()
        if not path:
            return
        if path[0] not in "/@":
            logger.warning('cannot notify the service manager: NOTIFY_SOCKET "%s" is not a unix socket', path)
            return
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str], pid: int) -> ServiceManager:
        """Find the service manager; a wrong variable is a warning.

        Its variables are removed from the environment, so that children do not speak for the server.

        Parameters:
            environment: environment variables.
            pid: the id of this process.
        """
        path = environment.pop("NOTIFY_SOCKET", "")
        interval = environment.pop("WATCHDOG_USEC", "")
        owner = environment.pop("WATCHDOG_PID", "")
        if owner and not _is_number(owner):
            logger.warning(
                'no signs of life for the service manager: WATCHDOG_PID "%s" is not a number', owner
            )
            return cls(path)
        if not interval or (owner and int(owner) != pid):
            return cls(path)
        if not _is_number(interval) or not 0 < int(interval) < _USEC_INFINITY:
            logger.warning(
                'no signs of life for the service manager: WATCHDOG_USEC "%s" is not a number of'
                " microseconds",
                interval,
            )
            return cls(path)
        return cls(path, int(interval) / _MICROSECONDS)

    @property
    def is_present(self) -> bool:
        """Whether there is one, so that messages are sent."""
        return self._socket is not None

    # -- changes of state --

    def starting(self, status: str) -> None:
        """Tell what the start does, and ask for time to do it.

        Parameters:
            status: what it does.
        """
        self._due = self._clock() + PROGRESS_INTERVAL
        # The next message may take as long as all that has been done: indexes follow the rows.
        extension = max(LEAST_EXTENSION, self._clock() - self._begun)
        self._send(_status(status), f"EXTEND_TIMEOUT_USEC={int(extension * _MICROSECONDS)}")

    @property
    def is_progress_due(self) -> bool:
        """Whether the last message about the start is old enough for the next one."""
        return self._clock() >= self._due

    def ready(self, describe: Callable[[], str]) -> None:
        """Tell that the server accepts connections; begin to give signs of life, in the running loop.

        Parameters:
            describe: returns the status, for now and from time to time.
        """
        if self._socket is None:
            return
        self._describe = describe
        self._sent_status = describe()
        self._send("READY=1", _status(self._sent_status), waits=True)
        loop = asyncio.get_running_loop()
        if self._watchdog is not None:
            self._give_sign_of_life(loop, self._watchdog / 2)
        loop.call_later(STATUS_INTERVAL, self._look_at_status, loop)

    def reloading(self) -> None:
        """Tell that a reload begins."""
        if self._describe is None or self._is_stopping:
            return
        # The sign of life is for an import that keeps the event loop.
        life = () if self._watchdog is None else ("WATCHDOG=1",)
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send("RELOADING=1", f"MONOTONIC_USEC={now}", _status("reloading"), *life, waits=True)

    def reloaded(self) -> None:
        """Tell that a reload has ended; the status says how."""
        if self._describe is None or self._is_stopping:
            return
        self._sent_status = self._describe()
        self._send("READY=1", _status(self._sent_status), waits=True)

    def stopping(self, timeout: float) -> None:
        """Tell that the server stops, and ask for time to do it.

        Parameters:
            timeout: seconds after which it has stopped.
        """
        self._is_stopping = True
        extension = f"EXTEND_TIMEOUT_USEC={int(timeout * _MICROSECONDS)}"
        self._send("STOPPING=1", _status("stopping"), extension, waits=True)

    # -- from time to time --

    def _give_sign_of_life(self, loop: asyncio.AbstractEventLoop, interval: float) -> None:
        self._send("WATCHDOG=1")
        loop.call_later(interval, self._give_sign_of_life, loop, interval)

    def _look_at_status(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._describe is None or self._is_stopping:
            return
        status = self._describe()
        if status != self._sent_status:
            self._sent_status = status
            self._send(_status(status))
        loop.call_later(STATUS_INTERVAL, self._look_at_status, loop)

    def _send(self, *assignments: str, waits: bool = False) -> None:
        """Send a message. One that may not wait is lost if the service manager is busy."""
        if self._socket is None:
            return
        self._socket.settimeout(SEND_TIMEOUT if waits else 0.0)
        try:
            self._socket.sendto("\n".join(assignments).encode(errors="replace"), self._address)
        except BlockingIOError:
            return
        except OSError as error:
            if not self._is_unreachable:
                logger.warning(
                    "cannot notify the service manager at NOTIFY_SOCKET %s: %s",
                    os.fsdecode(self._address.replace(b"\0", b"@")),
                    error.strerror or error,
                )
            self._is_unreachable = True
        else:
            self._is_unreachable = False


class RecoveryStatus:
    """Tells the service manager the progress of a recovery, so that a long one is not ended.

    Parameters:
        manager: the service manager.
    """

    def __init__(self, manager: ServiceManager) -> None:
        self._manager = manager
        self._size = 0
        self._rows = 0

    def begin(self, size: int) -> None:
        """Begin; `size` is the number of bytes to read."""
        self._size = size
        self._manager.starting("recovering")

    def update(self, rows: int, position: int) -> None:
        """Report the rows and bytes read so far; called for every block."""
        self._rows = rows
        if self._manager.is_progress_due:
            share = position / self._size if self._size else 1
            self._manager.starting(f"recovering: {rows:,} rows, {share * 100:.0f} %")

    def end(self) -> None:
        """End, after success or failure."""
        self._manager.starting(f"read {self._rows:,} rows")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _status(text: str) -> str:
    """Return the assignment of a status: one line, so that a text cannot assign anything else."""
    return f"STATUS={' '.join(text.split())[:STATUS_MAX]}"
