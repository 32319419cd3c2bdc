"""Events of the tutorial's queue, in logs of this server and of a real Tarantool."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.queues.dialect import DATA, DUE, ID, STATUS, QueueSpace
from pyspark_tarantool.queues.tutorial import TutorialQueue
from tests.spark.queues.logs import Log, micros, told

SPACE = QueueSpace(512, "queue", ("id", "status", "runat", "data"), {ID: 0, STATUS: 1, DUE: 2, DATA: 3})
NANOSECONDS = micros() * 1000
RUNAT = micros() / 1e6


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> dict[str, list[dict[str, Any]]]:
    """A task for each story, all in one log. Ids of real tasks are moments."""
    log = Log()
    log.create()
    # As this server logs it: whole rows.
    log.at(0).insert(NANOSECONDS + 7, "W", RUNAT + 10, {"to": "ann"})
    log.at(10.5).replace(NANOSECONDS + 7, "R", 0, {"to": "ann"})
    log.at(12).replace(NANOSECONDS + 7, "T", 0, {"to": "ann"})
    log.at(15).replace(NANOSECONDS + 7, "W", RUNAT + 20.25, {"to": "ann"})
    log.at(20.25).replace(NANOSECONDS + 7, "R", 0, {"to": "ann"})
    log.at(21).replace(NANOSECONDS + 7, "T", 0, {"to": "ann"})
    log.at(22).replace(NANOSECONDS + 7, "R", 0, {"to": "ann"})
    log.at(23).replace(NANOSECONDS + 7, "T", 0, {"to": "ann"})
    log.at(24.000001).delete(NANOSECONDS + 7)
    # As a real Tarantool logs it: operations.
    log.at(0).insert(1, "R", 0, "data")
    log.at(1).update(1, ["=", 1, "T"])
    log.at(2).update(1, ["=", 1, "R"], ["=", 2, 0])
    log.at(3).update(1, ["=", "status", "T"])
    log.at(4).update(1, ["=", 1, "R"])
    log.at(5).update(1, ["=", 1, "T"])
    log.at(6).update(1, ["=", 1, "W"], ["=", 2, RUNAT + 8])
    log.at(8.5).update(1, ["=", 1, "R"], ["=", 2, 0])
    # Put before the log begins.
    log.at(30).replace(NANOSECONDS - 5_000_000_000, "T", 0, "data")
    log.at(31).delete(NANOSECONDS - 5_000_000_000)
    log.at(32).delete(3)
    log.at(33).update(4, ["=", 1, "R"], ["=", 2, 0])
    # Deleted by a client, and put again with the same id; changed for no reason.
    log.at(40).insert(5, "R", 0, "first")
    log.at(41).delete(5)
    log.at(42).replace(5, "R", 0, "second")
    log.at(43).replace(5, "R", 0, "changed")
    log.at(44).replace(5, "X", 0, "changed")
    # Truncated twice.
    log.at(50).insert(6, "R", 0, "data")
    log.at(51).replace(6, "T", 0, "data")
    log.at(52).truncate()
    log.at(53).insert(6, "R", 0, "data")
    log.at(54).truncate_again()
    # The clock is set back; then another member becomes master, and the first one again.
    log.at(100).insert(7, "R", 0, "data")
    log.at(95).replace(7, "T", 0, "data")
    log.member = 2
    log.at(101).replace(7, "R", 0, "data")
    log.member = 1
    log.at(102).replace(7, "T", 0, "data")
    return log.events(spark, [SPACE], TutorialQueue.dialect)


def test_a_task_from_put_to_ack(events: dict[str, list[dict[str, Any]]]) -> None:
    life = events[str(NANOSECONDS + 7)]
    assert told(life, "at", "status_before", "status_after", "since", "due_before", "due") == [
        ("put", 0, None, "delayed", None, None, 10),
        ("ready", 10.5, "delayed", "ready", 0, 10, None),
        ("taken", 12, "ready", "taken", 10.5, None, None),
        ("released", 15, "taken", "delayed", 12, None, 20.25),
        ("ready", 20.25, "delayed", "ready", 15, 20.25, None),
        ("taken", 21, "ready", "taken", 20.25, None, None),
        ("released", 22, "taken", "ready", 21, None, None),
        ("taken", 23, "ready", "taken", 22, None, None),
        ("acked", 24.000001, "taken", None, 23, None, None),
    ]
    assert {(event["queue"], event["life"], event["created"]) for event in life} == {("queue", 1, 0)}
    assert [event["number"] for event in life] == list(range(1, 10))
    assert {event["payload_bytes"] for event in life} == {len(b"\x81\xa2to\xa3ann")}


def test_updates_of_a_real_tarantool(events: dict[str, list[dict[str, Any]]]) -> None:
    assert told(events["1"], "status_after", "due")[:8] == [
        ("put", "ready", None),
        ("taken", "taken", None),
        ("released", "ready", None),
        ("taken", "taken", None),
        ("returned", "ready", None),
        ("taken", "taken", None),
        ("released", "delayed", 8),
        ("ready", "ready", None),
    ]
    assert events["1"][0]["created"] is None, "its id is no moment"


def test_tasks_that_were_there_before_the_log(events: dict[str, list[dict[str, Any]]]) -> None:
    seen = events[str(NANOSECONDS - 5_000_000_000)]
    assert told(seen, "life", "status_before", "created") == [
        ("taken", 0, None, -5),
        ("acked", 0, "taken", -5),
    ]
    assert told(events["3"], "life") == [("removed", 0)]
    assert told(events["4"], "life", "status_before") == [
        ("ready", 0, None),
        ("truncated", 0, "ready"),
    ]


def test_what_clients_do_to_the_space_themselves(events: dict[str, list[dict[str, Any]]]) -> None:
    assert told(events["5"], "life", "status_after")[:5] == [
        ("put", 1, "ready"),
        ("deleted", 1, None),
        ("put", 2, "ready"),
        ("changed", 2, "ready"),
        ("changed", 2, "X"),
    ]


def test_a_truncation_ends_all_tasks(events: dict[str, list[dict[str, Any]]]) -> None:
    assert told(events["6"], "life", "number", "at", "status_before", "lsn") == [
        ("put", 1, 1, 50, None, 28),
        ("taken", 1, 2, 51, "ready", 29),
        ("truncated", 1, 3, 52, "taken", 30),
        ("put", 2, 4, 53, None, 31),
        ("truncated", 2, 5, 54, "ready", 32),
    ]
    assert told(events["1"])[-1] == "truncated"
    assert told(events["3"]) == ["removed"], "what is gone is not truncated"


def test_events_are_in_order_whatever_clocks_say(events: dict[str, list[dict[str, Any]]]) -> None:
    assert told(events["7"], "at", "replica_id") == [
        ("put", 100, 1),
        ("taken", 95, 1),
        ("released", 101, 2),
        ("taken", 102, 1),
    ]
