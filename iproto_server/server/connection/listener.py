"""Listening sockets: TCP and unix, plain and TLS, with a port or path that is in use told plainly."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iproto_server.config.address import Address
from iproto_server.descriptors import spare
from iproto_server.errors import BoxError

if TYPE_CHECKING:
    from iproto_server.server.limits.admission import Admission, Ticket
    from iproto_server.server.limits.rate_limited_log import RateLimitedLog

BACKLOG = 1024
ACCEPTED_AT_ONCE: Final = 8
"""So many connections are accepted before anything else has its turn."""
RETRY_AFTER = 1.0
"""Seconds for which nothing is accepted when there is no descriptor for it, and none to spare either."""
HANDSHAKE_TIMEOUT = 10.0
"""Seconds within which a client of a TLS address must have shaken hands; before that it has no session."""
GOODBYE_TIMEOUT = 1.0
"""Seconds for which the end of a TLS connection waits for the client to agree."""

_USED_UP: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SPARE_FOR_FILES: Final = 2


@dataclass(frozen=True, slots=True)
class ConnectionFactory:
    """What a listening socket does with those who connect.

    Parameters:
        connection: makes the protocol of a connection that is let in.
        refusal: what a client is sent that is not.
        admission: decides that.
        log: is told what goes wrong.
    """

    connection: Callable[[Ticket], asyncio.Protocol]
    refusal: Callable[[BoxError], bytes]
    admission: Admission
    log: RateLimitedLog


class Listener:
    """Sockets that connections to an address are accepted on.

    Parameters:
        sockets: the sockets.
        address: where, with the real port.
        factory: what becomes of a connection.
        context: how connections are encrypted; None: not at all.

    Attributes:
        context: may be exchanged for another one, for those who connect from then on.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        address: Address,
        factory: ConnectionFactory,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.address = address
        self.context = context
        self._sockets = sockets
        self._factory = factory
        self._loop = asyncio.get_running_loop()
        self._file = _identity(address.path) if address.path else None
        self._opening: set[asyncio.Task[None]] = set()
        self._is_closed = False
        for listening in sockets:
            listening.listen(BACKLOG)
            self._begin(listening)

    def close(self) -> None:
        """Accept no more, and remove the socket's file unless it has become somebody else's.

        A second call does nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        for task in self._opening:
            task.cancel()
        if self._file is not None and _identity(self.address.path) == self._file:
            os.unlink(self.address.path)

    def _begin(self, listening: socket.socket) -> None:
        if not self._is_closed:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Somebody wants to connect."""
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                # Those that were given away for files are not for connections when the files are closed.
                if not spare.refill():
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                connected, name = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _USED_UP:
                    self._turn_away(listening, error)
                    return
                # What has become of this client's connection is no fault of the socket's.
                self._factory.log.event(logging.WARNING, "cannot accept a connection", reason=error.strerror)
            else:
                self._take(connected, name)

    def _take(self, connected: socket.socket, name: object) -> None:
        """Let a connection in, or tell the client why not."""
        connected.setblocking(False)
        host = name[0] if isinstance(name, tuple) else None
        try:
            ticket = self._factory.admission.admit(host, peer_name(name))
        except BoxError as error:
            self._refuse(connected, error)
            return
        if host is not None:
            # As Tarantool does: a client whose machine is gone does not stay for ever.
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # The loop's own factory is for what applications start.
        task = asyncio.Task(self._open(connected, ticket), loop=self._loop)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, connected: socket.socket, ticket: Ticket) -> None:
        """Make a connection of a socket: over TLS that is one when both sides have shaken hands."""
        encryption: dict[str, Any] = {}
        if self.context is not None:
            encryption = {
                "ssl": self.context,
                "ssl_handshake_timeout": HANDSHAKE_TIMEOUT,
                "ssl_shutdown_timeout": GOODBYE_TIMEOUT,
            }
        try:
            await self._loop.connect_accepted_socket(
                lambda: self._factory.connection(ticket), connected, **encryption
            )
        except BaseException as error:
            ticket.give_back()
            if not isinstance(error, OSError):
                raise
            # So does every scanner of ports: that is counted, and worth a line only to who looks for it.
            self._factory.admission.failed_handshakes += 1
            self._factory.log.event(logging.DEBUG, "a handshake failed", peer=ticket.peer, reason=str(error))

    def _refuse(self, connected: socket.socket, error: BoxError) -> None:
        """Tell a client why it is not let in, as far as it can be told without waiting, and hang up.

        A client of TLS would have to shake hands first; it sees the end alone.
        """
        with connected:
            if self.context is not None:
                return
            try:
                connected.send(self._factory.refusal(error))
                connected.shutdown(socket.SHUT_WR)
                # A socket that is closed with something unread takes back what it has sent.
                connected.recv(65536)
            except OSError:
                pass  # It has nothing to say, or is gone: there is nothing more to be done for it.

    def _turn_away(self, listening: socket.socket, error: OSError) -> None:
        """There is no descriptor for a client: tell it so with a spare one, or try again in a while."""
        try:
            connected, _ = spare.open(listening.accept, keep=_SPARE_FOR_FILES)
        except BlockingIOError:
            return  # There was no client: the system looks for a descriptor first.
        except OSError:
            self._factory.admission.out_of_descriptors(error.strerror or str(error))
            self._loop.remove_reader(listening.fileno())
            self._loop.call_later(RETRY_AFTER, self._begin, listening)
        else:
            connected.setblocking(False)
            self._refuse(connected, self._factory.admission.out_of_descriptors(error.strerror or str(error)))
            spare.refill()


async def listen(
    address: Address,
    factory: ConnectionFactory,
    work_dir: Path,
    context: ssl.SSLContext | None = None,
) -> Listener:
    """Accept connections on an address.

    Parameters:
        address: where; port 0 is any free one.
        factory: what becomes of a connection.
        work_dir: where the relative path of a unix socket starts.
        context: how connections are encrypted; None: not at all.

    Raises:
        OSError: the address is in use or cannot be had; its text names the address.
    """
    try:
        if address.path:
            path = str(work_dir / address.path)
            return Listener([_bind_path(path, address.mode)], Address(path=path), factory, context)
        sockets = await _bind(address)
        try:
            real = Address(address.host, sockets[0].getsockname()[1])
            return Listener(sockets, real, factory, context)
        except BaseException:
            for bound in sockets:
                bound.close()
            raise
    except OSError as error:
        number = error.errno or errno.EADDRNOTAVAIL
        reason = os.strerror(number) if number in errno.errorcode else str(error)
        raise OSError(number, f"cannot listen on {address}: {reason}") from error


async def _bind(address: Address) -> list[socket.socket]:
    """Sockets for all that a host name or "every interface" stands for, with one port."""
    found = await asyncio.get_running_loop().getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    port = address.port
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, place in dict.fromkeys(found):
            try:
                bound = socket.socket(family, kind, protocol)
            except OSError as error:
                if error.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
                    continue  # A machine without IPv6 may still have names for it.
                raise
            sockets.append(bound)
            bound.setblocking(False)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind((place[0], port, *place[2:]))
            port = bound.getsockname()[1]
    except BaseException:
        for bound in sockets:
            bound.close()
        raise
    if not sockets:
        raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    return sockets


def _bind_path(path: str, mode: int | None) -> socket.socket:
    """A unix socket. Who may not connect to it cannot do so even for a moment: it does not listen yet."""
    remove_stale_socket(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.setblocking(False)
        bound.bind(path)
        if mode is not None:
            os.chmod(path, mode)
    except BaseException:
        bound.close()
        raise
    return bound


def peer_name(name: object) -> str:
    """The address at the other end, written as `box.session.peer()` writes it.

    Parameters:
        name: what the system calls it.
    """
    if not isinstance(name, tuple):
        return "unix/:"
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _identity(path: str) -> tuple[int, int] | None:
    """What tells one file from another that comes to have its path; None where there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def remove_stale_socket(path: str) -> None:
    """Remove a unix socket that nobody listens on any more.

    Raises:
        OSError: EADDRINUSE when somebody does, or when the path is something else than a socket.
    """
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
