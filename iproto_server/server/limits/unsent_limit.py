"""A limit of what all clients together leave unread: large answers wait until there is room for them.

Each connection has a limit of its own, `write_high_water`, above which its requests wait. This one is for all
of them. Above it

- a SELECT whose answer is large waits, unless nothing else is unsent. It is carried out again when there is
  room: the request waits, not the answer. The one that has waited longest goes first;
- connections that have left much unread wait sooner than otherwise. All others, and small answers, go on.

Clients that never read cannot stop those that do: where there is no room, one large answer at a time is let
go beyond the limit. When its client has read it, or has read nothing of it for a while, the next one is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from iproto_server.box.clock import Clock, Timer
from iproto_server.config.config import Config
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

LARGE: Final = 64 * 1024
"""Bytes; smaller answers never wait for others, and who leaves less unread is not slow."""

TICK: Final = 0.1
"""Seconds after which slow connections are looked at again."""

SCAN_TICKS: Final = 10
"""After so many ticks all connections are looked at."""

STALL_TICKS: Final = 20
"""A client that takes nothing for so many ticks does not keep the others waiting."""


class NoRoomError(Exception):
    """The answer to a request would exceed the limit: the request has to wait, and be carried out again."""


class UnsentLimit:
    """Decides which large answers may be made.

    Parameters:
        config: the configuration there is now.
        connections: all connections.
        clock: calls when a tick is over.
        log: tells when requests have to wait.

    Attributes:
        waited: how many requests have waited.
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
        """Bytes that slow clients have left unread, and those of answers that are promised."""
        return sum(connection.unsent for connection in self._slow) + sum(self._promised.values())

    # -- answers --

    def admit(self, connection: ClientConnection, size: int) -> bool:
        """Ask for room for a large answer. Where there is none, the connection is in the line from now on.

        Parameters:
            connection: whose answer it is.
            size: its bytes.
        """
        if self._promised.pop(connection, None) is None and not self._has_room(size):
            if connection not in self._waiting:
                self.waited += 1
                self._log.event(logging.WARNING, "requests wait: too much is unread", bytes=self.unsent)
            self._waiting[connection] = size
            return False
        self._waiting.pop(connection, None)
        self.add(connection)
        return True

    def promise(self, connection: ClientConnection) -> None:
        """Let the next large answer of a connection have room, whether there is some or not."""
        self._waiting.pop(connection, None)
        self._promised[connection] = 0

    def add(self, connection: ClientConnection) -> None:
        """A connection has much that is unsent."""
        self._slow.add(connection)
        if self._timer is None:
            self._timer = self._clock.call_later(TICK, self._tick)

    def forget(self, connection: ClientConnection) -> None:
        """A connection has gone."""
        if connection is self._exceeding:
            self._exceeding = None
        self._promised.pop(connection, None)
        self._waiting.pop(connection, None)
        if connection in self._slow:
            self._slow.discard(connection)
            self._let_go_on()

    def stop(self) -> None:
        """Let nobody wait any more."""
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
            self._slow.update(each for each in self._connections if each.unsent > LARGE)
        for connection in [each for each in self._slow if each.unsent <= LARGE]:
            self._slow.discard(connection)
            connection.limit_unsent(None)
        self._look_at_the_one_beyond()
        self._let_go_on()
        limit = LARGE if self.unsent > self._config().max_unsent else None
        for connection in self._slow:
            connection.limit_unsent(limit)
        if self._slow or self._waiting or self._promised:
            self._timer = self._clock.call_later(TICK, self._tick)

    def _look_at_the_one_beyond(self) -> None:
        exceeding = self._exceeding
        if exceeding is None or exceeding in self._promised:
            return
        unsent = exceeding.unsent
        self._stalled = self._stalled + 1 if unsent >= self._exceeding_unsent else 0
        self._exceeding_unsent = unsent
        if exceeding not in self._slow or self._stalled >= STALL_TICKS:
            self._exceeding = None

    def _let_go_on(self) -> None:
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
        """What is unread, and who waits for that."""
        yield "server.unsent", self.unsent
        yield "server.unsent.slow_connections", len(self._slow)
        yield "server.unsent.requests_waiting", len(self._waiting)
        yield "server.unsent.requests_waited", self.waited
