"""The limit on unsent bytes of all clients together.

Each connection has a limit of its own, `write_high_water`, above which its requests wait. Above the common
limit

- a SELECT with a large answer waits, unless nothing else is unsent. The request waits, not its answer: it
  runs again when there is room, first come, first served;
- connections with many unsent bytes wait earlier than otherwise. All others, and small answers, proceed.

Clients that never read cannot block those that do: without room, one large answer at a time may exceed the
limit. The next one follows when its client has read it, or has read none of it for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from iproto_server.box.clock import Clock, Timer
from iproto_server.config.config import Config
from iproto_server.native._native import LARGE_ANSWER
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

TICK: Final = 0.1
"""Seconds between two checks of slow connections."""

SCAN_TICKS: Final = 10
"""Ticks between two checks of all connections."""

STALL_TICKS: Final = 20
"""Ticks without progress after which a client no longer blocks the next large answer."""


class NoRoomError(Exception):
    """The answer would exceed the limit: the request has to wait and run again."""


class UnsentLimit:
    """Admits large answers.

    Parameters:
        config: returns the current configuration.
        connections: all connections.
        clock: provides the timer.
        log: logs that requests wait.

    Attributes:
        waited: number of requests that had to wait.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        connections: set[ClientConnection],
        clock: Clock,
        log: RateLimitedLog,
    ) -> None:
        self._config = config
        self._connections = connections
        self._clock = clock
        self._log = log
        self._slow: set[ClientConnection] = set()
        self._waiting: dict[ClientConnection, int] = {}
        self._promised: dict[ClientConnection, int] = {}
        self._exceeding: ClientConnection | None = None
        self._exceeding_unsent = 0
        self._stalled = 0
        self._ticks = 0
        self._timer: Timer | None = None
        self.waited = 0

    @property
    def unsent(self) -> int:
        """Unsent bytes of slow connections, and those of admitted answers."""
        return sum(connection.unsent for connection in self._slow) + sum(self._promised.values())

    # -- answers --

    def admit(self, connection: ClientConnection, size: int) -> bool:
        """Whether there is room for a large answer; if not, the connection is queued.

        Parameters:
            connection: the connection.
            size: bytes of the answer.
        """
        if self._promised.pop(connection, None) is None and not self._has_room(size):
            if connection not in self._waiting:
                self.waited += 1
                self._log.event(logging.WARNING, "requests wait: too many unsent bytes", bytes=self.unsent)
            self._waiting[connection] = size
            return False
        self._waiting.pop(connection, None)
        self.add(connection)
        return True

    def promise(self, connection: ClientConnection) -> None:
        """Admit the next large answer of a connection in any case."""
        self._waiting.pop(connection, None)
        self._promised[connection] = 0

    def add(self, connection: ClientConnection) -> None:
        """Add a connection with many unsent bytes."""
        self._slow.add(connection)
        if self._timer is None:
            self._timer = self._clock.call_later(TICK, self._tick)

    def forget(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        if connection is self._exceeding:
            self._exceeding = None
        self._promised.pop(connection, None)
        self._waiting.pop(connection, None)
        if connection in self._slow:
            self._slow.discard(connection)
            self._resume_waiting()

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _has_room(self, size: int) -> bool:
        unsent = self.unsent
        return not unsent or unsent + size <= self._config().max_unsent

    # -- time --

    def _tick(self) -> None:
        self._timer = None
        self._ticks += 1
        if self._ticks % SCAN_TICKS == 0:
            self._slow.update(each for each in self._connections if each.unsent > LARGE_ANSWER)
        for connection in [each for each in self._slow if each.unsent <= LARGE_ANSWER]:
            self._slow.discard(connection)
            connection.limit_unsent(None)
        self._check_exceeding()
        self._resume_waiting()
        limit = LARGE_ANSWER if self.unsent > self._config().max_unsent else None
        for connection in self._slow:
            connection.limit_unsent(limit)
        if self._slow or self._waiting or self._promised:
            self._timer = self._clock.call_later(TICK, self._tick)

    def _check_exceeding(self) -> None:
        exceeding = self._exceeding
        if exceeding is None or exceeding in self._promised:
            return
        unsent = exceeding.unsent
        self._stalled = self._stalled + 1 if unsent >= self._exceeding_unsent else 0
        self._exceeding_unsent = unsent
        if exceeding not in self._slow or self._stalled >= STALL_TICKS:
            self._exceeding = None

    def _resume_waiting(self) -> None:
        while self._waiting:
            connection, size = next(iter(self._waiting.items()))
            if not self._has_room(size):
                if self._exceeding is not None:
                    return
                self._exceeding, self._exceeding_unsent, self._stalled = connection, 0, 0
            del self._waiting[connection]
            self._promised[connection] = size
            connection.has_room()

    # -- counters --

    def counters(self) -> Iterator[tuple[str, int]]:
        """The counters, for Graphite."""
        yield "server.unsent", self.unsent
        yield "server.unsent.slow_connections", len(self._slow)
        yield "server.unsent.requests_waiting", len(self._waiting)
        yield "server.unsent.requests_waited", self.waited
