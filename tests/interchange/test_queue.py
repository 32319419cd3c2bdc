"""The tutorial's queue moves: tasks of either server are taken by the other, which runs queue.lua or ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.interchange.database.home import DIRECTIONS, Home, Inhabitant, Server
from tests.interchange.database.statements import snapshot
from tests.real_tarantool import queue_application
from tests.running_server import QUEUE_APPLICATION

READY, TAKEN, WAITING = "R", "T", "W"
HOUR = 3600


@contextmanager
def queue_of(home: Home, who: Server) -> Iterator[Inhabitant]:
    """Run a server of the queue."""
    lua = queue_application()
    with home.of(who, applications=[QUEUE_APPLICATION], lua=lua) as inhabitant:
        yield inhabitant


def put(inhabitant: Inhabitant, data: Any, **options: Any) -> Any:
    """Put a task, and return its id."""
    (task,) = inhabitant.call("queue.put", data, *([options] if options else [])).data
    return task["id"]


def take(inhabitant: Inhabitant) -> Any:
    """Take a task, and return its id and its data."""
    (task,) = inhabitant.call("queue.take", 10).data
    return task["id"], task["data"]


def statuses(inhabitant: Inhabitant) -> dict[Any, str]:
    """Return the status of each task, by its data."""
    client = inhabitant.client
    return {row[3]: row[1] for row in client.everything(client.space_id("queue")).data}


def counters(inhabitant: Inhabitant) -> dict[str, int]:
    """Return the queue's counters."""
    (stats,) = inhabitant.call("queue.stats").data
    return {name: stats[name] for name in ("ready", "taken", "waiting", "total")}


@pytest.mark.parametrize("first", DIRECTIONS, ids=lambda who: f"from-{who}")
class TestQueue:
    @pytest.mark.parametrize("kept_in", ["log", "snapshot"])
    def test_tasks_of_every_status_are_taken_by_the_other_one(
        self, home: Home, first: Server, kept_in: str
    ) -> None:
        with queue_of(home, first) as inhabitant:
            for data in ("acknowledged", "released", "released for later", "taken", "ready"):
                put(inhabitant, data)
            for data in ("waiting", "waiting, too"):
                put(inhabitant, data, delay=HOUR)
            taken = [take(inhabitant) for _ in range(4)]
            assert [data for _, data in taken] == ["acknowledged", "released", "released for later", "taken"]
            inhabitant.call("queue.ack", taken[0][0])
            inhabitant.call("queue.release", taken[1][0])
            inhabitant.call("queue.release", taken[2][0], {"delay": HOUR})
            if kept_in == "snapshot":
                inhabitant.do([snapshot()])
            assert statuses(inhabitant) == {
                "released": READY,
                "released for later": WAITING,
                "taken": TAKEN,
                "ready": READY,
                "waiting": WAITING,
                "waiting, too": WAITING,
            }
            # A killed server cannot release its clients' tasks; the next one does.
            inhabitant.kill()
        with queue_of(home, first.other) as inhabitant:
            assert counters(inhabitant) == {"ready": 3, "taken": 0, "waiting": 3, "total": 6}
            assert [take(inhabitant)[1] for _ in range(2)] == ["released", "taken"]
            put(inhabitant, "put by the other one")
            inhabitant.kill()
        with queue_of(home, first) as inhabitant:
            assert counters(inhabitant) == {"ready": 4, "taken": 0, "waiting": 3, "total": 7}
            for data in ("released", "taken", "ready", "put by the other one"):
                key, found = take(inhabitant)
                assert found == data
                inhabitant.call("queue.ack", key)
            assert counters(inhabitant) == {"ready": 0, "taken": 0, "waiting": 3, "total": 3}

    def test_a_delay_goes_on_in_the_other_one(self, home: Home, first: Server) -> None:
        with queue_of(home, first) as inhabitant:
            put(inhabitant, "soon", delay=0.3)
            inhabitant.kill()
        with queue_of(home, first.other) as inhabitant:
            assert take(inhabitant)[1] == "soon"

    def test_its_definition_is_the_same(self, home: Home, first: Server) -> None:
        """A server that finds the other's queue need not define anything."""
        with queue_of(home, first) as inhabitant:
            put(inhabitant, {"any": [1, None]})
            kept = inhabitant.contents()
        with queue_of(home, first.other) as inhabitant:
            found = inhabitant.contents()
        for index in ("_space.primary", "_index.primary", "queue.primary", "queue.status", "queue.runat"):
            assert found.of(index) == kept.of(index)
