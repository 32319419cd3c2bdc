"""Listening sockets: TCP and unix, plain and TLS, with a port or path that is in use told plainly."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from iproto_server.address import Address

BACKLOG = 1024
HANDSHAKE_TIMEOUT = 10.0
"""Seconds within which a client of a TLS address must have shaken hands; before that it has no session."""
GOODBYE_TIMEOUT = 1.0
"""Seconds for which the end of a TLS connection waits for the client to agree."""


class Listener:
    """A socket that connections are accepted on.

    Parameters:
        server: what accepts them.
        address: where, with the real port.
    """

    def __init__(self, server: asyncio.Server, address: Address) -> None:
        self.address = address
        self._server = server
        self._file = _identity(address.path) if address.path else None

    def close(self) -> None:
        """Accept no more, and remove the socket's file unless it has become somebody else's."""
        self._server.close()
        if self._file is not None and _identity(self.address.path) == self._file:
            os.unlink(self.address.path)


async def listen(
    address: Address,
    protocol: Callable[[], asyncio.Protocol],
    work_dir: Path,
    context: ssl.SSLContext | None = None,
) -> Listener:
    """Accept connections on an address.

    Parameters:
        address: where; port 0 is any free one.
        protocol: makes the protocol of a new connection.
        work_dir: where the relative path of a unix socket starts.
        context: how connections are encrypted; None: not at all.

    Raises:
        OSError: the address is in use or cannot be had; its text names the address.
    """
    loop = asyncio.get_running_loop()
    encryption: dict[str, Any] = {}
    if context is not None:
        encryption = {
            "ssl": context,
            "ssl_handshake_timeout": HANDSHAKE_TIMEOUT,
            "ssl_shutdown_timeout": GOODBYE_TIMEOUT,
        }
    try:
        if address.path:
            path = str(work_dir / address.path)
            remove_stale_socket(path)
            server = await loop.create_unix_server(protocol, path, backlog=BACKLOG, **encryption)
            return Listener(server, Address(path=path))
        server = await loop.create_server(
            protocol, address.host or None, address.port, backlog=BACKLOG, reuse_address=True, **encryption
        )
    except OSError as error:
        number = error.errno or errno.EADDRNOTAVAIL
        reason = os.strerror(number) if number in errno.errorcode else str(error)
        raise OSError(number, f"cannot listen on {address}: {reason}") from error
    port = server.sockets[0].getsockname()[1]
    return Listener(server, Address(address.host, port))


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
