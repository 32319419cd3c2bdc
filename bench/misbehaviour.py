"""What clients that behave notice of clients that do not.

    python -m bench.misbehaviour [--connections N] [--seconds N] [--rounds N] [--real-time] [--each]

Each round has two runs, on a new server each: nine of ten connections put, take and acknowledge a task at
fixed times; the others are idle in the first run, and misbehave in the second. What is shown are medians of
the rounds. On a machine that is busy with other things their work is in all figures; with `--real-time` those
who behave go before everything else that runs, so that what they measure is not their own waiting for a
processor. (The server cannot: Linux stops what is in real time and busy all the time.)
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from bench.database import DatabaseServer, Ours
from bench.misconduct import CONDUCTS, Offenders
from bench.process import MemoryWatch
from bench.steady import SteadyClients
from bench.table import table

CONNECTIONS: Final = 1000
SHARE: Final = 0.1
SECONDS: Final = 20.0
ROUNDS: Final = 3
INTERVAL: Final = 1.0
TASKS: Final = 10_000
"""So many tasks are there from the beginning, so that whoever takes one finds one."""

WARM_UP: Final = 2.0
LIMIT: Final = 2.0
"""The answers may take so many times as long."""

_MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        who: who misbehaved.
        requests: how many requests those who behave made.
        errors: what went wrong with them.
        median: milliseconds in which half of the answers came.
        p99: 99 of 100.
        p999: 999 of 1000.
        longest: all.
        before: bytes of memory before anybody but those who behave was there.
        most: the most while the others were.
        after: when they had gone.
        cpu: the share of a processor that the server used.
        done: what those who misbehave did.
    """

    who: str
    requests: int
    errors: list[str]
    median: float
    p99: float
    p999: float
    longest: float
    before: int
    most: int
    after: int
    cpu: float
    done: Counter[str]


def run(
    directory: Path, connections: int, seconds: float, kinds: Sequence[str], who: str, *, is_real_time: bool
) -> Run:
    """Measure once.

    Parameters:
        directory: of the server's files.
        connections: of all clients.
        seconds: how long.
        kinds: how clients misbehave; none: they are idle.
        who: what that is called.
        is_real_time: whether those who behave go before everything else.
    """
    bad = int(connections * SHARE)
    with ExitStack() as stack:
        server = stack.enter_context(DatabaseServer(Ours(), directory))
        with server.load(10, 100) as load:
            load.put(TASKS)
        good = stack.enter_context(
            SteadyClients(server.address, connections - bad, INTERVAL, is_real_time=is_real_time)
        )
        good.run(WARM_UP)
        before = server.process.memory()
        done: Counter[str] = Counter()
        with ExitStack() as others, MemoryWatch(server.process) as watch:
            offenders: Offenders | None = None
            if kinds:
                offenders = others.enter_context(Offenders(server.address, bad, kinds=tuple(kinds)))
            else:
                for _ in range(bad):
                    others.enter_context(socket.create_connection(server.address))
            cpu, begun = server.process.cpu_seconds(), time.perf_counter()
            times = good.run(seconds)
            cpu = (server.process.cpu_seconds() - cpu) / (time.perf_counter() - begun)
            if offenders is not None:
                done = offenders.done()
        good.run(WARM_UP)
        return Run(
            who,
            len(times.seconds),
            times.errors,
            times.milliseconds(0.5),
            times.milliseconds(0.99),
            times.milliseconds(0.999),
            times.milliseconds(1),
            before,
            watch.most,
            server.process.memory(),
            cpu,
            done,
        )


def tables(runs: Sequence[Run]) -> str:
    """What was measured: medians by who misbehaved, and what they did."""
    rows: list[list[str]] = []
    names = list(dict.fromkeys(run.who for run in runs))
    usual = median(run.p99 for run in runs if run.who == names[0])
    for name in names:
        found = [run for run in runs if run.who == name]
        p99 = median(run.p99 for run in found)
        rows.append(
            [
                name,
                f"{sum(run.requests for run in found):,}",
                str(sum(len(run.errors) for run in found)),
                f"{median(run.median for run in found):.2f}",
                f"{p99:.2f}",
                f"{p99 / usual:.2f}",
                f"{median(run.p999 for run in found):.2f}",
                f"{median(run.longest for run in found):.2f}",
                f"{median(run.before for run in found) / _MEBIBYTE:.0f}",
                f"{max(run.most for run in found) / _MEBIBYTE:.0f}",
                f"{median(run.after for run in found) / _MEBIBYTE:.0f}",
                f"{median(run.cpu for run in found):.2f}",
            ]
        )
    header = [
        "the others",
        "requests",
        "errors",
        "median\nms",
        "99 %\nms",
        "ratio",
        "99.9 %\nms",
        "longest\nms",
    ]
    header += ["memory\nbefore, MiB", "most\nMiB", "after\nMiB", "CPU"]
    parts = [table("Answers to those who behave", header, rows)]
    done = sum((run.done for run in runs), Counter[str]())
    if done:
        counts = [[what, f"{count:,}"] for what, count in sorted(done.items())]
        parts.append(table("What the others did: connections, and requests", ["", "times"], counts))
    return "\n".join(parts)


def say(what: str) -> None:
    """Tell those who wait how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def allow_sockets(count: int) -> None:
    """Let this process and its children have so many sockets, as far as the system lets them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 200)), hard))


def main() -> int:
    """Measure, and print the tables.

    Returns:
        0: those who behave had no error, and their answers came in time; 1: not.
    """
    parser = argparse.ArgumentParser(description="What clients that behave notice of clients that do not.")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="[%(default)s]")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each run [%(default)s]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="[%(default)s]")
    parser.add_argument(
        "--real-time",
        action="store_true",
        help="let those who measure not wait for a processor",
    )
    parser.add_argument("--each", action="store_true", help="measure each kind by itself, too")
    parser.add_argument("--directory", type=Path, help="where the servers' files go while it runs")
    arguments = parser.parse_args()
    allow_sockets(arguments.connections)
    conducts: list[tuple[str, Sequence[str]]] = [("are idle", ()), ("misbehave", tuple(CONDUCTS))]
    if arguments.each:
        conducts += [(name, (name,)) for name in CONDUCTS]
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        for number in range(arguments.rounds):
            for who, kinds in conducts:
                one = run(
                    Path(directory) / f"{number}-{len(runs)}",
                    arguments.connections,
                    arguments.seconds,
                    kinds,
                    who,
                    is_real_time=arguments.real_time,
                )
                runs.append(one)
                load = os.getloadavg()[0]
                times = f"99 % in {one.p99:.2f} ms"
                say(f"round {number + 1}, the others {who}: {times}; load of the machine {load:.1f}")
                for error in dict.fromkeys(one.errors):
                    say(f"  {error}")
    print(tables(runs))
    by_name = {who: median(one.p99 for one in runs if one.who == who) for who, _ in conducts}
    is_in_time = by_name["misbehave"] <= LIMIT * by_name["are idle"]
    return 0 if is_in_time and not any(one.errors for one in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
