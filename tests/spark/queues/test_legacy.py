"""Events of the older queue, whose rows this server logs as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.queues.dialect import CREATED, DATA, DUE, ID, PRIORITY, STATUS, TTL, TUBE, QueueSpace
from pyspark_tarantool.queues.legacy import LegacyQueue
from tests.spark.queues.logs import Log, micros, told

SPACE = QueueSpace(
    512,
    "queue_0",
    ("id", "tube", "status", "next_event", "ipri", "pri", "cid", "created", "ttl", "ttr", "cbury", "ctaken"),
    {ID: 0, TUBE: 1, STATUS: 2, DUE: 3, PRIORITY: 5, CREATED: 7, TTL: 8, DATA: 12},
)
TTL_S, TTR_S = 100, 5


def row(task: str, status: str, due: float, *, ttl: float = TTL_S, created: float = 0) -> list[Any]:
    times = (micros(created), round(ttl * 1e6), TTR_S * 1_000_000)
    return [task, "mails", status, micros(due), 127, 127, 0, *times, 0, 0, "some", "data"]


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    """A task for each story, all in one log."""
    log = Log()
    for task in ("times out", "is released", "is buried", "is done", "is delayed", "expires", "is deleted"):
        delayed = task == "is delayed"
        log.at(0).insert(*row(task, "d" if delayed else "r", 3 if delayed else TTL_S))
        log.at(1 if not delayed else 3.25).replace(
            *row(task, "r" if delayed else "t", TTL_S if delayed else 6)
        )
    log.at(4).replace(*row("times out", "t", 9))
    # A row's timestamp is that of its batch, which may have begun before the moment.
    log.at(8.995).replace(*row("times out", "r", TTL_S))
    log.at(9).replace(*row("times out", "t", 14))
    log.at(10).delete("times out")
    log.at(5.9).replace(*row("is released", "r", TTL_S))
    log.at(7).replace(*row("is released", "t", 12))
    log.at(8).replace(*row("is released", "d", 20, ttl=50))
    log.at(2).replace(*row("is buried", "b", TTL_S))
    log.at(3).replace(*row("is buried", "r", TTL_S))
    log.at(2).replace(*row("is done", "*", TTL_S))
    log.at(TTL_S).delete("is done")
    log.at(2).replace(*row("is deleted", "r", TTL_S))
    log.at(3).delete("is deleted")
    log.at(TTL_S + 0.5).delete("expires")
    log.at(1).delete("was there before")
    return log.events(spark, [SPACE], LegacyQueue.dialect)


def test_time_to_run_that_is_over(events: dict[str, list[dict[str, Any]]]) -> None:
    assert told(events["times out"], "at", "due_before", "due") == [
        ("put", 0, None, None),
        ("taken", 1, None, 6),
        ("touched", 4, 6, 9),
        ("timed_out", 8.995, 9, None),
        ("taken", 9, None, 14),
        ("acked", 10, 14, None),
    ]
    assert events["times out"][3]["since"] == 1, "a touch is no new attempt"


def test_release(events: dict[str, list[dict[str, Any]]]) -> None:
    assert told(events["is released"], "status_after", "due")[2:] == [
        ("released", "ready", None),
        ("taken", "taken", 12),
        ("released", "delayed", 20),
    ]


def test_delay_that_is_over(events: dict[str, list[dict[str, Any]]]) -> None:
    assert told(events["is delayed"], "at", "due_before", "due") == [
        ("put", 0, None, 3),
        ("ready", 3.25, 3, None),
    ]


def test_the_rest_of_what_can_happen(events: dict[str, list[dict[str, Any]]]) -> None:
    assert told(events["is buried"]) == ["put", "taken", "buried", "kicked"]
    assert told(events["is done"], "status_before") == [
        ("put", None),
        ("taken", "ready"),
        ("done", "taken"),
        ("expired", "done"),
    ]
    assert told(events["is deleted"]) == ["put", "taken", "released", "deleted"]
    assert told(events["expires"]) == ["put", "taken", "expired"], "a taken task is not spared"


def test_a_queue_is_a_tube_of_a_space(events: dict[str, list[dict[str, Any]]]) -> None:
    assert {event["queue"] for event in events["is done"]} == {"queue_0/mails"}
    assert told(events["was there before"], "queue") == [("removed", "queue_0/?")], "nothing tells its tube"


def test_what_is_known_of_a_task(events: dict[str, list[dict[str, Any]]]) -> None:
    assert {event["created"] for event in events["is done"]} == {0}
    assert {event["payload_bytes"] for event in events["is done"]} == {len(b"\xa4some\xa4data")}
