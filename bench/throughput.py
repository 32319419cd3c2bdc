"""How many tasks are put, taken and acknowledged in a second, and what that costs the server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.contender import Contender, Server, alternating
from bench.load import Load
from bench.table import table

WAL_MODES: Final = ("none", "write", "fsync")
OPERATIONS: Final = ("ping", "put", "take", "ack")


@dataclass(frozen=True, slots=True)
class Shape:
    """How clients behave.

    Attributes:
        connections: how many.
        in_flight: the most requests that each has in flight.
        tasks: how many are put, taken and acknowledged.
        tasks_synced: the same where each waits for the disk.
    """

    connections: int
    in_flight: int
    tasks: int
    tasks_synced: int

    def __str__(self) -> str:
        return f"{self.connections} × {self.in_flight}"


SHAPES: Final = (Shape(10, 100, 30_000, 30_000), Shape(100, 1, 10_000, 5_000), Shape(1, 1, 3_000, 300))


@dataclass(frozen=True, slots=True)
class Rate:
    """One measurement.

    Attributes:
        contender: who.
        wal_mode: "none", "write" or "fsync".
        shape: connections × in flight.
        operation: of the queue, or "ping".
        per_second: requests in a second.
        server_us: microseconds of CPU time for one, in the server.
        load_us: and in the process that makes the load.
    """

    contender: str
    wal_mode: str
    shape: str
    operation: str
    per_second: float
    server_us: float
    load_us: float


def measure(
    members: Sequence[Contender], directory: Path, rounds: int, share: float, say: Callable[[str], None]
) -> list[Rate]:
    """Measure all, one after the other in each round.

    Parameters:
        members: whom.
        directory: for their files.
        rounds: how often.
        share: how many tasks to put, as a part of the usual number.
        say: is told what goes on.
    """
    rates: list[Rate] = []
    for wal_mode in WAL_MODES:
        with ExitStack() as stack:
            servers = [
                stack.enter_context(Server(member, directory / f"{wal_mode}-{member.name}", wal_mode))
                for member in members
            ]
            for server in servers:
                list(_rates(server, wal_mode, SHAPES[0], 1000))
            for round_number in range(rounds):
                say(f"throughput, wal_mode {wal_mode}, round {round_number + 1} of {rounds}")
                for shape in SHAPES:
                    tasks = shape.tasks_synced if wal_mode == "fsync" else shape.tasks
                    for server in alternating(servers, round_number):
                        rates += _rates(server, wal_mode, shape, max(100, int(tasks * share)))
    return rates


def _rates(server: Server, wal_mode: str, shape: Shape, tasks: int) -> Iterator[Rate]:
    with Load(server.address, shape.connections, shape.in_flight) as load:
        phases: list[Callable[[], float]] = [
            lambda: load.ping(tasks),
            lambda: load.put(tasks),
            lambda: load.take(tasks),
            load.ack,
        ]
        for operation, phase in zip(OPERATIONS, phases, strict=True):
            server_before, load_before = server.process.cpu_seconds(), time.process_time()
            seconds = phase()
            server_cpu = server.process.cpu_seconds() - server_before
            load_cpu = time.process_time() - load_before
            yield Rate(
                server.name,
                wal_mode,
                str(shape),
                operation,
                tasks / seconds,
                server_cpu / tasks * 1e6,
                load_cpu / tasks * 1e6,
            )


def tables(rates: Sequence[Rate], names: Sequence[str]) -> Iterator[str]:
    """A table for each `wal_mode`: medians, and ours as multiples of the others'."""
    for wal_mode in WAL_MODES:
        rows: list[list[str]] = []
        for shape in map(str, SHAPES):
            for operation in OPERATIONS:
                found = [
                    [
                        rate
                        for rate in rates
                        if (rate.contender, rate.wal_mode, rate.shape, rate.operation)
                        == (name, wal_mode, shape, operation)
                    ]
                    for name in names
                ]
                speeds = [median(rate.per_second for rate in of_one) for of_one in found]
                costs = [median(rate.server_us for rate in of_one) for of_one in found]
                load = median(rate.load_us for of_one in found for rate in of_one)
                rows.append(
                    [
                        shape,
                        operation,
                        *(f"{speed:,.0f}" for speed in speeds),
                        *(f"{speeds[0] / speed:.2f}" for speed in speeds[1:]),
                        *(f"{cost:.1f}" for cost in costs),
                        *(f"{costs[0] / cost:.2f}" for cost in costs[1:]),
                        f"{load:.1f}",
                    ]
                )
        ratios = ["ratio" for _ in names[1:]]
        header = ["connections\n× in flight", "operation"]
        header += [f"{name}\nreq/s" for name in names] + ratios
        header += [f"{name}\nCPU µs" for name in names] + ratios + ["load\nCPU µs"]
        yield table(f"Requests, wal_mode = {wal_mode}", header, rows, texts=2)
