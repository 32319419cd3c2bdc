"""Closes refused connections one after another, to slow down clients that reconnect at once.

A refused client gets its error at once; a delayed close does not affect a well-behaved client. A client that
reconnects as soon as it is disconnected costs an accept, a request and a refusal each time, and a thousand of
them would use most of a processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iproto_server.box.clock import Clock, Timer
from iproto_server.server.client_connection import ClientConnection

AT_ONCE: Final = 20
"""Connections that are closed without a delay after a pause."""
INTERVAL: Final = 0.01
"""Seconds between two delayed closes."""


class PacedClosing:
    """The refused connections that are still open, closed at a limited rate.

    Parameters:
        clock: provides the timer.
        most: returns the maximum number of waiting connections; above it the first one is closed at once.
        close: closes a connection.
    """

    def __init__(
        self, clock: Clock, most: Callable[[], int], close: Callable[[ClientConnection], object]
    ) -> None:
        self._clock = clock
        self._most = most
        self._close = close
        self._waiting: dict[ClientConnection, None] = {}
        self._free = AT_ONCE
        self._is_stopped = False
        self._timer: Timer | None = None

    def __len__(self) -> int:
        """The number of waiting connections."""
        return len(self._waiting)

    def __contains__(self, connection: object) -> bool:
        """Whether a connection waits."""
        return connection in self._waiting

    def add(self, connection: ClientConnection) -> None:
        """Close a connection at once or, above the rate, later."""
        self._waiting[connection] = None
        if self._is_stopped:
            self._close_first()
            return
        if self._timer is None:
            self._timer = self._clock.call_later(INTERVAL, self._tick)
        if self._free:
            self._free -= 1
            self._close_first()
        elif len(self._waiting) > self._most():
            self._close_first()

    def forget(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        self._waiting.pop(connection, None)

    def stop(self) -> None:
        """Close all waiting connections, and all later ones at once."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            self._close_first()

    def _tick(self) -> None:
        self._timer = None
        if self._waiting:
            self._close_first()
        else:
            self._free += 1
        if self._free < AT_ONCE:
            self._timer = self._clock.call_later(INTERVAL, self._tick)

    def _close_first(self) -> None:
        connection = next(iter(self._waiting))
        del self._waiting[connection]
        self._close(connection)
