"""The job `suspects`: tasks that return repeatedly, are stuck or forgotten, and queues that grow.

python -m pyspark_tarantool suspects ./data --queue legacy --attempts 5 --report suspects.html
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import click
from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as sql

from pyspark_tarantool.backlog import interval_for
from pyspark_tarantool.jobs.command_line import NOW, job_command
from pyspark_tarantool.jobs.job import Job
from pyspark_tarantool.jobs.pages.suspects_report import CHART_QUEUES, fill_report
from pyspark_tarantool.jobs.suspect_rules import (
    BURIED,
    COMES_BACK,
    NEVER_TAKEN,
    PAST_TTR,
    STUCK,
    SUSPICIONS,
    Thresholds,
    growth_of,
    histories_of,
    levels_of,
    place_of,
    suspects_of,
    with_payloads,
)
from pyspark_tarantool.report.quantities import moment, number

_EVENT_COLUMNS = (
    *("queue", "id", "life", "number", "at", "event", "status_before", "status_after", "created"),
)
METRICS: Final[Mapping[str, str]] = {
    "stuck": STUCK,
    "past_ttr": PAST_TTR,
    "returning": COMES_BACK,
    "buried": BURIED,
    "never_taken": NEVER_TAKEN,
    "growing": "",
}
_SHOWN = ("queue", "id", "status", "since", "for_s", "attempts", "created", "first_taken", "due", "payload")


@job_command(
    ["suspects", "summary", "growth", "levels"],
    """\
python -m pyspark_tarantool suspects ./data --queue tutorial
python -m pyspark_tarantool suspects ./data --queue legacy --attempts 5 --stuck 600 --report suspects.html
python -m pyspark_tarantool suspects ./data --queue tubes --now present --output ./results --format json
python -m pyspark_tarantool suspects ./data --queue tubes --fail-if "stuck > 0" --fail-if "growing > 0\"""",
    metrics=list(METRICS),
)
@NOW
@click.option(
    "--attempts",
    metavar="N",
    type=click.IntRange(1),
    default=3,
    help="Report tasks that were taken at least this often.  [default: 3]",
)
@click.option(
    "--stuck",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=3600,
    help="Report tasks that have been taken for longer.  [default: 3600]",
)
@click.option(
    "--waiting",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=3600,
    help="Report tasks that have been ready for longer and were never taken.  [default: 3600]",
)
@click.option(
    "--growth",
    metavar="N",
    type=click.FloatRange(0),
    default=60,
    help="Report queues that gain at least this many ready tasks per hour.  [default: 60]",
)
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(1),
    default=10,
    help="Show at most this many tasks of each kind; --output writes all of them.  [default: 10]",
)
def suspects(job: Job, now: float | None, top: int, **given: float) -> None:
    """Find tasks and queues that need attention.

    Tasks that were taken repeatedly, have been taken for too long or past their time to run, are buried, or
    wait and were never taken; and queues with a growing number of ready tasks. Attempts and durations are
    known as far back as the logs reach.

    Results: suspects, summary (suspects by queue), growth (by queue), levels (ready tasks over time).
    """
    thresholds = Thresholds(**given)  # type: ignore[arg-type]
    until = job.now if now is None else datetime.fromtimestamp(now, UTC)
    columns = ["queue", "id", "status", "created", "due"]
    tasks = job.keep(job.tasks().select(columns))
    job.say(f"{number(tasks.count())} tasks, as of {job.as_of()}")
    events = job.keep(job.events().select(*_EVENT_COLUMNS))
    job.say(f"{number(events.count())} events")
    histories = job.keep(histories_of(events))
    found = job.keep(suspects_of(tasks, histories, until, thresholds))
    if not found.isEmpty():
        found = job.keep(with_payloads(found, *job.payloads()))
    else:
        found = found.withColumn("payload", sql.lit(None).cast("string"))
    summary = job.keep(_summary(found))
    job.show(summary, f"Suspicious tasks, durations at {moment(until)}")
    worst = _worst(found, top).collect()
    for why in SUSPICIONS:
        rows = [row for row in worst if row.why == why]
        if rows:
            job.show(rows, f"Tasks {why}", columns=_SHOWN)
    begin, end = events.agg(sql.min("at"), sql.max("at")).collect()[0]
    begin, end = begin or until, end or until
    interval = interval_for((end - begin).total_seconds())
    levels = job.keep(levels_of(tasks, events, begin, end, interval))
    growth = job.keep(growth_of(levels, thresholds))
    job.show(growth, f"Ready tasks from {moment(begin)} to {moment(end)}")
    results = {"suspects": found, "summary": summary, "growth": growth, "levels": levels}
    for name, result in results.items():
        job.write(result, name, files=None if name == "suspects" else 1)
    if job.wants_report:
        report = job.report("Suspects", "Tasks and queues that need attention")
        fill_report(
            report, until, thresholds, summary.collect(), worst, growth.collect(), _shown(levels, growth)
        )
        job.finish(report)
    job.check(metrics_of(summary.collect(), growth.collect()))


def metrics_of(summary: Sequence[Row], growth: Sequence[Row]) -> dict[str, float | None]:
    """The metrics for `--fail-if`: the number of tasks for each suspicion, and of growing queues.

    Parameters:
        summary, growth: The job's results.
    """
    tasks = {name: sum(row.tasks for row in summary if row.why == why) for name, why in METRICS.items()}
    return {**tasks, "growing": sum(row.growing for row in growth)}


def _summary(found: DataFrame) -> DataFrame:
    numbers = found.groupBy("why", "queue").agg(
        sql.count("*").alias("tasks"),
        sql.max("for_s").alias("longest_s"),
        sql.max("attempts").alias("most_attempts"),
    )
    return numbers.orderBy(place_of("why"), sql.desc("tasks"), "queue")


def _worst(found: DataFrame, top: int) -> DataFrame:
    """The longest-lasting tasks of each kind."""
    strongest = Window.partitionBy("why").orderBy(sql.desc_nulls_last("for_s"), "queue", "id")
    return (
        found.withColumn("place", sql.row_number().over(strongest))
        .where(sql.col("place") <= top)
        .orderBy("place")
    )


def _shown(levels: DataFrame, growth: DataFrame) -> list[Row]:
    """The levels of the fastest-growing queues, as many as fit in a chart."""
    queues = [row.queue for row in growth.take(CHART_QUEUES)]
    return levels.where(sql.col("queue").isin(queues)).orderBy("at").collect()


if __name__ == "__main__":
    sys.exit(suspects.run())
