"""Limits on the size and duration of unfinished requests.

Most of them apply to unauthenticated connections: those that act as guest, while guest has no grant beyond
the role `public`. Their requests have to be small, they have to log in soon, and they are closed first if
memory is short. Tarantool 1.5's protocol has no login, so all of its connections are unauthenticated while
guest has no grant.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from iproto_server.box.access.access_control import AccessControl
from iproto_server.box.clock import Clock
from iproto_server.config.config import Config
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.framing import FrameTooLargeError, FramingError
from iproto_server.server.client_connection import ClientConnection
from iproto_server.server.limits.connection_deadlines import ConnectionDeadlines
from iproto_server.server.limits.paced_closing import PacedClosing
from iproto_server.server.limits.rate_limited_log import RateLimitedLog

CLOSE_GRACE: Final = 5.0
"""Seconds that a refused client has to read its error before its connection is aborted."""

UNAUTHENTICATED_SHARE: Final = 8
"""The share of `max_buffered` for all unauthenticated connections is one in this many; at least one frame."""

PACED_SHARE: Final = 2
"""The share of all connections that may be refused ones waiting to be closed is one in this many."""

_REASONS: Final = {
    "malformed": "no valid length",
    "max_frame": "a request is too large",
    "max_frame_before_login": "a request is too large before login",
    "login_timeout": "no login in time",
    "frame_timeout": "a request was not finished in time",
    "max_buffered": "too many buffered bytes",
}
"""Reasons to close a connection, by the last part of the counter's name."""


class _Buffered(NamedTuple):
    size: int
    is_unauthenticated: bool


class IncomingLimits:
    """Enforces the limits, and counts what it refuses.

    Parameters:
        config: returns the current configuration.
        access: tells whether guest has a grant.
        deadlines: the deadlines of connections.
        log: logs closed connections.
        clock: provides the timer of paced closing.
        most: returns the maximum number of connections.

    Attributes:
        buffered: bytes of unfinished requests of all connections.
        paced: refused unauthenticated connections, which are closed one after another.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        access: AccessControl,
        deadlines: ConnectionDeadlines,
        log: RateLimitedLog,
        clock: Clock,
        most: Callable[[], int],
    ) -> None:
        self._config = config
        self._access = access
        self._log = log
        self._login = deadlines.queue(lambda: config().login_timeout, self._login_is_late)
        self._frames = deadlines.queue(lambda: config().frame_timeout, self._frame_is_late)
        self._closing = deadlines.queue(lambda: CLOSE_GRACE, lambda connection: connection.abort())
        self.paced = PacedClosing(clock, lambda: most() // PACED_SHARE, self._let_go)
        self._sizes: dict[ClientConnection, _Buffered] = {}
        self.buffered = 0
        self._buffered_unauthenticated = 0
        self._refused: Counter[str] = Counter()

    def __contains__(self, connection: object) -> bool:
        """Whether a connection has an unfinished request."""
        return connection in self._sizes

    def is_unauthenticated(self, connection: ClientConnection) -> bool:
        """Whether a connection acts as guest, and guest has no grant."""
        return self._access.is_unauthenticated(connection.session.user)

    def max_frame(self, connection: ClientConnection) -> int:
        """The largest frame that a connection may send now, in bytes."""
        config = self._config()
        if self.is_unauthenticated(connection):
            return min(config.max_frame, config.max_frame_before_login)
        return config.max_frame

    def user_changed(self, connection: ClientConnection) -> None:
        """Start the deadline of login for a new connection or user, if it is unauthenticated."""
        if self.is_unauthenticated(connection) and connection not in self._login:
            self._login.begin(connection)

    def write_high_water(self, connection: ClientConnection) -> int:
        """Return the number of unsent bytes above which a connection's requests wait."""
        high_water = self._config().write_high_water
        return (
            min(high_water, self.max_frame(connection)) if self.is_unauthenticated(connection) else high_water
        )

    # -- frames --

    def received(self, connection: ClientConnection, size: int, has_part: bool, is_new: bool) -> None:
        """Record the unfinished requests of a connection.

        Parameters:
            connection: the connection.
            size: their bytes.
            has_part: whether the last frame is incomplete.
            is_new: whether that frame began with the bytes received last.
        """
        self._note(connection, size)
        if not has_part:
            self._frames.end(connection)
        elif is_new or connection not in self._frames or not self.is_unauthenticated(connection):
            self._frames.begin(connection)

    def paused(self, connection: ClientConnection) -> None:
        """End the deadline of a frame, because the connection is not read."""
        self._frames.end(connection)

    def lost(self, connection: ClientConnection) -> None:
        """End the deadlines of a lost connection: only requests that have arrived are still handled."""
        for queue in (self._login, self._frames, self._closing):
            queue.end(connection)

    def refuse(self, connection: ClientConnection, fault: FramingError) -> BoxError:
        """Count and log a connection that is closed because of a frame.

        Returns: the error for the client.
        """
        reason, error = "malformed", BoxError(ErrorCode.INVALID_MSGPACK, fault.reason)
        if isinstance(fault, FrameTooLargeError):
            config = self._config()
            reason, limit = "max_frame", config.max_frame
            if fault.size <= limit:
                reason, limit = "max_frame_before_login", config.max_frame_before_login
            error = BoxError(ErrorCode.INVALID_MSGPACK, f"{fault.reason} ({reason} is {limit})")
        self._count(connection, reason)
        self._close_soon(connection)
        return error

    def forget(self, connection: ClientConnection) -> None:
        """Remove a closed connection."""
        self._note(connection, 0)
        self.paced.forget(connection)
        self.lost(connection)

    # -- expired deadlines --

    def _login_is_late(self, connection: ClientConnection) -> None:
        if not self.is_unauthenticated(connection):
            return
        if connection.has_requests:
            # It reads no answers, or a login is delayed: what has arrived, maybe a login, is still handled.
            self._count(connection, "login_timeout")
            connection.abort()
        else:
            self._close(connection, "login_timeout", BoxError(ErrorCode.TIMEOUT))

    def _frame_is_late(self, connection: ClientConnection) -> None:
        self._close(connection, "frame_timeout", BoxError(ErrorCode.TIMEOUT))

    # -- memory --

    def _note(self, connection: ClientConnection, size: int) -> None:
        old = self._sizes.get(connection)
        if old is not None:
            self.buffered -= old.size
            self._buffered_unauthenticated -= old.size * old.is_unauthenticated
        elif not size:
            return
        if not size:
            del self._sizes[connection]
            return
        is_unauthenticated = self.is_unauthenticated(connection)
        self._sizes[connection] = _Buffered(size, is_unauthenticated)
        self.buffered += size
        self._buffered_unauthenticated += size * is_unauthenticated
        config = self._config()
        limit = config.max_buffered_bytes
        unauthenticated_limit = max(limit // UNAUTHENTICATED_SHARE, config.max_frame_before_login)
        if self._buffered_unauthenticated > unauthenticated_limit or self.buffered > limit:
            self._make_room(limit, unauthenticated_limit)

    def _make_room(self, limit: int, unauthenticated_limit: int) -> None:
        """Close the largest connections until there is room again, unauthenticated ones first."""
        if self._buffered_unauthenticated > unauthenticated_limit:
            unauthenticated_limit -= unauthenticated_limit // UNAUTHENTICATED_SHARE
        if self.buffered > limit:
            limit -= limit // UNAUTHENTICATED_SHARE
        by_size = sorted(self._sizes.items(), key=lambda item: item[1].size, reverse=True)
        for connection, buffered in by_size:
            if self._buffered_unauthenticated <= unauthenticated_limit and self.buffered <= limit:
                return
            if buffered.is_unauthenticated:
                self._close_large(connection, buffered.size)
        for connection, buffered in by_size:
            if self.buffered <= limit:
                return
            if not buffered.is_unauthenticated:
                self._close_large(connection, buffered.size)

    def _close_large(self, connection: ClientConnection, size: int) -> None:
        error = BoxError(ErrorCode.MEMORY_ISSUE, size, "the buffer", "unfinished requests")
        self._close(connection, "max_buffered", error)

    # -- closing --

    def _close(self, connection: ClientConnection, reason: str, error: BoxError) -> None:
        self._count(connection, reason)
        connection.expel(error)
        self._note(connection, 0)
        self._frames.end(connection)
        self._close_soon(connection)

    def _close_soon(self, connection: ClientConnection) -> None:
        """Close an unauthenticated connection at the limited rate, even if it does not read its error."""
        if self.is_unauthenticated(connection):
            self.paced.add(connection)

    def _let_go(self, connection: ClientConnection) -> None:
        self._closing.begin(connection)
        connection.let_go()

    def _count(self, connection: ClientConnection, reason: str) -> None:
        self._refused[reason] += 1
        self._log.event(
            logging.WARNING,
            f"closed a connection: {_REASONS[reason]}",
            peer=connection.session.peer,
            option=reason,
        )

    def counters(self) -> Iterator[tuple[str, int]]:
        """The counters, for Graphite."""
        for reason in _REASONS:
            yield f"server.refused.{reason}", self._refused[reason]
        yield "server.buffered", self.buffered
        yield "server.closing", len(self.paced)
