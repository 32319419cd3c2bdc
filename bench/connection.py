"""A connection that has several requests in flight, for as little time of this process as Python allows."""

from __future__ import annotations

import socket
import time
from collections import deque
from typing import Final, Self

from bench.dialect import Dialect
from bench.latency import Latencies
from bench.process import Address
from bench.requests import Requests

_RECEIVE: Final = 2**18


class Connection:
    """A connection, which has a number of requests in flight at most.

    Parameters:
        address: the server's host and port.
        dialect: what is spoken.
        in_flight: how many.

    Attributes:
        socket: the connection's.
        unsent: what the system did not take of what is to be sent; `send_rest` sends more of it.
        latencies: of the answers since `begin`. The first answer belongs to the request that was sent first;
            its time is from when that was given to the system to when all that came with the answer was read.
    """

    def __init__(self, address: Address, dialect: Dialect, in_flight: int = 1) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.unsent = b""
        self.latencies = Latencies()
        self._dialect = dialect
        self._complete = dialect.complete
        self._in_flight = in_flight
        self._rest = b""
        self._answers: list[bytes] = []
        self._sent_at: deque[tuple[float, int]] = deque()
        greeting = 0
        while greeting < dialect.greeting:
            greeting += len(self._receive())

    def begin(self, requests: Requests) -> None:
        """Send the first requests."""
        self._answers.clear()
        self._sent_at.clear()
        self.latencies = Latencies()
        self._requests, self._sent = requests, 0
        self._send(self._in_flight, time.perf_counter())

    def go_on(self) -> int:
        """Receive what is there, and send as many requests as were answered.

        Returns:
            How many that are.

        Raises:
            ConnectionError: The server has closed the connection.
        """
        data = self._receive()
        now = time.perf_counter()
        if self._rest:
            data = self._rest + data
        answered, end = self._complete(data)
        self._answers.append(data[:end])
        self._rest = data[end:]
        if answered:
            self._note(now, answered)
            self._send(answered, now)
        return answered

    def send_rest(self) -> None:
        """Send what the system takes now of what it did not take before."""
        data, self.unsent = self.unsent, b""
        self._give(data)

    @property
    def answers(self) -> bytes:
        """The answers since `begin`."""
        return b"".join(self._answers)

    def ask(self, requests: Requests) -> bytes:
        """Wait for the answers to some small requests; nothing else may be in flight."""
        self.begin(requests)
        left = len(requests)
        while left > 0:
            left -= self.go_on()
        return self.answers

    def ping(self) -> None:
        """Wait for the answer to a ping; nothing else may be in flight."""
        self.ask(self._dialect.pings(1))

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _send(self, count: int, now: float) -> None:
        end = min(self._sent + count, len(self._requests))
        if end > self._sent:
            self._sent_at.append((now, end - self._sent))
            data = self._requests.span(self._sent, end)
            self._sent = end
            if self.unsent:
                self.unsent += data
            else:
                self._give(data)

    def _give(self, data: bytes) -> None:
        # Waiting here could be for ever: the server may take nothing before its answers are read.
        try:
            taken = self.socket.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            taken = 0
        if taken < len(data):
            self.unsent = data[taken:]

    def _note(self, now: float, answered: int) -> None:
        sent_at, add = self._sent_at, self.latencies.add
        while answered:
            moment, count = sent_at.popleft()
            if count > answered:
                sent_at.appendleft((moment, count - answered))
                count = answered
            add(now - moment, count)
            answered -= count

    def _receive(self) -> bytes:
        data = self.socket.recv(_RECEIVE)
        if not data:
            raise ConnectionError("the server has closed the connection")
        return data
