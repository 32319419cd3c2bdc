"""Bytes that the system had received from a client whose connection was lost before they were read.

The event loops close a socket as soon as a write fails, or the server gives the connection up. Requests that
have arrived may be in the socket's buffer then. While `connection_lost` runs, the socket is still open.
"""

from __future__ import annotations

import asyncio
import os
from typing import Final

from iproto_server.server.connection.tls import TlsTransport

READ_SIZE: Final = 64 * 1024
"""Bytes that are read at a time: the rest stays in the system's buffer until its requests' turn comes."""


class Rest:
    """The unread bytes of a lost connection. Create it in `connection_lost`.

    Parameters:
        transport: the connection's transport.
    """

    __slots__ = ("_descriptor", "_is_own", "_tls", "_waiting")

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        connected = transport.get_extra_info("socket")
        self._tls = transport if isinstance(transport, TlsTransport) else None
        self._descriptor = -1 if connected is None else connected.fileno()
        self._is_own = False
        self._waiting = b"" if self._tls is None else self._tls.decrypt(b"")
        if self._descriptor < 0:
            return
        data = self._receive()
        if data:
            self._waiting += data
            try:
                self._descriptor = os.dup(self._descriptor)
                self._is_own = True
            except OSError:
                # No descriptor is left: what the buffer of one socket holds has to be kept here.
                while more := self._receive():
                    self._waiting += more
        if not self._is_own:
            self._descriptor = -1

    def read(self) -> bytes:
        """Return the next bytes; nothing at their end."""
        if self._waiting:
            data, self._waiting = self._waiting, b""
            return data
        return self._receive()

    def close(self) -> None:
        """Give the socket up."""
        if self._is_own:
            self._is_own = False
            os.close(self._descriptor)
        self._descriptor = -1

    def _receive(self) -> bytes:
        """Read from the socket; of TLS, until something can be decrypted."""
        while self._descriptor >= 0:
            try:
                data = os.read(self._descriptor, READ_SIZE)
            except OSError:
                return b""  # Nothing more is there; or the client has reset the connection.
            if self._tls is None or not data:
                return data
            decrypted = self._tls.decrypt(data)
            if decrypted:
                return decrypted
        return b""
