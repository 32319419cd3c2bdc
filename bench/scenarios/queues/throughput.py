"""Rates of puts, takes and acknowledgements, and the server's CPU time for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from bench.client.load import PAYLOAD
from bench.lib.table import table
from bench.peers.contender import Contender, Server, alternating
from bench.workloads.rate import Rate, Setting, Shape

WAL_MODES: Final = ("none", "write", "fsync")
OPERATIONS: Final = ("ping", "put", "take", "ack")
SHAPES: Final = (Shape(10, 100), Shape(100, 1), Shape(1, 1))
SECTION: Final = "queue"
_FEWEST: Final = 100
_WARM_UP: Final = 1000


def usual_tasks(shape: Shape, wal_mode: str = "write", payload: int = PAYLOAD) -> int:
    """Return the number of tasks of a measurement that takes about a second.

    Parameters:
        shape: the shape of the load.
        wal_mode: "none", "write" or "fsync"; with fsync each request of a connection may wait for the disk.
        payload: bytes of a task's data.
    """
    if payload > PAYLOAD:
        return 3_000
    if shape.in_flight > 1:
        return 20_000
    if shape.connections > 1:
        return 5_000 if wal_mode == "fsync" else 10_000
    return 300 if wal_mode == "fsync" else 2_500


def warm_up(server: Server) -> None:
    """Run every operation once."""
    list(rates(Setting(server, SECTION, Shape(10, 100)), _WARM_UP))


def rates(setting: Setting, tasks: int) -> Iterator[Rate]:
    """Measure pings, puts, takes and acknowledgements.

    Parameters:
        setting: the server and the load.
        tasks: the number of tasks.
    """
    setting.server.process.forget_peak()
    with setting.server.load(setting.shape.connections, setting.shape.in_flight) as load:
        yield setting.measure("ping", lambda: load.ping(tasks))
        parts = [
            setting.measure("put", lambda: load.put(tasks, setting.payload)),
            setting.measure("take", lambda: load.take(tasks)),
            setting.measure("ack", load.ack),
        ]
    yield from parts
    yield setting.cycle(parts)


def measure(
    members: Sequence[Contender], directory: Path, rounds: int, share: float, say: Callable[[str], None]
) -> list[Rate]:
    """Measure all contenders with each `wal_mode`, one after the other in each round.

    Parameters:
        members: the contenders.
        directory: the directory for their files.
        rounds: the number of rounds.
        share: the number of tasks, as a fraction of the default.
        say: called with progress messages.
    """
    measured: list[Rate] = []
    for wal_mode in WAL_MODES:
        with ExitStack() as stack:
            servers = [
                stack.enter_context(Server(member, directory / f"{wal_mode}-{member.name}", wal_mode))
                for member in members
            ]
            for server in servers:
                warm_up(server)
            for number in range(rounds):
                say(f"throughput, wal_mode {wal_mode}, round {number + 1} of {rounds}")
                for shape in SHAPES:
                    tasks = max(_FEWEST, int(usual_tasks(shape, wal_mode) * share))
                    for server in alternating(servers, number):
                        measured += rates(Setting(server, SECTION, shape, number), tasks)
    return measured


def tables(rates: Sequence[Rate], names: Sequence[str]) -> Iterator[str]:
    """Format a table for each `wal_mode`: medians, and ours as multiples of the others'."""
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
