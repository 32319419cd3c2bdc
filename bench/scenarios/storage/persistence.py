"""Cost of persistence: recovery, snapshots, and throughput with a log, compared with Tarantool.

    python -m bench.scenarios.storage.persistence [--tasks N] [--rounds N] [--quick] [--real-time]
        [--json FILE]

Both servers are measured in one run, alternately, and the figures are medians, so that load on the machine
affects both. Pauses of milliseconds show only on a quiet machine, or with `--real-time`, which gives both
servers real-time priority while snapshots are taken. Each server has a directory of its own below
`--directory`, which should not be on a memory file system: that would hide the cost of the disk. The servers
listen on 127.0.0.1 and serve the tutorial's queue with 100-byte tasks. Without Tarantool only our server is
measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from bench.lib.table import table
from bench.peers.database import DEFAULT_QUEUE, Database, DatabaseServer, databases
from bench.scenarios.queues import throughput
from bench.scenarios.storage import checkpoint, recovery
from bench.scenarios.storage.recovery import Files
from bench.workloads.rate import Rate

TASKS: Final = 1_000_000
ROUNDS: Final = 3
QUICK_TASKS: Final = 50_000

RECOVERY_LIMIT: Final = 4.0
PAUSE_LIMIT_MS: Final = 10.0
MEMORY_LIMIT: Final = 1.3


@dataclass
class Results:
    """All results.

    Attributes:
        names: the names of the contenders.
        tasks: the number of tasks.
        costs: costs of snapshots.
        starts: recovery times.
        rates: request rates.
    """

    names: list[str]
    tasks: int
    costs: list[checkpoint.Cost] = field(default_factory=list)
    starts: list[recovery.Start] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)

    def tables(self) -> Iterator[str]:
        """Format all tables."""
        yield from map(str, recovery.tables(self.starts, self.names))
        yield from checkpoint.tables(self.costs, self.names, self.tasks)
        yield from throughput.tables(self.rates, self.names)
        yield self._required()

    def _required(self) -> str:
        ours = [cost for cost in self.costs if cost.contender == self.names[0]]
        quiet = max(cost.pause for cost in ours if not cost.is_loaded) * 1000
        loaded = max(cost.pause for cost in ours if cost.is_loaded) * 1000
        figures = [
            ("longest pause, quiet, ms", quiet, PAUSE_LIMIT_MS),
            ("longest pause, under load, ms", loaded, PAUSE_LIMIT_MS),
            ("memory during a snapshot, ×", max(cost.memory for cost in ours), MEMORY_LIMIT),
        ]
        if len(self.names) > 1:
            ratio = recovery.worst_ratio(self.starts, self.names)
            figures.insert(0, ("start from files, × Tarantool's", ratio, RECOVERY_LIMIT))
        rows = [
            [what, f"{figure:.2f}", f"{limit:g}", "yes" if figure <= limit else "no"]
            for what, figure, limit in figures
        ]
        return table("Limits for our server", ["", "measured", "at most", "met"], rows)


def measure(
    members: Sequence[Database],
    directory: Path,
    tasks: int,
    rounds: int,
    share: float,
    *,
    is_real_time: bool,
) -> Results:
    """Run all measurements.

    Parameters:
        members: the contenders.
        directory: the directory for all files.
        tasks: the number of tasks in files and during snapshots.
        rounds: the number of rounds.
        share: the number of requests, as a fraction of the default.
        is_real_time: whether the servers have real-time priority while snapshots are taken.
    """
    results = Results([member.name for member in members], tasks)
    files = [_without_tasks(members[0], directory)]
    with ExitStack() as stack:
        servers: list[DatabaseServer] = []
        for member in members:
            say(f"{member.name}: putting {tasks:,} tasks")
            written = directory / f"standing-{member.name}"
            server = stack.enter_context(DatabaseServer(member, written))
            recovery.fill(server, tasks)
            files.append(recovery.keep_snapshot(server, written, directory / f"snapshot-{member.name}"))
            servers.append(server)
        if is_real_time:
            for server in servers:
                server.process.make_real_time()
        results.costs += checkpoint.measure(servers, rounds, say)
    for member in members:
        say(f"{member.name}: writing a log")
        files.append(recovery.write_log(member, directory / f"log-{member.name}", tasks))
    results.starts += recovery.measure(members, files, directory, rounds, say)
    results.rates += throughput.measure(members, directory, rounds, share, say)
    return results


def _without_tasks(member: Database, directory: Path) -> Files:
    written = directory / "empty"
    with DatabaseServer(member, written) as server:
        return recovery.keep_snapshot(server, written, directory / "without-tasks")


def say(what: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description="Measure the cost of persistence, compared with Tarantool.")
    parser.add_argument("--tasks", type=int, help=f"number of tasks in files and snapshots [{TASKS:,}]")
    parser.add_argument("--rounds", type=int, help=f"number of rounds [{ROUNDS}]")
    parser.add_argument("--quick", action="store_true", help=f"one round with {QUICK_TASKS:,} tasks")
    parser.add_argument(
        "--real-time", action="store_true", help="real-time priority for servers that take snapshots"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    parser.add_argument("--directory", type=Path, help="directory for the servers' temporary files")
    parser.add_argument(
        "--tarantool-app", type=Path, metavar="FILE", default=DEFAULT_QUEUE, help="Tarantool's queue in Lua"
    )
    arguments = parser.parse_args()
    tasks = arguments.tasks or (QUICK_TASKS if arguments.quick else TASKS)
    rounds = arguments.rounds or (1 if arguments.quick else ROUNDS)
    members = databases(arguments.tarantool_app)
    if len(members) == 1:
        say("Tarantool is not installed (apt-get install tarantool): there is no comparison")
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        share = 0.2 if arguments.quick else 1.0
        results = measure(members, Path(directory), tasks, rounds, share, is_real_time=arguments.real_time)
    say(f"done in {time.perf_counter() - begun:.0f} s")
    for one in results.tables():
        print(one)
    if arguments.json is not None:
        machine = {
            "python": platform.python_version(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
        }
        arguments.json.write_text(json.dumps({"machine": machine, **asdict(results)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
