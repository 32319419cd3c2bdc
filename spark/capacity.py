"""The job `capacity`: arrival and service rates, utilisation of workers, and where backlogs are heading.

python -m pyspark_tarantool capacity ./data --queue tubes --report capacity.html
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import click
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyspark_tarantool.jobs.command_line import job_command
from pyspark_tarantool.jobs.job import Job
from pyspark_tarantool.jobs.load_forecast import Load, Minute, load_of
from pyspark_tarantool.jobs.pages.capacity_report import fill_report
from pyspark_tarantool.jobs.task_lifetimes import measured_of, per_minute_of
from pyspark_tarantool.report.quantities import number

_EVENTS: Final = (
    *("queue", "id", "life", "number", "at", "event", "status_before", "status_after", "since"),
    "due_before",
)

METRICS: Final = ("utilisation", "growth_per_hour", "backlog", "backlog_in_1h", "backlog_in_1h_high")

_COLUMNS: Final = (
    "queue string, puts_per_hour double, takes_per_hour double, service_mean_s double, busy_mean double, "
    "busy_peak double, utilisation double, capacity_per_hour double, backlog bigint, growth_per_hour double"
)
_FORECASTS: Final = "queue string, at timestamp, expected double, low double, high double"


def minutes_of(measured: DataFrame) -> DataFrame:
    """Count what happened in each minute.

    Parameters:
        measured: The result of `measured_of`.

    Returns:
        A row per queue and minute with events: `puts`, `takes`, `backlog`, and of the takes that ended in it
        their number, `ends`, and the duration of their work, `worked_s`.
    """
    work = (
        measured.where("service_s is not null")
        .groupBy("queue", sql.date_trunc("minute", "at").alias("minute"))
        .agg(sql.count("*").alias("ends"), sql.sum("service_s").alias("worked_s"))
    )
    counts = per_minute_of(measured).select("queue", "minute", "puts", "takes", "backlog")
    return counts.join(work, ["queue", "minute"], "left").orderBy("queue", "minute")


def whole_minutes(rows: Sequence[Row], begin: datetime, end: datetime) -> list[Minute]:
    """Fill in the minutes without events, and leave out those that the logs cover in part.

    Parameters:
        rows: Rows of `minutes_of` of one queue.
        begin, end: The times of the first and the last event of all queues.

    Returns:
        The minutes, oldest first; all with events if none is complete.
    """
    by_start = {int(row.minute.timestamp()) // 60: row for row in rows}
    first, last = _whole(begin, end)
    numbers: Iterable[int] = range(first, last) if last > first else sorted(by_start)
    before = [row.backlog for start, row in sorted(by_start.items()) if start < first]
    backlog = before[-1] if before else 0
    minutes = []
    for start in numbers:
        row = by_start.get(start)
        backlog = backlog if row is None else row.backlog
        at = datetime.fromtimestamp(start * 60, UTC)
        if row is None:
            minutes.append(Minute(at, 0, 0, 0, 0.0, backlog))
        else:
            minutes.append(Minute(at, row.puts, row.takes, row.ends or 0, row.worked_s or 0.0, backlog))
    return minutes


def short_seconds(begin: datetime, end: datetime) -> float | None:
    """The length of logs without a complete minute, in seconds, at least 1; None if there is one.

    Parameters:
        begin, end: The times of the first and the last event of all queues.
    """
    first, last = _whole(begin, end)
    return None if last > first else max(1.0, (end - begin).total_seconds())


def _whole(begin: datetime, end: datetime) -> tuple[int, int]:
    """The numbers of the first complete minute since 1970, and of the minute after the last one."""
    return -int(-begin.timestamp() // 60), int(end.timestamp()) // 60


@job_command(
    ["capacity", "forecasts"],
    """\
python -m pyspark_tarantool capacity ./data --queue tutorial
python -m pyspark_tarantool capacity ./data --queue tubes --hours 6 --report capacity.html
python -m pyspark_tarantool capacity ./data --queue legacy --fail-if "utilisation > 0.9\"""",
    metrics=METRICS,
)
@click.option(
    "--hours",
    metavar="N",
    type=click.FloatRange(0, min_open=True),
    help="Use the last N hours of the logs.  [default: all]",
)
def capacity(job: Job, hours: float | None) -> None:
    """Report how busy workers are, and where backlogs are heading.

    For each queue: arrival and service rates, the utilisation of the workers, what they could do, and the
    expected backlog in 1, 6 and 24 hours with its uncertainty, if the load stays as it is in these logs.

    Results: capacity, forecasts.
    """
    measured = job.keep(measured_of(job.events().select(*_EVENTS)))
    begin, end = measured.agg(sql.min("at"), sql.max("at")).collect()[0]
    rows = minutes_of(measured).collect()
    loads: dict[str, tuple[Load, list[Minute]]] = {}
    for queue in dict.fromkeys(row.queue for row in rows):
        minutes = whole_minutes([row for row in rows if row.queue == queue], begin, end)
        if hours is not None:
            minutes = minutes[-max(1, round(hours * 60)) :]
        loads[queue] = load_of(minutes, short_seconds(begin, end)), minutes
    job.say(f"{number(len(loads))} queue{'s' * (len(loads) != 1)}, as of {job.as_of()}")
    numbers = [(queue, *load[:-1]) for queue, (load, _) in loads.items()]
    result = job.session.createDataFrame(numbers, _COLUMNS)
    job.show(result, "Load of the workers")
    expected = [(queue, *each) for queue, (load, _) in loads.items() for each in load.forecasts]
    forecasts = job.session.createDataFrame(expected, _FORECASTS)
    job.show(forecasts, "Expected backlog, and the range of 95 % probability")
    job.write(result, "capacity")
    job.write(forecasts, "forecasts")
    if job.wants_report:
        report = job.report("Capacity", "Load of the workers, and where backlogs are heading")
        fill_report(report, loads)
        job.finish(report)
    job.check(metrics_of([load for load, _ in loads.values()]))


def metrics_of(loads: Sequence[Load]) -> dict[str, float | None]:
    """The metrics for `--fail-if`: each of the queue in which it is greatest.

    Parameters:
        loads: The loads of all queues.
    """

    def most(values: Iterable[float | None]) -> float | None:
        return max((value for value in values if value is not None), default=None)

    next_hour = [load.forecasts[0] for load in loads if load.forecasts]
    return {
        "utilisation": most(load.utilisation for load in loads),
        "growth_per_hour": most(load.growth_per_hour for load in loads),
        "backlog": most(load.backlog for load in loads),
        "backlog_in_1h": most(each.expected for each in next_hour),
        "backlog_in_1h_high": most(each.high for each in next_hour),
    }


if __name__ == "__main__":
    sys.exit(capacity.run())
