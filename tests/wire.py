"""A client with nothing between it and the wire, for what well-behaved clients never send."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any, Self

import msgpack

from iproto_server.protocol.constants import Key, RequestType

TIMEOUT = 10.0
"""Seconds until a read fails. Only a failing test ever waits so long."""


@dataclass(frozen=True)
class Response:
    """One response.

    Attributes:
        code: 0, or 0x8000 and the error's number.
        sync: the request's.
        schema_version: the server's.
        body: the decoded body.
        header_size: bytes from the end of the length to the body.
    """

    code: int
    sync: int
    schema_version: int
    body: dict[int, Any]
    header_size: int

    @property
    def data(self) -> Any:
        """DATA of a response that is no error."""
        assert self.code == 0, self
        return self.body[Key.DATA]

    @property
    def error(self) -> tuple[int, str]:
        """Number and text of an error."""
        assert self.code & 0x8000, self
        return self.code & 0x7FFF, self.body[Key.ERROR_24]


class RawClient:
    """A blocking socket that packs requests and unpacks responses.

    Parameters:
        address: "HOST:PORT" or "unix:PATH".
        receive_buffer: bytes of the socket's receive buffer; None: the system's choice.
    """

    def __init__(self, address: str, receive_buffer: int | None = None) -> None:
        family = socket.AF_UNIX if address.startswith("unix:") else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT)
        if family == socket.AF_UNIX:
            self.socket.connect(address.removeprefix("unix:"))
        else:
            host, _, port = address.rpartition(":")
            self.socket.connect((host, int(port)))
        self._sync = 0
        self.greeting = self._exactly(128)

    # -- sending --

    def send(self, kind: int, body: object = None, *, sync: int | None = None, **header: int) -> int:
        """Send a request and answer its sync.

        Parameters:
            kind: the request type.
            body: the body's map; None for no body at all.
            sync: the number to match the response by; the next one unless given.
            header: more header keys, by their names in `Key`.
        """
        if sync is None:
            self._sync += 1
            sync = self._sync
        self.socket.sendall(frame(kind, body, sync=sync, **header))
        return sync

    def send_bytes(self, data: bytes) -> None:
        """Send whatever it is."""
        self.socket.sendall(data)

    # -- receiving --

    def receive(self) -> Response:
        """The next response, whichever request it belongs to. Raises EOFError when the server has closed."""
        prefix = self._exactly(5)
        assert prefix[0] == 0xCE, prefix
        payload = self._exactly(int.from_bytes(prefix[1:], "big"))
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(payload)
        header = unpacker.unpack()
        header_size = unpacker.tell()
        body = unpacker.unpack() if header_size < len(payload) else {}
        return Response(
            header[Key.REQUEST_TYPE], header[Key.SYNC], header[Key.SCHEMA_VERSION], body, header_size
        )

    def request(self, kind: int, body: object = None, **header: int) -> Response:
        """Send a request and wait for its response, which must be the next one."""
        sync = self.send(kind, body, **header)
        response = self.receive()
        assert response.sync == sync, response
        return response

    def call(self, name: str, *arguments: object) -> Response:
        """CALL a procedure."""
        return self.request(RequestType.CALL, {Key.FUNCTION_NAME: name, Key.TUPLE: list(arguments)})

    def is_closed(self) -> bool:
        """Wait until the server sends something or closes; whether it has closed."""
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b""
        except ConnectionResetError:
            return True

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise EOFError("the server closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def frame(kind: int, body: object = None, *, sync: int = 0, **header: int) -> bytes:
    """A request as it goes over the wire; see `RawClient.send`."""
    fields = {int(Key.REQUEST_TYPE): kind, int(Key.SYNC): sync}
    fields.update({int(Key[name.upper()]): value for name, value in header.items()})
    payload: bytes = msgpack.packb(fields) + (b"" if body is None else msgpack.packb(body))
    length: bytes = msgpack.packb(len(payload))
    return length + payload
