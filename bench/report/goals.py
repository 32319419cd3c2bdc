"""Performance goals relative to other servers, and a check of a comparison against them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from bench.client.load import PAYLOAD
from bench.lib.table import table
from bench.peers.beanstalkd import Beanstalkd
from bench.peers.database import Ours, Tarantool
from bench.report.results import Case, Medians, Results
from bench.scenarios import backlog, raw_rows, throughput
from bench.workloads.rate import Shape

CYCLES: Final = {Shape(10, 100): (2.0, 0.5), Shape(100, 1): (1.3, 0.7)}
"""The minimum of cycles per second and the maximum of CPU time per cycle, as multiples of Tarantool's."""

BEANSTALKD_CYCLES: Final = 1.0
MEDIAN_LATENCY: Final = 1.0
HIGH_LATENCY: Final = 1.0
RAW: Final = 1.2
MEMORY: Final = 2.0
PAUSE_MS: Final = 20.0
STANDING: Final = 1.3
_OPERATIONS: Final = ("put", "take", "ack")
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
    """

    what: str
    measured: float | None
    limit: float
    is_least: bool
    unit: str = "×"

    @property
    def is_met(self) -> bool | None:
        """True if the figure is within the limit; None if it was not measured."""
        if self.measured is None:
            return None
        return self.measured >= self.limit if self.is_least else self.measured <= self.limit


def goals(results: Results) -> list[Goal]:
    """Evaluate all goals with the figures of a comparison."""
    return [
        *_cycles(results),
        *_latencies(results),
        *_beanstalkd(results),
        *_raw(results),
        *_standing(results),
    ]


def goals_table(results: Results) -> str:
    """Format the goals as a table."""
    answers = {True: "yes", False: "no", None: "not measured"}
    rows = [
        [
            goal.what,
            "" if goal.measured is None else f"{goal.measured:.2f} {goal.unit}",
            f"{'≥' if goal.is_least else '≤'} {goal.limit:g} {goal.unit}",
            answers[goal.is_met],
        ]
        for goal in goals(results)
    ]
    return table("Goals", ["goal", "measured", "required", "met?"], rows)


def _cycles(results: Results) -> Iterator[Goal]:
    for shape, (per_second, cpu) in CYCLES.items():
        case = _queue(shape, "cycle")
        what = f"put + take + ack, {shape}, against Tarantool"
        speed = _ratio(results, case, Tarantool.name, lambda medians: medians.per_second)
        yield Goal(f"{what}: cycles per second", speed, per_second, is_least=True)
        cost = _ratio(results, case, Tarantool.name, lambda medians: medians.server_us)
        yield Goal(f"{what}: CPU per cycle", cost, cpu, is_least=False)


def _latencies(results: Results) -> Iterator[Goal]:
    for operation in _OPERATIONS:
        case = _queue(Shape(1, 1), operation)
        ratio = _ratio(results, case, Tarantool.name, lambda medians: _latency(medians, 0))
        what = f"{operation}, 1 × 1, against Tarantool: median latency"
        yield Goal(what, ratio, MEDIAN_LATENCY, is_least=False)
    ratio = _ratio(
        results, _queue(Shape(1000, 1), "put"), Tarantool.name, lambda medians: _latency(medians, 1)
    )
    yield Goal("put, 1000 × 1, against Tarantool: p99", ratio, HIGH_LATENCY, is_least=False)


def _beanstalkd(results: Results) -> Iterator[Goal]:
    for case in results.cases():
        if (case.section, case.payload, case.operation) == (throughput.SECTION, PAYLOAD, "cycle"):
            ratio = _ratio(results, case, Beanstalkd.name, lambda medians: medians.per_second)
            what = f"put + take + ack, {case.shape}, against beanstalkd: cycles per second"
            yield Goal(what, ratio, BEANSTALKD_CYCLES, is_least=True)


def _raw(results: Results) -> Iterator[Goal]:
    for shape, operation in product(raw_rows.SHAPES, raw_rows.OPERATIONS):
        case = Case(raw_rows.SECTION, str(shape), PAYLOAD, operation)
        ratio = _ratio(results, case, Tarantool.name, lambda medians: medians.per_second)
        what = f"{operation} without a queue, {shape}, against Tarantool: per second"
        yield Goal(what, ratio, RAW, is_least=True)


def _standing(results: Results) -> Iterator[Goal]:
    ours, theirs = results.footprint(Ours.name), results.footprint(Tarantool.name)
    memory = ours / theirs if ours is not None and theirs else None
    yield Goal("memory per task of the backlog, against Tarantool", memory, MEMORY, is_least=False)
    pause = results.longest_pause(Ours.name)
    what = f"longest pause, a backlog of {results.tasks:,} tasks, load, a snapshot"
    yield Goal(what, None if pause is None else pause * 1000, PAUSE_MS, is_least=False, unit="ms")
    full = results.medians(Case(backlog.FULL, str(_MANY), PAYLOAD, "cycle"), Ours.name)
    empty = results.medians(Case(backlog.EMPTY, str(_MANY), PAYLOAD, "cycle"), Ours.name)
    slower = empty.per_second / full.per_second if full is not None and empty is not None else None
    what = f"take + ack, a backlog of {results.tasks:,} tasks, against an empty queue: time"
    yield Goal(what, slower, STANDING, is_least=False)


def _queue(shape: Shape, operation: str) -> Case:
    return Case(throughput.SECTION, str(shape), PAYLOAD, operation)


def _latency(medians: Medians, place: int) -> float:
    assert medians.latencies_ms is not None, "cycles have no latencies"
    return medians.latencies_ms[place]


def _ratio(results: Results, case: Case, other: str, figure: Callable[[Medians], float]) -> float | None:
    ours, theirs = results.medians(case, Ours.name), results.medians(case, other)
    return None if ours is None or theirs is None else figure(ours) / figure(theirs)
