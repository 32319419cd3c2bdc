"""Fair scheduling of pipelined requests.

A few requests are carried out when they come. Of a client that sends many, the rest waits in a line, and
what is in the line has a small part of each loop iteration: all others are looked at in between, so nobody
waits long because somebody is in a hurry. Clients in the line are not read from.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

from iproto_server.native._native import SchedulerState
from iproto_server.server.client_connection import ClientConnection

SHARE: Final = 0.0001
"""Seconds of a loop iteration that are for those who send more, while there are others."""

SHARE_ALONE: Final = 0.002
"""And when there are none: long enough that a write to the log serves many requests."""

ALONE_AFTER: Final = 0.1
"""Seconds without anybody else after which they are alone."""


class FairScheduler(SchedulerState):
    """The line of the connections that have more to do.

    Parameters:
        flush: sends what is answered already: that does not wait for the next turn.

    Attributes:
        has_others: whether somebody was served at once since this was last set to False.
    """

    def __init__(self, flush: Callable[[], None]) -> None:
        self._share = SHARE_ALONE
        self._alone_from = 0.0
        self._flush = flush
        self._line: deque[ClientConnection] = deque()
        self._in_line: set[ClientConnection] = set()
        self._is_scheduled = False
        self._end = 0.0

    def begin(self) -> float:
        """Ask for a part of this iteration.

        Returns:
            The time, by `perf_counter`, at which it ends; 0 if there is none left.
        """
        if self._line:
            return 0.0
        now = perf_counter()
        if not self._is_scheduled:
            self._schedule()
            self._end = now + self._share
        return self._end if now < self._end else 0.0

    def add(self, connection: ClientConnection) -> None:
        """Let a connection stand at the end of the line, if it is not in it."""
        if connection not in self._in_line:
            self._in_line.add(connection)
            self._line.append(connection)
            if not self._is_scheduled:
                self._schedule()

    @property
    def is_busy(self) -> bool:
        """Whether a connection is in the line."""
        return bool(self._line)

    def __contains__(self, connection: object) -> bool:
        """Whether a connection is in the line."""
        return connection in self._in_line

    def discard(self, connection: ClientConnection) -> None:
        """Let a connection leave the line."""
        if connection in self._in_line:
            self._in_line.discard(connection)
            self._line.remove(connection)

    def _schedule(self) -> None:
        self._is_scheduled = True
        # What is readable now is looked at before this runs.
        asyncio.get_running_loop().call_soon(self._give)

    def _give(self) -> None:
        """Let those in the line go on, one after another, until the iteration's part is over."""
        self._is_scheduled = False
        self._flush()
        now = perf_counter()
        if self.has_others:
            self.has_others = False
            self._alone_from = now + ALONE_AFTER
        self._share = SHARE if now < self._alone_from else SHARE_ALONE
        line = self._line
        end = now + self._share
        while line:
            connection = line.popleft()
            self._in_line.discard(connection)
            if connection.take_turn(end):
                self._in_line.add(connection)
                line.append(connection)
            if perf_counter() >= end:
                break
        if line and not self._is_scheduled:
            self._schedule()
