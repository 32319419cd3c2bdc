"""Times within which connections must have done something. One timer serves all of them.

Time is counted in ticks of a second, by a timer that runs while any connection has a deadline. So a
connection costs an entry in a dictionary while it has one, and nothing otherwise; and a step of the wall
clock changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iproto_server.box.clock import Clock, Timer
from iproto_server.server.client_connection import ClientConnection

TICK: Final = 1.0
"""Seconds. Deadlines pass up to so much late, never early."""
AT_ONCE: Final = 32
"""So many connections of a queue are told of before anything else has its turn."""


class ConnectionDeadlines:
    """Deadlines of connections, in queues of their own for each reason.

    Parameters:
        clock: calls when a tick is over.
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
        """Make a queue.

        Parameters:
            seconds: tells how much time there is now; 0 is no limit.
            passed: is told of a connection whose time is over, which has left the queue.
        """
        queue = DeadlineQueue(self, seconds, passed)
        self._queues.append(queue)
        return queue

    def run(self) -> None:
        """Count ticks, until no queue has anybody."""
        if self._timer is None:
            self._timer = self._clock.call_later(TICK, self._tick)

    def stop(self) -> None:
        """Let no deadline pass any more."""
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
    """Connections that have the same time for the same thing, the one that began first in front.

    Parameters:
        deadlines: counts the ticks.
        seconds, passed: as of `ConnectionDeadlines.queue`.
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
        """How many connections have a deadline."""
        return len(self._begun)

    def __contains__(self, connection: object) -> bool:
        """Whether a connection has one."""
        return connection in self._begun

    def begin(self, connection: ClientConnection) -> None:
        """A connection has all of its time from now on."""
        self._begun.pop(connection, None)
        self._begun[connection] = self._deadlines.now
        self._deadlines.run()

    def end(self, connection: ClientConnection) -> None:
        """A connection has done it, or has gone."""
        self._begun.pop(connection, None)

    def clear(self) -> None:
        """Wait for nobody any more."""
        self._begun.clear()

    def look(self) -> bool:
        """Tell of some of those whose time is over.

        Returns:
            Whether there may be more of them.
        """
        seconds = self._seconds()
        if not seconds:
            return False
        # The first tick may come at once, so it does not count.
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
