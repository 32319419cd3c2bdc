"""Closes refused connections one after another, so that those who come back at once come back slowly.

A client that is refused is told at once. Whether its connection then ends at once makes no difference to a
client that behaves. One that connects again as soon as it is thrown out costs an accepted connection, what it
sends and a refusal each time; a thousand such clients would take most of a processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iproto_server.box.clock import Clock, Timer
from iproto_server.server.client_connection import ClientConnection

AT_ONCE: Final = 20
"""So many connections are closed without a wait, when there was none to close for a while."""
INTERVAL: Final = 0.01
"""Seconds after which the next one is closed."""


class PacedClosing:
    """The refused connections that are still open, and the pace at which they are closed.

    Parameters:
        clock: calls when an interval is over.
        most: how many connections may wait; above that the first of them is closed at once.
        close: closes a connection that has waited.
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
        """How many connections wait."""
        return len(self._waiting)

    def __contains__(self, connection: object) -> bool:
        """Whether a connection waits."""
        return connection in self._waiting

    def add(self, connection: ClientConnection) -> None:
        """Close a connection when its turn has come; at once if that is now."""
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
        """A connection has gone."""
        self._waiting.pop(connection, None)

    def stop(self) -> None:
        """Let nobody wait any more."""
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
