"""What is suspicious: tasks by their status and history, queues by how the number of ready tasks grows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from pyspark_tarantool.jobs.pages.suspects_report import fill_report
from pyspark_tarantool.jobs.suspect_rules import (
    BURIED,
    COMES_BACK,
    NEVER_TAKEN,
    PAST_TTR,
    STUCK,
    Thresholds,
    growth_of,
    histories_of,
    levels_of,
    suspects_of,
    with_payloads,
)
from pyspark_tarantool.queues import EVENTS, TASKS
from pyspark_tarantool.report import Report

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
THRESHOLDS = Thresholds(attempts=3, stuck=60, waiting=600, growth=60)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def moments(row: Row, *columns: str) -> list[datetime]:
    return [row[column].astimezone(UTC) for column in columns]


class Log:
    """A log of events, oldest first."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self._statuses: dict[tuple[str, str], str | None] = {}

    def add(
        self,
        queue: str,
        task: str,
        seconds_ago: float,
        event: str,
        status: str | None,
        life: int = 1,
        **more: object,
    ) -> None:
        before = self._statuses.get((queue, task))
        self._statuses[queue, task] = status
        row = {"queue": queue, "id": task, "life": life, "at": ago(seconds_ago), "number": len(self.rows) + 1}
        self.rows.append({**row, "event": event, "status_before": before, "status_after": status, **more})

    def take_and_release(self, queue: str, task: str, *moments: float) -> None:
        for moment in moments:
            self.add(queue, task, moment, "taken", "taken")
            self.add(queue, task, moment - 1, "released", "ready")

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(self.rows, EVENTS)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    log = Log()
    for task, moment in (("back", 1000), ("gone", 1000), ("stuck", 1000), ("new", 1000), ("again", 900)):
        log.add("mails", task, moment, "put", "ready")
    log.take_and_release("mails", "back", 500, 400, 300)
    log.take_and_release("mails", "gone", 500, 400)
    log.add("mails", "gone", 200, "taken", "taken")
    log.add("mails", "gone", 100, "acked", None)
    log.add("mails", "stuck", 100, "taken", "taken")
    log.add("mails", "stuck", 10, "touched", "taken")
    # Three tasks, one after the other, have had the same number: none of them comes back.
    for life, moment in enumerate((900, 800, 700), 1):
        log.add("mails", "again", moment, "taken", "taken", life)
        log.add("mails", "again", moment - 1, "acked", None, life)
    log.add("mails", "again", 300, "put", "ready", 4)
    log.add("mails", "fresh", 30, "taken", "taken")
    log.add("mails", "aside", 50, "buried", "buried")
    return log.frame(spark).cache()


@pytest.fixture(scope="module")
def found(spark: SparkSession, events: DataFrame) -> list[Row]:
    rows = [
        ("mails", "back", "ready", ago(1000), None),
        ("mails", "stuck", "taken", ago(1000), ago(-50)),
        ("mails", "new", "ready", ago(1000), None),
        ("mails", "again", "ready", ago(300), None),
        ("mails", "fresh", "taken", ago(2000), ago(5)),
        ("mails", "aside", "buried", ago(2000), None),
        ("mails", "old", "taken", ago(3000), None),
        ("mails", "forgotten", "ready", ago(2500), None),
        ("mails", "unknown", "ready", None, None),
    ]
    tasks = spark.createDataFrame([(*row, None, 10) for row in rows], TASKS)
    suspects = suspects_of(tasks, histories_of(events), NOW, THRESHOLDS)
    stored = [("mails", "back", '"present"'), ("mails", "gone", "of another task"), ("mails", "unasked", "1")]
    logged = [
        ("mails", "gone", 1, ago(1000), '"first"'),
        ("mails", "gone", 2, ago(150), '"last"'),
        ("mails", "gone", 3, ago(50), '"of a later task with the same id"'),
        ("mails", "back", 4, ago(900), '"old"'),
    ]
    return with_payloads(
        suspects,
        spark.createDataFrame(stored, "queue string, id string, payload string"),
        spark.createDataFrame(logged, "queue string, id string, lsn bigint, at timestamp, payload string"),
    ).collect()


def shown(found: list[Row], why: str) -> dict[str, tuple[str, float, int]]:
    """The tasks of a suspicion, in order, with status, seconds and attempts."""
    return {row.id: (row.status, row.for_s, row.attempts) for row in found if row.why == why}


class TestTasks:
    def test_taken_again_and_again(self, found: list[Row]) -> None:
        assert shown(found, COMES_BACK) == {"back": ("ready", 500, 3), "gone": ("acked", 400, 3)}

    def test_taken_for_long_also_since_before_the_logs(self, found: list[Row]) -> None:
        assert shown(found, STUCK) == {"old": ("taken", 1000, 0), "stuck": ("taken", 100, 1)}

    def test_past_the_time_to_run(self, found: list[Row]) -> None:
        assert shown(found, PAST_TTR) == {"fresh": ("taken", 5, 1)}

    def test_buried(self, found: list[Row]) -> None:
        assert shown(found, BURIED) == {"aside": ("buried", 50, 0)}

    def test_ready_for_long_and_never_taken(self, found: list[Row]) -> None:
        assert shown(found, NEVER_TAKEN) == {
            "forgotten": ("ready", 2500, 0),
            "new": ("ready", 1000, 0),
            "unknown": ("ready", 1000, 0),
        }

    def test_a_task_has_its_status_since_one_moment_whatever_is_wrong_with_it(
        self, spark: SparkSession
    ) -> None:
        """How long the condition lasts depends on the rule."""
        log = Log()
        log.add("mails", "1", 1000, "put", "ready")
        log.take_and_release("mails", "1", 900, 800)
        log.add("mails", "1", 700, "taken", "taken")
        tasks = spark.createDataFrame([("mails", "1", "taken", ago(1000), ago(300), None, 10)], TASKS)
        rows = suspects_of(tasks, histories_of(log.frame(spark)), NOW, THRESHOLDS).collect()
        assert [(row.why, row.for_s) for row in rows] == [(STUCK, 700), (PAST_TTR, 300), (COMES_BACK, 900)]
        for row in rows:
            assert moments(row, "since", "first_taken", "created") == [ago(700), ago(900), ago(1000)]

    def test_a_task_that_was_only_put_is_ready_since_it_was_created(self, spark: SparkSession) -> None:
        """Its row was logged a little later."""
        log = Log()
        log.add("mails", "1", 999.5, "put", "ready", created=ago(1000))
        tasks = spark.createDataFrame([("mails", "1", "ready", ago(1000), None, None, 10)], TASKS)
        (row,) = suspects_of(tasks, histories_of(log.frame(spark)), NOW, THRESHOLDS).collect()
        assert (row.for_s, *moments(row, "since", "created")) == (1000, ago(1000), ago(1000))

    def test_removed_tasks_tell_when_they_were_put_and_when_they_went(self, found: list[Row]) -> None:
        (gone,) = (row for row in found if row.id == "gone")
        assert moments(gone, "created", "first_taken", "since") == [ago(1000), ago(500), ago(100)]

    def test_they_tell_what_they_are_about(self, found: list[Row]) -> None:
        """Present tasks as they are, and removed ones as they were last."""
        known = {row.id: row.payload for row in found if row.payload is not None}
        assert known == {"back": '"present"', "gone": '"last"'}

    def test_the_worst_come_first(self, found: list[Row]) -> None:
        assert [row.why for row in found] == [STUCK] * 2 + [PAST_TTR] + [COMES_BACK] * 2 + [BURIED] + [
            NEVER_TAKEN
        ] * 3


class TestGrowth:
    @pytest.fixture
    def levels(self, spark: SparkSession) -> DataFrame:
        """Of ten minutes: a queue that grows by two tasks a minute, others that bounce, shrink and rest."""
        log = Log()
        for minute in range(10):
            for each in range(2):
                log.add("up", f"{minute}.{each}", 600 - minute * 60, "put", "ready")
            log.add(
                "bounces", "1", 600 - minute * 60, *(("put", "ready") if minute % 2 else ("taken", "taken"))
            )
        # It was put before the logs began.
        log.add("down", "1", 300, "taken", "taken")
        rows = [("up", f"{number}", "ready") for number in range(25)] + [
            ("rests", "1", "ready"),
            ("down", "1", "taken"),
        ]
        tasks = spark.createDataFrame([(*row, None, None, None, None) for row in rows], TASKS)
        return levels_of(tasks, log.frame(spark), ago(600), ago(60), 60).cache()

    def test_what_grows_steadily_is_growing(self, levels: DataFrame) -> None:
        ready: dict[str, list[int]] = {}
        for row in levels.orderBy("at").collect():
            ready.setdefault(row.queue, []).append(row.ready)
        assert ready["up"] == list(range(7, 26, 2)), "it ends with what is there"
        assert ready["rests"] == [1] * 10
        assert ready["down"] == [1] * 5 + [0] * 5
        rows = {row.queue: row for row in growth_of(levels, THRESHOLDS).collect()}
        assert [queue for queue, row in rows.items() if row.growing] == ["up"]
        up = rows["up"]
        assert (up.ready_first, up.ready_last, up.ready_most) == (7, 25, 25)
        assert (up.per_hour, up.fit) == (pytest.approx(120), pytest.approx(1))
        assert rows["down"].per_hour < 0
        assert (rows["rests"].per_hour, rows["rests"].fit) == (0, None), "a line explains nothing there"


class TestReport:
    def test_nothing_suspicious_is_a_page_too(self) -> None:
        report = Report("Suspects")
        fill_report(report, NOW, THRESHOLDS, [], [], [], [])
        assert "There is nothing suspicious." in report.html()
        assert "There are no logs." in report.html()
        assert "<svg" not in report.html()

    def test_it_says_what_is_suspicious_and_why(self, found: list[Row]) -> None:
        report = Report("Suspects")
        summary = [Row(why=BURIED, queue="mails", tasks=1, longest_s=50.0, most_attempts=0)]
        growth = [
            Row(
                queue="mails",
                growing=True,
                ready_first=0,
                ready_last=9,
                ready_most=9,
                per_hour=540.0,
                fit=1.0,
            )
        ]
        levels = [Row(queue="mails", at=ago(60 * (10 - number)), ready=number) for number in range(10)]
        fill_report(report, NOW, THRESHOLDS, summary, found, growth, levels)
        page = report.html()
        assert page.count("<svg") == 2
        for text in (
            "Growing: mails.",
            "Tasks buried",
            "These tasks were buried",
            "Number of ready tasks",
        ):
            assert text in page
