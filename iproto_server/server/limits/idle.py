"""Closes connections on which nothing has happened for long, where an option asks for that."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Final

from iproto_server.config.config import Config
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

_CHECKS: Final = 8
"""How often a connection is looked at within the timeout."""

_MOST_OFTEN: Final = 0.01
"""Seconds between two looks, at least."""


class IdleConnections:
    """Looks for idle connections from time to time, and closes them.

    A connection is idle when nothing has come from the client for `idle_timeout` seconds, no request of it is
    in flight, it has no subscriptions, and it has read nothing of what it was sent.

    Parameters:
        config: returns the current configuration, which has the timeout.
        connections: all connections.
        log: logs each connection that is closed.

    Attributes:
        closed: how many were closed.
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
        """Go by the server's configuration from now on."""
        self.stop()
        timeout = self._config().idle_timeout
        if timeout:
            delay = max(timeout / _CHECKS, _MOST_OFTEN)
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)
        else:
            self._quiet.clear()

    def stop(self) -> None:
        """Look no more."""
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
            # What has waited to be sent is less when the client has read some of it.
            since, unsent = before.get(connection, (now, -1))
            if connection.unsent != unsent:
                since = now
            if now - since >= timeout:
                self.closed += 1
                self._log.event(logging.INFO, "closed an idle connection", peer=connection.session.peer)
                connection.abort()
            else:
                self._quiet[connection] = since, connection.unsent
