"""The process's file descriptors: how many there may be, and a few kept for when there are no others.

Clients can use up all descriptors that the system allows. Logs and snapshots must be written all the same, so
the server holds some descriptors open that lead nowhere, and closes one when a file cannot be opened
otherwise.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Callable
from typing import Final, TypeVar

Opened = TypeVar("Opened")

SPARE: Final = 4
"""Descriptors that are kept: for a log, a snapshot, their directory, and a client that is refused."""

RESERVED: Final = 64
"""Descriptors that are not for connections by default: files, listening sockets, what applications open."""

_USED_UP: Final = (errno.EMFILE, errno.ENFILE)


def descriptor_limit() -> int:
    """How many descriptors the process may have."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2**31 - 1 if limit == resource.RLIM_INFINITY else limit


def raise_descriptor_limit(wanted: int) -> int:
    """Let the process have more descriptors, as far as the system allows it.

    Parameters:
        wanted: how many, at least.

    Returns: how many it may have now.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return descriptor_limit()


class SpareDescriptors:
    """Descriptors that are kept for when there are no others. It may be used in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: list[int] = []
        self._users = 0

    def hold(self) -> None:
        """Keep descriptors from now on, until a `release` for each call.

        Raises:
            OSError: there are none left.
        """
        with self._lock:
            self._users += 1
            while len(self._held) < SPARE:
                self._held.append(_open_nothing())

    def release(self) -> None:
        """Keep none any more, unless others want it."""
        with self._lock:
            self._users -= 1
            while self._held and not self._users:
                os.close(self._held.pop())

    def refill(self) -> bool:
        """Get back what was given away, as far as there is any.

        Returns: whether that is all.
        """
        # Read without the lock, as every new connection asks: it is right, or about to be.
        if len(self._held) >= SPARE or not self._users:
            return True
        with self._lock:
            while len(self._held) < SPARE:
                try:
                    self._held.append(_open_nothing())
                except OSError:
                    return False
        return True

    def open(self, open_file: Callable[[], Opened], keep: int = 0) -> Opened:
        """Open a file, with one of the kept descriptors if there are no others.

        Parameters:
            open_file: opens the file.
            keep: so many of the descriptors stay for others.

        Raises:
            OSError: what `open_file` raises when there is no descriptor left here either, or anything else.
        """
        self.refill()
        try:
            return open_file()
        except OSError as error:
            if error.errno not in _USED_UP:
                raise
            with self._lock:
                if len(self._held) <= keep:
                    raise
                os.close(self._held.pop())
                return open_file()


def _open_nothing() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


spare = SpareDescriptors()
"""The process's own."""
