"""The page of the job `lifecycle`, made from results by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Row

from pyspark_tarantool.jobs.pages.lifecycle_report import Histogram, fill_report, points_of, whole_points
from pyspark_tarantool.jobs.task_lifetimes import MEASURES, SHARES
from pyspark_tarantool.report import Report

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
COUNTS = ("puts", "takes", "acks", "releases", "timeouts", "others_gone")


def minute(number: int, backlog: int, waiting: float | None = None, **counts: int) -> Row:
    times: dict[str, Any] = {
        f"{measure}_{name}_s": waiting for measure in ("waiting", "service") for name in (*SHARES, "max")
    }
    return Row(
        queue="mails",
        minute=BEGIN + timedelta(minutes=number),
        backlog=backlog,
        **{name: counts.get(name, 0) for name in COUNTS},
        **times,
    )


def queue(name: str, tasks: int) -> Row:
    counts = ("done", "deleted", "expired", "removed", "buried", "open", "released", "timed_out")
    times: dict[str, Any] = {}
    for measure in MEASURES:
        is_known = measure != "lateness"
        times[f"{measure}_count"] = tasks if is_known else None
        times |= {f"{measure}_{each}_s": 0.25 if is_known else None for each in (*SHARES, "max")}
    return Row(
        queue=name,
        tasks=tasks,
        tasks_before_logs=1,
        acked=tasks,
        attempts=tasks,
        attempts_max=1,
        **dict.fromkeys(counts, 0),
        **times,
    )


def test_minutes_in_which_nothing_happened_are_shown() -> None:
    span, points = points_of([minute(3, 1, 0.5, takes=1), minute(0, 2, 2.0, puts=2)])
    assert span == 1
    assert [point.start for point in points] == [BEGIN + timedelta(minutes=each) for each in range(4)]
    assert [point.counts["puts"] for point in points] == [2, 0, 0, 0]
    assert [point.backlog for point in points] == [2, 2, 2, 1]
    assert [point.times.get("waiting_p50_s") for point in points] == [2.0, None, None, 0.5]


def test_many_minutes_are_put_together() -> None:
    span, points = points_of([minute(each, each, each / 10, puts=1) for each in range(600)])
    assert (span, len(points)) == (5, 120)
    assert points[1].counts["puts"] == 5
    assert points[1].backlog == 9, "that at the end"
    assert points[1].times["service_p99_s"] == 0.9, "the greatest"


@pytest.mark.parametrize(
    ("begin", "end", "whole"),
    [
        (30, 150, [False, True, False]),
        (0, 180, [True, True, True]),
        (30, 50, [True, True, True]),
    ],
)
def test_minutes_that_the_logs_cover_in_part_are_left_out(
    begin: float, end: float, whole: list[bool]
) -> None:
    """Unless there are no others."""
    span, points = points_of([minute(each, 1, puts=1) for each in range(3)])
    logged = (BEGIN + timedelta(seconds=begin), BEGIN + timedelta(seconds=end))
    assert whole_points(points, span, logged) == whole


def test_years_are_shown_in_few_points() -> None:
    span, points = points_of([minute(0, 1, puts=1), minute(30 * 366 * 1440, 0, acks=1)])
    assert len(points) <= 242
    assert span > 1440


def test_a_page_has_figures_charts_and_tables() -> None:
    report = Report("Lifecycle")
    queues = [queue("mails", 10), queue("<b>", 1)]
    histogram = Histogram(["up to 1 ms", "1 ms to 2 ms"], [3, 7])
    fill_report(report, queues, queues, [minute(0, 2, 0.1, puts=2, timeouts=1)], {"mails": histogram})
    html = report.html()
    assert html.count("<svg") == 8
    for text in ("Waiting time", "Number of takes", "1 ms to 2 ms", "250 ms", "&lt;b&gt;"):
        assert text in html
    assert "<b>" not in html


def test_a_page_of_nothing_says_so() -> None:
    report = Report("Lifecycle")
    fill_report(report, [], [], [], {})
    assert "no events of tasks" in report.html()
