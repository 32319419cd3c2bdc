"""What was measured of many requests of one kind: how fast they were answered, and what that cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.client.load import PAYLOAD, Phase
from bench.peers.contender import Server

SHARES: Final = (0.5, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Shape:
    """How clients behave.

    Attributes:
        connections: how many there are.
        in_flight: the most requests that each has in flight.
    """

    connections: int
    in_flight: int

    def __str__(self) -> str:
        return f"{self.connections} × {self.in_flight}"


@dataclass(frozen=True, slots=True)
class Rate:
    """One measurement.

    Attributes:
        section: of the measurements: "queue", "raw" or another.
        contender: who.
        wal_mode: "none", "write" or "fsync".
        shape: connections × in flight.
        payload: bytes of a task's data.
        operation: what was asked for.
        round: the number of the round, from 0.
        requests: how many.
        per_second: requests in a second.
        server_us: microseconds of CPU time for one, in the server's processes.
        load_us: and in the process that makes the load.
        load_share: the part of the time for which that process had a processor. Near 1 it, and not the
            server, was what limited the speed.
        latencies_ms: the times within which half of the answers came, 99 and 99.9 of 100; None for cycles.
        peak: the most bytes that the server's processes had in memory, since the clients connected.
    """

    section: str
    contender: str
    wal_mode: str
    shape: str
    payload: int
    operation: str
    round: int
    requests: int
    per_second: float
    server_us: float
    load_us: float
    load_share: float
    latencies_ms: list[float] | None
    peak: int


@dataclass(frozen=True, slots=True)
class Setting:
    """What the measurements of one load have in common.

    Attributes:
        server: who is measured.
        section: of the measurements.
        shape: of the load.
        round: the number of the round, from 0.
        payload: bytes of a task's data.
    """

    server: Server
    section: str
    shape: Shape
    round: int = 0
    payload: int = PAYLOAD

    def measure(self, operation: str, phase: Callable[[], Phase]) -> Rate:
        """Measure a phase.

        Parameters:
            operation: its name.
            phase: what makes the load, and waits until it is done.
        """
        process = self.server.process
        cpu = process.cpu_seconds()
        done = phase()
        return self._rate(
            operation,
            done.requests,
            done.seconds,
            process.cpu_seconds() - cpu,
            done.cpu_seconds,
            done.latencies.milliseconds(*SHARES),
            process.peak(),
        )

    def cycle(self, parts: list[Rate]) -> Rate:
        """What doing several things with each task comes to.

        Parameters:
            parts: one measurement for each thing, of as many requests as there are tasks.
        """
        tasks = parts[0].requests
        return self._rate(
            "cycle",
            tasks,
            sum(tasks / part.per_second for part in parts),
            sum(part.server_us for part in parts) * tasks / 1e6,
            sum(part.load_us for part in parts) * tasks / 1e6,
            None,
            max(part.peak for part in parts),
        )

    def _rate(
        self,
        operation: str,
        requests: int,
        seconds: float,
        server_seconds: float,
        load_seconds: float,
        latencies_ms: list[float] | None,
        peak: int,
    ) -> Rate:
        return Rate(
            section=self.section,
            contender=self.server.name,
            wal_mode=self.server.wal_mode,
            shape=str(self.shape),
            payload=self.payload,
            operation=operation,
            round=self.round,
            requests=requests,
            per_second=requests / seconds,
            server_us=server_seconds / requests * 1e6,
            load_us=load_seconds / requests * 1e6,
            load_share=load_seconds / seconds,
            latencies_ms=latencies_ms,
            peak=peak,
        )
