"""The job `backlog`: how tasks are counted, and what is made of the counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from pyspark_tarantool.backlog import backlog_of, delayed_by_time_of, delayed_of, interval_for
from pyspark_tarantool.jobs.pages.backlog_report import fill_report
from pyspark_tarantool.queues import TASKS
from pyspark_tarantool.report import Report

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def moments(row: Row, *columns: str) -> list[datetime]:
    return [row[column].astimezone(UTC) for column in columns]


@pytest.fixture(scope="module")
def tasks(spark: SparkSession) -> DataFrame:
    """A queue with a task of each second of the last 100, one with delayed tasks, and one with no times."""
    rows: list[tuple[object, ...]] = [
        ("mails", f"m{age}", "ready", ago(age), None, None, 10 + age) for age in range(1, 101)
    ]
    rows += [
        ("mails", "t1", "taken", ago(500), ago(1), None, 7),
        ("mails", "t2", "taken", ago(5), ago(-9), None, 7),
    ]
    rows += [("jobs", f"d{due}", "delayed", ago(50), ago(-due), 0, 0) for due in (-3, 10, 70, 130)]
    rows += [("plain", "1", "buried", None, None, None, None)]
    return spark.createDataFrame(rows, TASKS).cache()


def test_tasks_are_counted_by_queue_and_status(tasks: DataFrame) -> None:
    rows = backlog_of(tasks, NOW).collect()
    assert [(row.queue, row.status, row.tasks, row.overdue) for row in rows] == [
        ("jobs", "delayed", 4, 1),
        ("mails", "ready", 100, 0),
        ("mails", "taken", 2, 1),
        ("plain", "buried", 1, 0),
    ]
    ready = rows[1]
    assert (ready.age_p50_s, ready.age_p90_s, ready.age_p99_s, ready.oldest_age_s) == (50, 90, 99, 100)
    assert (ready.oldest_id, *moments(ready, "oldest")) == ("m100", ago(100))
    assert ready.payload_sum_bytes == sum(range(11, 111))
    assert (ready.payload_p50_bytes, ready.payload_p99_bytes, ready.payload_max_bytes) == (60, 109, 110)
    assert set(rows[3][4:]) == {None}, "what is not stored is not known"


def test_a_task_from_the_future_has_no_age(spark: SparkSession) -> None:
    tasks = spark.createDataFrame([("q", "1", "ready", ago(-10), None, None, 1)], TASKS)
    row = backlog_of(tasks, NOW).collect()[0]
    assert (row.age_p50_s, row.oldest_age_s) == (0, 0)


def test_delayed_tasks_have_a_horizon(tasks: DataFrame) -> None:
    rows = delayed_of(tasks, NOW).collect()
    assert [(row.queue, row.tasks, row.overdue) for row in rows] == [("jobs", 4, 1)]
    assert moments(rows[0], "next_ready", "half_ready", "last_ready") == [ago(3), ago(-10), ago(-130)]
    intervals = delayed_by_time_of(tasks, 60).collect()
    assert [(*moments(row, "ready_from"), row.interval_s, row.tasks) for row in intervals] == [
        (ago(60), 60, 1),
        (ago(0), 60, 1),
        (ago(-60), 60, 1),
        (ago(-120), 60, 1),
    ]


@pytest.mark.parametrize(
    ("seconds", "interval"), [(0, 1), (60, 1), (61, 5), (3600, 60), (86400, 3600), (10**12, 365 * 86400)]
)
def test_a_histogram_has_about_sixty_intervals(seconds: float, interval: int) -> None:
    assert interval_for(seconds) == interval


class TestReport:
    def test_it_tells_what_was_found(self, tasks: DataFrame) -> None:
        report = Report("Backlog")
        results = (backlog_of(tasks, NOW), delayed_of(tasks, NOW), delayed_by_time_of(tasks, 60))
        fill_report(report, NOW, *(result.collect() for result in results))
        page = report.html()
        assert page.count("<svg") == 4
        for text in ("Delayed tasks", "Number of tasks", "Time (UTC)", "Age (min)", "Data of all tasks (kB)"):
            assert text in page
        assert '<div class="value">107</div><div class="label">tasks in total</div>' in page

    def test_no_tasks_are_a_page_too(self) -> None:
        report = Report("Backlog")
        fill_report(report, NOW, [], [], [])
        assert "There are no tasks." in report.html()
        assert "<svg" not in report.html()
