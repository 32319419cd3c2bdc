"""Receives a server's counters as Graphite's carbon does, and keeps the newest value of each."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Final, Self

from bench.lib.process import LOOPBACK

_RECEIVE: Final = 2**16


class CounterReceiver:
    """A receiver of Graphite's plain text protocol on a free port of 127.0.0.1. Use as a context manager.

    Attributes:
        address: its address, in the form of `--graphite`.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server((LOOPBACK, 0))
        self.address = f"{LOOPBACK}:{self._listener.getsockname()[1]}"
        self._connection = socket.socket()
        self._values: dict[str, float] = {}
        self._samples = threading.Condition()
        self._count = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._receive)
        self._thread.start()

    def values(self, within: float = 30.0) -> dict[str, float]:
        """Wait for the next complete sample.

        Parameters:
            within: the maximum number of seconds to wait.

        Returns:
            The counters by their names.

        Raises:
            TimeoutError: No sample has come.
        """
        with self._samples:
            # A sample in progress was taken earlier: the one after it is complete.
            target = self._count + 2
            if not self._samples.wait_for(lambda: self._count >= target, within):
                raise TimeoutError(f"no counters within {within:g} s")
            return dict(self._values)

    def _receive(self) -> None:
        while not self._is_over:
            with suppress(OSError):
                self._connection, _ = self._listener.accept()
                with self._connection, self._connection.makefile("r") as lines:
                    for line in lines:
                        self._take(line)

    def _take(self, line: str) -> None:
        name, value, _ = line.split()
        with self._samples:
            if name in self._values and name == next(iter(self._values)):
                self._count += 1
                self._samples.notify_all()
            self._values[name] = float(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over = True
        # Ends the thread's reading or accepting.
        for one in (self._connection, self._listener):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
