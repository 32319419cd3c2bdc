"""Runs all measurements on all contenders, alternately in each round."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from bench.peers.beanstalkd import Beanstalkd
from bench.peers.contender import Contender, Server, alternating
from bench.peers.database import DatabaseServer, Ours, OursWithLua, Tarantool
from bench.peers.echo import Echo
from bench.peers.iproto import IPROTO
from bench.peers.queue_server import CHECKOUT, OurModuleQueue, OurQueue, QueueContender, QueueServer, module
from bench.peers.redis import Redis
from bench.report.results import Results
from bench.scenarios import echo, raw_rows
from bench.scenarios.queues import latency, throughput, tube_cycles
from bench.scenarios.queues.delivery import Traffic, deliver
from bench.scenarios.storage import backlog, checkpoint, recovery
from bench.workloads.rate import Setting, Shape

NAMES: Final = (Ours.name, OursWithLua.name, Tarantool.name, Beanstalkd.name, Redis.name)
SHAPES: Final = (Shape(1, 1), Shape(1, 100), Shape(10, 100), Shape(100, 1), Shape(1000, 1))
PAYLOADS: Final = (16, 10 * 1024)
"""Payload sizes that are measured in one shape only, besides the default."""

SECTIONS: Final = ("queue", "echo", "raw", "latency", "tubes", "delivery", "standing", "snapshot", "start")
DELAYED: Final = "delayed"
_MANY: Final = Shape(10, 100)
_DELAYED_TASKS: Final = 10_000
_STANDING_TAKEN: Final = 20_000
_CONSUMERS: Final = 100
_TUBE_BLOCKS: Final = 20
_DELAY: Final = 1
_WAIT_AT_MOST: Final = 30


@dataclass(frozen=True, slots=True)
class Plan:
    """The amount of measurements.

    Attributes:
        rounds: the number of rounds.
        share: the number of requests of a measurement, as a fraction of the default.
        tasks: the number of tasks in a backlog.
        shapes: the shapes of the load on the queue.
        sections: the sections to measure.
        latency_rounds: the number of rounds of the section "latency".
    """

    rounds: int
    share: float
    tasks: int
    shapes: Sequence[Shape] = SHAPES
    sections: Sequence[str] = SECTIONS
    latency_rounds: int = 1

    def part(self, usual: int) -> int:
        """Scale a default number by the share."""
        return max(100, int(usual * self.share))


def find(names: Sequence[str], queue: Path) -> tuple[list[Contender], list[str]]:
    """Find the installed contenders.

    Parameters:
        names: the names of the wanted contenders.
        queue: the Lua file of Tarantool's queue.

    Returns:
        The contenders, and the names of those that are not installed.
    """
    programs: dict[str, tuple[str, Callable[[str], Contender]]] = {
        Tarantool.name: ("tarantool", lambda program: Tarantool(program, queue)),
        Beanstalkd.name: ("beanstalkd", Beanstalkd),
        Redis.name: ("redis-server", Redis),
    }
    found: list[Contender] = [Ours()] if Ours.name in names else []
    if OursWithLua.name in names:
        found.append(OursWithLua(queue=queue))
    missing: list[str] = []
    for name, (program, contender) in programs.items():
        if name in names:
            path = shutil.which(program)
            if path is None:
                missing.append(name)
            else:
                found.append(contender(path))
    return found, missing


class Comparison:
    """Runs the planned measurements.

    Parameters:
        members: the contenders.
        directory: the directory for their files.
        plan: the measurements and their number.
        say: called with progress messages.

    Attributes:
        results: the results so far.
    """

    def __init__(
        self, members: Sequence[Contender], directory: Path, plan: Plan, say: Callable[[str], None]
    ) -> None:
        self.results = Results([member.name for member in members], [], plan.tasks)
        self._members = members
        self._directory = directory
        self._plan = plan
        self._say = say

    def run(self) -> None:
        """Measure all contenders alternately in each round, with all servers running."""
        with ExitStack() as stack:
            servers = [stack.enter_context(self._start(member, "data")) for member in self._members]
            for server in servers:
                throughput.warm_up(server)
            sections: dict[str, Callable[[Sequence[Server], int], None]] = {
                "queue": self._queue,
                "raw": self._raw,
                "delivery": self._deliver,
            }
            if echo.SECTION in self._plan.sections:
                echo_server = stack.enter_context(self._start(Echo(), "data"))
                sections[echo.SECTION] = partial(self._echo, echo_server)
                self.results.names.append(echo_server.name)
            for number in range(self._plan.rounds):
                for section in self._plan.sections:
                    if section in sections:
                        self._say(f"{section}, round {number + 1} of {self._plan.rounds}")
                        sections[section](alternating(servers, number), number)
            if latency.SECTION in self._plan.sections:
                self._latency(servers)
            if not {"standing", "snapshot"}.isdisjoint(self._plan.sections):
                self._standing(servers)
        if tube_cycles.SECTION in self._plan.sections:
            self._tubes()
        if "start" in self._plan.sections:
            self._starts()

    def _start(self, member: Contender, purpose: str) -> Server:
        return Server(member, self._directory / f"{purpose}-{member.name}")

    def _queue(self, servers: Sequence[Server], number: int) -> None:
        for shape in self._plan.shapes:
            tasks = self._plan.part(throughput.usual_tasks(shape))
            for server in servers:
                self.results.rates += throughput.rates(
                    Setting(server, throughput.SECTION, shape, number), tasks
                )
        if _MANY in self._plan.shapes:
            for payload in PAYLOADS:
                tasks = self._plan.part(throughput.usual_tasks(_MANY, payload=payload))
                for server in servers:
                    setting = Setting(server, throughput.SECTION, _MANY, number, payload)
                    self.results.rates += throughput.rates(setting, tasks)

    def _raw(self, servers: Sequence[Server], number: int) -> None:
        for server in servers:
            if server.contender.dialect == IPROTO:
                for shape in raw_rows.SHAPES:
                    setting = Setting(server, raw_rows.SECTION, shape, number)
                    self.results.rates += raw_rows.rates(setting, self._plan.part(raw_rows.usual_rows(shape)))

    def _echo(self, echo_server: Server, servers: Sequence[Server], number: int) -> None:
        tasks = self._plan.part(throughput.usual_tasks(echo.SHAPE))
        for server in servers:
            if server.name == Ours.name:
                measured = throughput.rates(Setting(server, echo.SECTION, echo.SHAPE, number), tasks)
                self.results.rates += measured
        self.results.rates += echo.rates(Setting(echo_server, echo.SECTION, echo.SHAPE, number), tasks)

    def _latency(self, servers: Sequence[Server]) -> None:
        both = [server for server in servers if server.contender.dialect == IPROTO]
        for number in range(self._plan.latency_rounds):
            self._say(f"latency, round {number + 1} of {self._plan.latency_rounds}")
            for server in alternating(both, number):
                setting = Setting(server, latency.SECTION, latency.SHAPE, number)
                self.results.rates.append(latency.put_rate(setting, self._plan.part(latency.TASKS)))

    def _tubes(self) -> None:
        peer = module()
        if peer is None:
            self.results.notes.append(
                f"Left out: the queue module; there is no tarantool, or {CHECKOUT} names no checkout of it"
            )
        blocks = max(1, int(_TUBE_BLOCKS * self._plan.share))
        members: list[QueueContender] = [OurQueue()]
        if peer is not None:
            members.append(peer)
            if any(isinstance(member, OursWithLua) for member in self._members):
                members.append(OurModuleQueue(sys.executable, peer.checkout))
            self.results.names += [member.name for member in members[1:]]
        with ExitStack() as stack:
            servers = [
                stack.enter_context(QueueServer(member, self._directory / f"tubes-{place}"))
                for place, member in enumerate(members)
            ]
            for number in range(self._plan.rounds):
                self._say(f"tubes, round {number + 1} of {self._plan.rounds}")
                for shape, driver in product(tube_cycles.SHAPES, tube_cycles.DRIVERS):
                    self.results.rates += [
                        tube_cycles.rate(server, driver, shape, number, blocks)
                        for server in alternating(servers, number)
                    ]

    def _starts(self) -> None:
        databases = [member for member in self._members if isinstance(member, Ours | Tarantool)]
        files: list[recovery.Files] = []
        for member in databases:
            self._say(f"start: {member.name} writes the files of {self._plan.tasks:,} tasks")
            written = self._directory / f"snapshot-of-{member.name}"
            with DatabaseServer(member, written) as server:
                recovery.fill(server, self._plan.tasks)
                copy = self._directory / f"start-snapshot-{member.name}"
                files.append(recovery.keep_snapshot(server, written, copy))
            log = self._directory / f"start-log-{member.name}"
            files.append(recovery.write_log(member, log, self._plan.tasks))
        self.results.starts += recovery.measure(
            databases, files, self._directory, self._plan.rounds, self._say
        )

    def _deliver(self, servers: Sequence[Server], number: int) -> None:
        at_once = Traffic(per_second=2000, seconds=1.5 * self._plan.share, consumers=_CONSUMERS)
        later = Traffic(1000, 1.5 * self._plan.share, _CONSUMERS, _DELAY)
        with_delays = [server for server in servers if server.contender.has_delays]
        for server in with_delays:
            self._put_delayed(server, number)
        for server in servers:
            self.results.deliveries.append(deliver(server, at_once, number))
        for server in with_delays:
            self.results.deliveries.append(deliver(server, later, number))

    def _put_delayed(self, server: Server, number: int) -> None:
        tasks = self._plan.part(_DELAYED_TASKS)
        setting = Setting(server, DELAYED, _MANY, number)
        with server.load(_MANY.connections, _MANY.in_flight) as load:
            self.results.rates.append(setting.measure("put", lambda: load.put(tasks, delay=_DELAY)))
            load.take(tasks, _WAIT_AT_MOST)
            load.ack()

    def _standing(self, empty: Sequence[Server]) -> None:
        with ExitStack() as stack:
            full: list[Server] = []
            for member in self._members:
                self._say(f"standing: putting {self._plan.tasks:,} tasks, {member.name}")
                server = stack.enter_context(self._start(member, "standing"))
                self.results.footprints.append(backlog.put_backlog(server, self._plan.tasks))
                full.append(server)
            if "standing" in self._plan.sections:
                self._standing_rates(empty, full)
            if "snapshot" in self._plan.sections:
                self._snapshots([server for server in full if server.contender.has_snapshots])

    def _standing_rates(self, empty: Sequence[Server], full: Sequence[Server]) -> None:
        taken = min(self._plan.part(_STANDING_TAKEN), self._plan.tasks)
        pairs = list(zip(full, empty, strict=True))
        for number in range(self._plan.rounds):
            self._say(f"standing, round {number + 1} of {self._plan.rounds}")
            for one_full, one_empty in alternating(pairs, number):
                self.results.rates += backlog.rates(Setting(one_empty, backlog.EMPTY, _MANY, number), taken)
                self.results.rates += backlog.rates(Setting(one_full, backlog.FULL, _MANY, number), taken)

    def _snapshots(self, servers: Sequence[Server]) -> None:
        for number in range(self._plan.rounds):
            self._say(f"snapshots under load, round {number + 1} of {self._plan.rounds}")
            for server in alternating(servers, number):
                self.results.costs.append(checkpoint.take(server, is_loaded=True))
