"""The job `lifecycle`: waiting and service times of tasks, attempts and outcomes.

python -m pyspark_tarantool lifecycle ./data --queue tutorial --report lifecycle.html
"""

from __future__ import annotations

import sys
from typing import Final

from pyspark.sql import Row

from pyspark_tarantool.jobs.command_line import job_command
from pyspark_tarantool.jobs.job import Job
from pyspark_tarantool.jobs.pages.lifecycle_report import lifecycle_report
from pyspark_tarantool.jobs.task_lifetimes import MEASURES, lifecycle_of
from pyspark_tarantool.report.quantities import number

_EVENTS: Final = (
    *("queue", "id", "life", "number", "at", "event", "status_before", "status_after", "since"),
    *("due_before", "due", "created", "payload_bytes"),
)
"""The columns of events that the computation needs."""

_COUNTS: Final = (
    *("queue", "tasks", "tasks_before_logs", "acked", "done", "deleted", "expired", "removed", "buried"),
    *("open", "attempts", "released", "timed_out"),
)
_PERCENTILES: Final = ("count", "p50_s", "p90_s", "p95_s", "p99_s", "max_s")
_MINUTES: Final = (
    *("queue", "minute", "puts", "takes", "acks", "releases", "timeouts", "backlog"),
    *("waiting_p50_s", "waiting_p99_s", "service_p50_s", "service_p99_s"),
)
"""The columns printed on the terminal."""

METRICS: Final = (
    *("open", "buried", "released", "timed_out"),
    *("waiting_p50_s", "waiting_p99_s", "service_p50_s", "service_p99_s", "in_system_p99_s"),
)


def percentile_rows(per_queue: list[Row]) -> list[Row]:
    """Convert percentiles to one row per queue and measure, for display.

    Parameters:
        per_queue: Rows of `per_queue`.
    """
    return [
        Row(queue=row.queue, measure=measure, **{name: row[f"{measure}_{name}"] for name in _PERCENTILES})
        for row in per_queue
        for measure in MEASURES
        if row[f"{measure}_count"]
    ]


def metrics_of(queues: list[Row]) -> dict[str, float | None]:
    """The metrics for `--fail-if`: sums over all queues, and the percentiles of the slowest one.

    Parameters:
        queues: Rows of `per_queue`.
    """
    sums = {name: float(sum(row[name] for row in queues)) for name in METRICS if not name.endswith("_s")}
    slowest = {
        name: max((row[name] for row in queues if row[name] is not None), default=None)
        for name in METRICS
        if name.endswith("_s")
    }
    return sums | slowest


@job_command(
    ["tasks", "per_queue", "per_minute"],
    """\
python -m pyspark_tarantool lifecycle ./data --queue tutorial
python -m pyspark_tarantool lifecycle ./data --queue tubes --at-time 2026-01-31T12:00:00Z --report l.html
python -m pyspark_tarantool lifecycle ./snapshots --wal-dir ./logs --queue legacy --output ./results
python -m pyspark_tarantool lifecycle ./data --queue tubes --fail-if "waiting_p99 > 1m\"""",
    metrics=METRICS,
)
def lifecycle(job: Job) -> None:
    """Report how long tasks waited, how long work on them took, and how they ended.

    From the logs, for each task: when it was put, ready, taken and done, its number of attempts, waiting and
    service times. For each queue and each minute: percentiles of these times, throughput and backlog.

    Results: tasks, per_queue, per_minute.
    """
    found = lifecycle_of(job.keep(job.events().select(*_EVENTS)))
    tasks = job.keep(found.tasks)
    per_queue = job.keep(found.per_queue)
    queues = per_queue.collect()
    before = sum(row.tasks_before_logs for row in queues)
    counted = f"{number(sum(row.tasks for row in queues))} tasks in the logs"
    job.say(counted + (f", {number(before)} of them put before the logs begin" if before else ""))
    job.show([Row(**{name: row[name] for name in _COUNTS}) for row in queues], "Outcomes of tasks")
    job.show(percentile_rows(queues), "Waiting times, service times, lateness of delayed tasks, total times")
    per_minute = job.keep(found.per_minute)
    job.show(per_minute.select(*_MINUTES), "Minutes with events")
    for result, name in ((tasks, "tasks"), (per_queue, "per_queue"), (per_minute, "per_minute")):
        job.write(result, name, files=None if name == "tasks" else 1)
    if job.wants_report:
        job.finish(lifecycle_report(job, found.measured, queues, per_minute))
    job.check(metrics_of(queues))


if __name__ == "__main__":
    sys.exit(lifecycle.run())
