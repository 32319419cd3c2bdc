"""Request rates: the results of one measurement, and its settings."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from bench.client.load import PAYLOAD, Phase
from bench.lib.arguments import count
from bench.peers.contender import Server

SHARES: Final = (0.5, 0.99, 0.999)
_SHAPE: Final = re.compile(r"([1-9]\d{0,4})[x×]([1-9]\d{0,4})")


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a load.

    Attributes:
        connections: the number of connections.
        in_flight: the maximum number of requests in flight of each.
    """

    connections: int
    in_flight: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a command line's value such as 10x100. Raises ArgumentTypeError if it is none."""
        found = _SHAPE.fullmatch(text)
        if found is None:
            raise argparse.ArgumentTypeError(f"{text!r} is not of the form 10x100")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.connections} × {self.in_flight}"


@dataclass(frozen=True, slots=True)
class Rate:
    """One measurement.

    Attributes:
        section: the section of the measurements: "queue", "raw" or another.
        contender: the contender's name.
        wal_mode: "none", "write" or "fsync".
        shape: connections × in flight.
        payload: bytes of a task's data.
        operation: the kind of request.
        round: the number of the round, from 0.
        requests: the number of requests.
        per_second: requests per second.
        server_us: microseconds of CPU time per request, in the server's processes.
        load_us: the same in the load generator.
        load_share: the share of a processor that the load generator used. Near 1, the load generator limited
            the rate, not the server.
        latencies_ms: p50, p99 and p99.9 in milliseconds; None for cycles.
        peak: the peak memory of the server's processes since the clients connected, in bytes.
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
    """The common settings of the measurements with one load.

    Attributes:
        server: the server.
        section: the section of the measurements.
        shape: the shape of the load.
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
            phase: runs the load, and waits until it is done.
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
        """Combine the measurements of several operations on the same tasks to one of cycles.

        Parameters:
            parts: one measurement for each operation, each of as many requests as there are tasks.
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


def load_parser(
    program: str, description: str, rounds: int, shapes: Sequence[Shape]
) -> argparse.ArgumentParser:
    """Return a parser of the options of a scenario: rounds, tasks, shapes, and the directory for files.

    Parameters:
        program: the scenario's module.
        description: what it measures.
        rounds, shapes: the defaults.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--rounds", type=count, default=rounds, metavar="N", help=f"rounds [{rounds}]")
    parser.add_argument(
        "--tasks", type=count, metavar="N", help="tasks of a measurement [a second of them or more]"
    )
    parser.add_argument(
        "--shape", nargs="+", type=Shape.parse, default=shapes, metavar="CxN", help="10x100, 100x1"
    )
    parser.add_argument("--directory", type=Path, metavar="DIR", help="directory for the servers' files")
    return parser
