"""Load on a server: concurrent connections with the same kind of request, in phases.

All requests of a phase are encoded before it begins; answers are counted during the phase and decoded after
it.
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
"""Bytes of a task's data by default."""

_ANSWER_WITHIN: Final = 60.0


@dataclass(frozen=True, slots=True)
class Phase:
    """The result of a phase.

    Attributes:
        requests: the number of requests.
        seconds: the duration.
        cpu_seconds: this process's CPU time.
        latencies: of the answers.
    """

    requests: int
    seconds: float
    cpu_seconds: float
    latencies: Latencies


class Load:
    """Connections with the same kind of request.

    Parameters:
        address: the server's host and port.
        dialect: the protocol.
        connections: the number of connections.
        in_flight: the maximum number of requests in flight of each.
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
        """Send pings."""
        return self._run([self._dialect.pings(share) for share in self._shares(count)])

    def put(self, count: int, size: int = PAYLOAD, delay: int = 0) -> Phase:
        """Put tasks.

        Parameters:
            count: the number of tasks.
            size: bytes of each task's data.
            delay: seconds until they may be taken.
        """
        return self.do([self._dialect.puts(payloads(share, size), delay) for share in self._shares(count)])

    def take(self, count: int, timeout: int = 0) -> Phase:
        """Take tasks.

        Parameters:
            count: the number of tasks.
            timeout: seconds to wait for each.
        """
        phase = self._run([self._dialect.takes(share, timeout) for share in self._shares(count)])
        for taken, answers in zip(self._taken, self._answers(), strict=True):
            taken += self._dialect.tasks_in(answers)
        _check(sum(map(len, self._taken)), count)
        return phase

    def ack(self) -> Phase:
        """Acknowledge the taken tasks."""
        phase = self.do([self._dialect.acks(tasks) for tasks in self._taken])
        for taken in self._taken:
            taken.clear()
        return phase

    def do(self, work: Sequence[Requests]) -> Phase:
        """Send requests, all of which must succeed.

        Parameters:
            work: the requests of each connection.
        """
        phase = self._run(work)
        _check(sum(map(self._dialect.done_in, self._answers())), phase.requests)
        return phase

    def shared(self, count: int, first: int = 0) -> list[range]:
        """Divide a range of numbers from `first` on among the connections."""
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
        # This code creates no cycles, so collections would only take time.
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
                raise RuntimeError(f"{left} of {count} requests were not answered")
            for number, event in events:
                connection = by_number[number]
                if event != readable:
                    self._send_rest(connection)
                if event & ~select.EPOLLOUT:
                    left -= connection.receive()
                    if connection.unsent:
                        self._wait_to_send(connection)
        seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - cpu
        latencies = Latencies.of_all(connection.latencies for connection in self._connections)
        return Phase(count, seconds, cpu_seconds, latencies)

    def _wait_to_send(self, connection: Connection) -> None:
        self._poll.modify(connection.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    def _send_rest(self, connection: Connection) -> None:
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
