"""The process's file descriptors: their limit, and a reserve of spare ones.

Clients can use up all descriptors that the system allows, but logs and snapshots must still be written. So
the server keeps some spare descriptors open, and closes one if a file cannot be opened otherwise.
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
"""Number of spare descriptors: for a log, a snapshot, their directory, and a refused client."""

RESERVED: Final = 64
"""Descriptors not used for connections by default: files, listening sockets, applications' own."""

NEEDED: Final = 48
"""Descriptors without which no server starts: Python's own, the event loop's, files and one client."""

_USED_UP: Final = (errno.EMFILE, errno.ENFILE)


def descriptor_limit() -> int:
    """Return the process's limit of descriptors."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 2**31 - 1 if limit == resource.RLIM_INFINITY else limit


def raise_descriptor_limit(wanted: int) -> int:
    """Raise the process's limit of descriptors as far as the system allows.

    Parameters:
        wanted: the wanted minimum.

    Returns: the new limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return descriptor_limit()


class SpareDescriptors:
    """A reserve of descriptors. All methods may be called in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: list[int] = []
        self._users = 0

    def hold(self) -> None:
        """Fill the reserve, until `release` is called once per call.

        Raises:
            OSError: no descriptor is left.
        """
        with self._lock:
            self._users += 1
            while len(self._held) < SPARE:
                self._held.append(_open_null())

    def release(self) -> None:
        """Empty the reserve, unless other callers of `hold` need it."""
        with self._lock:
            self._users -= 1
            while self._held and not self._users:
                os.close(self._held.pop())

    def refill(self) -> bool:
        """Refill the reserve as far as possible.

        Returns: whether it is full.
        """
        # Checked without the lock, because each new connection calls this.
        if len(self._held) >= SPARE or not self._users:
            return True
        with self._lock:
            while len(self._held) < SPARE:
                try:
                    self._held.append(_open_null())
                except OSError:
                    return False
        return True

    def open(self, open_file: Callable[[], Opened], keep: int = 0) -> Opened:
        """Open a file, with a spare descriptor if no other is left.

        Parameters:
            open_file: opens the file.
            keep: number of spare descriptors that stay in reserve.

        Raises:
            OSError: the error of `open_file`, also if the reserve is used up.
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


def _open_null() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


spare = SpareDescriptors()
"""The reserve of this process."""
