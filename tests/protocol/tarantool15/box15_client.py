"""A bare client of Tarantool 1.5's protocol: sends what a test wants sent, right or wrong.

It shares no code with the server, so that the two cannot be wrong in the same way.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

INSERT, SELECT, UPDATE, DELETE_1_3, DELETE, CALL, PING = 13, 17, 19, 20, 21, 22, 65280
RETURN_TUPLE, ADD, REPLACE = 1, 2, 4
NO_LIMIT = 2**32 - 1


def u32(*numbers: int) -> bytes:
    """Numbers of four bytes."""
    return struct.pack(f"<{len(numbers)}I", *numbers)


def u64(number: int) -> bytes:
    """A number of eight bytes."""
    return struct.pack("<Q", number)


def varint(number: int) -> bytes:
    """A number of one to five bytes."""
    data = bytes([number & 0x7F])
    while number > 0x7F:
        number >>= 7
        data = bytes([number & 0x7F | 0x80]) + data
    return data


def packed_field(data: bytes) -> bytes:
    """A field: its length and its bytes."""
    return varint(len(data)) + data


def packed_tuple(*fields: bytes) -> bytes:
    """A tuple: how many fields, and the fields."""
    return u32(len(fields)) + b"".join(map(packed_field, fields))


def operation(number: int, code: int, argument: bytes) -> bytes:
    """An operation of an UPDATE."""
    return u32(number) + bytes([code]) + packed_field(argument)


def splice(offset: int, length: int, text: bytes) -> bytes:
    """The argument of a splice."""
    parts = (struct.pack("<i", offset), struct.pack("<i", length), text)
    return b"".join(map(packed_field, parts))


def frame(kind: int, body: bytes = b"", request_id: int = 0) -> bytes:
    """A request."""
    return u32(kind, len(body), request_id) + body


def insert_body(space: int, *fields: bytes, flags: int = 0) -> bytes:
    """The body of an INSERT."""
    return u32(space, flags) + packed_tuple(*fields)


def select_body(
    space: int, *keys: Sequence[bytes], index: int = 0, offset: int = 0, limit: int = NO_LIMIT
) -> bytes:
    """The body of a SELECT."""
    start = u32(space, index, offset, limit, len(keys))
    return start + b"".join(packed_tuple(*key) for key in keys)


def update_body(space: int, key: Sequence[bytes], *operations: bytes, flags: int = 0) -> bytes:
    """The body of an UPDATE."""
    return u32(space, flags) + packed_tuple(*key) + u32(len(operations)) + b"".join(operations)


def delete_body(space: int, *key: bytes, flags: int = 0) -> bytes:
    """The body of a DELETE."""
    return u32(space, flags) + packed_tuple(*key)


def call_body(name: bytes, *arguments: bytes, flags: int = 0) -> bytes:
    """The body of a CALL."""
    return u32(flags) + packed_field(name) + packed_tuple(*arguments)


@dataclass(frozen=True, slots=True)
class Answer15:
    """One answer.

    Args:
        kind: The request's type.
        request_id: The request's number.
        code: The error's number; 0 for success.
        status: The completion status: 0, 1 (try again) or 2.
        message: The error's text.
        count: How many rows were found or changed.
        tuples: These rows, each a list of fields.
        raw: All of its bytes.
    """

    kind: int
    request_id: int
    code: int = 0
    status: int = 0
    message: str = ""
    count: int = 0
    tuples: list[list[bytes]] = field(default_factory=list)
    raw: bytes = b""


def answer_of(raw: bytes) -> Answer15:
    """Read an answer, header and body, every byte of it."""
    kind, length, request_id = struct.unpack_from("<III", raw)
    body = raw[12:]
    assert len(body) == length
    if kind == PING:
        assert not body
        return Answer15(kind, request_id, raw=raw)
    (code,) = struct.unpack_from("<I", body)
    if code:
        assert body.endswith(b"\0")
        message = body[4:-1].decode("utf-8", "surrogateescape")
        return Answer15(kind, request_id, code >> 8, code & 0xFF, message, raw=raw)
    (count,) = struct.unpack_from("<I", body, 4)
    tuples = _tuples(body[8:])
    assert len(tuples) in (0, count)
    return Answer15(kind, request_id, count=count, tuples=tuples, raw=raw)


def _tuples(data: bytes) -> list[list[bytes]]:
    tuples = []
    while data:
        size, count = struct.unpack_from("<II", data)
        fields, rest = _fields(data[8 : 8 + size], count)
        assert not rest
        assert len(data) >= 8 + size
        tuples.append(fields)
        data = data[8 + size :]
    return tuples


def _fields(data: bytes, count: int) -> tuple[list[bytes], bytes]:
    fields = []
    for _ in range(count):
        size = 0
        while True:
            byte, data = data[0], data[1:]
            size = size << 7 | byte & 0x7F
            if byte < 0x80:
                break
        fields.append(data[:size])
        assert len(fields[-1]) == size
        data = data[size:]
    return fields, data


class Client15:
    """A connection. Use as a context manager.

    Args:
        host: The server's address.
        port: Its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=20)
        self._last_id = 0
        self._received = b""

    def request(self, kind: int, body: bytes = b"") -> Answer15:
        """Send a request and wait for its answer, which must be the next one."""
        request_id = self.send(kind, body)
        answer = self.receive()
        assert (answer.kind, answer.request_id) == (kind, request_id)
        return answer

    def send(self, kind: int, body: bytes = b"") -> int:
        """Send a request, and answer its number."""
        self._last_id += 1
        self.send_bytes(frame(kind, body, self._last_id))
        return self._last_id

    def send_bytes(self, data: bytes) -> None:
        """Send anything."""
        self.socket.sendall(data)

    def receive(self) -> Answer15:
        """The next answer."""
        header = self._read(12)
        return answer_of(header + self._read(struct.unpack_from("<I", header, 4)[0]))

    def closed_by_server(self) -> bool:
        """Wait for what comes next; whether that is the end."""
        try:
            return not self._received and not self.socket.recv(1)
        except ConnectionResetError:
            return True

    def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError("the server has closed the connection")
            self._received += data
        data, self._received = self._received[:size], self._received[size:]
        return data

    # -- requests --

    def insert(self, space: int, *fields: bytes, flags: int = 0) -> Answer15:
        """INSERT."""
        return self.request(INSERT, insert_body(space, *fields, flags=flags))

    def select(
        self, space: int, *keys: Sequence[bytes], index: int = 0, offset: int = 0, limit: int = NO_LIMIT
    ) -> Answer15:
        """SELECT."""
        return self.request(SELECT, select_body(space, *keys, index=index, offset=offset, limit=limit))

    def update(self, space: int, key: Sequence[bytes], *operations: bytes, flags: int = 0) -> Answer15:
        """UPDATE."""
        return self.request(UPDATE, update_body(space, key, *operations, flags=flags))

    def delete(self, space: int, *key: bytes, flags: int = 0) -> Answer15:
        """DELETE."""
        return self.request(DELETE, delete_body(space, *key, flags=flags))

    def call(self, name: str, *arguments: bytes) -> Answer15:
        """CALL."""
        return self.request(CALL, call_body(name.encode(), *arguments))

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
