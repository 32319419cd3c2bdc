"""Compares the measures of queues on two days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyspark_tarantool.jobs.pages.findings import SHOWN, TIMES, Opening
from pyspark_tarantool.jobs.task_lifetimes import percentiles_of
from pyspark_tarantool.report import Finding, Level, Report, Series, bars
from pyspark_tarantool.report.quantities import duration, number

_EVENTS: Final[Mapping[str, Sequence[str]]] = {
    "puts": ("put",),
    "takes": ("taken",),
    "acks": ("acked", "done"),
    "returns": ("released", "returned"),
    "timeouts": ("timed_out",),
    "buries": ("buried",),
}
"""The counted events, by measure; they are compared by their number in an hour."""

_TIMES: Final = ("waiting_p50_s", "waiting_p99_s", "service_p50_s", "service_p99_s")

WORSE: Final = frozenset({"returns", "timeouts", "buries", *_TIMES})
"""The measures of which more is worse."""

_NOTABLE: Final = 0.2
"""The relative change from which on a measure is a finding."""

_ALARMING: Final = 1.0
_LEAST: Final[Mapping[str, float]] = {"returns": 1, "timeouts": 1, "buries": 1, **dict.fromkeys(_TIMES, 0.1)}
"""Smaller differences, in an hour or in seconds, are not findings."""

_WORDS: Final = {
    "returns": "returns to the queue in an hour",
    "timeouts": "takes an hour that exceeded the time to run",
    "buries": "tasks buried in an hour",
    "waiting_p50_s": "median waiting time",
    "waiting_p99_s": "p99 of the waiting time",
    "service_p50_s": "median duration of the work",
    "service_p99_s": "p99 of the duration of the work",
}


class Change(NamedTuple):
    """A measure of a queue on two days.

    Attributes:
        queue: The queue.
        measure: Its name; durations end in `_s`, others are numbers in an hour.
        before: Its value on the day to compare with; None if it is unknown.
        after: Its value on the other day.
    """

    queue: str
    measure: str
    before: float | None
    after: float | None

    @property
    def ratio(self) -> float | None:
        """The relative change: 0.5 for half as much more; None if a value is unknown or was zero."""
        if self.before is None or self.after is None or not self.before:
            return None
        return self.after / self.before - 1


class Day(NamedTuple):
    """A day in the logs.

    Attributes:
        day: The day, in UTC.
        hours: The part of it that the logs cover, from 0 to 24.
    """

    day: date
    hours: float


def covered(day: date, begin: datetime, end: datetime) -> Day:
    """Compute the part of a day that logs cover.

    Parameters:
        day: The day, in UTC.
        begin, end: The times of the first and the last event in the logs.
    """
    start = datetime(day.year, day.month, day.day, tzinfo=begin.tzinfo)
    covers = min(end, start + timedelta(days=1)) - max(begin, start)
    return Day(day, max(0.0, covers.total_seconds() / 3600))


def per_day_of(measured: DataFrame, days: Sequence[date]) -> DataFrame:
    """Summarize days.

    Parameters:
        measured: The result of `measured_of`; the session's time zone is UTC.
        days: The days.

    Returns:
        A row per queue and day with events: the number of events for each measure, and percentiles of waiting
        and service times.
    """
    by_day = measured.withColumn("day", sql.to_date("at")).where(sql.col("day").isin(list(days)))
    counts = by_day.groupBy("queue", "day").agg(
        *(sql.count_if(sql.col("event").isin(list(events))).alias(name) for name, events in _EVENTS.items())
    )
    times = [
        sql.struct(sql.lit(name).alias("measure"), sql.col(f"{name}_s").alias("value"))
        for name in ("waiting", "service")
    ]
    values = by_day.select("queue", "day", sql.inline(sql.array(*times))).where("value is not null")
    percentiles = percentiles_of(values, ["queue", "day"], ("waiting", "service"))
    return counts.join(percentiles.select("queue", "day", *_TIMES), ["queue", "day"], "left")


def changes_of(rows: Sequence[Row], before: Day, after: Day) -> list[Change]:
    """Compare two days.

    Parameters:
        rows: Rows of `per_day_of`.
        before, after: The days.

    Returns:
        A change for each queue and measure, by queue.
    """
    values = {(row.queue, row.day): row for row in rows}
    changes = []
    for queue in sorted({row.queue for row in rows}):
        for name in (*_EVENTS, *_TIMES):
            pair = [_value(values.get((queue, each.day)), name, each.hours) for each in (before, after)]
            changes.append(Change(queue, name, *pair))
    return changes


def _value(row: Row | None, name: str, hours: float) -> float | None:
    if name in _TIMES:
        return None if row is None else row[name]
    return (row[name] if row is not None else 0) / hours if hours else None


def opening_of(changes: Sequence[Change], before: Day, after: Day) -> Opening:
    """Summarize a comparison.

    Parameters:
        changes: The changes.
        before, after: The days.
    """
    sums: dict[str, list[float]] = {"puts": [0.0, 0.0], "acks": [0.0, 0.0]}
    for change in changes:
        if change.measure in sums:
            sums[change.measure][0] += change.before or 0
            sums[change.measure][1] += change.after or 0
    (puts, now_put), (acks, now_acked) = sums["puts"], sums["acks"]
    summary = (
        f"On {after.day}, {number(round(now_put))} tasks were put and {number(round(now_acked))} finished in "
        f"an hour; on {before.day}, {number(round(puts))} and {number(round(acks))}."
    )
    return Opening(summary, _findings(changes))


def _findings(changes: Sequence[Change]) -> list[Finding]:
    worse = [
        change
        for change in changes
        if change.measure in WORSE
        and _difference(change) >= _LEAST[change.measure]
        and _growth(change) >= _NOTABLE
    ]
    worse.sort(key=_growth, reverse=True)
    findings = []
    for change in worse[:SHOWN]:
        level = Level.BAD if _growth(change) >= _ALARMING else Level.WARNING
        values = f"{_text(change.after, change.measure)} instead of {_text(change.before, change.measure)}"
        findings.append(Finding(level, f"{change.queue}: {_WORDS[change.measure]} {values}."))
    return findings or [Finding(Level.GOOD, "Nothing has become notably worse.")]


def _difference(change: Change) -> float:
    return (change.after or 0) - (change.before or 0)


def _growth(change: Change) -> float:
    """The relative change; from zero, infinity."""
    return float("inf") if not change.before else _difference(change) / change.before


def _text(value: float | None, measure: str) -> str:
    return duration(value or 0) if measure in _TIMES else number(round(value or 0, 1))


def fill_report(report: Report, changes: Sequence[Change], before: Day, after: Day, shown: int = 20) -> None:
    """Fill the page.

    Parameters:
        report: The page.
        changes: The changes.
        before, after: The days.
        shown: The maximum number of queues in charts.
    """
    report.set_opening(*opening_of(changes, before, after))
    parts = [f"{each.day}: {number(round(each.hours, 1))} h in the logs" for each in (before, after)]
    report.add_facts([("Days (UTC)", "; ".join(parts))])
    report.add_explanations(
        [
            (
                "Numbers",
                "Events are counted in an hour, so that a day that the logs cover in part can be compared.",
            ),
            ("Change", "The change of a measure in percent of its value on the earlier day."),
            TIMES,
        ]
    )
    queues = list(dict.fromkeys(change.queue for change in changes))[:shown]
    for measure, title, axis in (
        ("puts", "Tasks put", "Number in an hour"),
        ("waiting_p99_s", "Waiting time, p99", "Waiting time (s)"),
        ("service_p99_s", "Duration of the work, p99", "Time of the work (s)"),
    ):
        chosen = {change.queue: change for change in changes if change.measure == measure}
        report.add_section(title)
        series = [
            Series(str(before.day), [chosen[queue].before for queue in queues], "#999999"),
            Series(str(after.day), [chosen[queue].after for queue in queues], "#0072B2"),
        ]
        report.add_chart(
            bars(queues, series, axis, "Queue", stacked=False),
            f"{title}, on {before.day} and on {after.day}.",
        )
    report.add_section("All measures")
    for queue in queues:
        report.add_table(
            queue,
            ["measure", str(before.day), str(after.day), "change"],
            [
                [
                    change.measure.removesuffix("_s").replace("_", " "),
                    _text(change.before, change.measure),
                    _text(change.after, change.measure),
                    "" if change.ratio is None else f"{100 * change.ratio:+.0f} %",
                ]
                for change in changes
                if change.queue == queue
            ],
        )
