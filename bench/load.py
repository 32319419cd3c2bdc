"""Load on a server: requests through pipelined sockets, for as little time of this process as Python allows.

All requests of a phase have one length and are made before it begins; answers are counted by their lengths,
and looked into when the phase is over.
"""

from __future__ import annotations

import os
import re
import select
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import msgpack

PAYLOAD: Final = 100
"""Bytes of a task's data: hexadecimal digits, so that it compresses as text does, and each is another."""

_PING, _CALL = 64, 10
_TYPE, _SYNC, _FUNCTION_NAME, _TUPLE, _DATA, _ERROR = 0x00, 0x01, 0x22, 0x21, 0x30, 0x31
_GREETING: Final = 128
_LENGTH: Final = 5
_RECEIVE: Final = 2**18
_ANY_ID: Final = b"\xcf" + bytes(8)
_ID: Final = re.compile(rb"\xa2id(\xcf.{8})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one length, one behind the other.

    Attributes:
        data: their bytes.
        length: the bytes of one.
    """

    data: bytes
    length: int

    def __len__(self) -> int:
        return len(self.data) // self.length


def pings(count: int) -> Requests:
    """PING, so many times."""
    frame = _frame(_PING, {})
    return Requests(frame * count, len(frame))


def puts(count: int) -> Requests:
    """`queue.put` of so many tasks."""
    payload = b"?" * PAYLOAD
    before, after = call_frame("queue.put", [payload.decode()]).split(payload)
    digits = os.urandom(count * PAYLOAD // 2).hex().encode()
    payloads = (digits[start : start + PAYLOAD] for start in range(0, len(digits), PAYLOAD))
    return Requests(_joined(before, payloads, after), len(before) + PAYLOAD + len(after))


def takes(count: int) -> Requests:
    """`queue.take` without waiting, so many times."""
    frame = call_frame("queue.take", [])
    return Requests(frame * count, len(frame))


def acks(ids: Sequence[bytes]) -> Requests:
    """`queue.ack` of tasks, whose ids are as in their answers."""
    # The argument, the only one, is the last thing in the frame.
    before = call_frame("queue.ack", [2**63]).removesuffix(msgpack.packb(2**63))
    return Requests(_joined(before, ids, b""), len(before) + len(_ANY_ID))


def ids_in(answers: bytes) -> list[bytes]:
    """The ids of the tasks in answers, as msgpack."""
    return _ID.findall(answers)


class Connection:
    """A connection, which has a number of requests in flight at most.

    Parameters:
        address: the server's host and port.
        in_flight: how many.
    """

    def __init__(self, address: tuple[str, int], in_flight: int = 1) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        greeting = b""
        while len(greeting) < _GREETING:
            greeting += self._receive()
        self._in_flight = in_flight
        self._rest = b""
        self._answers: list[bytes] = []

    def begin(self, requests: Requests) -> None:
        """Send the first requests."""
        self._answers.clear()
        self._requests, self._bytes_sent = requests, 0
        self._send(self._in_flight)

    def go_on(self) -> int:
        """Receive what is there, and send as many requests as were answered.

        Returns:
            How many that are.
        """
        data = self._rest + self._receive()
        position, end, answered = 0, len(data), 0
        while position + _LENGTH <= end:
            following = position + _LENGTH + int.from_bytes(data[position + 1 : position + _LENGTH], "big")
            if following > end:
                break
            position = following
            answered += 1
        self._answers.append(data[:position])
        self._rest = data[position:]
        self._send(answered)
        return answered

    @property
    def answers(self) -> bytes:
        """The answers to all requests."""
        return b"".join(self._answers)

    def call(self, procedure: str, *arguments: object) -> Any:
        """Call a procedure; nothing else may be in flight.

        Returns:
            The values.

        Raises:
            RuntimeError: The call failed.
        """
        frame = call_frame(procedure, arguments)
        self._run(Requests(frame, len(frame)))
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(self.answers[_LENGTH:])
        unpacker.unpack()
        body = unpacker.unpack()
        if _DATA not in body:
            raise RuntimeError(f"{procedure}: {body[_ERROR]}")
        return body[_DATA]

    def ping(self) -> None:
        """Wait for the answer to a ping; nothing else may be in flight."""
        self._run(pings(1))

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, requests: Requests) -> None:
        self.begin(requests)
        left = len(requests)
        while left:
            left -= self.go_on()

    def _send(self, count: int) -> None:
        end = self._bytes_sent + count * self._requests.length
        data = self._requests.data[self._bytes_sent : end]
        self._bytes_sent += len(data)
        if data:
            self.socket.sendall(data)

    def _receive(self) -> bytes:
        data = self.socket.recv(_RECEIVE)
        if not data:
            raise ConnectionError("the server has closed the connection")
        return data


class Load:
    """A number of connections that do the same.

    Parameters:
        address: the server's host and port.
        connections: how many.
        in_flight: the most requests that each has in flight.
    """

    def __init__(self, address: tuple[str, int], connections: int, in_flight: int) -> None:
        self._connections = [Connection(address, in_flight) for _ in range(connections)]
        self._taken: list[list[bytes]] = [[] for _ in self._connections]
        self._by_number = {connection.socket.fileno(): connection for connection in self._connections}
        self._poll = select.epoll()
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)

    def ping(self, count: int) -> float:
        """Send so many pings.

        Returns:
            How many seconds that took, as with the others.
        """
        return self._run([pings(share) for share in self._shares(count)])

    def put(self, count: int) -> float:
        """Put so many tasks."""
        seconds = self._run([puts(share) for share in self._shares(count)])
        self._check(sum(len(ids) for ids in self._ids()), count)
        return seconds

    def take(self, count: int) -> float:
        """Take so many tasks, which must be there."""
        seconds = self._run([takes(share) for share in self._shares(count)])
        for taken, ids in zip(self._taken, self._ids(), strict=True):
            taken += ids
        self._check(sum(map(len, self._taken)), count)
        return seconds

    def ack(self) -> float:
        """Acknowledge what was taken."""
        count = sum(map(len, self._taken))
        seconds = self._run([acks(ids) for ids in self._taken])
        self._check(sum(len(ids) for ids in self._ids()), count)
        for taken in self._taken:
            taken.clear()
        return seconds

    def close(self) -> None:
        """Close all connections."""
        self._poll.close()
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, work: Iterable[Requests]) -> float:
        phases = list(zip(self._connections, work, strict=True))
        left = sum(len(requests) for _, requests in phases)
        begun = time.perf_counter()
        for connection, requests in phases:
            connection.begin(requests)
        poll, by_number = self._poll.poll, self._by_number
        while left:
            for number, _ in poll():
                left -= by_number[number].go_on()
        return time.perf_counter() - begun

    def _shares(self, count: int) -> list[int]:
        share, rest = divmod(count, len(self._connections))
        return [share + (number < rest) for number in range(len(self._connections))]

    def _ids(self) -> Iterable[list[bytes]]:
        return (ids_in(connection.answers) for connection in self._connections)

    @staticmethod
    def _check(done: int, asked: int) -> None:
        if done != asked:
            raise RuntimeError(f"{asked - done} of {asked} requests failed")


def _frame(request_type: int, body: dict[int, object]) -> bytes:
    """A request without a number: its connection only counts answers."""
    content = msgpack.packb({_TYPE: request_type, _SYNC: 0}) + msgpack.packb(body)
    return b"\xce" + len(content).to_bytes(_LENGTH - 1, "big") + bytes(content)


def call_frame(procedure: str, arguments: Iterable[object]) -> bytes:
    """A CALL."""
    return _frame(_CALL, {_FUNCTION_NAME: procedure, _TUPLE: list(arguments)})


def _joined(before: bytes, middles: Iterable[bytes], after: bytes) -> bytes:
    """All of them, each between the same two."""
    return before + (after + before).join(middles) + after
