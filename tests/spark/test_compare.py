"""The job `compare`: two days whose events are known."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.compare import compare
from pyspark_tarantool.jobs.comparison import Change, Day, covered, fill_report, opening_of
from pyspark_tarantool.report import Level, Report
from tests.spark.interpreted import interpreted
from tests.spark.jobs_data import run
from tests.spark.queues.scripted import ScriptedServer, TubeActions

MONDAY, TUESDAY = date(2026, 1, 26), date(2026, 1, 27)
BEFORE, AFTER = Day(MONDAY, 24), Day(TUESDAY, 12)
HOUR_US = 3_600_000_000


@pytest.mark.parametrize(
    ("begin", "end", "hours"),
    [
        (datetime(2026, 1, 26, 18, tzinfo=UTC), datetime(2026, 1, 28, tzinfo=UTC), (6, 24)),
        (datetime(2026, 1, 20, tzinfo=UTC), datetime(2026, 1, 27, 3, tzinfo=UTC), (24, 3)),
        (datetime(2026, 1, 27, tzinfo=UTC), datetime(2026, 1, 27, 1, tzinfo=UTC), (0, 1)),
    ],
)
def test_the_part_of_a_day_in_the_logs(begin: datetime, end: datetime, hours: tuple[float, float]) -> None:
    assert (covered(MONDAY, begin, end).hours, covered(TUESDAY, begin, end).hours) == hours


class TestOpening:
    def test_what_became_worse_is_told_worst_first(self) -> None:
        changes = [
            Change("mails", "puts", 100.0, 150.0),
            Change("mails", "acks", 90.0, 80.0),
            Change("mails", "waiting_p99_s", 60.0, 90.0),
            Change("mails", "timeouts", 2.0, 8.0),
            Change("jobs", "service_p50_s", 10.0, 5.0),
            Change("jobs", "buries", 0.0, 0.5),
        ]
        summary, findings = opening_of(changes, BEFORE, AFTER)
        assert summary == (
            "On 2026-01-27, 150 tasks were put and 80 finished in an hour; on 2026-01-26, 100 and 90."
        )
        assert [(each.level, each.text) for each in findings] == [
            (Level.BAD, "mails: takes an hour that exceeded the time to run 8 instead of 2."),
            (Level.WARNING, "mails: p99 of the waiting time 1 min 30 s instead of 1 min."),
        ]

    def test_what_began_on_the_day_counts(self) -> None:
        _, findings = opening_of([Change("mails", "timeouts", 0.0, 5.0)], BEFORE, AFTER)
        assert findings[0].level is Level.BAD

    def test_nothing_became_worse(self) -> None:
        _, findings = opening_of([Change("mails", "waiting_p99_s", 60.0, 61.0)], BEFORE, AFTER)
        assert [each.level for each in findings] == [Level.GOOD]


@pytest.fixture
def two_days(tmp_path: Path) -> Path:
    """Two tasks an hour that wait a minute, then as many that wait two minutes and come back once."""
    directory = tmp_path / "data"
    directory.mkdir()
    server = ScriptedServer(directory, "tubes")
    actions = TubeActions(server)
    for hour in range(6):
        waits = 1 + (hour >= 3)
        for _ in range(2):
            actions.put(0, 600)
            server.advance(waits * 60_000_000)
            task = actions.take()
            assert task is not None
            server.advance(30_000_000)
            if waits == 2:
                actions.release(task, 0)
                task = actions.take()
                assert task is not None
            actions.ack(task)
        server.advance(24 * HOUR_US if hour == 2 else HOUR_US)
    server.close()
    return directory


@pytest.fixture(scope="module")
def _interpreted(spark: SparkSession) -> Iterator[None]:
    with interpreted(spark):
        yield


@pytest.mark.usefixtures("_interpreted")
class TestJob:
    def test_two_days(self, two_days: Path, tmp_path: Path, spark: SparkSession) -> None:
        page = tmp_path / "page.html"
        outcome = run(compare, two_days, "--queue", "tubes", "--output", tmp_path / "out", "--report", page)
        assert outcome.status == 0, outcome.errors
        rows = {
            row.measure: row for row in spark.read.parquet(str(tmp_path / "out" / "comparison")).collect()
        }
        waiting = rows["waiting_p50_s"]
        assert (waiting.before, waiting.after) == (60, 0), "a returned task is taken at once"
        assert (rows["waiting_p99_s"].after, rows["waiting_p99_s"].change) == (120, 1)
        assert (rows["returns"].before, rows["returns"].after > 0) == (0, True)
        assert "p99 of the waiting time 2 min instead of 1 min" in page.read_text()

    def test_a_day_that_is_not_in_the_logs(self, two_days: Path) -> None:
        outcome = run(compare, two_days, "--queue", "tubes", "--against", "2020-01-01")
        assert outcome.status == 1
        assert outcome.errors[-1].endswith(" have nothing of 2020-01-01")

    def test_a_wrong_day(self, two_days: Path) -> None:
        outcome = run(compare, two_days, "--queue", "tubes", "--day", "yesterday")
        assert outcome.status == 2
        assert "'yesterday' does not match the format '%Y-%m-%d'" in outcome.errors[-1]


def test_a_page_shows_both_days() -> None:
    report = Report("Comparison")
    names = ("puts", "waiting_p99_s", "service_p99_s")
    fill_report(report, [Change("<b>", name, 1.0, 2.0) for name in names], BEFORE, AFTER)
    html = report.html()
    assert html.count("<svg") == 3
    for text in ("2026-01-26: 24 h in the logs; 2026-01-27: 12 h", "+100 %", "&lt;b&gt;"):
        assert text in html
