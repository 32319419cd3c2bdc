"""What clients that behave notice of clients that do not.

    python -m bench.scenarios.hostile_load [--connections N] [--strangers N] [--seconds N] [--rounds N]
                                           [--real-time] [--each]

Each round has four runs, on a new server each. Nine of ten connections put, take and acknowledge a task at
fixed times; the others are idle in the first run, and misbehave in the second. In the third and fourth run
guest has no rights, those who behave have logged in, and there are `--strangers` connections that have not:
they are silent in the third run, and hostile in the fourth. The tables show medians of the rounds.

The machine's other work is in all figures. Clients that misbehave get only the processor time that nobody
else wants, as if they were on machines of their own. With `--real-time` those who behave go before everything
else that runs, so that their measurements do not include their own waiting for a processor. (The server
cannot: Linux stops a process that is in real time and busy all the time.)
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

from bench.client.hostile_clients import CONDUCTS, Conduct, Offenders
from bench.client.hostile_strangers import STRANGERS
from bench.client.steady_clients import SteadyClients
from bench.lib.graphite_counters import CounterReceiver
from bench.lib.process import MemoryWatch
from bench.lib.table import table
from bench.peers.contender import Server
from bench.peers.database import DatabaseServer, Ours

CONNECTIONS: Final = 1000
STRANGER_CONNECTIONS: Final = 1000
SHARE: Final = 0.1
SECONDS: Final = 20.0
ROUNDS: Final = 3
INTERVAL: Final = 1.0
TASKS: Final = 10_000
"""So many tasks are there from the beginning, so that whoever takes one finds one."""

WARM_UP: Final = 2.0
LIMIT: Final = 2.0
"""The answers may take so many times as long."""

MEMORY_LIMIT: Final = 150 * 2**20
"""Bytes that strangers may make the server take, beyond what it had before them."""

LINES_LIMIT: Final = 100
"""Lines that strangers may make the server log."""

LOGIN: Final = ("worker", "a password of the benchmark")
_MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True)
class Scenario:
    """The other clients of a run.

    Attributes:
        who: what they do, in a word or two.
        baseline: the scenario it is compared with.
        count: how many there are.
        conducts: what they do, by name; empty: they only connect.
        before_login: whether they are strangers to a server whose guest has no rights.
    """

    who: str
    baseline: str
    count: int
    conducts: Mapping[str, Conduct] = field(default_factory=dict)
    before_login: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        scenario: the other clients.
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
        lines: how many lines the server logged while the others were there.
        done: what those who misbehave did.
        counted: by how much the server's counters grew.
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
    """Start a server that has tasks, and for strangers one whose guest has no rights."""
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
        directory: of the server's files.
        good_count: connections of those who behave.
        seconds: how long.
        scenario: the others.
        is_real_time: whether those who behave go before everything else.
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
            offenders: Offenders | None = None
            if scenario.conducts:
                offenders = others.enter_context(
                    Offenders(server.address, scenario.count, conducts=scenario.conducts)
                )
            else:
                for _ in range(scenario.count):
                    others.enter_context(socket.create_connection(server.address))
            cpu, begun = server.process.cpu_seconds(), time.perf_counter()
            times = good.run(seconds)
            cpu = (server.process.cpu_seconds() - cpu) / (time.perf_counter() - begun)
            if offenders is not None:
                done = offenders.done()
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
    """What was measured: medians by scenario, what the others did, and what the server counted."""
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
    parts = [table("Answers to those who behave", header, rows)]
    done = sum((run.done for run in runs), Counter[str]())
    if done:
        counts = [[what, f"{count:,}"] for what, count in sorted(done.items())]
        parts.append(table("What the others did: connections, requests, refusals", ["", "times"], counts))
    counted: Counter[str] = Counter()
    for one in runs:
        if one.scenario.before_login and one.scenario.conducts:
            counted.update({name: int(growth) for name, growth in one.counted.items() if growth > 0})
    if counted:
        counts = [
            [what, f"{count:,}"]
            for what, count in sorted(counted.items())
            if "refused" in what or "logins" in what
        ]
        parts.append(table("What the server counted of strangers", ["", "times"], counts))
    return "\n".join(parts)


def p99_of(runs: Sequence[Run], who: str) -> float:
    """The median, over the rounds of a scenario, of the milliseconds in which 99 of 100 answers came."""
    return median(run.p99 for run in runs if run.scenario.who == who)


def complaints(runs: Sequence[Run]) -> list[str]:
    """Tell which limits were not kept."""
    found: list[str] = []
    for scenario in {run.scenario.who: run.scenario for run in runs}.values():
        ratio = p99_of(runs, scenario.who) / p99_of(runs, scenario.baseline)
        if ratio > LIMIT and scenario.who in (MISBEHAVE, HOSTILE_STRANGERS):
            found.append(f"{scenario.who}: 99 % of the answers take {ratio:.1f} times as long")
    for one in runs:
        if one.errors:
            found.append(f"{one.scenario.who}: {len(one.errors)} errors of those who behave")
        if one.scenario.before_login and one.most - one.before > MEMORY_LIMIT:
            found.append(f"{one.scenario.who}: memory grew by {(one.most - one.before) // _MEBIBYTE} MiB")
        if one.scenario.before_login and one.lines >= LINES_LIMIT:
            found.append(f"{one.scenario.who}: {one.lines} lines were logged")
    return found


def say(what: str) -> None:
    """Tell those who wait how far it is."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def allow_sockets(count: int) -> None:
    """Let this process and its children have so many sockets, as far as the system lets them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 200)), hard))


IDLE, MISBEHAVE = "are idle", "misbehave"
SILENT_STRANGERS, HOSTILE_STRANGERS = "are silent strangers", "are hostile strangers"


def scenarios(connections: int, strangers: int, *, each: bool) -> list[Scenario]:
    """List the runs of a round.

    Parameters:
        connections: of those who behave and of the others.
        strangers: connections that have not logged in; 0: no such runs.
        each: whether each kind of conduct has a run of its own, too.
    """
    bad = int(connections * SHARE)
    listed = [Scenario(IDLE, IDLE, bad), Scenario(MISBEHAVE, IDLE, bad, CONDUCTS)]
    if each:
        listed += [Scenario(name, IDLE, bad, {name: conduct}) for name, conduct in CONDUCTS.items()]
    if strangers:
        silent = Scenario(SILENT_STRANGERS, SILENT_STRANGERS, strangers, before_login=True)
        hostile = Scenario(HOSTILE_STRANGERS, SILENT_STRANGERS, strangers, STRANGERS, before_login=True)
        listed += [silent, hostile]
        if each:
            listed += [
                Scenario(
                    f"strangers: {name}", SILENT_STRANGERS, strangers, {name: conduct}, before_login=True
                )
                for name, conduct in STRANGERS.items()
            ]
    return listed


def main() -> int:
    """Measure, and print the tables.

    Returns:
        0: those who behave had no error, their answers came in time, and strangers cost little memory and
        few lines of log; 1: not.
    """
    parser = argparse.ArgumentParser(description="What clients that behave notice of clients that do not.")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="[%(default)s]")
    parser.add_argument(
        "--strangers", type=int, default=STRANGER_CONNECTIONS, help="connections before login [%(default)s]"
    )
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
    allow_sockets(arguments.connections + arguments.strangers)
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        for number in range(arguments.rounds):
            for scenario in scenarios(arguments.connections, arguments.strangers, each=arguments.each):
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
                say(f"round {number + 1}, the others {scenario.who}: {times}; load of the machine {load:.1f}")
                for error in dict.fromkeys(one.errors):
                    say(f"  {error}")
    print(tables(runs))
    found = complaints(runs)
    for complaint in found:
        say(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
