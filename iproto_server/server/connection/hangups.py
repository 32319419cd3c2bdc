"""Detects the end of connections that are not read.

A connection with held requests is not read, and the event loop reports the end of a connection only to
readers. So the sockets of held connections are also in an epoll instance that waits only for hangups
(EPOLLRDHUP, EPOLLHUP, EPOLLERR). The event loop waits for that instance's descriptor. Connections that were
never held cost nothing, and neither do held ones until they hang up.
"""

from __future__ import annotations

import asyncio
import select
from contextlib import suppress
from typing import Final

from iproto_server.server.client_connection import ClientConnection

AT_ONCE: Final = 256
"""Maximum number of hangups handled in one loop iteration."""

_IS_AVAILABLE: Final = hasattr(select, "epoll")
if _IS_AVAILABLE:
    _END: Final = select.EPOLLRDHUP | select.EPOLLONESHOT
    _GONE: Final = select.EPOLLHUP | select.EPOLLERR


class Hangups:
    """Watches connections that have been held for hangups.

    Without epoll, a hangup is noticed when the connection is read again.

    Parameters:
        loop: the event loop.

    Raises:
        OSError: no descriptor is left.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._connections: dict[int, ClientConnection] = {}
        self._loop = loop
        self._epoll = select.epoll() if _IS_AVAILABLE else None
        if self._epoll is not None:
            loop.add_reader(self._epoll.fileno(), self._tell)

    def __len__(self) -> int:
        """The number of watched connections."""
        return len(self._connections)

    def watch(self, connection: ClientConnection, descriptor: int) -> None:
        """Call the connection's `hung_up` when its client closes one direction, and when it closes both.

        Parameters:
            connection: the connection.
            descriptor: descriptor of its socket.

        Raises:
            OSError: the system has no memory, or the user's limit of watches is reached.
        """
        if self._epoll is not None:
            self._epoll.register(descriptor, _END)
            self._connections[descriptor] = connection

    def forget(self, connection: ClientConnection, descriptor: int) -> None:
        """Stop watching a connection.

        Parameters:
            connection: the connection.
            descriptor: descriptor of its socket; it may be closed, and reused by another connection.
        """
        if self._connections.get(descriptor) is connection:
            assert self._epoll is not None
            del self._connections[descriptor]
            # A closed socket is removed automatically.
            with suppress(OSError):
                self._epoll.unregister(descriptor)

    def stop(self) -> None:
        """Stop watching all connections."""
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None
        self._connections.clear()

    def _tell(self) -> None:
        assert self._epoll is not None
        for descriptor, events in self._epoll.poll(0, AT_ONCE):
            connection = self._connections.get(descriptor)
            if connection is None:
                continue
            is_gone = bool(events & _GONE)
            if not is_gone:
                # A full hangup may still follow, which epoll always reports.
                self._epoll.modify(descriptor, select.EPOLLONESHOT)
            connection.hung_up(is_gone)
