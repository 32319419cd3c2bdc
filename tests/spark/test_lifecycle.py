"""Lifecycle on logs: what is computed must be what was done, to the microsecond."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from spark.lifetimes import Lifecycle, lifecycle_of
from spark.queues import queue_kind
from tests.spark.queues.book import Book, Written
from tests.spark.queues.scripted import (
    Actions,
    LegacyActions,
    ScriptedServer,
    TubeActions,
    TutorialActions,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

QUEUES: dict[str, tuple[str, Callable[[ScriptedServer], Actions]]] = {
    "tutorial": ("tutorial", TutorialActions),
    "older queue": ("legacy", LegacyActions),
    "fifottl": ("tubes", TubeActions),
}


def events_of(spark: SparkSession, queue: str, directory: Path) -> DataFrame:
    return queue_kind(queue).events(spark, str(directory), {})


def micros(moment: datetime | None) -> int | None:
    return None if moment is None else (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def seconds(microseconds: int) -> float:
    return microseconds / 1e6


def as_written(row: Row) -> dict[str, object]:
    """What a row of `tasks` says, in the words of `expected_of`."""
    moments = ("put_at", "ready_at", "first_taken_at", "last_taken_at", "done_at")
    same = ("id", "attempts", "outcome", "released", "timed_out", "buried")
    times = ("first_waiting_s", "waiting_s", "service_s", "in_system_s")
    return {name: micros(row[name]) for name in moments} | {name: row[name] for name in (*same, *times)}


def expected_of(task: Written) -> dict[str, object]:
    """What a row of `tasks` has to say of a task."""
    ended = sum(end - begin for begin, end in zip(task.taken_us, task.ended_us, strict=False))
    return {
        "put_at": task.put_us,
        "ready_at": task.ready_us,
        "first_taken_at": task.taken_us[0] if task.taken_us else None,
        "last_taken_at": task.taken_us[-1] if task.taken_us else None,
        "done_at": task.done_us,
        "id": task.id,
        "attempts": len(task.taken_us),
        "outcome": task.outcome,
        **task.counts,
        "first_waiting_s": seconds(task.waits_us[0]) if task.waits_us else None,
        "waiting_s": seconds(sum(task.waits_us)) if task.waits_us else None,
        "service_s": seconds(ended) if task.ended_us else None,
        "in_system_s": None if task.done_us is None else seconds(task.done_us - task.put_us),
    }


class TestScripted:
    """A random load on a server of ours, whose time the test moves."""

    @pytest.fixture(scope="class", params=QUEUES)
    def scripted(
        self, request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
    ) -> tuple[Book, Lifecycle]:
        queue, actions = QUEUES[request.param]
        directory = tmp_path_factory.mktemp("scripted")
        server = ScriptedServer(directory, queue)
        book = Book(actions(server), seed=7)
        book.run(300)
        server.close()
        return book, lifecycle_of(events_of(spark, queue, directory).cache())

    def test_each_task_has_the_times_of_the_script(self, scripted: tuple[Book, Lifecycle]) -> None:
        book, lifecycle = scripted
        rows = lifecycle.tasks.orderBy("put_at").collect()
        assert [as_written(row) for row in rows] == [expected_of(task) for task in book.tasks]
        assert {row.lateness_s for row in rows} == {None, 0.0}, "timers were in time"
        assert all(row.is_put_logged for row in rows)
