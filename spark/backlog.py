"""The job `backlog`: number, age and size of the tasks in each queue, and when delayed ones will be ready.

python -m pyspark_tarantool backlog ./data --queue tubes --report backlog.html
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sql

from pyspark_tarantool.jobs.command_line import NOW, job_command
from pyspark_tarantool.jobs.job import Job
from pyspark_tarantool.jobs.latest_change import literal, seconds_until
from pyspark_tarantool.jobs.pages.backlog_report import fill_report
from pyspark_tarantool.queues import STATUSES
from pyspark_tarantool.report.quantities import moment, number

_ACCURACY: Final = 10_000
"""The inverse of the rank error of percentiles."""

_WIDTHS: Final = (1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400)
"""The possible widths of a histogram's intervals, in seconds."""

_SHOWN: Final = (
    "queue",
    "status",
    "tasks",
    "overdue",
    "age_p50_s",
    "age_p99_s",
    "oldest_age_s",
    "payload_sum_bytes",
    "payload_p50_bytes",
    "payload_max_bytes",
)
"""The columns printed on the terminal."""

METRICS: Final = ("tasks", "ready", "delayed", "taken", "buried", "overdue", "oldest_ready_s")

_INTERVALS: Final = 60
"""The approximate maximum number of intervals in a histogram."""


def backlog_of(tasks: DataFrame, now: datetime) -> DataFrame:
    """Count tasks by queue and status.

    Parameters:
        tasks: With the columns of `QueueKind.tasks`.
        now: The reference time of ages.

    Returns:
        A row per queue and status: `tasks`; `overdue`, the tasks whose delay or time to run is over; the age
        since the put, as percentiles and of the oldest task, `oldest_id`; the size of payloads. Percentiles
        are values of tasks.
    """
    ages = _percentiles(seconds_until(now, "created"), 0.5, 0.9, 0.99)
    sizes = _percentiles(sql.col("payload_bytes"), 0.5, 0.99)
    counted = tasks.groupBy("queue", "status").agg(
        sql.count("*").alias("tasks"),
        sql.count_if(sql.col("due") <= literal(now)).alias("overdue"),
        ages.alias("ages"),
        sql.min("created").alias("oldest"),
        sql.min_by("id", "created").alias("oldest_id"),
        sql.sum("payload_bytes").alias("payload_sum_bytes"),
        sizes.alias("sizes"),
        sql.max("payload_bytes").alias("payload_max_bytes"),
    )
    return counted.select(
        "queue",
        "status",
        "tasks",
        "overdue",
        sql.col("ages")[0].alias("age_p50_s"),
        sql.col("ages")[1].alias("age_p90_s"),
        sql.col("ages")[2].alias("age_p99_s"),
        seconds_until(now, "oldest").alias("oldest_age_s"),
        "oldest",
        "oldest_id",
        "payload_sum_bytes",
        sql.col("sizes")[0].alias("payload_p50_bytes"),
        sql.col("sizes")[1].alias("payload_p99_bytes"),
        "payload_max_bytes",
    ).orderBy("queue", _place_of("status"))


def delayed_of(tasks: DataFrame, now: datetime) -> DataFrame:
    """Compute when delayed tasks will be ready, by queue.

    Parameters:
        tasks: With the columns of `QueueKind.tasks`.
        now: The reference time.

    Returns:
        A row per queue with delayed tasks: `tasks`; `overdue`, those that should be ready already; when the
        next one (`next_ready`), half of them (`half_ready`) and the last one (`last_ready`) will be ready.
    """
    due = tasks.where((sql.col("status") == "delayed") & sql.col("due").isNotNull())
    return (
        due.groupBy("queue")
        .agg(
            sql.count("*").alias("tasks"),
            sql.count_if(sql.col("due") <= literal(now)).alias("overdue"),
            sql.min("due").alias("next_ready"),
            sql.percentile_approx("due", sql.lit(0.5), sql.lit(_ACCURACY)).alias("half_ready"),
            sql.max("due").alias("last_ready"),
        )
        .orderBy("queue")
    )


def delayed_by_time_of(tasks: DataFrame, interval: int) -> DataFrame:
    """Count delayed tasks by the time at which they will be ready.

    Parameters:
        tasks: With the columns of `QueueKind.tasks`.
        interval: The length of the intervals in seconds; they begin at multiples of it since 1970.

    Returns:
        A row per queue and interval with tasks: `ready_from`, `interval_s` and `tasks`.
    """
    start = sql.floor(sql.unix_seconds("due") / interval) * interval
    return (
        tasks.where((sql.col("status") == "delayed") & sql.col("due").isNotNull())
        .groupBy(
            "queue",
            sql.timestamp_seconds(start).alias("ready_from"),
            sql.lit(interval).alias("interval_s"),
        )
        .agg(sql.count("*").alias("tasks"))
        .orderBy("queue", "ready_from")
    )


def metrics_of(counted: Sequence[Row]) -> dict[str, float | None]:
    """The metrics for `--fail-if`: sums over all queues, and the greatest age.

    Parameters:
        counted: Rows of `backlog_of`.
    """
    numbers: Counter[str] = Counter()
    for row in counted:
        numbers[row.status] += row.tasks
        numbers["overdue"] += row.overdue
        numbers["tasks"] += row.tasks
    ages = [row.oldest_age_s for row in counted if row.status == "ready" and row.oldest_age_s is not None]
    return {name: numbers[name] for name in METRICS if not name.endswith("_s")} | {
        "oldest_ready_s": max(ages, default=None)
    }


def interval_for(seconds: float) -> int:
    """Choose the width of a histogram's intervals.

    Parameters:
        seconds: The time that the histogram covers.

    Returns:
        The width in seconds.
    """
    return next((width for width in _WIDTHS if seconds <= width * _INTERVALS), _WIDTHS[-1])


def _percentiles(values: Column, *shares: float) -> Column:
    return sql.percentile_approx(values, list(shares), _ACCURACY)


def _place_of(status: str) -> Column:
    return sql.array_position(sql.array(*map(sql.lit, STATUSES)), sql.col(status))


@job_command(
    ["backlog", "delayed", "delayed_by_time"],
    """\
python -m pyspark_tarantool backlog ./data --queue tutorial
python -m pyspark_tarantool backlog ./data --queue tubes --at-time 2026-01-31T12:00:00Z --report backlog.html
python -m pyspark_tarantool backlog ./snapshots --wal-dir ./logs --queue legacy --output ./results
python -m pyspark_tarantool backlog ./data --queue tubes --now present --fail-if "oldest_ready > 5m\"""",
    metrics=METRICS,
)
@NOW
def backlog(job: Job, now: float | None) -> None:
    """Report the tasks that wait in each queue.

    Per queue and status: the number, age and size of tasks, and when delayed ones will be ready. An age is
    the time from the put to the requested time, or to the newest change in the files, unless --now is given.

    Results: backlog, delayed, delayed_by_time.
    """
    until = job.now if now is None else datetime.fromtimestamp(now, UTC)
    columns = ["queue", "status", "id", "created", "due", "payload_bytes"]
    tasks = job.keep(job.tasks().select(columns))
    job.say(f"{number(tasks.count())} tasks, as of {job.as_of()}")
    counted = job.keep(backlog_of(tasks, until))
    job.show(counted.select(*_SHOWN), f"Tasks by queue and status, ages at {moment(until)}")
    delayed = job.keep(delayed_of(tasks, until))
    job.show(delayed, "When delayed tasks will be ready")
    first, last = delayed.agg(sql.min("next_ready"), sql.max("last_ready")).first() or (None, None)
    by_time = delayed_by_time_of(tasks, interval_for((last - first).total_seconds() if first else 0))
    by_time = job.keep(by_time)
    for result, name in ((counted, "backlog"), (delayed, "delayed"), (by_time, "delayed_by_time")):
        job.write(result, name)
    rows = counted.collect()
    if job.wants_report:
        report = job.report(
            "Backlog", "Number, age and size of the tasks in each queue, and when delayed tasks will be ready"
        )
        fill_report(report, until, rows, delayed.collect(), by_time.collect())
        job.finish(report)
    job.check(metrics_of(rows))


if __name__ == "__main__":
    sys.exit(backlog.run())
