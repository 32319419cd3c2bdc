"""Closes idle connections, if the option `idle_timeout` is set."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from iproto_server.config.config import Config
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

_CHECKS: Final = 8
"""Checks of a connection per timeout."""

_MOST_OFTEN: Final = 0.01
"""Minimum seconds between two checks."""


class IdleConnections:
    """Checks for idle connections at intervals, and closes them.

    A connection is idle if the client has sent and read nothing for `idle_timeout` seconds, and it has
    neither requests in flight nor subscriptions.

    Parameters:
        config: returns the current configuration, which has the timeout.
        connections: all connections.
        log: logs each connection that is closed.

    Attributes:
        closed: number of closed connections.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        connections: Collection[ClientConnection],
        log: RateLimitedLog,
    ) -> None:
        self._config = config
        self._connections = connections
        self._log = log
        self._timer: asyncio.TimerHandle | None = None
        self._quiet: dict[ClientConnection, tuple[float, int]] = {}
        self.closed = 0

    def configure(self) -> None:
        """Apply the current configuration."""
        self.stop()
        timeout = self._config().idle_timeout
        if timeout:
            delay = max(timeout / _CHECKS, _MOST_OFTEN)
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)
        else:
            self._quiet.clear()

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self.check(asyncio.get_running_loop().time())
        self.configure()

    def check(self, now: float) -> None:
        """Close the connections that have been idle for long enough.

        Parameters:
            now: steady time in seconds.
        """
        timeout = self._config().idle_timeout
        before, self._quiet = self._quiet, {}
        for connection in list(self._connections):
            if connection.was_used():
                continue
            # The number of unsent bytes changes when the client reads.
            since, unsent = before.get(connection, (now, -1))
            if connection.unsent != unsent:
                since = now
            if now - since >= timeout:
                self.closed += 1
                self._log.event(logging.INFO, "closed an idle connection", peer=connection.session.peer)
                connection.abort()
            else:
                self._quiet[connection] = since, connection.unsent
