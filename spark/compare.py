"""The job `compare`: one day of the queues against another.

python -m pyspark_tarantool compare ./data --queue tubes --day 2026-01-31 --against 2026-01-24
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Final

import click
from pyspark.sql import functions as sql

from pyspark_tarantool.jobs.command_line import job_command
from pyspark_tarantool.jobs.comparison import changes_of, covered, fill_report, per_day_of
from pyspark_tarantool.jobs.job import Job
from pyspark_tarantool.jobs.task_lifetimes import measured_of
from pyspark_tarantool.source.errors import SourceError

_EVENTS: Final = (
    *("queue", "id", "life", "number", "at", "event", "status_before", "status_after", "since"),
    "due_before",
)
_COLUMNS: Final = "queue string, measure string, before double, after double, change double"
_DAY: Final = click.DateTime(["%Y-%m-%d"])


@job_command(
    ["comparison"],
    """\
python -m pyspark_tarantool compare ./data --queue tutorial
python -m pyspark_tarantool compare ./data --queue tubes --day 2026-01-31 --against 2026-01-24
python -m pyspark_tarantool compare ./data --queue legacy --report comparison.html""",
)
@click.option(
    "--day", metavar="DATE", type=_DAY, help="The day, in UTC.  [default: the last one in the logs]"
)
@click.option(
    "--against", metavar="DATE", type=_DAY, help="The day to compare with.  [default: the one before]"
)
def compare(job: Job, day: datetime | None, against: datetime | None) -> None:
    """Compare one day of the queues with another.

    For each queue: how many tasks were put, taken, finished, returned, timed out and buried in an hour, and
    how long they waited and were worked on.

    Result: comparison.
    """
    measured = job.keep(measured_of(job.events().select(*_EVENTS)))
    begin, end = measured.agg(sql.min("at"), sql.max("at")).collect()[0]
    if begin is None:
        raise SourceError("the logs have no events of tasks")
    begin, end = begin.astimezone(UTC), end.astimezone(UTC)
    last = end.date() if day is None else day.date()
    first = last - timedelta(days=1) if against is None else against.date()
    before, after = covered(first, begin, end), covered(last, begin, end)
    for each in (before, after):
        if not each.hours:
            raise SourceError(f"the logs, from {begin.date()} to {end.date()}, have nothing of {each.day}")
    changes = changes_of(per_day_of(measured, [first, last]).collect(), before, after)
    rows = [(*change, change.ratio) for change in changes]
    result = job.session.createDataFrame(rows, _COLUMNS)
    job.show(result, f"{last} against {first}: numbers in an hour, durations in seconds")
    job.write(result, "comparison")
    if job.wants_report:
        report = job.report("Comparison", f"{last} against {first}")
        fill_report(report, changes, before, after)
        job.finish(report)


if __name__ == "__main__":
    sys.exit(compare.run())
