"""A connection that has several requests in flight, for as little time of this process as Python allows."""

from __future__ import annotations

import socket
import time
from collections import deque
from typing import Final, Self

from bench.client.dialect import Dialect
from bench.client.latency import Latencies
from bench.client.requests import Requests
from bench.lib.process import Address

_RECEIVE: Final = 2**16
_SEND_AT: Final = 4
"""More is sent when one in so many of those in flight is answered: sent one by one they cost more."""


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
        self._in_flight = in_flight
        self._enough = max(1, in_flight // _SEND_AT)
        self._rest = b""
        self._answers: list[bytes] = []
        self._sent_at: deque[tuple[float, int]] = deque()
        # What is needed for each answer is looked up once.
        self._complete = dialect.complete
        self._receive, self._give = self.socket.recv, self.socket.send
        if dialect.greeting:
            self._receive(dialect.greeting, socket.MSG_WAITALL)

    def begin(self, requests: Requests) -> None:
        """Send the first requests."""
        self._answers.clear()
        self._sent_at.clear()
        self.latencies = Latencies()
        self._data, self._bounds, self._count = requests.data, requests.bounds, len(requests)
        self._sent = self._answered = 0
        self._send(self._in_flight, time.perf_counter())

    def go_on(self) -> int:
        """Receive what is there, and send more if there is room for some.

        Returns:
            How many that are.

        Raises:
            ConnectionError: The server has closed the connection.
        """
        data = self._receive(_RECEIVE)
        now = time.perf_counter()
        if not data:
            raise ConnectionError("the server has closed the connection")
        if self._rest:
            data = self._rest + data
        answered, end = self._complete(data)
        self._answers.append(data[:end])
        self._rest = data[end:]
        if answered:
            self._note(answered, now)
            self._answered += answered
            room = self._in_flight - (self._sent - self._answered)
            if room >= self._enough:
                self._send(room, now)
        return answered

    def send_rest(self) -> None:
        """Send what the system takes now of what it did not take before."""
        self.unsent = self.unsent[self._taken_of(self.unsent) :]

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
        first = self._sent
        end = self._sent = min(first + count, self._count)
        if first == end:
            return
        self._sent_at.append((now, end - first))
        data = self._data[self._bounds[first] : self._bounds[end]]
        if self.unsent:
            self.unsent += data
            return
        taken = self._taken_of(data)
        if taken < len(data):
            self.unsent = data[taken:]

    def _taken_of(self, data: bytes) -> int:
        # Waiting here could be for ever: the server may take nothing before its answers are read.
        try:
            return self._give(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return 0

    def _note(self, answered: int, now: float) -> None:
        sent_at, add = self._sent_at, self.latencies.together.append
        while answered:
            moment, count = sent_at.popleft()
            if count > answered:
                sent_at.appendleft((moment, count - answered))
                count = answered
            add((now - moment, count))
            answered -= count
