"""Cost of metrics: the queue's cycles with and without `--http`, whose `/metrics` is read each second.

    python -m bench.scenarios.server.metrics [--rounds N] [--tasks N] [--shape 10x100 ...] [--directory DIR]

Two servers of ours run beside each other, and are measured alternately.
"""

from __future__ import annotations

import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from threading import Event, Thread
from typing import Final

from bench.lib.table import table
from bench.peers.contender import Server, alternating
from bench.peers.database import Ours
from bench.scenarios.queues.throughput import SECTION, rates, usual_tasks, warm_up
from bench.workloads.rate import Rate, Setting, Shape, load_parser

EVERY: Final = 1.0
"""Seconds between two reads of the metrics."""
ROUNDS: Final = 15
SHAPES: Final = (Shape(10, 100), Shape(100, 1))
_LONGER: Final = 5
"""How many times the usual tasks are measured, so that the metrics are read during each measurement."""
_ADDRESS: Final = r"listening on (127\.0\.0\.1:\d+), HTTP"


@dataclass(frozen=True)
class OursWithMetrics(Ours):
    """Our server with `--http`."""

    options: tuple[str, ...] = ("--http", "127.0.0.1:0")

    name = "with metrics"


class Reader(Thread):
    """Reads a server's metrics each second, as Prometheus does.

    Parameters:
        url: the URL of the metrics.

    Attributes:
        reads: the number of times they were read.
        failure: the error that has ended it; None if there was none.
    """

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._is_over = Event()
        self.reads = 0
        self.failure: OSError | None = None

    def run(self) -> None:
        """Read until the end."""
        while not self._is_over.wait(EVERY):
            try:
                with urllib.request.urlopen(self._url, timeout=10) as answer:
                    answer.read()
            except OSError as error:
                self.failure = error
                return
            self.reads += 1

    def end(self) -> None:
        """End it. Raises OSError if it could not read the metrics."""
        self._is_over.set()
        self.join()
        if self.failure is not None:
            raise self.failure


@contextmanager
def read_each_second(server: Server) -> Iterator[Reader]:
    """Read the metrics of a server of `OursWithMetrics` while the block runs.

    Parameters:
        server: the server.
    """
    reader = Reader(f"http://{server.process.wait_for(_ADDRESS)[1]}/metrics")
    reader.start()
    try:
        yield reader
    finally:
        reader.end()


def measure(directory: Path, shapes: Sequence[Shape], rounds: int, tasks: int | None = None) -> list[Rate]:
    """Measure both servers, alternately in each round.

    Parameters:
        directory: the directory for their files.
        shapes: the shapes of the load.
        rounds: the number of rounds.
        tasks: the number of tasks of a measurement; None for several seconds of each.
    """
    measured: list[Rate] = []
    with ExitStack() as stack:
        members = (Ours(), OursWithMetrics())
        servers = [stack.enter_context(Server(member, directory / member.name)) for member in members]
        for server in servers:
            warm_up(server)
        stack.enter_context(read_each_second(servers[1]))
        for number in range(rounds):
            for one in shapes:
                for server in alternating(servers, number):
                    setting = Setting(server, SECTION, one, number)
                    measured += rates(setting, tasks or _LONGER * usual_tasks(one))
    return measured


def shown(measured: Sequence[Rate]) -> str:
    """Format the cycles as a table: medians, and the medians and quartiles of each round's ratios."""
    rows: list[list[str]] = []
    for one in dict.fromkeys(rate.shape for rate in measured):
        without, with_metrics = (
            sorted(
                (
                    rate
                    for rate in measured
                    if (rate.shape, rate.operation, rate.contender) == (one, "cycle", each.name)
                ),
                key=lambda rate: rate.round,
            )
            for each in (Ours, OursWithMetrics)
        )
        pairs = list(zip(with_metrics, without, strict=True))
        rows.append(
            [
                one,
                *(f"{median(rate.per_second for rate in each):,.0f}" for each in (without, with_metrics)),
                _ratios([each.per_second / other.per_second for each, other in pairs]),
                *(f"{median(rate.server_us for rate in each):.2f}" for each in (without, with_metrics)),
                _ratios([each.server_us / other.server_us for each, other in pairs]),
            ]
        )
    header = ["connections\n× in flight", "without\ncycles/s", "with\ncycles/s", "ratio"]
    header += ["without\nCPU µs", "with\nCPU µs", "ratio"]
    return table("Cycles with --http, whose metrics are read each second", header, rows)


def _ratios(found: Sequence[float]) -> str:
    if len(found) == 1:
        return f"{found[0]:.3f}"
    first, middle, last = quantiles(found, n=4, method="inclusive")
    return f"{middle:.3f} ({first:.3f} to {last:.3f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the table.

    Parameters:
        arguments: the command line; None for this process's own.

    Returns:
        The exit status.
    """
    parser = load_parser("bench.scenarios.server.metrics", "Measure what metrics cost.", ROUNDS, SHAPES)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        print(shown(measure(Path(directory), options.shape, options.rounds, options.tasks)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
