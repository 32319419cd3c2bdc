"""A comparison as a chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.client.load import PAYLOAD
from bench.report.results import Case, Medians, Results
from bench.scenarios import raw_rows
from bench.scenarios.queues import throughput
from bench.workloads.rate import Shape

_SIZE: Final = (13, 9)
_DOTS_PER_INCH: Final = 110
_BARS: Final = 0.8
"""The share of a group's width that its bars take."""


def draw(results: Results, file: Path) -> None:
    """Draw cycles per second, CPU time, latencies and requests for single rows.

    Parameters:
        results: the results.
        file: the PNG file to write.
    """
    figure = Figure(figsize=_SIZE, layout="constrained")
    [[speed, cost], [latency, rows]] = figure.subplots(2, 2)
    cycles = [case for case in _usual(results, throughput.SECTION) if case.operation == "cycle"]
    takes = [case for case in _usual(results, throughput.SECTION) if case.operation == "take"]
    single = [
        Case(raw_rows.SECTION, str(Shape(10, 100)), PAYLOAD, operation) for operation in raw_rows.OPERATIONS
    ]
    shapes = [case.shape for case in cycles]
    _bars(speed, results, cycles, shapes, lambda medians: medians.per_second)
    _label(speed, "put + take + ack", "connections × in flight", "cycles / s")
    _bars(cost, results, cycles, shapes, lambda medians: medians.server_us)
    _label(cost, "CPU time of a cycle in the server", "connections × in flight", "µs")
    _bars(latency, results, takes, shapes, _p99)
    _label(latency, "take: 99 of 100 answers came within", "connections × in flight", "ms")
    _bars(rows, results, single, raw_rows.OPERATIONS, lambda medians: medians.per_second)
    _label(rows, "Single rows, 10 × 100", "", "requests / s")
    figure.suptitle(f"{PAYLOAD}-byte tasks, wal_mode = write or its like, medians")
    figure.savefig(file, dpi=_DOTS_PER_INCH)


def _usual(results: Results, section: str) -> list[Case]:
    return [case for case in results.cases() if case.section == section and case.payload == PAYLOAD]


def _p99(medians: Medians) -> float:
    assert medians.latencies_ms is not None, "takes have latencies"
    return medians.latencies_ms[1]


def _bars(
    axes: Axes,
    results: Results,
    cases: Sequence[Case],
    labels: Sequence[str],
    figure: Callable[[Medians], float],
) -> None:
    names = [name for name in results.names if any(results.medians(case, name) for case in cases)]
    width = _BARS / max(len(names), 1)
    for place, name in enumerate(names):
        by_case = [results.medians(case, name) for case in cases]
        found = [(x, figure(medians)) for x, medians in enumerate(by_case) if medians is not None]
        shift = (place - (len(names) - 1) / 2) * width
        drawn = axes.bar([x + shift for x, _ in found], [y for _, y in found], width, label=name)
        axes.bar_label(drawn, labels=[_short(y) for _, y in found], fontsize=6, rotation=90, padding=2)
    axes.set_xticks(range(len(cases)), labels)
    if names:
        # The figures span orders of magnitude, from one request in flight to thousands.
        axes.set_yscale("log")
        axes.margins(y=0.2)
        axes.legend(fontsize=8)


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def _short(number: float) -> str:
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        # 999.6 is 1k with three digits.
        if number >= unit * 0.9995:
            return f"{number / unit:.3g}{letter}"
    return f"{number:.3g}"
