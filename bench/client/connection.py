"""A connection for few requests, with several in flight; `bench.client.load` has those for many."""

from __future__ import annotations

import socket
import time
from collections import deque
from functools import partial
from typing import Final, Self

from bench.client.dialect import Dialect
from bench.client.latency import Latencies
from bench.client.requests import Requests
from bench.lib.process import Address
from bench.native.load import count_answers

_RECEIVE: Final = 2**16
_SEND_AT: Final = 4
"""More requests are sent when one in so many of those in flight is answered, as single sends cost more."""


class Connection:
    """A connection with a limited number of requests in flight.

    Parameters:
        address: the server's host and port.
        dialect: its protocol.
        in_flight: the limit.

    Attributes:
        socket: its socket.
        latencies: of the answers since `begin`, in the order of their requests. A latency is the time from
            handing the request to the system until everything that came with its answer was read.
    """

    def __init__(self, address: Address, dialect: Dialect, in_flight: int = 1) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.latencies = Latencies()
        self._dialect = dialect
        self._in_flight = in_flight
        self._enough = max(1, in_flight // _SEND_AT)
        self._rest = b""
        self._answers: list[bytes] = []
        self._sent_at: deque[tuple[float, int]] = deque()
        # Looked up once, as it is needed for each answer.
        self._complete = partial(count_answers, dialect.framing)
        self._receive, self._give = self.socket.recv, self.socket.sendall
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

    def receive(self) -> int:
        """Read what has arrived, and send more requests if there is room.

        Returns:
            The number of complete answers.

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

    @property
    def answers(self) -> bytes:
        """The answers since `begin`, as bytes."""
        return b"".join(self._answers)

    def ask(self, requests: Requests) -> bytes:
        """Send a few small requests and return their answers; no other request may be in flight."""
        self.begin(requests)
        left = len(requests)
        while left > 0:
            left -= self.receive()
        return self.answers

    def ping(self) -> None:
        """Wait for the answer to a ping; no other request may be in flight."""
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
        self._give(self._data[self._bounds[first] : self._bounds[end]])

    def _note(self, answered: int, now: float) -> None:
        sent_at, add = self._sent_at, self.latencies.together.append
        while answered:
            moment, count = sent_at.popleft()
            if count > answered:
                sent_at.appendleft((moment, count - answered))
                count = answered
            add((now - moment, count))
            answered -= count
