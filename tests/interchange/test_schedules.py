"""Schedules move: a real Tarantool opens a database with them, and our server goes on afterwards."""

from __future__ import annotations

import time

import pytest

from tests.interchange.database.contents import assert_same
from tests.interchange.database.home import OURS, TARANTOOL, Home, Inhabitant
from tests.interchange.database.statements import snapshot
from tests.interchange.test_tubes import call, create, tubes_of
from tests.running_server import QUEUE_APPLICATION

EACH_SECOND = "* * * * * *"
DEADLINE = 30.0


def wait_for_task(inhabitant: Inhabitant, count: int) -> None:
    """Wait until the queue has so many tasks."""
    end = time.monotonic() + DEADLINE
    while inhabitant.call("queue.stats").data[0]["total"] < count:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("kept_in", ["log", "snapshot"])
def test_a_tarantool_keeps_schedules(home: Home, kept_in: str) -> None:
    definition = {
        "queue": "queue",
        "cron": EACH_SECOND,
        "timezone": "Europe/Berlin",
        "data": {"n": [1, None]},
        "options": {"delay": 3600},
    }
    with home.of(OURS, applications=[QUEUE_APPLICATION]) as ours:
        assert ours.call("operator.schedule", "often", definition).ok
        wait_for_task(ours, 1)
        assert ours.call("operator.schedule", "often", {**definition, "cron": "0 0 1 1 *"}).ok
        assert ours.call("operator.schedule", "never put", {"queue": "queue", "cron": "0 0 1 1 *"}).ok
        if kept_in == "snapshot":
            ours.do([snapshot()])
        before = ours.contents()
        tasks = ours.call("queue.stats").data[0]["total"]
    with home.of(TARANTOOL) as theirs:
        assert_same(theirs.contents(), before)
        [often] = theirs.evaluate("return box.space._queue_schedules:get('often'):tomap({names_only = true})")
        assert [often["name"], often["queue"]] == ["often", "queue"]
        assert often["last_due"] <= often["last_put"]
        assert theirs.evaluate("return box.space._queue_schedules:len()") == [2]
    with home.of(OURS, applications=[QUEUE_APPLICATION]) as ours:
        assert ours.call("operator.schedule", "often", definition).ok
        wait_for_task(ours, tasks + 1)


def test_the_queue_module_serves_tubes_with_schedules(home: Home) -> None:
    with tubes_of(home, OURS) as ours:
        create(ours, "jobs", "fifottl", {})
        assert ours.call("operator.schedule", "often", {"queue": "jobs", "cron": EACH_SECOND, "data": "x"}).ok
        task = call(ours, "jobs", "take", DEADLINE)
        assert task[2] == "x"
        call(ours, "jobs", "ack", task[0])
        assert ours.call("operator.schedule", "often", {"queue": "jobs", "cron": "0 0 1 1 *"}).ok
        call(ours, "jobs", "put", "y")
    with tubes_of(home, TARANTOOL) as theirs:
        while (task := call(theirs, "jobs", "take", 0.1))[2] != "y":
            call(theirs, "jobs", "ack", task[0])
        call(theirs, "jobs", "ack", task[0])
    with tubes_of(home, OURS) as ours:
        assert ours.call("operator.schedule", "often", {"queue": "jobs", "cron": EACH_SECOND, "data": "z"}).ok
        assert call(ours, "jobs", "take", DEADLINE)[2] == "z"
