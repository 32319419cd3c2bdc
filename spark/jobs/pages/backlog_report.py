"""The page of the job `backlog`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from pyspark.sql import Row

from pyspark_tarantool.jobs.pages.findings import COLORS_OF_STATUSES, PERCENTILES, TIMES, opening_of_backlog
from pyspark_tarantool.queues import STATUSES
from pyspark_tarantool.report import PALETTE, Report, Series, bars, columns
from pyspark_tarantool.report.quantities import duration, moment, number

_SHOWN_QUEUES: Final = 20
"""The maximum number of queues in charts: those with the most tasks."""

_COLORED_QUEUES: Final = 5
"""The number of queues with their own color in a histogram."""

_OTHERS: Final = "all others"


def fill_report(
    report: Report, now: datetime, counted: Sequence[Row], delayed: Sequence[Row], by_time: Sequence[Row]
) -> None:
    """Fill the page.

    Parameters:
        report: The page.
        now: The reference time of ages.
        counted, delayed, by_time: The job's results.
    """
    report.set_opening(*opening_of_backlog(counted, delayed, now))
    report.add_facts([("Ages as of", moment(now))])
    report.add_explanations([PERCENTILES, TIMES, COLORS_OF_STATUSES])
    report.add_figures(_figures(counted, delayed, now))
    if not counted:
        report.add_note("There are no tasks.")
        return
    sizes: Counter[str] = Counter()
    for row in counted:
        sizes[row.queue] += row.tasks
    largest = [queue for queue, _ in sizes.most_common(_SHOWN_QUEUES)]
    shown = [row for row in counted if row.queue in largest]
    _add_tasks(report, shown, largest, len(sizes))
    _add_ages(report, shown, largest)
    _add_delayed(report, delayed, by_time, now)
    _add_sizes(report, shown, largest)


def _figures(
    counted: Sequence[Row], delayed: Sequence[Row], now: datetime
) -> Iterable[tuple[str, object, str]]:
    tasks: Counter[str] = Counter()
    for row in counted:
        tasks[row.status] += row.tasks
    yield "tasks in total", tasks.total(), ""
    for status in STATUSES:
        if status in tasks or status in ("ready", "taken"):
            yield f"tasks {status}", tasks[status], ""
    ages = [row.oldest_age_s for row in counted if row.status == "ready" and row.oldest_age_s is not None]
    if ages:
        yield "age of the oldest ready task", max(ages), "s"
    if delayed:
        until = min(row.next_ready for row in delayed).timestamp() - now.timestamp()
        yield "until the next delayed task is ready", max(0.0, until), "s"
    yield "data of all tasks", sum(row.payload_sum_bytes or 0 for row in counted), "bytes"


def _add_tasks(report: Report, rows: Sequence[Row], largest: Sequence[str], queues: int) -> None:
    tasks = {(row.queue, row.status): row.tasks for row in rows}
    statuses = [status for status in STATUSES if any((queue, status) in tasks for queue in largest)]
    series = [Series(status, [tasks.get((queue, status), 0) for queue in largest]) for status in statuses]
    report.add_section("Tasks")
    if queues > len(largest):
        report.add_note(f"The {len(largest)} queues with the most tasks, of {number(queues)}.")
    report.add_chart(
        bars(largest, series, "Number of tasks", "Queue"), "The number of tasks in each queue, by status."
    )
    fields = ["queue", "status", "tasks", "overdue", "age_p50_s", "age_p90_s", "age_p99_s", "oldest_age_s"]
    report.add_table(
        "Tasks and their ages",
        fields,
        [[row[field] for field in fields] for row in rows],
        "The age of a task is the time since it was put. Half of the tasks are not older than p50, and one "
        "in a hundred is older than p99. Overdue tasks are delayed ones that should already be ready, and "
        "taken ones whose time to run is over.",
    )


def _add_ages(report: Report, rows: Sequence[Row], largest: Sequence[str]) -> None:
    ready = {row.queue: row for row in rows if row.status == "ready" and row.age_p50_s is not None}
    queues = [queue for queue in largest if queue in ready]
    if not queues:
        return
    report.add_section("Age of ready tasks")
    series = [
        Series(name, [ready[queue][column] for queue in queues])
        for name, column in (
            ("half (p50)", "age_p50_s"),
            ("90 % (p90)", "age_p90_s"),
            ("all", "oldest_age_s"),
        )
    ]
    report.add_chart(
        bars(queues, series, "Age (s)", "Queue", stacked=False),
        "The maximum age of half of each queue's ready tasks, of 90 % of them, and of all. The age is the "
        "time since the put: tasks that were delayed, or taken and returned, have waited for less.",
    )
    report.add_table(
        "The oldest ready tasks",
        ["queue", "id", "put", "age_s"],
        [[queue, ready[queue].oldest_id, ready[queue].oldest, ready[queue].oldest_age_s] for queue in queues],
    )


def _add_delayed(report: Report, delayed: Sequence[Row], by_time: Sequence[Row], now: datetime) -> None:
    rows = sorted(delayed, key=lambda row: -row.tasks)[:_SHOWN_QUEUES]
    if not rows:
        return
    report.add_section("Delayed tasks")
    report.add_chart(
        _horizon([row.queue for row in rows[:_COLORED_QUEUES]], by_time),
        f"When the tasks delayed at {moment(now)} will be ready.",
    )
    fields = ["queue", "tasks", "overdue", "next_ready", "half_ready", "last_ready"]
    report.add_table(
        "When delayed tasks will be ready",
        fields,
        [[row[field] for field in fields] for row in rows],
        "The times when the next one, half of them and the last one will be ready.",
    )


def _horizon(colored: Sequence[str], rows: Sequence[Row]) -> str:
    """The chart of delayed tasks by time."""
    interval = rows[0].interval_s
    counts: dict[str, Counter[datetime]] = {}
    for row in rows:
        name = row.queue if row.queue in colored else _OTHERS
        counts.setdefault(name, Counter())[row.ready_from] += row.tasks
    starts = sorted({row.ready_from for row in rows})
    names = [name for name in (*colored, _OTHERS) if name in counts]
    series = [
        Series(name, [counts[name][start] for start in starts], PALETTE[index])
        for index, name in enumerate(names)
    ]
    return columns(
        starts, interval, series, "Time (UTC)", f"Tasks that become ready, per {duration(interval)}"
    )


def _add_sizes(report: Report, rows: Sequence[Row], largest: Sequence[str]) -> None:
    if all(row.payload_sum_bytes is None for row in rows):
        return
    report.add_section("Size of the data")
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row.queue] += row.payload_sum_bytes or 0
    report.add_chart(
        bars(
            largest,
            [Series("data", [sizes[queue] for queue in largest])],
            "Data of all tasks (bytes)",
            "Queue",
        ),
        "The size of each queue's task data as stored in the files (MessagePack).",
    )
    fields = [
        "queue",
        "status",
        "payload_sum_bytes",
        "payload_p50_bytes",
        "payload_p99_bytes",
        "payload_max_bytes",
    ]
    report.add_table("Size of tasks' data", fields, [[row[field] for field in fields] for row in rows])
