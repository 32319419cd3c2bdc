"""Tubes and tubes of the legacy queue for operators: figures and tasks."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import ManualClock, TaskInfo
from queue_lua_compat.policies.options import TASK_OPTIONS
from tests.queue_lua_compat.managed.refusals import BURIED, DELAYED, DONE, NOW, READY, TAKEN, refused
from tests.queue_lua_compat.managed.worlds import World

OF_ALL_QUEUES = {"pause", "drain", "resume", "configure"}


class TestFigures:
    def test_names(self, world: World, client: Any) -> None:
        world.put(client, "x")
        queue = world.queue()
        assert (queue.dialect, queue.kind) == (("legacy" if world.is_legacy else "tube"), world.kind)
        assert queue.actions == {"put", "release", "kick", "bury", "delete", "move"} | OF_ALL_QUEUES
        times = {"delay", "ttl", "ttr", "pri"} if world.is_timed else set()
        own = times | ({"utube"} if world.kind.startswith("utube") else set())
        assert queue.options == own | TASK_OPTIONS

    def test_tasks_are_counted_by_state(self, world: World, client: Any) -> None:
        ids = [world.put(client, number) for number in range(4)]
        world.take(client)
        queue = world.queue()
        queue.bury(ids[3])
        expected = {READY: 2, TAKEN: 1, BURIED: 1}
        if world.is_timed:
            world.put(client, "later", delay=60)
            expected[DELAYED] = 1
        if world.is_legacy:
            expected[DONE] = 0
        assert queue.counts() == expected

    def test_calls_are_counted(self, world: World, client: Any) -> None:
        for number in range(2):
            world.put(client, number)
        world.call(client, "ack", world.take(client))
        world.call(client, "release", world.take(client))
        calls = world.queue().calls()
        assert {name: calls[name] for name in ("put", "take", "ack", "release")} == {
            "put": 2,
            "take": 2,
            "ack": 1,
            "release": 1,
        }

    def test_the_oldest_ready_task(self, world: World, client: Any, clock: ManualClock) -> None:
        world.put(client, "a", pri=5)
        assert world.queue().oldest_ready() == 0.0
        clock.advance(5)
        world.put(client, "b", pri=1)
        clock.advance(1)
        assert world.queue().oldest_ready() == pytest.approx(6, abs=0.001)
        for _ in range(2):
            task_id = world.take(client)
        assert world.queue().oldest_ready() is None
        world.call(client, "release", task_id)
        clock.advance(2)
        assert world.queue().oldest_ready() == pytest.approx(2, abs=0.001)

    def test_waits_and_services_are_measured(self, world: World, client: Any, clock: ManualClock) -> None:
        world.put(client, "x")
        clock.advance(2)
        task_id = world.take(client)
        clock.advance(3)
        world.call(client, "release", task_id)
        clock.advance(4)
        world.take(client)
        clock.advance(7)
        world.call(client, "ack", task_id)
        waits, services = world.queue().waits(), world.queue().services()
        assert waits is not None
        assert services is not None
        assert (waits.count, services.count) == (2, 1)
        assert waits.sum == pytest.approx(6, abs=0.001)
        assert services.sum == pytest.approx(7, abs=0.001)

    def test_calls_that_wait_are_counted(self, world: World) -> None:
        waiting = world.take(world.connect(), 60)
        assert world.queue().consumers_waiting() == 1
        waiting.finish()
        if not world.is_legacy:
            assert world.queue().consumers_waiting() == 0


class TestTasks:
    def test_a_taken_task_shows_its_owner(self, world: World, client: Any, clock: ManualClock) -> None:
        task_id = world.put(client, "x")
        clock.advance(1)
        world.take(client)
        clock.advance(5)
        [task] = world.queue().tasks(None, limit=9)
        assert (task.id, task.state, task.session) == (task_id, TAKEN, client.session.id)
        assert task.taken_at == pytest.approx(NOW + 1, abs=0.001)
        assert task.created == pytest.approx(NOW, abs=0.001)
        assert world.data(task) == "x"
        assert world.queue().task(task_id) == task

    def test_details_are_the_options(self, world: World, client: Any) -> None:
        given = {"pri": 3, "ttl": 100, "ttr": 10} if world.is_timed else {}
        task_id = world.put(client, "x", **given)
        task = world.queue().task(task_id)
        assert task is not None
        details = dict(task.details)
        if world.kind.startswith("utube"):
            assert details.pop("utube") == "x"
        if world.is_legacy:
            assert (details.pop("cbury"), details.pop("ctaken")) == (0, 0)
        assert details == given

    def test_a_due_time_is_shown(self, world: World, client: Any) -> None:
        if not world.is_timed:
            pytest.skip("tasks of this type have no times")
        world.put(client, "later", delay=60)
        world.put(client, "now", ttr=30)
        world.take(client)
        [delayed] = world.queue().tasks(DELAYED, limit=9)
        [taken] = world.queue().tasks(TAKEN, limit=9)
        assert delayed.due == pytest.approx(NOW + 60, abs=0.001)
        assert taken.due == pytest.approx(NOW + 30, abs=0.001)

    def test_pages_follow_each_other(self, world: World, client: Any) -> None:
        for number in range(7):
            world.put(client, number, pri=0)
        world.take(client)
        for state, expected in (
            (None, set(range(7))),
            (READY, {*range(1, 7)}),
            (TAKEN, {0}),
            (BURIED, set()),
        ):
            found: list[TaskInfo] = []
            while page := world.queue().tasks(state, limit=2, after=found[-1].id if found else None):
                assert len(page) <= 2
                found += page
            assert len(found) == len(expected)
            assert {world.data(task) for task in found} == expected

    def test_old_tasks_only(self, world: World, client: Any, clock: ManualClock) -> None:
        for name in ("old", "new"):
            world.put(client, name)
            clock.advance(10)
        queue = world.queue()
        assert [world.data(task) for task in queue.tasks(READY, limit=9, older=15)] == ["old"]
        world.take(client)
        assert queue.tasks(TAKEN, limit=9, older=1) == []
        clock.advance(1.5)
        assert [world.data(task) for task in queue.tasks(TAKEN, limit=9, older=1)] == ["old"]

    def test_ids_of_another_type_are_refused(self, world: World, client: Any) -> None:
        world.put(client, "x")
        wrong: tuple[Any, ...] = (
            (7, None) if world.is_legacy else ("x", -1, 1.5, True, None, 2**64, float("nan"))
        )
        for task_id in wrong:
            assert refused(world.queue().task, task_id).startswith(f'ids of the queue "{world.name}" are')

    def test_a_task_that_is_not_there(self, world: World, client: Any) -> None:
        world.put(client, "x")
        queue = world.queue()
        missing: Any = "none" if world.is_legacy else 99
        assert queue.task(missing) is None
        for action in (queue.release, queue.bury, queue.delete):
            assert refused(action, missing) == f'there is no task {missing} in the queue "{world.name}"'
