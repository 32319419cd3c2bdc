"""A client process that sends a PING every millisecond and records the slowest answer."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from typing import Final, Self

from bench.client.connection import Connection
from bench.client.dialect import Dialect
from bench.lib.process import Address
from bench.peers.contender import Server

INTERVAL: Final = 0.001


class Pinger:
    """The client process, as a context manager.

    Parameters:
        server: the server to ping.
    """

    def __init__(self, server: Server) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        arguments = (server.address, server.contender.dialect, theirs)
        self._process = context.Process(target=_ping, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self.longest()

    def longest(self) -> float:
        """Return the seconds that the slowest answer took since the last call."""
        self._pipe.send(None)
        longest = self._pipe.recv()
        assert isinstance(longest, float)
        return longest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pipe.close()
        self._process.join()


def _ping(address: Address, dialect: Dialect, pipe: Pipe[float, None]) -> None:
    # With real-time priority it waits for the server only, not for a processor.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    longest, due = 0.0, time.perf_counter()
    with Connection(address, dialect) as connection, suppress(EOFError):
        while True:
            if pipe.poll():
                pipe.recv()
                pipe.send(longest)
                longest = 0.0
            begun = time.perf_counter()
            connection.ping()
            ended = time.perf_counter()
            longest = max(longest, ended - begun)
            due = max(due + INTERVAL, ended)
            time.sleep(due - ended)
