"""Limits of what clients may send before it is a request, and of the time that they may take.

Most of them are for strangers: connections on which nobody has logged in, while guest has no grant beyond
those of the role `public`. Their requests are small, they log in soon, and where there is not enough room for
everybody they go first. 1.5's protocol has no login, so all of its connections are strangers while guest has
no grant.
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
"""Seconds in which a client that is refused may take what it is told, before its connection is cut."""

UNAUTHENTICATED_SHARE: Final = 8
"""One part in so many of `max_buffered` is for strangers, all of them together; one frame at the least."""

PACED_SHARE: Final = 2
"""One in so many of the connections that there may be can be a refused stranger's that waits to be closed."""

_REASONS: Final = {
    "malformed": "what should be a length is none",
    "max_frame": "a request is too large",
    "max_frame_before_login": "a request is too large before login",
    "login_timeout": "nobody has logged in",
    "frame_timeout": "a request did not go on",
    "max_buffered": "too much is buffered",
}
"""Why connections are closed, by the last part of the counter's name."""


class _Buffered(NamedTuple):
    size: int
    is_unauthenticated: bool


class IncomingLimits:
    """Enforces the limits, and counts what it refuses.

    Parameters:
        config: the configuration there is now.
        access: knows whether guest has a grant.
        deadlines: counts the time.
        log: tells of connections that are closed.
        clock: times the closing of refused strangers.
        most: how many connections there may be.

    Attributes:
        buffered: bytes received that are no request yet, of all connections.
        paced: refused strangers whose connections are closed one after another.
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
        """Whether a connection has sent something that is no request yet."""
        return connection in self._sizes

    def is_unauthenticated(self, connection: ClientConnection) -> bool:
        """Whether a connection may be anybody's."""
        return self._access.is_unauthenticated(connection.session.user)

    def max_frame(self, connection: ClientConnection) -> int:
        """The largest frame that a connection may send now, in bytes."""
        config = self._config()
        if self.is_unauthenticated(connection):
            return min(config.max_frame, config.max_frame_before_login)
        return config.max_frame

    def user_changed(self, connection: ClientConnection) -> None:
        """A connection has come, or acts for another user: if it is a stranger, its time to log in begins."""
        if self.is_unauthenticated(connection) and connection not in self._login:
            self._login.begin(connection)

    def write_high_water(self, connection: ClientConnection) -> int:
        """How many bytes a connection may leave unread, before its requests wait."""
        high_water = self._config().write_high_water
        return (
            min(high_water, self.max_frame(connection)) if self.is_unauthenticated(connection) else high_water
        )

    # -- frames --

    def received(self, connection: ClientConnection, size: int, has_part: bool, is_new: bool) -> None:
        """Note what a connection has sent that is no request yet.

        Parameters:
            connection: the connection.
            size: bytes of it.
            has_part: whether there is a part of a frame that the client has to go on with.
            is_new: whether that frame began with what was received last.
        """
        self._note(connection, size)
        if not has_part:
            self._frames.end(connection)
        elif is_new or connection not in self._frames or not self.is_unauthenticated(connection):
            self._frames.begin(connection)

    def paused(self, connection: ClientConnection) -> None:
        """A connection is not read from: it cannot go on with its frame."""
        self._frames.end(connection)

    def refuse(self, connection: ClientConnection, fault: FramingError) -> None:
        """Note that a connection ends because of a frame."""
        reason = "malformed"
        if isinstance(fault, FrameTooLargeError):
            is_large = fault.size > self._config().max_frame
            reason = "max_frame" if is_large else "max_frame_before_login"
        self._count(connection, reason)
        self._close_soon(connection)

    def forget(self, connection: ClientConnection) -> None:
        """A connection has gone."""
        self._note(connection, 0)
        self.paced.forget(connection)
        for queue in (self._login, self._frames, self._closing):
            queue.end(connection)

    # -- time that is over --

    def _login_is_late(self, connection: ClientConnection) -> None:
        if self.is_unauthenticated(connection):
            self._close(connection, "login_timeout", BoxError(ErrorCode.TIMEOUT))

    def _frame_is_late(self, connection: ClientConnection) -> None:
        self._close(connection, "frame_timeout", BoxError(ErrorCode.TIMEOUT))

    # -- room --

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
        """Close connections until there is some room again: the largest strangers, then the largest."""
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

    # -- what comes of it --

    def _close(self, connection: ClientConnection, reason: str, error: BoxError) -> None:
        self._count(connection, reason)
        connection.expel(error)
        self._note(connection, 0)
        self._frames.end(connection)
        self._close_soon(connection)

    def _close_soon(self, connection: ClientConnection) -> None:
        """Close a stranger when its turn has come, whether it reads what it is told or not."""
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
        """What was refused, and what is buffered."""
        for reason in _REASONS:
            yield f"server.refused.{reason}", self._refused[reason]
        yield "server.buffered", self.buffered
        yield "server.closing", len(self.paced)
