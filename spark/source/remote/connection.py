"""A connection to a server with many requests in flight.

It uses the codec and the framing of `iproto_server`. The client library asynctnt computes microseconds of
datetimes with a double and loses some, refuses texts that are not UTF-8, and packs a row again for each
attempt to send it.
"""

from __future__ import annotations

import base64
import re
import select
import socket
from time import monotonic
from typing import Any, Final, NamedTuple, Self

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import CHAP_SHA1
from iproto_server.protocol import FrameDecoder, Key, RequestType
from iproto_server.protocol.auth import scramble
from iproto_server.protocol.constants import CHUNK, ERROR_FLAG
from iproto_server.protocol.greeting import GREETING_SIZE
from iproto_server.tools.client import ServerUri
from pyspark_tarantool.source.errors import SourceError

FIRST_WITH_DATETIMES: Final = (2, 10)
"""The first version of Tarantool with datetimes and intervals, and with streams and their transactions."""

_GREETING: Final = re.compile(rb"Tarantool ([0-9]+)\.([0-9]+)\.[^\n]*\(Binary\)")
_STREAM: Final = b"\x0a"
"""The header's key of a stream."""

_MAX_FRAME: Final = 2**31
_CHUNK_SIZE: Final = 1 << 18
_TRANSIENT: Final = frozenset({ErrorCode.LOADING})
"""The errors of a server that is not ready yet: they count as a lost connection."""


class LostConnectionError(Exception):
    """The connection failed; a new one may succeed."""


class Answer(NamedTuple):
    """A response of the server.

    Attributes:
        sync: The request's sync.
        code: 0, or the error's code.
        body: The packed body.
    """

    sync: int
    code: int
    body: bytes

    @property
    def error(self) -> str:
        """The error message with its code."""
        text = codec.unpack(self.body).get(Key.ERROR_24, "") if self.body else ""
        return f"{text} (error {self.code})"


class Connection:
    """An authenticated connection.

    Parameters:
        uri: The server.
        timeout: Seconds without data from the server while requests are unanswered.

    Attributes:
        version: The server's major and minor version.

    Raises:
        LostConnectionError: If connecting fails.
        SourceError: If authentication fails, or it is not Tarantool.
    """

    def __init__(self, uri: ServerUri, timeout: float) -> None:
        self._timeout = timeout
        self._place = str(uri.address)
        self._outgoing = bytearray()
        self._frames = FrameDecoder(_MAX_FRAME)
        self._last_progress = monotonic()
        self._socket = self._connect(uri)
        try:
            self.version = self._handshake(uri)
        except BaseException:
            self.close()
            raise

    @property
    def has_datetimes(self) -> bool:
        """Whether the server supports datetimes and intervals."""
        return self.version >= FIRST_WITH_DATETIMES

    @property
    def has_transactions(self) -> bool:
        """Whether the server knows streams and interactive transactions."""
        return self.version >= FIRST_WITH_DATETIMES

    def send(self, sync: int, request_type: RequestType, body: bytes, stream: int = 0) -> None:
        """Queue a request; `exchange` sends it.

        Parameters:
            sync: Its sync.
            request_type: Its type.
            body: A packed map.
            stream: Its stream; 0 for none.
        """
        header = b"\x00" + bytes((request_type,)) + b"\x01\xcf" + sync.to_bytes(8, "big")
        header = b"\x83" + header + _STREAM + codec.pack(stream) if stream else b"\x82" + header
        self._outgoing += b"\xce" + (len(header) + len(body)).to_bytes(4, "big") + header + body

    def exchange(self, *, wait: bool) -> list[Answer]:
        """Send queued requests as far as possible, and receive responses.

        Parameters:
            wait: Whether to wait for a response.

        Raises:
            LostConnectionError: If the connection fails, or there is no progress until the timeout.
        """
        self._last_progress = monotonic()
        while True:
            self._write()
            answers = [answer for frame in self._read() for answer in _decode(frame)]
            if answers or not wait:
                if any(answer.code in _TRANSIENT for answer in answers):
                    raise LostConnectionError("the server is not ready yet")
                return answers
            self._poll(select.POLLIN | (select.POLLOUT if self._outgoing else 0))

    def ask(self, request_type: RequestType, body: dict[int, Any], stream: int = 0) -> Any:
        """Send a request while no other is in flight, and wait for its result.

        Parameters:
            request_type: Its type.
            body: Its body.
            stream: Its stream; 0 for none.

        Raises:
            LostConnectionError: If the connection fails, or the response takes too long.
            SourceError: If the server refuses; with its message.
        """
        raw = self.ask_raw(request_type, body, stream)
        return codec.unpack(raw).get(Key.DATA) if raw else None

    def ask_raw(self, request_type: RequestType, body: dict[int, Any], stream: int = 0) -> bytes:
        """Like `ask`, but return the packed body of the response."""
        self.send(0, request_type, codec.pack(body), stream)
        answer = self.exchange(wait=True)[0]
        if answer.code:
            raise SourceError(f"{self._place}: {answer.error}")
        return answer.body

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _connect(self, uri: ServerUri) -> socket.socket:
        address = uri.address
        try:
            if address.path:
                connected = socket.socket(socket.AF_UNIX)
                connected.settimeout(self._timeout)
                connected.connect(address.path)
            else:
                place = (address.host or "localhost", address.port)
                connected = socket.create_connection(place, self._timeout)
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise LostConnectionError(f"cannot connect: {error.strerror or error}") from None
        connected.setblocking(False)
        return connected

    def _handshake(self, uri: ServerUri) -> tuple[int, int]:
        greeting = b""
        while len(greeting) < GREETING_SIZE:
            self._poll(select.POLLIN)
            greeting += self._receive(GREETING_SIZE - len(greeting)) or b""
        match = _GREETING.match(greeting)
        if match is None:
            raise SourceError(f"{self._place}: the server is not Tarantool")
        if uri.user is not None:
            salt = base64.b64decode(greeting[GREETING_SIZE // 2 :])
            proof = [CHAP_SHA1, scramble(uri.password or "", salt)]
            self.ask(RequestType.AUTH, {Key.USER_NAME: uri.user, Key.TUPLE: proof})
        return int(match[1]), int(match[2])

    def _write(self) -> None:
        """Send as much as possible without blocking."""
        if not self._outgoing:
            return
        try:
            sent = self._socket.send(self._outgoing)
        except BlockingIOError:
            return
        except OSError as error:
            raise LostConnectionError(f"the connection broke: {error.strerror or error}") from None
        del self._outgoing[:sent]
        self._last_progress = monotonic()

    def _read(self) -> list[bytes]:
        """The received frames."""
        frames: list[bytes] = []
        while (data := self._receive(_CHUNK_SIZE)) is not None:
            try:
                frames += self._frames.feed(data)
            except BoxError as error:
                raise LostConnectionError(f"malformed response of the server: {error.message}") from None
            if len(data) < _CHUNK_SIZE:
                break
        return frames

    def _receive(self, most: int) -> bytes | None:
        """The received bytes; None if there are none."""
        try:
            data = self._socket.recv(most)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LostConnectionError(f"the connection broke: {error.strerror or error}") from None
        if not data:
            raise LostConnectionError("the server closed the connection")
        self._last_progress = monotonic()
        return data

    def _poll(self, events: int) -> None:
        """Wait until data can be sent or received, at most until the timeout after the last progress."""
        poll = select.poll()
        poll.register(self._socket, events)
        if not poll.poll(max(0.0, self._last_progress + self._timeout - monotonic()) * 1000):
            raise LostConnectionError(f"no answer within {self._timeout:g} seconds")


def _decode(frame: bytes) -> list[Answer]:
    """The response in a frame; none for a push message."""
    try:
        end = codec.skip(frame, 0)
        header = codec.unpack(frame[:end])
        code, sync = header[Key.REQUEST_TYPE], header[Key.SYNC]
    except (BoxError, LookupError, TypeError):
        raise LostConnectionError("malformed response of the server") from None
    return [] if code == CHUNK else [Answer(sync, code & ~ERROR_FLAG, frame[end:])]
