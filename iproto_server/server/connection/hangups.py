"""Sees the end of connections that are not read from.

A connection whose requests are held is not read from, and the event loop tells the end of a connection only
to those who read. So the sockets of held connections are also in an epoll instance that waits for nothing but
the end (EPOLLRDHUP, EPOLLHUP, EPOLLERR). That instance is itself a file that the event loop waits for. It
costs nothing while nobody hangs up, and nothing for connections that were never held.
"""

from __future__ import annotations

import asyncio
import select
from contextlib import suppress
from typing import Final

from iproto_server.server.client_connection import ClientConnection

AT_ONCE: Final = 256
"""So many ends are looked at in one loop iteration."""

_IS_AVAILABLE: Final = hasattr(select, "epoll")
if _IS_AVAILABLE:
    _END: Final = select.EPOLLRDHUP | select.EPOLLONESHOT
    _GONE: Final = select.EPOLLHUP | select.EPOLLERR


class Hangups:
    """The connections that were held once, and whose ends are seen since.

    On systems without epoll nothing is seen before the connection is read from again.

    Parameters:
        loop: the event loop in which they are told.

    Raises:
        OSError: there is no descriptor left.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._connections: dict[int, ClientConnection] = {}
        self._loop = loop
        self._epoll = select.epoll() if _IS_AVAILABLE else None
        if self._epoll is not None:
            loop.add_reader(self._epoll.fileno(), self._tell)

    def __len__(self) -> int:
        """How many connections are watched."""
        return len(self._connections)

    def watch(self, connection: ClientConnection, descriptor: int) -> None:
        """Call the connection's `hung_up` when its client sends no more, and when it is gone.

        Parameters:
            connection: the connection.
            descriptor: its socket's number.

        Raises:
            OSError: the system has no memory for it, or watches as many as the user may have.
        """
        if self._epoll is not None:
            self._epoll.register(descriptor, _END)
            self._connections[descriptor] = connection

    def forget(self, connection: ClientConnection, descriptor: int) -> None:
        """Watch a connection no more.

        Parameters:
            connection: the connection.
            descriptor: what its socket's number was. That may be closed, and another connection's by now.
        """
        if self._connections.get(descriptor) is connection:
            assert self._epoll is not None
            del self._connections[descriptor]
            # A closed socket has left by itself.
            with suppress(OSError):
                self._epoll.unregister(descriptor)

    def stop(self) -> None:
        """Watch nothing any more."""
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
                # What is still to come is that it goes altogether, which is always reported.
                self._epoll.modify(descriptor, select.EPOLLONESHOT)
            connection.hung_up(is_gone)
