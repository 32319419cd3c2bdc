"""The page of the job `lifecycle`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyspark_tarantool.jobs.job import Job
from pyspark_tarantool.jobs.pages.findings import COLORS_OF_STATUSES, PERCENTILES, TIMES, opening_of_lifecycle
from pyspark_tarantool.jobs.task_lifetimes import MEASURES, SHARES
from pyspark_tarantool.report import Report, Series, bars, columns, lines
from pyspark_tarantool.report.quantities import duration, number

_SHOWN_QUEUES: Final = 20
"""The maximum number of queues in tables: those with the most attempts."""

_CHARTED_QUEUES: Final = 3
"""The number of queues with charts over time."""

_POINTS: Final = 240
"""The approximate maximum number of points in a chart over time."""

_SPANS: Final = (1, 5, 15, 60, 360, 1440, 7 * 1440, 30 * 1440)
"""The possible number of minutes per point of such a chart."""

_NAMES: Final = {
    "waiting": "waiting for a take",
    "first_waiting": "waiting for the first take",
    "service": "work on a take",
    "lateness": "lateness of delayed tasks",
    "in_system": "time from put to end",
}

_OUTCOMES: Final = {
    "acked": "#999999",
    "done": "#bbbbbb",
    "deleted": "#56B4E9",
    "expired": "#CC79A7",
    "removed": "#555555",
    "buried": "#D55E00",
    "open": "#0072B2",
}


_MINUTE, _HOUR, _DAY = 60, 3600, 86400

_BORDERS: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30),
    *(each * _MINUTE for each in (1, 2, 5, 10, 20, 30)),
    *(each * _HOUR for each in (1, 2, 5, 10)),
    *(each * _DAY for each in (1, 2, 5, 10, 30, 100)),
)
"""The upper limits of the intervals of waiting times, in seconds."""


class Histogram(NamedTuple):
    """The number of values in each interval.

    Attributes:
        labels: The intervals, as text.
        counts: The number of values in each.
    """

    labels: list[str]
    counts: list[int]


def lifecycle_report(job: Job, measured: DataFrame, queues: Sequence[Row], per_minute: DataFrame) -> Report:
    """Make the page.

    Parameters:
        job: The job.
        measured: The events with their durations; see `measured_of`.
        queues: The job's result `per_queue`.
        per_minute: The job's result.
    """
    report = job.report("Lifecycle", "Waiting times, service times and outcomes of tasks")
    busiest = sorted(queues, key=lambda row: (-row.attempts, -row.tasks))[:_SHOWN_QUEUES]
    charted = [row.queue for row in busiest[:_CHARTED_QUEUES]]
    minutes = per_minute.where(sql.col("queue").isin(charted)).collect() if charted else []
    histograms = dict(waiting_histograms(measured, charted)) if charted else {}
    begin, end = measured.agg(sql.min("at"), sql.max("at")).collect()[0]
    fill_report(report, queues, busiest, minutes, histograms, (begin, end) if begin else None)
    return report


def fill_report(
    report: Report,
    queues: Sequence[Row],
    busiest: Sequence[Row],
    minutes: Sequence[Row],
    histograms: dict[str, Histogram],
    logged: tuple[datetime, datetime] | None = None,
) -> None:
    """Fill the page.

    Parameters:
        report: The page.
        queues: Rows of `per_queue`.
        busiest: The queues to show, the busiest first.
        minutes: Rows of `per_minute`, of the queues that have charts.
        histograms: Those queues' waiting times.
        logged: The times of the first and the last event; None if minutes are known to be complete.
    """
    report.set_opening(*opening_of_lifecycle(queues, *(logged or (None, None))))
    report.add_explanations([PERCENTILES, TIMES, COLORS_OF_STATUSES])
    report.add_figures(_figures(queues))
    if not queues:
        report.add_note("The logs have no events of tasks.")
        return
    _add_outcomes(report, busiest, len(queues))
    _add_percentiles(report, busiest)
    for queue, histogram in histograms.items():
        _add_queue(report, queue, [row for row in minutes if row.queue == queue], histogram, logged)


def waiting_histograms(measured: DataFrame, queues: Sequence[str]) -> Iterator[tuple[str, Histogram]]:
    """Count waiting times.

    Parameters:
        measured: The events with their durations; see `measured_of`.
        queues: The queues to count.
    """
    waited = measured.where(sql.col("queue").isin(list(queues)) & sql.col("waiting_s").isNotNull())
    passed = sql.expr("+".join(f"int(waiting_s > {border})" for border in _BORDERS))
    counted = waited.groupBy("queue", passed.alias("passed")).agg(sql.count("*").alias("takes")).collect()
    for queue in queues:
        takes = {row.passed: row.takes for row in counted if row.queue == queue}
        shown = range(min(takes, default=0), max(takes, default=-1) + 1)
        yield queue, Histogram([_interval(each) for each in shown], [takes.get(each, 0) for each in shown])


def _interval(passed: int) -> str:
    """The label of an interval, by the number of limits below it."""
    if passed == len(_BORDERS):
        return f"more than {duration(_BORDERS[-1])}"
    upper = duration(_BORDERS[passed])
    return f"{duration(_BORDERS[passed - 1])} to {upper}" if passed else f"up to {upper}"


def _figures(queues: Sequence[Row]) -> Iterable[tuple[str, object, str]]:
    yield "tasks in the logs", sum(row.tasks for row in queues), ""
    yield "finished", sum(row.acked + row.done for row in queues), ""
    yield "not finished yet", sum(row.open + row.buried for row in queues), ""
    attempts = sum(row.attempts for row in queues)
    yield "takes", attempts, ""
    yield "takes that exceeded the time to run", sum(row.timed_out for row in queues), ""
    for measure in ("waiting", "service"):
        known = [row for row in queues if row[f"{measure}_count"]]
        if known:
            worst = max(row[f"{measure}_p99_s"] for row in known)
            whose = "" if len(known) == 1 else ", of the slowest queue"
            yield f"p99 of {_NAMES[measure]}{whose}", worst, "s"


def _add_outcomes(report: Report, queues: Sequence[Row], count: int) -> None:
    report.add_section("Outcomes of tasks")
    if count > len(queues):
        report.add_note(f"The {len(queues)} busiest queues, of {number(count)}.")
    series = [
        Series(name, [row[name] for row in queues], color)
        for name, color in _OUTCOMES.items()
        if any(row[name] for row in queues)
    ]
    report.add_chart(
        bars([row.queue for row in queues], series, "Number of tasks", "Queue"),
        "The number of tasks of each queue by outcome; open ones are still in the queue.",
    )
    fields = ["queue", "tasks", "tasks_before_logs", *_OUTCOMES, "attempts", "released", "timed_out"]
    report.add_table(
        "Tasks and attempts",
        fields,
        [[row[field] for field in fields] for row in queues],
        "Tasks before logs were put before the logs begin, so some of their times are unknown. An attempt "
        "is a take; it ends when the task is acknowledged or released, or when its time to run is over.",
    )


def _add_percentiles(report: Report, queues: Sequence[Row]) -> None:
    report.add_section("Durations")
    known = [row for row in queues if row.waiting_count]
    if known:
        names = {"half (p50)": "waiting_p50_s", "95 % (p95)": "waiting_p95_s", "99 % (p99)": "waiting_p99_s"}
        series = [Series(name, [row[column] for row in known]) for name, column in names.items()]
        report.add_chart(
            bars([row.queue for row in known], series, "Waiting time (s)", "Queue", stacked=False),
            "The maximum time that the tasks of 50, 95 and 99 of 100 takes had been ready before the take.",
        )
    columns_of = [*(f"{name}_s" for name in SHARES), "max_s"]
    report.add_table(
        "Percentiles",
        ["queue", "time", "values", *columns_of],
        [
            [
                row.queue,
                _NAMES[measure],
                row[f"{measure}_count"],
                *(row[f"{measure}_{each}"] for each in columns_of),
            ]
            for row in queues
            for measure in MEASURES
            if row[f"{measure}_count"]
        ],
        "Half of the values are not greater than p50, and one in a hundred is greater than p99. Waiting is "
        "the time from ready to taken; work from taken to acknowledged, released or returned; lateness is "
        "the time from the end of a task's delay until it became ready.",
    )


def _add_queue(
    report: Report,
    queue: str,
    rows: Sequence[Row],
    histogram: Histogram,
    logged: tuple[datetime, datetime] | None,
) -> None:
    report.add_section(f"Queue {queue}")
    span, points = points_of(rows)
    starts = [point.start for point in points]
    each = "minute" if span == 1 else duration(span * 60)
    whole = whole_points(points, span, logged)
    done = [
        Series(
            name,
            [point.counts[name] if is_whole else None for point, is_whole in zip(points, whole, strict=True)],
        )
        for name in ("puts", "takes", "acks")
    ]
    left_out = "" if all(whole) else f" A first or last {each} that the logs cover in part only is left out."
    report.add_chart(
        lines(starts, done, "Time (UTC)", f"Number in each {each}"),
        f"Throughput: the number of tasks put, taken and acknowledged in each {each}.{left_out}",
    )
    returned = [Series(name, [point.counts[name] for point in points]) for name in ("releases", "timeouts")]
    if any(value for series in returned for value in series.values):
        report.add_chart(
            columns(starts, span * 60, returned, "Time (UTC)", f"Number in each {each}"),
            f"The number of tasks returned to the queue in each {each}: released, or past their time to run.",
        )
    report.add_chart(
        lines(
            starts, [Series("backlog", [point.backlog for point in points])], "Time (UTC)", "Number of tasks"
        ),
        f"Backlog: the number of tasks in the queue at the end of each {each}.",
    )
    for measure, axis in (("waiting", "Waiting time (s)"), ("service", "Time of the work (s)")):
        series = [
            Series(f"{name} ({share})", [point.times.get(f"{measure}_{share}_s") for point in points])
            for share, name in {"p99": "99 %", "p95": "95 %", "p50": "half"}.items()
        ]
        caption = f"{_NAMES[measure].capitalize()}: the maximum of 50, 95 and 99 of 100 values in a minute."
        if span > 1:
            caption += f" The chart shows the greatest value in each {each}."
        report.add_chart(lines(starts, series, "Time (UTC)", axis, logarithmic=True), caption)
    report.add_chart(
        bars(histogram.labels, [Series("takes", histogram.counts)], "Number of takes", "Waiting time"),
        "The number of takes by the waiting time of the task; the intervals grow.",
    )


class Point(NamedTuple):
    """Some minutes of a queue: counts of events, the backlog at the end, the greatest percentiles."""

    start: datetime
    counts: dict[str, int]
    backlog: int | None
    times: dict[str, float]


_COUNTED: Final = ("puts", "takes", "acks", "releases", "timeouts")


def points_of(rows: Sequence[Row]) -> tuple[int, list[Point]]:
    """Aggregate minutes to a limited number of points; minutes without events count as zero.

    Returns:
        The number of minutes per point, and the points.
    """
    if not rows:
        return 1, []
    by_minute = sorted(rows, key=lambda row: row.minute)
    first, last = (_minute_of(row.minute) for row in (by_minute[0], by_minute[-1]))
    span = next(
        (each for each in _SPANS if (last - first) / each < _POINTS), math.ceil((last - first) / _POINTS)
    )
    starts = range(first - first % span, last + 1, span)
    points = {
        start: Point(datetime.fromtimestamp(start * 60, UTC), dict.fromkeys(_COUNTED, 0), None, {})
        for start in starts
    }
    for row in by_minute:
        minute = _minute_of(row.minute)
        start = minute - minute % span
        point = points[start]
        for name in _COUNTED:
            point.counts[name] += row[name]
        for name in (f"{measure}_{share}_s" for measure in ("waiting", "service") for share in SHARES):
            if row[name] is not None:
                point.times[name] = max(row[name], point.times.get(name, -math.inf))
        points[start] = point._replace(backlog=row.backlog)
    return span, _with_backlog(points.values())


def whole_points(points: Sequence[Point], span: int, logged: tuple[datetime, datetime] | None) -> list[bool]:
    """Tell which points the logs cover as a whole: counts of the others look like a collapse.

    Parameters:
        points: The points, oldest first.
        span: The number of minutes per point.
        logged: The times of the first and the last event; None if all are covered.

    Returns:
        A value for each point; all are true if none is covered.
    """
    if logged is None:
        return [True] * len(points)
    begin, end = (each.timestamp() for each in logged)
    whole = [
        begin <= point.start.timestamp() and point.start.timestamp() + span * _MINUTE <= end
        for point in points
    ]
    return whole if any(whole) else [True] * len(points)


def _with_backlog(points: Iterable[Point]) -> list[Point]:
    """Fill in the backlog of minutes without events: it is unchanged."""
    found: list[Point] = []
    for point in points:
        backlog = found[-1].backlog if point.backlog is None and found else point.backlog
        found.append(point._replace(backlog=backlog))
    return found


def _minute_of(moment: datetime) -> int:
    return int(moment.timestamp() // 60)
