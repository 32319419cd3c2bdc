"""Lifecycle on logs: what is computed must be what was done, to the microsecond."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from pyspark_tarantool.jobs.task_lifetimes import Lifecycle, lifecycle_of
from pyspark_tarantool.lifecycle import lifecycle
from pyspark_tarantool.queues import queue_kind
from tests.iproto_client import IprotoClient
from tests.queue_lua_compat.real_tubes import tubes_application
from tests.real_tarantool import RealTarantool, queue_application
from tests.spark.interpreted import interpreted
from tests.spark.queues.book import Book, Written
from tests.spark.queues.scripted import (
    Actions,
    LegacyActions,
    ScriptedServer,
    TubeActions,
    TutorialActions,
)

LATE_US = 5_000_003
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

QUEUES: dict[str, tuple[str, Callable[[ScriptedServer], Actions]]] = {
    "tutorial": ("tutorial", TutorialActions),
    "older queue": ("legacy", LegacyActions),
    "fifottl": ("tubes", TubeActions),
}


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
    """The expected row of `tasks`."""
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


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark: SparkSession) -> Iterator[None]:
    with interpreted(spark):
        yield


@pytest.fixture(scope="module", params=QUEUES)
def scripted(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Book, Lifecycle]:
    """A random load on a server of ours whose time the test moves, and what is computed from its log."""
    queue, actions = QUEUES[request.param]
    directory = tmp_path_factory.mktemp("scripted")
    server = ScriptedServer(directory, queue)
    book = Book(actions(server), seed=7)
    book.be_late(LATE_US)
    book.run(300)
    server.close()
    return book, lifecycle_of(queue_kind(queue).events(spark, str(directory), {}).cache())


def test_each_task_has_the_times_of_the_script(scripted: tuple[Book, Lifecycle]) -> None:
    book, found = scripted
    rows = found.tasks.orderBy("put_at").collect()
    assert [as_written(row) for row in rows] == [expected_of(task) for task in book.tasks]
    assert rows[0].lateness_s == seconds(LATE_US)
    assert {row.lateness_s for row in rows[1:]} == {None, 0.0}, "timers were in time"
    assert all(row.is_put_logged for row in rows)
    assert sum(len(task.waits_us) for task in book.tasks) > 90, "the script does enough"


def test_each_attempt_has_the_times_of_the_script(scripted: tuple[Book, Lifecycle]) -> None:
    book, found = scripted
    rows = found.measured.select("waiting_s", "service_s").collect()
    waits = [seconds(each) for task in book.tasks for each in task.waits_us]
    services = [
        seconds(end - begin)
        for task in book.tasks
        for begin, end in zip(task.taken_us, task.ended_us, strict=False)
    ]
    assert sorted(row.waiting_s for row in rows if row.waiting_s is not None) == sorted(waits)
    assert sorted(row.service_s for row in rows if row.service_s is not None) == sorted(services)


@pytest.mark.parametrize("scripted", ["older queue"], indirect=True)
def test_minutes_add_up(scripted: tuple[Book, Lifecycle]) -> None:
    book, found = scripted
    moments = {
        "puts": [task.put_us for task in book.tasks],
        "takes": [each for task in book.tasks for each in task.taken_us],
        "acks": [task.done_us for task in book.tasks if task.done_us and task.outcome == "acked"],
        "others_gone": [task.done_us for task in book.tasks if task.done_us and task.outcome == "deleted"],
    }
    minutes = {name: Counter(each // 60_000_000 for each in found) for name, found in moments.items()}
    rows = found.per_minute.collect()
    assert set().union(*minutes.values()) <= {minute_of(row) for row in rows}
    backlog = 0
    for row in rows:
        minute = minute_of(row)
        for name, counts in minutes.items():
            assert row[name] == counts[minute], name
        backlog += row.puts - row.acks - row.others_gone
        assert row.backlog == backlog
        waits = waits_of(book, minute)
        assert row.waiting_count == (len(waits) or None)
        if waits:
            assert (row.waiting_p50_s, row.waiting_p90_s) == (share_of(waits, 0.5), share_of(waits, 0.9))
            assert row.waiting_max_s == waits[-1]
    assert sum(row.timeouts for row in rows) == sum(task.counts["timed_out"] for task in book.tasks)
    assert sum(row.releases for row in rows) == sum(task.counts["released"] for task in book.tasks)


@pytest.mark.parametrize("scripted", ["older queue"], indirect=True)
def test_queues_are_summed_up(scripted: tuple[Book, Lifecycle]) -> None:
    book, found = scripted
    [row] = found.per_queue.collect()
    assert (row.queue, row.tasks, row.tasks_before_logs) == ("queue_0/mails", len(book.tasks), 0)
    outcomes = Counter(task.outcome for task in book.tasks)
    for name in ("acked", "deleted", "buried", "open"):
        assert row[name] == outcomes[name]
    assert row.attempts == sum(len(task.taken_us) for task in book.tasks)
    assert row.attempts_max == max(len(task.taken_us) for task in book.tasks)
    assert row.timed_out == sum(task.counts["timed_out"] for task in book.tasks)
    waits = waits_of(book)
    first = sorted(seconds(task.waits_us[0]) for task in book.tasks if task.waits_us)
    whole = sorted(seconds(task.done_us - task.put_us) for task in book.tasks if task.done_us)
    for name, values in {"waiting": waits, "first_waiting": first, "in_system": whole}.items():
        shares = [row[f"{name}_{share}_s"] for share in ("p50", "p90", "p95", "p99")]
        assert shares == [share_of(values, share) for share in (0.5, 0.9, 0.95, 0.99)]
        assert (row[f"{name}_count"], row[f"{name}_max_s"]) == (len(values), values[-1])
    assert (row.lateness_p50_s, row.lateness_max_s) == (0.0, seconds(LATE_US))


def waits_of(book: Book, minute: int | None = None) -> list[float]:
    """How long tasks had waited when they were taken, in order; of one minute or of all."""
    return sorted(
        seconds(wait)
        for task in book.tasks
        for taken, wait in zip(task.taken_us, task.waits_us, strict=True)
        if minute in (None, taken // 60_000_000)
    )


def share_of(values: list[float], share: float) -> float:
    """The smallest of some values in order that so many of them do not exceed."""
    return values[math.ceil(round(share * len(values), 6)) - 1]


def minute_of(row: Row) -> int:
    found = micros(row.minute)
    assert found is not None
    return found // 60_000_000


@pytest.mark.real_tarantool
def test_logs_of_a_real_tarantool(spark: SparkSession, tmp_path: Path) -> None:
    """Its clock cannot be moved, so what must be is an order of moments, not moments."""
    with RealTarantool(tmp_path, queue_application(), {"wal_mode": "'write'"}) as server:
        producer = IprotoClient(server.host, server.port)
        consumer = IprotoClient(server.host, server.port)
        puts = [producer.call("queue.put", {"number": number}).data[0]["id"] for number in range(20)]
        late = producer.call("queue.put", "late", {"delay": 0.3}).data[0]["id"]
        taken = [consumer.call("queue.take", 1).data[0]["id"] for _ in range(20)]
        for number, task in enumerate(taken):
            if number % 2:
                consumer.call("queue.ack", task)
            elif number % 4:
                consumer.call("queue.release", task)
            else:
                consumer.call("queue.release", task, {"delay": 0.2})
        again = producer.call("queue.take", 1).data[0]["id"]
        producer.close()
        slept = [consumer.call("queue.take", 5).data[0]["id"] for _ in range(11)]
        for task in slept:
            consumer.call("queue.ack", task)
        consumer.close()
    assert sorted(taken) == sorted(puts)
    assert sorted(slept) == sorted([*taken[::2], late])
    found = lifecycle_of(queue_kind("tutorial").events(spark, str(tmp_path), {}).cache())
    rows = {int(row.id): row for row in found.tasks.collect()}
    assert sorted(rows) == sorted([*puts, late])
    for task, row in rows.items():
        assert (row.outcome, row.life, row.timed_out, row.lateness_s is not None) == (
            *("acked", 1, 0),
            task == late or task in taken[::4],
        )
        assert abs((micros(row.put_at) or 0) - task // 1000) < 1_000_000, "an id is the moment of the put"
        assert row.put_at <= row.ready_at <= row.first_taken_at <= row.last_taken_at <= row.done_at
        assert row.attempts == 1 + (task in taken[::2]) + (task == again)
        assert row.waiting_s >= row.first_waiting_s >= 0
        if row.lateness_s is not None:
            assert row.lateness_s >= 0
    events = Counter(row.event for row in found.measured.select("event").collect())
    assert events == {
        "put": 21,
        "ready": 6,
        "taken": 32,
        "released": 10,
        "returned": 1,
        "acked": 21,
    }


@pytest.mark.real_tarantool
def test_logs_of_the_real_queue_module(spark: SparkSession, tmp_path: Path) -> None:
    lua = "queue.create_tube('mails', 'fifottl', {if_not_exists = true})"
    application = f"{tubes_application()}\n{lua}"
    with RealTarantool(tmp_path, application, {"wal_mode": "'write'"}) as server:
        client = IprotoClient(server.host, server.port)

        def call(name: str, *arguments: object) -> int:
            answer = client.call(f"queue.tube.mails:{name}", *arguments)
            assert answer.ok, answer.error
            task_id: int = answer.data[0][0]
            return task_id

        times_out = call("put", "data", {"delay": 0.1, "ttr": 2})
        assert call("take", 30) == call("take", 30) == times_out
        call("touch", times_out, 100)
        call("release", times_out)
        assert call("take", 5) == times_out
        call("ack", times_out)
        again = call("put", "data")
        assert again == times_out, "its number is free"
        call("bury", again)
        client.close()
    found = lifecycle_of(queue_kind("tubes").events(spark, str(tmp_path), {}).cache())
    first, second = found.tasks.orderBy("life").collect()
    assert (first.outcome, first.attempts, first.timed_out, first.released) == ("acked", 3, 1, 1)
    assert first.lateness_s >= 0
    assert first.service_s >= 2
    assert (second.outcome, second.life, second.attempts) == ("buried", 2, 0)
    events = found.measured.orderBy("number").collect()
    assert [row.event for row in events] == [
        *("put", "ready", "taken", "timed_out", "taken", "touched", "released", "taken", "acked"),
        *("put", "buried"),
    ]
    touched = events[5]
    assert touched.due - touched.due_before == timedelta(seconds=100)


def test_the_job_shows_writes_and_draws(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs, results, page = tmp_path / "logs", tmp_path / "results", tmp_path / "page.html"
    logs.mkdir()
    server = ScriptedServer(logs, "tubes")
    book = Book(TubeActions(server), seed=3)
    book.run(60)
    server.close()
    command = [str(logs), "--queue", "tubes", "--output", str(results), "--format", "json"]
    assert lifecycle.run([*command, "--report", str(page)]) == 0
    shown = capsys.readouterr().out
    for text in ("Outcomes of tasks", "mails", "first_waiting", "Minutes with events"):
        assert text in shown
    written = {
        name: [
            json.loads(line)
            for file in (results / name).glob("*.json")
            for line in file.read_text().splitlines()
        ]
        for name in ("tasks", "per_queue", "per_minute")
    }
    assert len(written["tasks"]) == len(book.tasks)
    assert [row["tasks"] for row in written["per_queue"]] == [len(book.tasks)]
    assert sum(row["takes"] for row in written["per_minute"]) == written["per_queue"][0]["attempts"]
    html = page.read_text()
    assert html.count("<svg") == 8
    for text in ("Waiting time", "Time (UTC)", "Backlog", "p99", "mails", "1 s to 2 s"):
        assert text in html


def test_a_directory_without_the_queue_is_refused(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ScriptedServer(tmp_path, "tutorial").close()
    assert lifecycle.run([str(tmp_path), "--queue", "tubes"]) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.removeprefix("pyspark_tarantool.lifecycle: ") == (
        "there are no tubes: tubes have the fields task_id, status, data or more"
    )


@pytest.mark.parametrize("scripted", ["fifottl"], indirect=True)
def test_the_state_behind_the_log_is_that_of_the_script(
    scripted: tuple[Book, Lifecycle], spark: SparkSession
) -> None:
    book, _ = scripted
    rows = queue_kind("tubes").tasks(spark, str(book.directory), {"mode": "current"}).collect()
    assert sorted((row.id, row.status, micros(row.due), row.queue) for row in rows) == sorted(
        (task.id, task.status, task.due_us, "mails") for task in book.tasks if task.done_us is None
    )
