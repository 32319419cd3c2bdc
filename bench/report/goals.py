"""Performance goals relative to other servers, and a check of a comparison against them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Final

from bench.client.load import PAYLOAD
from bench.lib.table import Table
from bench.peers.beanstalkd import Beanstalkd
from bench.peers.database import Ours, OursWithLua, Tarantool
from bench.peers.echo import Echo
from bench.peers.queue_server import ModuleQueue, OurModuleQueue
from bench.report.results import BUSY, Case, Medians, Results
from bench.scenarios import echo, raw_rows
from bench.scenarios.queues import latency, throughput, tube_cycles
from bench.scenarios.storage import backlog, recovery
from bench.workloads.rate import Shape

CYCLES: Final = {Shape(10, 100): 4.0, Shape(1, 1): 2.0}
"""The minimum of cycles per second, as multiples of Tarantool's."""

LUA_CYCLES: Final = {Shape(10, 100): 1.5, Shape(100, 1): 1.2, Shape(1, 1): 1.2}
"""The same of the queue in Lua on our server."""

CPU: Final = {Shape(10, 100): 0.2, Shape(100, 1): 0.5}
"""The maximum of CPU time per cycle, as multiples of Tarantool's."""

ECHO: Final = 0.75
BEANSTALKD_CYCLES: Final = 1.0
RAW: Final = 1.2
TUBES: Final = 2.0
LUA_TUBES: Final = 1.2
HIGH_LATENCY: Final = 0.7
MEMORY: Final = 0.85
START: Final = 1.0
SNAPSHOT_CYCLES: Final = 0.85
PAUSE_MS: Final = 5.0
PAUSE_GROWTH: Final = 1.25
STANDING: Final = 1.1
_MANY: Final = Shape(10, 100)


@dataclass(frozen=True, slots=True)
class Goal:
    """A required limit and the measured figure.

    Attributes:
        what: the name of the figure.
        measured: the figure; None if it was not measured.
        limit: the limit.
        is_least: whether the limit is a minimum; otherwise it is a maximum.
        unit: the unit of both.
        load_share: the largest share of a processor that the load generator used for one of the compared;
            None where it does not matter.
    """

    what: str
    measured: float | None
    limit: float
    is_least: bool
    unit: str = "×"
    load_share: float | None = None

    @property
    def is_busy(self) -> bool:
        """Whether the load generator may have limited the figure, which then does not count."""
        return self.load_share is not None and self.load_share >= BUSY

    @property
    def is_met(self) -> bool | None:
        """True if the figure is within the limit; None if it was not measured or does not count."""
        if self.measured is None or self.is_busy:
            return None
        return self.measured >= self.limit if self.is_least else self.measured <= self.limit

    @property
    def verdict(self) -> str:
        """`is_met` in words."""
        if self.is_busy:
            return "load was busy"
        return {True: "yes", False: "no", None: "not measured"}[self.is_met]


def goals(results: Results) -> list[Goal]:
    """Evaluate all goals with the figures of a comparison."""
    return [
        *_cycles(results),
        *_beanstalkd(results),
        *_raw(results),
        *_tubes(results),
        *_lua(results),
        _ratio(
            results,
            f"put, {latency.SHAPE}, against Tarantool: p99",
            Case(latency.SECTION, str(latency.SHAPE), PAYLOAD, "put"),
            Tarantool.name,
            _p99,
            HIGH_LATENCY,
            is_least=False,
        ),
        *_standing(results),
    ]


def goals_table(results: Results) -> Table:
    """Format the goals as a table."""
    rows = [
        [
            goal.what,
            "" if goal.measured is None else f"{goal.measured:.2f} {goal.unit}",
            f"{'≥' if goal.is_least else '≤'} {goal.limit:.3g} {goal.unit}",
            "" if goal.load_share is None else f"{goal.load_share:.0%}",
            goal.verdict,
        ]
        for goal in goals(results)
    ]
    return Table("Goals", ["goal", "measured", "required", "load busy", "met?"], rows)


def _cycles(results: Results) -> Iterator[Goal]:
    for shape, least in CYCLES.items():
        what = f"put + take + ack, {shape}, against Tarantool: cycles per second"
        yield _ratio(results, what, _cycle(shape), Tarantool.name, _per_second, least, is_least=True)
    for shape, most in CPU.items():
        what = f"put + take + ack, {shape}, against Tarantool: CPU per cycle"
        yield _ratio(results, what, _cycle(shape), Tarantool.name, _cpu, most, is_least=False)
    what = f"put + take + ack, {echo.SHAPE}, against an echo server with a log: cycles per second"
    case = Case(echo.SECTION, str(echo.SHAPE), PAYLOAD, "cycle")
    yield _ratio(results, what, case, Echo.name, _per_second, ECHO, is_least=True)


def _beanstalkd(results: Results) -> Iterator[Goal]:
    for case in results.cases():
        if (case.section, case.payload, case.operation) == (throughput.SECTION, PAYLOAD, "cycle"):
            what = f"put + take + ack, {case.shape}, against beanstalkd: cycles per second"
            name = Beanstalkd.name
            yield _ratio(results, what, case, name, _per_second, BEANSTALKD_CYCLES, is_least=True)


def _raw(results: Results) -> Iterator[Goal]:
    for shape, operation in product(raw_rows.SHAPES, raw_rows.OPERATIONS):
        case = Case(raw_rows.SECTION, str(shape), PAYLOAD, operation)
        what = f"{operation} without a queue, {shape}, against Tarantool: per second"
        yield _ratio(results, what, case, Tarantool.name, _per_second, RAW, is_least=True)


def _tubes(results: Results) -> Iterator[Goal]:
    for shape, driver in product(tube_cycles.SHAPES, tube_cycles.DRIVERS):
        case = Case(tube_cycles.SECTION, str(shape), PAYLOAD, driver)
        what = f"put + take + ack in a {driver}, {shape}, against the queue module: cycles per second"
        yield _ratio(results, what, case, ModuleQueue.name, _per_second, TUBES, is_least=True)


def _lua(results: Results) -> Iterator[Goal]:
    for shape, least in LUA_CYCLES.items():
        what = f"put + take + ack in Lua, {shape}, against Tarantool: cycles per second"
        yield _ratio(
            results,
            what,
            _cycle(shape),
            Tarantool.name,
            _per_second,
            least,
            is_least=True,
            ours=OursWithLua.name,
        )
    for shape, driver in product(tube_cycles.SHAPES, tube_cycles.DRIVERS):
        case = Case(tube_cycles.SECTION, str(shape), PAYLOAD, driver)
        what = f"the queue module's {driver} on ours, {shape}, against Tarantool: cycles per second"
        yield _ratio(
            results,
            what,
            case,
            ModuleQueue.name,
            _per_second,
            LUA_TUBES,
            is_least=True,
            ours=OurModuleQueue.name,
        )


def _standing(results: Results) -> Iterator[Goal]:
    ours, theirs = results.footprint(Ours.name), results.footprint(Tarantool.name)
    memory = ours / theirs if ours is not None and theirs else None
    yield Goal("memory per task of the backlog, against Tarantool", memory, MEMORY, is_least=False)
    for kind in (recovery.SNAPSHOT, recovery.LOG):
        starts = [start for start in results.starts if start.kind == kind]
        both = {start.contender for start in starts} >= {Ours.name, Tarantool.name}
        ratio = recovery.worst_ratio(starts, [Ours.name, Tarantool.name]) if both else None
        what = f"start from a {kind} of {results.tasks:,} tasks, against Tarantool: time"
        yield Goal(what, ratio, START, is_least=False)
    costs = [cost for cost in results.costs if cost.contender == Ours.name and cost.is_loaded]
    left = median(cost.cycles / cost.cycles_before for cost in costs) if costs else None
    what = f"a snapshot of {results.tasks:,} tasks under load: cycles per second, against those before"
    yield Goal(what, left, SNAPSHOT_CYCLES, is_least=True)
    pause = results.longest_pause(Ours.name)
    before = max((cost.pause_before for cost in costs), default=0.0)
    yield Goal(
        f"a snapshot of {results.tasks:,} tasks under load: longest pause",
        None if pause is None else pause * 1000,
        max(PAUSE_MS, PAUSE_GROWTH * before * 1000),
        is_least=False,
        unit="ms",
    )
    full, empty = (
        results.medians(Case(section, str(_MANY), PAYLOAD, "cycle"), Ours.name)
        for section in (backlog.FULL, backlog.EMPTY)
    )
    slower, share = None, None
    if full is not None and empty is not None:
        slower, share = empty.per_second / full.per_second, max(empty.load_share, full.load_share)
    what = f"take + ack, a backlog of {results.tasks:,} tasks, against an empty queue: time"
    yield Goal(what, slower, STANDING, is_least=False, load_share=share)


def _cycle(shape: Shape) -> Case:
    return Case(throughput.SECTION, str(shape), PAYLOAD, "cycle")


def _per_second(medians: Medians) -> float:
    return medians.per_second


def _cpu(medians: Medians) -> float:
    return medians.server_us


def _p99(medians: Medians) -> float:
    assert medians.latencies_ms is not None, "cycles have no latencies"
    return medians.latencies_ms[1]


def _ratio(
    results: Results,
    what: str,
    case: Case,
    other: str,
    figure: Callable[[Medians], float],
    limit: float,
    *,
    is_least: bool,
    ours: str = Ours.name,
) -> Goal:
    """Compare a figure of one of our servers with that of another server in the same case."""
    measured, theirs = results.medians(case, ours), results.medians(case, other)
    if measured is None or theirs is None:
        return Goal(what, None, limit, is_least)
    share = max(measured.load_share, theirs.load_share)
    return Goal(what, figure(measured) / figure(theirs), limit, is_least, load_share=share)
