"""Deadlines of connections, all served by one timer.

Time is counted in ticks of a second, by a timer that runs while any connection has a deadline. So a deadline
costs a dictionary entry, and a step of the wall clock has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iproto_server.box.clock import Clock, Timer
from iproto_server.server.client_connection import ClientConnection

TICK: Final = 1.0
"""Seconds between two ticks. Deadlines expire at most this late, never early."""
AT_ONCE: Final = 32
"""Maximum number of expired deadlines of a queue that are handled in one loop iteration."""


class ConnectionDeadlines:
    """The deadlines of all connections, with one queue per kind.

    Parameters:
        clock: provides the timer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: list[DeadlineQueue] = []
        self._timer: Timer | None = None
        self._rest: Timer | None = None
        self.now = 0

    def queue(
        self, seconds: Callable[[], float], passed: Callable[[ClientConnection], None]
    ) -> DeadlineQueue:
        """Create a queue.

        Parameters:
            seconds: returns the current time limit; 0: none.
            passed: called with each connection whose deadline has expired and was removed.
        """
        queue = DeadlineQueue(self, seconds, passed)
        self._queues.append(queue)
        return queue

    def run(self) -> None:
        """Count ticks until all queues are empty."""
        if self._timer is None:
            self._timer = self._clock.call_later(TICK, self._tick)

    def stop(self) -> None:
        """Remove all deadlines."""
        for timer in (self._timer, self._rest):
            if timer is not None:
                timer.cancel()
        self._timer = self._rest = None
        for queue in self._queues:
            queue.clear()

    def _tick(self) -> None:
        self._timer = None
        self.now += 1
        if self._rest is None:
            self._look()
        if any(self._queues):
            self.run()

    def _look(self) -> None:
        has_more = [queue.look() for queue in self._queues]
        self._rest = self._clock.call_later(0, self._look) if any(has_more) else None


class DeadlineQueue:
    """Connections with the same time limit, in order of their deadlines.

    Parameters:
        deadlines: counts the ticks.
        seconds, passed: as for `ConnectionDeadlines.queue`.
    """

    __slots__ = ("_begun", "_deadlines", "_passed", "_seconds")

    def __init__(
        self,
        deadlines: ConnectionDeadlines,
        seconds: Callable[[], float],
        passed: Callable[[ClientConnection], None],
    ) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._passed = passed
        self._begun: dict[ClientConnection, int] = {}

    def __len__(self) -> int:
        """The number of connections with a deadline."""
        return len(self._begun)

    def __contains__(self, connection: object) -> bool:
        """Whether a connection has a deadline."""
        return connection in self._begun

    def begin(self, connection: ClientConnection) -> None:
        """Start or restart a connection's deadline."""
        self._begun.pop(connection, None)
        self._begun[connection] = self._deadlines.now
        self._deadlines.run()

    def end(self, connection: ClientConnection) -> None:
        """Remove a connection's deadline."""
        self._begun.pop(connection, None)

    def clear(self) -> None:
        """Remove all deadlines."""
        self._begun.clear()

    def look(self) -> bool:
        """Handle some of the expired deadlines.

        Returns:
            Whether there may be more.
        """
        seconds = self._seconds()
        if not seconds:
            return False
        # The first tick may come at once, so it is not counted.
        latest = self._deadlines.now - 1 - seconds / TICK
        for _ in range(AT_ONCE):
            if not self._begun:
                return False
            connection, begun = next(iter(self._begun.items()))
            if begun > latest:
                return False
            del self._begun[connection]
            self._passed(connection)
        return True
