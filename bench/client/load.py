"""Load on a server: connections that do the same at once, in phases.

All requests of a phase are made before it begins; answers are counted while it goes on, and looked into when
it is over.
"""

from __future__ import annotations

import gc
import select
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from bench.client.connection import Connection
from bench.client.dialect import Dialect
from bench.client.latency import Latencies
from bench.client.requests import Requests, payloads
from bench.lib.process import Address

PAYLOAD: Final = 100
"""Bytes of a task's data, where nothing else is said."""

_ANSWER_WITHIN: Final = 60.0


@dataclass(frozen=True, slots=True)
class Phase:
    """What was done at once.

    Attributes:
        requests: how many.
        seconds: how long it took.
        cpu_seconds: of this process's CPU time.
        latencies: of the answers.
    """

    requests: int
    seconds: float
    cpu_seconds: float
    latencies: Latencies


class Load:
    """A number of connections that do the same.

    Parameters:
        address: the server's host and port.
        dialect: what is spoken.
        connections: how many.
        in_flight: the most requests that each has in flight.
    """

    def __init__(self, address: Address, dialect: Dialect, connections: int, in_flight: int) -> None:
        self._dialect = dialect
        self._connections = [Connection(address, dialect, in_flight) for _ in range(connections)]
        self._taken: list[list[bytes]] = [[] for _ in self._connections]
        self._by_number = {connection.socket.fileno(): connection for connection in self._connections}
        self._poll = select.epoll()
        for number in self._by_number:
            self._poll.register(number, select.EPOLLIN)

    def ping(self, count: int) -> Phase:
        """Send so many pings."""
        return self._run([self._dialect.pings(share) for share in self._shares(count)])

    def put(self, count: int, size: int = PAYLOAD, delay: int = 0) -> Phase:
        """Put so many tasks.

        Parameters:
            count: how many.
            size: the bytes of each one's data.
            delay: seconds until they may be taken.
        """
        return self.do([self._dialect.puts(payloads(share, size), delay) for share in self._shares(count)])

    def take(self, count: int, timeout: int = 0) -> Phase:
        """Take so many tasks, which must be there.

        Parameters:
            count: how many.
            timeout: seconds within which they must be.
        """
        phase = self._run([self._dialect.takes(share, timeout) for share in self._shares(count)])
        for taken, answers in zip(self._taken, self._answers(), strict=True):
            taken += self._dialect.tasks_in(answers)
        _check(sum(map(len, self._taken)), count)
        return phase

    def ack(self) -> Phase:
        """Acknowledge what was taken."""
        phase = self.do([self._dialect.acks(tasks) for tasks in self._taken])
        for taken in self._taken:
            taken.clear()
        return phase

    def do(self, work: Sequence[Requests]) -> Phase:
        """Send requests that must succeed.

        Parameters:
            work: those of each connection.
        """
        phase = self._run(work)
        _check(sum(map(self._dialect.done_in, self._answers())), phase.requests)
        return phase

    def shared(self, count: int, first: int = 0) -> list[range]:
        """So many numbers from the first on, shared by the connections."""
        numbers: list[range] = []
        for share in self._shares(count):
            numbers.append(range(first, first + share))
            first += share
        return numbers

    def close(self) -> None:
        """Close all connections."""
        self._poll.close()
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, work: Sequence[Requests]) -> Phase:
        # Nothing here is part of a cycle; looking for one would only take time.
        gc.disable()
        try:
            return self._answered(work)
        finally:
            gc.enable()

    def _answered(self, work: Sequence[Requests]) -> Phase:
        count = left = sum(map(len, work))
        cpu, begun = time.process_time(), time.perf_counter()
        for connection, requests in zip(self._connections, work, strict=True):
            connection.begin(requests)
            if connection.unsent:
                self._wait_to_send(connection)
        poll, by_number, readable = self._poll.poll, self._by_number, select.EPOLLIN
        while left > 0:
            events = poll(_ANSWER_WITHIN)
            if not events:
                raise RuntimeError(f"{left} of {count} requests have no answer")
            for number, event in events:
                connection = by_number[number]
                if event != readable:
                    self._go_on_sending(connection)
                if event & ~select.EPOLLOUT:
                    left -= connection.go_on()
                    if connection.unsent:
                        self._wait_to_send(connection)
        seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu
        latencies = Latencies.of_all(connection.latencies for connection in self._connections)
        return Phase(count, seconds, cpu_seconds, latencies)

    def _wait_to_send(self, connection: Connection) -> None:
        self._poll.modify(connection.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _go_on_sending(self, connection: Connection) -> None:
        connection.send_rest()
        if not connection.unsent:
            self._poll.modify(connection.socket.fileno(), select.EPOLLIN)

    def _shares(self, count: int) -> list[int]:
        share, rest = divmod(count, len(self._connections))
        return [share + (number < rest) for number in range(len(self._connections))]

    def _answers(self) -> Iterable[bytes]:
        return (connection.answers for connection in self._connections)


def _check(done: int, asked: int) -> None:
    if done != asked:
        raise RuntimeError(f"{asked - done} of {asked} requests failed")
