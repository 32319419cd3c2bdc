"""A bare IPROTO client: sends what a test wants sent, right or wrong, and shows what comes back.

It shares no code with the server, so that the two cannot be wrong in the same way.
"""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import msgpack

SELECT, INSERT, REPLACE, UPDATE, DELETE, CALL_16, AUTH, EVAL, UPSERT, CALL = range(1, 11)
EXECUTE, NOP, BEGIN, COMMIT, ROLLBACK, PING, ID = 11, 12, 14, 15, 16, 64, 73
WATCH, UNWATCH, EVENT, WATCH_ONCE = 74, 75, 76, 77
CHUNK = 0x80

REQUEST_TYPE, SYNC, SCHEMA_VERSION, STREAM_ID = 0x00, 0x01, 0x05, 0x0A
SPACE_ID, INDEX_ID, LIMIT, OFFSET, ITERATOR, INDEX_BASE = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15
KEY, TUPLE, FUNCTION_NAME, USER_NAME, EXPRESSION, OPERATIONS = 0x20, 0x21, 0x22, 0x23, 0x27, 0x28
DATA, ERROR_24, ERROR = 0x30, 0x31, 0x52
TIMEOUT, EVENT_KEY, EVENT_DATA, TXN_ISOLATION = 0x56, 0x57, 0x58, 0x59

_ALL = 2
_VSPACE = 281

_STACK, _STACK_TYPE, _STACK_FILE, _STACK_LINE = 0x00, 0x00, 0x01, 0x02
_STACK_MESSAGE, _STACK_ERRNO, _STACK_CODE, _STACK_FIELDS = 0x03, 0x04, 0x05, 0x06


@dataclass(frozen=True, slots=True)
class Answer:
    """One response.

    Args:
        status: 0, or 0x8000 and the error code; the type of what is no answer.
        sync: The request's number; -1 where there is none.
        schema_version: The schema's version; -1 where there is none.
        body: The body's map.
        raw_body: The body's bytes.
        header_size: How many bytes the header has.
    """

    status: int
    sync: int
    schema_version: int
    body: Mapping[int, Any]
    raw_body: bytes
    header_size: int

    @property
    def ok(self) -> bool:
        """Whether it is no error."""
        return self.status == 0

    @property
    def error_code(self) -> int:
        """Tarantool's error code; 0 without an error."""
        return self.status & 0x7FFF

    @property
    def error(self) -> str | None:
        """Tarantool's error text; None without an error."""
        text: str | None = self.body.get(ERROR_24)
        return text

    @property
    def failure(self) -> tuple[int, str]:
        """Code and text of an error."""
        assert not self.ok, self
        return self.error_code, self.error or ""

    @property
    def error_stack(self) -> list[dict[str, Any]]:
        """The errors, the last one first, without the places in the source where they were raised."""
        names = {
            _STACK_TYPE: "type",
            _STACK_MESSAGE: "message",
            _STACK_ERRNO: "errno",
            _STACK_CODE: "code",
            _STACK_FIELDS: "fields",
        }
        errors = self.body.get(ERROR, {}).get(_STACK, [])
        return [{name: error[key] for key, name in names.items() if key in error} for error in errors]

    @property
    def data(self) -> Any:
        """The rows or values of a success."""
        assert self.ok, self
        return self.body[DATA]


class IprotoClient:
    """A connection on which requests may be pipelined.

    Args:
        host: The server's address, or the path of its unix socket.
        port: The server's port; 0 with a path.
        timeout: Seconds that an answer may take; only a failing test waits so long.
        receive_buffer: Bytes of the socket's receive buffer; None for what the system gives.
        tls: How to encrypt; None for not at all.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout: float = 20,
        receive_buffer: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.socket = socket.socket(socket.AF_INET if port else socket.AF_UNIX)
        self.socket.settimeout(timeout)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect((host, port) if port else host)
        if port:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket)
        self._stream = self.socket.makefile("rb")
        self._sync = 0
        self.greeting = self._read(128)
        self.salt = base64.b64decode(self.greeting[64:108])

    @classmethod
    def at(cls, address: str, *, receive_buffer: int | None = None) -> Self:
        """Connect to `HOST:PORT` or `unix:PATH`."""
        if address.startswith("unix:"):
            return cls(address.removeprefix("unix:"), 0, receive_buffer=receive_buffer)
        host, _, port = address.rpartition(":")
        return cls(host, int(port), receive_buffer=receive_buffer)

    def send(
        self,
        request_type: int,
        body: Mapping[Any, Any] | bytes = b"",
        header: Mapping[Any, Any] | None = None,
    ) -> int:
        """Send a request without waiting for its answer.

        Args:
            request_type: Its type.
            body: Its body: a map, or bytes to be sent as they are.
            header: Header keys beside, or in place of, the type and the sync.

        Returns:
            The sync that the answer will have.
        """
        self._sync += 1
        packed = body if isinstance(body, bytes) else msgpack.packb(dict(body))
        self.send_frame(
            msgpack.packb({REQUEST_TYPE: request_type, SYNC: self._sync, **(header or {})}) + packed
        )
        return self._sync

    def send_frame(self, frame: bytes) -> None:
        """Send bytes with their length before them."""
        self.send_bytes(b"\xce" + len(frame).to_bytes(4, "big") + frame)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def receive(self) -> Answer:
        """Wait for the next answer, whichever request it belongs to.

        Raises:
            ConnectionError: The server closed the connection.
        """
        frame = self.receive_frame()
        unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")
        unpacker.feed(frame)
        header = unpacker.unpack()
        header_size = unpacker.tell()
        raw_body = frame[header_size:]
        body = unpacker.unpack() if raw_body else {}
        sync, schema_version = header.get(SYNC, -1), header.get(SCHEMA_VERSION, -1)
        return Answer(header[REQUEST_TYPE], sync, schema_version, body, raw_body, header_size)

    def receive_frame(self) -> bytes:
        """Wait for the next answer.

        Returns:
            Its bytes without the length before them.

        Raises:
            ConnectionError: The server closed the connection.
        """
        prefix = self._read(5)
        assert prefix[0] == 0xCE, f"a length of five bytes is expected, not {prefix!r}"
        return self._read(int.from_bytes(prefix[1:], "big"))

    def request(
        self,
        request_type: int,
        body: Mapping[Any, Any] | bytes = b"",
        header: Mapping[Any, Any] | None = None,
    ) -> Answer:
        """Send a request and wait for its answer; there must be no other on its way."""
        sync = self.send(request_type, body, header)
        answer = self.receive()
        assert answer.sync in (sync, 0), f"an answer to request {answer.sync}, not {sync}"
        return answer

    def call(self, procedure: str, *arguments: Any) -> Answer:
        """CALL a procedure and wait for the answer."""
        return self.request(CALL, {FUNCTION_NAME: procedure, TUPLE: list(arguments)})

    def everything(self, space_id: int, index_id: int = 0) -> Answer:
        """SELECT all rows of a space, in the order of an index, and wait for the answer."""
        selection = {SPACE_ID: space_id, INDEX_ID: index_id, ITERATOR: _ALL, LIMIT: 2**32 - 1, KEY: []}
        return self.request(SELECT, selection)

    def space_id(self, name: str) -> int:
        """The id of a space that the user may see."""
        number: int = next(space[0] for space in self.everything(_VSPACE).data if space[2] == name)
        return number

    def closed_by_server(self) -> bool:
        """Wait until the server has closed the connection, or has sent something instead."""
        try:
            return self._stream.read(1) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise ConnectionError(f"the server closed the connection after {data!r}")
        return data


def frame(
    request_type: int, body: Mapping[Any, Any] | None = None, *, sync: int = 0, stream_id: int = 0
) -> bytes:
    """A whole request as it goes over the wire.

    Args:
        request_type: Its type.
        body: Its body; None for none at all.
        sync: The number of its answer.
        stream_id: The stream that it belongs to; 0 for none.

    Returns:
        The bytes, with their length before them.
    """
    header = {REQUEST_TYPE: request_type, SYNC: sync}
    if stream_id:
        header[STREAM_ID] = stream_id
    packed: bytes = msgpack.packb(header)
    if body is not None:
        packed += msgpack.packb(dict(body))
    length: bytes = msgpack.packb(len(packed))
    return length + packed
