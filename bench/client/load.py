"""Load on a server: concurrent connections with the same kind of request, in phases.

All requests of a phase are encoded before it begins. During the phase C code sends them and counts the
answers (`bench/native/load.c`); the answers are decoded after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from bench.client.connection import Connection
from bench.client.dialect import Dialect
from bench.client.latency import Latencies
from bench.client.requests import Requests, payloads
from bench.lib.process import Address
from bench.native.load import NativeLoad

PAYLOAD: Final = 100
"""Bytes of a task's data by default."""

_ANSWER_WITHIN: Final = 60.0


@dataclass(frozen=True, slots=True)
class Phase:
    """The result of a phase.

    Attributes:
        requests: the number of requests.
        seconds: the duration.
        cpu_seconds: CPU time of this thread.
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
        self._connections = [Connection(address, dialect) for _ in range(connections)]
        self._taken: list[list[bytes]] = [[] for _ in self._connections]
        sockets = [connection.socket.fileno() for connection in self._connections]
        self._load = NativeLoad(dialect.framing, sockets, in_flight)

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
        self._load.close()
        for connection in self._connections:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _run(self, work: Sequence[Requests]) -> Phase:
        seconds, cpu_seconds = self._load.run(
            [requests.data for requests in work], [requests.bounds for requests in work], _ANSWER_WITHIN
        )
        latencies = Latencies()
        latencies.together = self._load.latencies()
        return Phase(sum(map(len, work)), seconds, cpu_seconds, latencies)

    def _shares(self, count: int) -> list[int]:
        share, rest = divmod(count, len(self._connections))
        return [share + (number < rest) for number in range(len(self._connections))]

    def _answers(self) -> Iterable[bytes]:
        return map(self._load.answers, range(len(self._connections)))


def _check(done: int, asked: int) -> None:
    if done != asked:
        raise RuntimeError(f"{asked - done} of {asked} requests failed")
