"""A comparison as tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from statistics import median
from typing import Final

from bench.lib.table import Table
from bench.report.goals import goals_table
from bench.report.results import BUSY, Case, Medians, Results
from bench.scenarios.storage import recovery

_MEBIBYTE: Final = 2**20


def tables(results: Results) -> Iterator[Table]:
    """Return a table for each kind of measurement that was made, and one of the goals."""
    if results.rates:
        yield _requests(results)
    if results.deliveries:
        yield _deliveries(results)
    if results.footprints:
        yield _footprints(results)
    if results.costs:
        yield _pauses(results)
    if results.starts:
        yield from _starts(results)
    yield goals_table(results)


def _requests(results: Results) -> Table:
    rows: list[list[str]] = []
    for case in results.cases():
        by_name = {name: results.medians(case, name) for name in results.names}
        ours = by_name[results.names[0]]
        rows += [
            _request_row(case, name, medians, None if medians is ours else ours)
            for name, medians in by_name.items()
            if medians is not None
        ]
    header = [
        "section",
        "connections\n× in flight",
        "bytes",
        "operation",
        "",
        "req/s",
        "ratio",
        "CPU µs",
        "ratio",
    ]
    header += ["p50 ms", "p99 ms", "ratio", "p99.9 ms", "peak\nMiB", "load\nCPU µs", "load\nbusy"]
    title = "Requests: medians of all rounds; ratios are ours / theirs"
    return Table(title, header, rows, 5)


def _request_row(case: Case, name: str, medians: Medians, ours: Medians | None) -> list[str]:
    p50, p99, p999 = medians.latencies_ms or (None, None, None)
    ours_p99 = ours.latencies_ms[1] if ours is not None and ours.latencies_ms is not None else None
    return [
        case.section,
        case.shape,
        f"{case.payload}",
        case.operation,
        name,
        f"{medians.per_second:,.0f}",
        _ratio(None if ours is None else ours.per_second, medians.per_second),
        f"{medians.server_us:.2f}",
        _ratio(None if ours is None else ours.server_us, medians.server_us),
        _milliseconds(p50),
        _milliseconds(p99),
        _ratio(ours_p99, p99),
        _milliseconds(p999),
        f"{medians.peak / _MEBIBYTE:,.0f}",
        f"{medians.load_us:.2f}",
        f"{medians.load_share:.0%}" + (" !" if medians.load_share >= BUSY else ""),
    ]


def _deliveries(results: Results) -> Table:
    rows: list[list[str]] = []
    kinds = dict.fromkeys((each.per_second, each.consumers, each.delay) for each in results.deliveries)
    for kind, name in product(kinds, results.names):
        found = [
            each
            for each in results.deliveries
            if (each.per_second, each.consumers, each.delay, each.contender) == (*kind, name)
        ]
        if not found:
            continue
        latencies = [median(times) for times in zip(*(each.latencies_ms for each in found), strict=True)]
        rows.append(
            [
                *(f"{figure:,}" for figure in kind),
                name,
                *map(_milliseconds, latencies),
                f"{median(each.server_us for each in found):.1f}",
                f"{median(each.load_us for each in found):.1f}",
            ]
        )
    header = ["tasks\nper second", "waiting\nconsumers", "delay s", "", "p50 ms", "p99 ms", "p99.9 ms"]
    header += ["CPU µs\nper task", "load\nCPU µs"]
    return Table("Delivery latency, from due to received by a waiting consumer: medians", header, rows, 4)


def _footprints(results: Results) -> Table:
    ours = results.footprint(results.names[0])
    rows = [
        [name, f"{size:.0f}", "" if name == results.names[0] else _ratio(ours, size)]
        for name in results.names
        if (size := results.footprint(name)) is not None
    ]
    return Table(f"Memory of a backlog of {results.tasks:,} tasks", ["", "bytes\nper task", "ratio"], rows)


def _pauses(results: Results) -> Table:
    rows: list[list[str]] = []
    for name in results.names:
        found = [cost for cost in results.costs if cost.contender == name]
        if found:
            rows.append(
                [
                    name,
                    f"{median(cost.seconds for cost in found):.2f}",
                    _milliseconds(max(cost.pause_before for cost in found) * 1000),
                    _milliseconds(max(cost.pause for cost in found) * 1000),
                    f"{max(cost.memory for cost in found):.2f}",
                    f"{median(cost.cycles_before for cost in found):,.0f}",
                    f"{median(cost.cycles for cost in found):,.0f}",
                ]
            )
    header = ["", "seconds", "pause ms\nbefore", "pause ms\nduring", "memory\npeak ×"]
    header += ["cycles/s\nbefore", "cycles/s\nduring"]
    title = f"A snapshot of {results.tasks:,} tasks under load; pauses: the longest wait of a ping"
    return Table(title, header, rows)


def _starts(results: Results) -> Iterator[Table]:
    names = list(dict.fromkeys(start.contender for start in results.starts))
    yield from recovery.tables(results.starts, sorted(names, key=results.names.index))


def _ratio(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}" if ours is not None and theirs else ""


def _milliseconds(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.2f}"
