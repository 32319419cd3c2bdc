"""Listening sockets: TCP and unix, plain and TLS."""

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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iproto_server.config.address import Address
from iproto_server.descriptors import spare
from iproto_server.errors import BoxError
from iproto_server.server.connection.tls import TlsTransport

if TYPE_CHECKING:
    from iproto_server.server.limits.admission import Admission, Ticket
    from iproto_server.server.limits.rate_limited_log import RateLimitedLog

BACKLOG = 1024
ACCEPTED_AT_ONCE: Final = 8
"""Maximum number of connections accepted in one loop iteration."""
RETRY_AFTER = 1.0
"""Seconds without accepting after all descriptors, including the spare ones, are in use."""
HANDSHAKE_TIMEOUT = 10.0
"""Maximum duration of a TLS handshake in seconds; the session begins after it."""

_USED_UP: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_SPARE_FOR_FILES: Final = 2


@dataclass(frozen=True, slots=True)
class ConnectionFactory:
    """Creates connections for a listening socket, or refuses them.

    Parameters:
        connection: creates the protocol object of an admitted connection.
        refusal: encodes the error for a refused client.
        admission: decides about admission.
        log: logs errors.
        soon: runs a function that accepts connections; None: they are accepted at once.
    """

    connection: Callable[[Ticket], asyncio.Protocol]
    refusal: Callable[[BoxError], bytes]
    admission: Admission
    log: RateLimitedLog
    soon: Callable[[Callable[[], object]], object] | None = None


class Listener:
    """The listening sockets of an address.

    Parameters:
        sockets: the bound sockets; one that the service manager has passed listens already.
        address: the address, with the real port.
        factory: creates connections.
        context: TLS context; None: no encryption.

    Attributes:
        context: TLS context of new connections; may be replaced.
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
        is_passed = address.descriptor is not None
        # The file of a passed socket is the service manager's, which keeps it for the next start.
        self._file = _identity(address.path) if address.path and not is_passed else None
        self._opening: set[asyncio.Task[None]] = set()
        self._is_closed = False
        for listening in sockets:
            if not is_passed:
                listening.listen(BACKLOG)
            self._begin(listening)

    def close(self) -> None:
        """Close the sockets, and remove the socket's file unless another process has replaced it.

        A second call does nothing.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())
            listening.close()
        if self.context is not None:
            # Handshakes may take long. Other connections open in the next iteration; canceled in between,
            # uvloop would close their sockets without telling them.
            for task in self._opening:
                task.cancel()
        if self._file is not None and _identity(self.address.path) == self._file:
            os.unlink(self.address.path)

    def _begin(self, listening: socket.socket) -> None:
        if not self._is_closed:
            accept = self._accept if self._factory.soon is None else self._accept_soon
            self._loop.add_reader(listening.fileno(), accept, listening)

    def _accept_soon(self, listening: socket.socket) -> None:
        """Accept waiting connections when the factory says so, and look for others only then."""

        def accept() -> None:
            if not self._is_closed and self._accept(listening):
                self._begin(listening)

        assert self._factory.soon is not None
        self._loop.remove_reader(listening.fileno())
        self._factory.soon(accept)

    def _accept(self, listening: socket.socket) -> bool:
        """Accept waiting connections; return whether to go on without a pause."""
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                # Spare descriptors lent to files are taken back before connections get any.
                if not spare.refill():
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                connected, name = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return True
            except OSError as error:
                if error.errno in _USED_UP:
                    return self._turn_away(listening, error)
                # The error concerns the client's connection, not the listening socket.
                self._factory.log.event(logging.WARNING, "cannot accept a connection", reason=error.strerror)
            else:
                self._take(connected, name)
        return True

    def _take(self, connected: socket.socket, name: object) -> None:
        """Admit a connection, or refuse it with an error."""
        connected.setblocking(False)
        host = name[0] if isinstance(name, tuple) else None
        try:
            ticket = self._factory.admission.admit(host, peer_name(name))
        except BoxError as error:
            self._refuse(connected, error)
            return
        if host is not None:
            # As in Tarantool, so that connections of vanished machines end.
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # The loop's task factory is for applications' tasks.
        task = asyncio.Task(self._open(connected, ticket), loop=self._loop)
        if self.context is not None:
            ticket.begin_handshake(task.cancel)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, connected: socket.socket, ticket: Ticket) -> None:
        """Create the connection of a socket, after the handshake if it uses TLS."""
        create = partial(self._factory.connection, ticket)
        tls = None if self.context is None else TlsTransport(self.context, create, HANDSHAKE_TIMEOUT)
        try:
            await self._loop.connect_accepted_socket(create if tls is None else lambda: tls, connected)
            if tls is not None:
                await tls.opened
        except BaseException as error:
            if tls is not None:
                tls.give_up()
            ticket.give_back()
            if not isinstance(error, OSError):
                raise
            # Port scanners cause this as well, so it is counted, but logged at debug level only.
            self._factory.admission.failed_handshakes += 1
            self._factory.log.event(logging.DEBUG, "a handshake failed", peer=ticket.peer, reason=str(error))

    def _refuse(self, connected: socket.socket, error: BoxError) -> None:
        """Send a refused client its error, if that is possible without waiting, and close.

        A TLS client gets no error, because that would need a handshake.
        """
        with connected:
            if self.context is not None:
                return
            try:
                connected.send(self._factory.refusal(error))
                connected.shutdown(socket.SHUT_WR)
                # Closing a socket with unread data would discard the error that was sent.
                connected.recv(65536)
            except OSError:
                pass  # The client has sent nothing, or is gone.

    def _turn_away(self, listening: socket.socket, error: OSError) -> bool:
        """Refuse a client for lack of descriptors with a spare one, or try again later.

        Returns: whether to accept others without a pause.
        """
        try:
            connected, _ = spare.open(listening.accept, keep=_SPARE_FOR_FILES)
        except BlockingIOError:
            return True  # No client waits: the system checks for a descriptor first.
        except OSError:
            self._factory.admission.out_of_descriptors(error.strerror or str(error))
            self._loop.remove_reader(listening.fileno())
            self._loop.call_later(RETRY_AFTER, self._begin, listening)
            return False
        connected.setblocking(False)
        self._refuse(connected, self._factory.admission.out_of_descriptors(error.strerror or str(error)))
        spare.refill()
        return True


async def listen(
    address: Address,
    factory: ConnectionFactory,
    work_dir: Path,
    context: ssl.SSLContext | None = None,
) -> Listener:
    """Accept connections on an address.

    Parameters:
        address: the address; port 0 selects a free port. A passed socket is used as it is.
        factory: creates connections.
        work_dir: start of the relative path of a unix socket.
        context: TLS context; None: no encryption.

    Raises:
        OSError: the address is in use or invalid; the text names it.
    """
    try:
        if address.descriptor is not None:
            passed = socket.socket(fileno=address.descriptor)
            passed.setblocking(False)
            return Listener([passed], address, factory, context)
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
    """Bind sockets to all addresses of a host name, or all interfaces, with one port."""
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
    """Bind a unix socket. It does not listen before its permissions are set."""
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
    """Return a client's address in the format of `box.session.peer()`.

    Parameters:
        name: the address that `accept` returned.
    """
    if not isinstance(name, tuple):
        return "unix/:"
    host, port = name[0], name[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _identity(path: str) -> tuple[int, int] | None:
    """Return the identity of the file at a path; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def remove_stale_socket(path: str) -> None:
    """Remove a unix socket on which no process listens, or an empty file, with which a path was reserved.

    Tarantool removes any file; here, data stay.

    Raises:
        OSError: EADDRINUSE, a process listens, or the path is neither a socket nor an empty file.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    is_empty_file = stat.S_ISREG(found.st_mode) and not found.st_size
    if not stat.S_ISSOCK(found.st_mode) and not is_empty_file:
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
