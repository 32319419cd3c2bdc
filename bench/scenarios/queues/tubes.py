"""Cost of tubes: taking from tubes with busy sub-queues, and many tasks in one call.

    python -m bench.scenarios.queues.tubes [--share PART] [--done N] [--driver NAME] [--directory DIRECTORY]

The first table is that of the queue module's README: ten sub-queues with N tasks each, and ten consumers
that take and acknowledge one task at a time; here through sockets, and until they have done ten times as many
tasks as `--done` says. The figure is the time of one task while the rest waits in the tube. If Tarantool is
installed and the environment names a checkout, the module is measured, too; in its default mode with the
smallest number only, as its time grows quadratically.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.lib.table import table
from bench.peers.queue_server import CHECKOUT, ModuleQueue, OurQueue, QueueContender, QueueServer, module
from bench.scenarios.queues import batches
from bench.workloads.consumers import consume

SUB_QUEUES: Final = 10
DONE: Final = 2_000
SIZES: Final = (1_000, 10_000, 50_000, 140_000)
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class Busy:
    """One measurement of busy sub-queues.

    Attributes:
        contender: the contender's name.
        mode: the tube's `storage_mode`.
        size: the initial number of tasks in each sub-queue.
        task_us: microseconds per task, from take to acknowledgement, with all consumers working.
        server_us: microseconds of the server's CPU time per task.
        full: the server's memory with all tasks, in bytes.
        empty: the same after all tasks were removed.
    """

    contender: str
    mode: str
    size: int
    task_us: float
    server_us: float
    full: int
    empty: int


def measure(
    member: QueueContender, mode: str, sizes: Sequence[int], done: int, driver: str, directory: Path
) -> Iterator[Busy]:
    """Measure one contender in one mode, with one size after the other.

    Parameters:
        member: the contender.
        mode: the tubes' `storage_mode`.
        sizes: the numbers of tasks in a sub-queue.
        done: the maximum number of tasks of a sub-queue to take and acknowledge.
        driver: the tubes' type.
        directory: the directory for its files.
    """
    with QueueServer(member, directory) as server:
        for size in sizes:
            say(f"{member.name}, {driver} {mode}: {SUB_QUEUES} sub-queues with {size:,} tasks each")
            tube = f"busy_{size}"
            options = {"storage_mode": mode, "temporary": True}
            member.create_tube(server.connection, tube, driver, options)
            for number in range(SUB_QUEUES):
                member.fill(server.connection, tube, str(number), size)
            tasks = SUB_QUEUES * min(size, done)
            full, cpu = server.process.memory(), server.process.cpu_seconds()
            seconds = consume(server.address, tube, SUB_QUEUES, tasks)
            cpu = server.process.cpu_seconds() - cpu
            server.connection.call(f"queue.tube.{tube}:truncate")
            yield Busy(
                member.name,
                mode,
                size,
                seconds / tasks * 1e6,
                cpu / tasks * 1e6,
                full,
                server.process.memory(),
            )


def plan(peer: ModuleQueue | None) -> Iterator[tuple[QueueContender, str, Sequence[int]]]:
    """List the contenders, with the mode and the numbers of tasks of each."""
    yield OurQueue(), "default", SIZES
    yield OurQueue(), "ready_buffer", SIZES
    if peer is not None:
        yield peer, "ready_buffer", SIZES
        yield peer, "default", SIZES[:1]


def tables(measured: Sequence[Busy], sizes: Sequence[int]) -> Iterator[str]:
    """Format the time of a task, the server's part of it, and memory."""
    kinds = list(dict.fromkeys((each.contender, each.mode) for each in measured))
    found = {(each.contender, each.mode, each.size): each for each in measured}
    figures: dict[str, Callable[[Busy], str]] = {
        "µs per task, take and ack": lambda each: f"{each.task_us:,.0f}",
        "of which the server's CPU": lambda each: f"{each.server_us:,.0f}",
        "MiB with all tasks; with none": lambda each: f"{each.full / _MIB:,.0f}; {each.empty / _MIB:,.0f}",
    }
    for title, figure in figures.items():
        rows = [
            [*kind, *(figure(found[*kind, size]) if (*kind, size) in found else "" for size in sizes)]
            for kind in kinds
        ]
        yield table(title, ["", "mode", *(f"{size:,}" for size in sizes)], rows, texts=2)


def say(what: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description="Measure takes from busy sub-queues, and batches.")
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the default task numbers [1]")
    parser.add_argument("--done", type=int, default=DONE, help=f"tasks to complete per sub-queue [{DONE:,}]")
    parser.add_argument(
        "--driver", choices=("utube", "utubettl"), default="utube", help="the tubes' type [utube]"
    )
    parser.add_argument("--directory", type=Path, help="directory for the servers' temporary files")
    arguments = parser.parse_args()
    peer = module()
    if peer is None:
        say(f"measuring only ours: no tarantool found, or {CHECKOUT} names no checkout of the queue module")
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        measured: list[Busy] = []
        for number, (member, mode, sizes) in enumerate(plan(peer)):
            scaled = [max(1, round(size * arguments.share)) for size in sizes]
            measured += measure(
                member, mode, scaled, arguments.done, arguments.driver, Path(directory) / str(number)
            )
        for each in tables(measured, [max(1, round(size * arguments.share)) for size in SIZES]):
            print(each)
        print(batches.report(Path(directory), arguments.share, say))


if __name__ == "__main__":
    main()
