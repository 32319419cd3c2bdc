"""The effect of hostile clients on well-behaved ones.

    python -m bench.scenarios.server.hostile_load [--connections N] [--unauthenticated N] [--seconds N]
                                           [--rounds N] [--real-time] [--each]

Each round has four runs, each on a new server. Nine of ten connections are well-behaved: they put, take and
acknowledge a task at fixed times. The others are idle in the first run and hostile in the second. In the
third and fourth run guest has no rights, the well-behaved clients have logged in, and `--unauthenticated`
connections have not: they are silent in the third run and hostile in the fourth. The tables show medians of
the rounds.

All figures include the machine's other load. Hostile clients get only processor time that is idle otherwise,
as if they were on machines of their own. With `--real-time` the well-behaved clients have real-time priority,
so that their measurements do not include their own waiting for a processor. (The server cannot have it:
Linux throttles a real-time process that is busy all the time.)
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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from bench.client.hostile_clients import ATTACKS, Attack, HostileClients
from bench.client.steady_clients import SteadyClients
from bench.client.unauthenticated_clients import ATTACKS_BEFORE_LOGIN
from bench.lib.graphite_counters import CounterReceiver
from bench.lib.process import MemoryWatch
from bench.lib.table import table
from bench.peers.contender import Server
from bench.peers.database import DatabaseServer, Ours

CONNECTIONS: Final = 1000
UNAUTHENTICATED_CONNECTIONS: Final = 1000
SHARE: Final = 0.1
SECONDS: Final = 20.0
ROUNDS: Final = 3
INTERVAL: Final = 1.0
TASKS: Final = 10_000
"""Tasks that exist from the beginning, so that every take finds one."""

WARM_UP: Final = 2.0
LIMIT: Final = 2.0
"""The highest ratio of the time of 99 % of the answers to the baseline's."""

MEMORY_LIMIT: Final = 150 * 2**20
"""Bytes by which unauthenticated clients may grow the server's memory."""

LINES_LIMIT: Final = 100
"""Lines that the server may log because of unauthenticated clients."""

LOGIN: Final = ("worker", "a password of the benchmark")
_MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Scenario:
    """The other clients of a run.

    Attributes:
        who: their name in the tables.
        baseline: the scenario it is compared with.
        count: the number of connections.
        attacks: their attacks by name; empty if they only connect.
        before_login: whether they are unauthenticated, on a server whose guest has no rights.
    """

    who: str
    baseline: str
    count: int
    attacks: Mapping[str, Attack] = field(default_factory=dict)
    before_login: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        scenario: the other clients.
        requests: the number of requests of the well-behaved clients.
        errors: the errors that they got.
        median: the time within which half of the answers came, in milliseconds.
        p99: the same for 99 % of the answers.
        p999: the same for 99.9 %.
        longest: the same for all.
        before: bytes of the server's memory before the other clients connected.
        most: the most bytes while they were connected.
        after: bytes after they had disconnected.
        cpu: the share of a processor that the server used.
        lines: the number of lines that the server logged while the others were connected.
        done: connections and requests of the hostile clients.
        counted: the growth of the server's counters.
    """

    scenario: Scenario
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
    lines: int
    done: Counter[str]
    counted: dict[str, float]


def start(stack: ExitStack, directory: Path, scenario: Scenario, graphite: str) -> Server:
    """Start a server with tasks; for unauthenticated clients, one whose guest has no rights."""
    ours = Ours(("--graphite", graphite))
    if not scenario.before_login:
        server = stack.enter_context(DatabaseServer(ours, directory))
        _put_tasks(server)
        return server
    with DatabaseServer(ours, directory) as open_server:
        _put_tasks(open_server)
        user, password = LOGIN
        open_server.connection.call("box.session.su", "admin")
        open_server.connection.call("box.schema.user.create", user, {"password": password})
        open_server.connection.call("box.schema.user.grant", user, "read,write,execute", "universe")
    return stack.enter_context(Server(Ours((*ours.options, "--guest", "none")), directory))


def _put_tasks(server: Server) -> None:
    with server.load(10, 100) as load:
        load.put(TASKS)


def run(directory: Path, good_count: int, seconds: float, scenario: Scenario, *, is_real_time: bool) -> Run:
    """Measure once.

    Parameters:
        directory: the directory of the server's files.
        good_count: the number of well-behaved connections.
        seconds: the duration.
        scenario: the other clients.
        is_real_time: whether the well-behaved clients have real-time priority.
    """
    login = LOGIN if scenario.before_login else None
    with ExitStack() as stack:
        counters = stack.enter_context(CounterReceiver())
        server = start(stack, directory, scenario, counters.address)
        good = stack.enter_context(
            SteadyClients(server.address, good_count, INTERVAL, is_real_time=is_real_time, login=login)
        )
        good.run(WARM_UP)
        before, counted, lines = server.process.memory(), counters.values(), server.process.lines_written
        done: Counter[str] = Counter()
        with ExitStack() as others, MemoryWatch(server.process) as watch:
            hostile: HostileClients | None = None
            if scenario.attacks:
                hostile = others.enter_context(
                    HostileClients(server.address, scenario.count, attacks=scenario.attacks)
                )
            else:
                for _ in range(scenario.count):
                    others.enter_context(socket.create_connection(server.address))
            cpu, begun = server.process.cpu_seconds(), time.perf_counter()
            times = good.run(seconds)
            cpu = (server.process.cpu_seconds() - cpu) / (time.perf_counter() - begun)
            if hostile is not None:
                done = hostile.done()
        good.run(WARM_UP)
        now = counters.values()
        return Run(
            scenario,
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
            server.process.lines_written - lines,
            done,
            {name: value - counted.get(name, 0.0) for name, value in now.items()},
        )


def tables(runs: Sequence[Run]) -> str:
    """Format the medians by scenario, the requests of the others, and the counters of the server."""
    rows: list[list[str]] = []
    for scenario in dict.fromkeys(run.scenario.who for run in runs):
        found = [run for run in runs if run.scenario.who == scenario]
        p99 = p99_of(runs, scenario)
        rows.append(
            [
                scenario,
                f"{sum(run.requests for run in found):,}",
                str(sum(len(run.errors) for run in found)),
                f"{median(run.median for run in found):.2f}",
                f"{p99:.2f}",
                f"{p99 / p99_of(runs, found[0].scenario.baseline):.2f}",
                f"{median(run.p999 for run in found):.2f}",
                f"{median(run.longest for run in found):.2f}",
                f"{median(run.before for run in found) / _MEBIBYTE:.0f}",
                f"{max(run.most for run in found) / _MEBIBYTE:.0f}",
                f"{median(run.after for run in found) / _MEBIBYTE:.0f}",
                f"{median(run.cpu for run in found):.2f}",
                f"{max(run.lines for run in found)}",
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
    header += ["memory\nbefore, MiB", "most\nMiB", "after\nMiB", "CPU", "log\nlines"]
    parts = [table("Answers to well-behaved clients", header, rows)]
    done = sum((run.done for run in runs), Counter[str]())
    if done:
        counts = [[what, f"{count:,}"] for what, count in sorted(done.items())]
        parts.append(table("Connections, requests and refusals of the others", ["", "times"], counts))
    counted: Counter[str] = Counter()
    for one in runs:
        if one.scenario.before_login and one.scenario.attacks:
            counted.update({name: int(growth) for name, growth in one.counted.items() if growth > 0})
    if counted:
        counts = [
            [what, f"{count:,}"]
            for what, count in sorted(counted.items())
            if "refused" in what or "logins" in what
        ]
        parts.append(table("Counters of the server for unauthenticated clients", ["", "times"], counts))
    return "\n".join(parts)


def p99_of(runs: Sequence[Run], who: str) -> float:
    """Return the time within which 99 % of the answers came, in milliseconds: the median of the rounds."""
    return median(run.p99 for run in runs if run.scenario.who == who)


def violations(runs: Sequence[Run]) -> list[str]:
    """List the limits that were exceeded."""
    found: list[str] = []
    for scenario in {run.scenario.who: run.scenario for run in runs}.values():
        ratio = p99_of(runs, scenario.who) / p99_of(runs, scenario.baseline)
        if ratio > LIMIT and scenario.who in (HOSTILE, HOSTILE_UNAUTHENTICATED):
            found.append(f"{scenario.who}: 99 % of the answers take {ratio:.1f} times as long")
    for one in runs:
        if one.errors:
            found.append(f"{one.scenario.who}: {len(one.errors)} errors of well-behaved clients")
        if one.scenario.before_login and one.most - one.before > MEMORY_LIMIT:
            found.append(f"{one.scenario.who}: memory grew by {(one.most - one.before) // _MEBIBYTE} MiB")
        if one.scenario.before_login and one.lines >= LINES_LIMIT:
            found.append(f"{one.scenario.who}: {one.lines} lines were logged")
    return found


def print_progress(what: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def allow_sockets(count: int) -> None:
    """Raise the limit of open sockets for this process and its children, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 200)), hard))


IDLE, HOSTILE = "idle", "hostile"
SILENT_UNAUTHENTICATED, HOSTILE_UNAUTHENTICATED = "silent, unauthenticated", "hostile, unauthenticated"


def scenarios(connections: int, unauthenticated: int, *, each: bool) -> list[Scenario]:
    """List the runs of a round.

    Parameters:
        connections: the number of well-behaved clients and the others together.
        unauthenticated: the number of connections before login; 0 for no such runs.
        each: whether each attack has a run of its own, too.
    """
    bad = int(connections * SHARE)
    listed = [Scenario(IDLE, IDLE, bad), Scenario(HOSTILE, IDLE, bad, ATTACKS)]
    if each:
        listed += [Scenario(name, IDLE, bad, {name: attack}) for name, attack in ATTACKS.items()]
    if unauthenticated:
        silent = Scenario(SILENT_UNAUTHENTICATED, SILENT_UNAUTHENTICATED, unauthenticated, before_login=True)
        hostile = Scenario(
            HOSTILE_UNAUTHENTICATED,
            SILENT_UNAUTHENTICATED,
            unauthenticated,
            ATTACKS_BEFORE_LOGIN,
            before_login=True,
        )
        listed += [silent, hostile]
        if each:
            listed += [
                Scenario(
                    f"unauthenticated: {name}",
                    SILENT_UNAUTHENTICATED,
                    unauthenticated,
                    {name: attack},
                    before_login=True,
                )
                for name, attack in ATTACKS_BEFORE_LOGIN.items()
            ]
    return listed


def main() -> int:
    """Measure, and print the tables.

    Returns:
        0 if well-behaved clients had no error and got their answers in time, and unauthenticated clients cost
        little memory and few log lines; otherwise 1.
    """
    parser = argparse.ArgumentParser(description="Measure how hostile clients affect well-behaved ones.")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="[%(default)s]")
    parser.add_argument(
        "--unauthenticated",
        "--strangers",
        type=int,
        default=UNAUTHENTICATED_CONNECTIONS,
        help="connections before login [%(default)s]",
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each run [%(default)s]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="[%(default)s]")
    parser.add_argument(
        "--real-time",
        action="store_true",
        help="give the well-behaved clients real-time priority",
    )
    parser.add_argument("--each", action="store_true", help="also measure each attack by itself")
    parser.add_argument("--directory", type=Path, help="for the servers' files, which are removed at the end")
    arguments = parser.parse_args()
    allow_sockets(arguments.connections + arguments.unauthenticated)
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        for number in range(arguments.rounds):
            for scenario in scenarios(arguments.connections, arguments.unauthenticated, each=arguments.each):
                one = run(
                    Path(directory) / f"{number}-{len(runs)}",
                    int(arguments.connections * (1 - SHARE)),
                    arguments.seconds,
                    scenario,
                    is_real_time=arguments.real_time,
                )
                runs.append(one)
                load = os.getloadavg()[0]
                times = f"99 % in {one.p99:.2f} ms"
                print_progress(
                    f"round {number + 1}, others: {scenario.who}: {times}; machine load {load:.1f}"
                )
                for error in dict.fromkeys(one.errors):
                    print_progress(f"  {error}")
    print(tables(runs))
    found = violations(runs)
    for violation in found:
        print_progress(violation)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
