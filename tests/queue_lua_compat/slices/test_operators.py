"""Operators' calls among many queues, and on many tasks."""

from __future__ import annotations

from typing import Any

import pytest

from bench.workloads.measured_queue import World
from iproto_server import BoxError
from iproto_server.server.operators.operator_calls import REPAIRS
from queue_lua_compat.tubes.tube.management import ManagedTube
from tests.queue_lua_compat.slices.meter import Meter


@pytest.fixture
def world() -> World:
    world = World("fifottl", 120, Meter())
    world.prepare()
    return world


def _count_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    original = ManagedTube.__init__

    def counted(self: ManagedTube, tube: Any, statistics: Any) -> None:
        made.append(tube.name)
        original(self, tube, statistics)

    monkeypatch.setattr(ManagedTube, "__init__", counted)
    return made


def test_one_queue_is_made_to_find_it_among_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        world.client.call("queue.create_tube", f"tube{number}", "fifo", {})
    made = _count_made(monkeypatch)
    assert world.client.call("operator.queue", "jobs")["name"] == "jobs"
    world.client.call("operator.put", "jobs", "x", {})
    assert made == ["jobs", "jobs"]


def test_a_page_of_queues_makes_no_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"tube{number:02}" for number in range(50)]
    for name in names:
        world.client.call("queue.create_tube", name, "fifo", {})
    made = _count_made(monkeypatch)
    page = world.client.call("operator.queues", {"limit": 5, "after": "tube10"})
    assert [queue["name"] for queue in page] == names[11:16]
    assert len(made) <= 6
    assert [queue["name"] for queue in world.client.call("operator.queues", {"after": "tube49"})] == []


def test_any_number_of_tasks_is_searched_for_old_ones(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_lua_compat.listed_tasks._LOOKED_AT_MAX", 3)
    world.clock.advance(600)
    page = world.client.call("operator.tasks", "jobs", {"state": "taken", "older": 300, "limit": 1000})
    assert len(page) == 120
    assert world.client.call("operator.tasks", "jobs", {"older": 1e9}) == []


def test_sessions_show_the_tasks_that_were_taken_first(world: World) -> None:
    [session] = [
        session for session in world.client.call("operator.sessions", {"limit": 7}) if session["taken"]
    ]
    taken = [task["taken_at"] for task in session["tasks"]]
    assert session["taken"] >= 120
    assert len(taken) == 7
    assert taken == sorted(taken)
    assert session["oldest_taken_at"] == taken[0]


def test_slices_of_a_repair_before_the_failing_one_stay(world: World) -> None:
    ids = world.ids("taken")[:120]
    before = world.client.call("operator.queue", "jobs")["tasks"]["taken"]
    with pytest.raises(BoxError, match=f"before it, {REPAIRS} of 121 tasks were repaired"):
        world.client.call("operator.release", "jobs", [*ids[:70], 10**6, *ids[70:]])
    assert world.client.call("operator.queue", "jobs")["tasks"]["taken"] == before - REPAIRS


def test_a_repair_of_one_slice_is_all_or_nothing(world: World) -> None:
    ids = world.ids("taken")[: REPAIRS - 1]
    before = world.client.call("operator.queue", "jobs")["tasks"]["taken"]
    with pytest.raises(BoxError, match=r'there is no task 1000000 in the queue "jobs"$'):
        world.client.call("operator.release", "jobs", [*ids, 10**6])
    assert world.client.call("operator.queue", "jobs")["tasks"]["taken"] == before
