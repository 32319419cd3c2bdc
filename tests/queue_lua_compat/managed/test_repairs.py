"""Tubes and tubes of the legacy queue for operators: repairs."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import BoxError, ManualClock
from tests.queue_lua_compat.conftest import answered
from tests.queue_lua_compat.managed.refusals import BURIED, DELAYED, DONE, NOW, READY, TAKEN, refused
from tests.queue_lua_compat.managed.worlds import TUBES, World


class TestRepairs:
    def test_a_taken_task_is_released_from_its_session(self, world: World, client: Any) -> None:
        world.put(client, "x")
        task_id = world.take(client)
        assert world.repair(world.queue().release, task_id).state == READY
        assert refused(world.call, client, "ack", task_id)
        other = world.connect()
        assert world.take(other) == task_id
        client.close()  # its end does not take the task from its new owner
        assert world.call(other, "ack", task_id)[0] == task_id

    @pytest.mark.parametrize("action", ["release", "kick"])
    def test_waiting_consumers_are_served(self, world: World, client: Any, action: str) -> None:
        world.put(client, "x")
        task_id = world.take(client)
        queue = world.queue()
        if action == "kick":
            world.repair(queue.bury, task_id)
        waiting = world.take(world.connect(), 60)
        assert not waiting.is_done
        world.repair(getattr(queue, action), 1 if action == "kick" else task_id)
        assert answered(waiting)[0] == task_id

    def test_a_buried_task_is_not_taken_until_it_is_released(self, world: World, client: Any) -> None:
        task_id = world.put(client, "x")
        queue = world.queue()
        assert world.repair(queue.bury, task_id).state == BURIED
        assert world.take(client) is None
        assert refused(queue.bury, task_id).endswith("is buried")
        assert world.repair(queue.release, task_id).state == READY
        assert world.take(client) == task_id

    def test_a_ready_one_is_ready(self, world: World, client: Any) -> None:
        task_id = world.put(client, "x")
        assert refused(world.queue().release, task_id).endswith("is ready")

    def test_a_delayed_task_is_made_ready(self, world: World, client: Any) -> None:
        if not world.is_timed:
            pytest.skip("tasks of this type have no times")
        task_id = world.put(client, "x", delay=60)
        assert world.repair(world.queue().release, task_id).state == READY
        assert world.take(client) == task_id

    def test_buried_tasks_are_kicked(self, world: World, client: Any) -> None:
        queue_ids = [world.put(client, number) for number in range(3)]
        queue = world.queue()
        for task_id in queue_ids:
            queue.bury(task_id)
        assert world.repair(queue.kick, 2) == 2
        assert world.repair(queue.kick, 2) == 1
        assert world.repair(queue.kick, 2) == 0
        assert queue.counts()[READY] == 3

    def test_a_task_of_any_session_is_deleted(self, world: World, client: Any) -> None:
        world.put(client, "x")
        task_id = world.take(client)
        assert world.repair(world.queue().delete, task_id).state == TAKEN
        assert world.queue().task(task_id) is None
        assert refused(world.call, client, "ack", task_id)

    def test_a_put_serves_a_waiting_consumer(self, world: World) -> None:
        waiting = world.take(world.connect(), 60)
        task = world.repair(world.queue().put, "x", {})
        assert answered(waiting)[0] == task.id

    def test_unknown_options_are_refused(self, world: World, client: Any) -> None:
        world.put(client, "x")
        assert "has no option 'timeout'" in refused(world.queue().put, "x", {"timeout": 5})
        if world.is_timed:
            refused(world.queue().put, "x", {"ttl": "soon"})
        assert world.queue().counts()[READY] == 1

    def test_a_list_is_data(self, world: World, client: Any) -> None:
        world.put(client, "x")
        task = world.queue().put(["a", "b"], {})
        assert task.data == ["a", "b"]

    def test_repairs_are_undone_with_their_transaction(
        self, world: World, client: Any, clock: ManualClock
    ) -> None:
        for name in ("released", "deleted", "buried"):
            world.put(client, name)
        released, deleted, buried = (world.take(client) for _ in range(3))
        clock.advance(5)
        queue = world.queue()
        counts, calls = queue.counts(), queue.calls()

        def repair() -> None:
            queue.release(released)
            queue.delete(deleted)
            queue.bury(buried)
            queue.kick(1)
            queue.put("new", {})
            raise BoxError.procedure("undone")

        assert refused(world.repair, repair) == "undone"
        assert queue.counts() == counts
        assert {name: number for name, number in queue.calls().items() if number} == {
            name: number for name, number in calls.items() if number
        }
        for task in queue.tasks(TAKEN, limit=9):
            assert task.session == client.session.id
            assert task.taken_at == pytest.approx(NOW, abs=0.001)
            assert world.call(client, "ack", task.id)[0] == task.id

    def test_the_queue_is_there_after_a_restart(self, world: World, client: Any, clock: ManualClock) -> None:
        ids = [world.put(client, number) for number in range(3)]
        world.take(client)
        world.queue().bury(ids[1])
        clock.advance(3)
        world.server.restart()
        queue = world.queue()
        assert (queue.counts()[READY], queue.counts()[TAKEN], queue.counts()[BURIED]) == (2, 0, 1)
        # A type without times of its own counts from the start.
        assert queue.oldest_ready() == pytest.approx(3 if world.is_timed else 0, abs=0.001)
        clock.advance(2)
        assert queue.oldest_ready() == pytest.approx(5 if world.is_timed else 2, abs=0.001)
        assert world.repair(queue.kick, 1) == 1


class TestMoves:
    @pytest.mark.parametrize("target_kind", TUBES)
    @pytest.mark.parametrize("kind", TUBES)
    def test_from_each_type_of_tube_to_each(self, clock: ManualClock, kind: str, target_kind: str) -> None:
        world = World(kind, clock)
        world.create("target", target_kind)
        client = world.connect()
        given = {"pri": 3, "ttr": 10} if world.is_timed else {}
        task_id = world.put(client, "x", **given)
        waiting = world.connect().call("queue.tube.target:take", 60)
        target = world.queue("target")
        moved = world.repair(world.queue().move, task_id, target)
        assert (moved.data, moved.state) == ("x", READY)
        assert answered(waiting)[0] == moved.id
        assert world.queue().task(task_id) is None
        for name in ("pri", "ttr"):
            if name in target.options and given:
                assert moved.details[name] == given[name]

    def test_a_taken_task_leaves_its_session(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        world.create("target", "fifo")
        client = world.connect()
        task_id = world.put(client, "x")
        world.take(client)
        world.repair(world.queue().move, task_id, world.queue("target"))
        assert refused(world.call, client, "ack", task_id)
        client.close()
        assert world.queue("target").counts()[READY] == 1

    def test_a_delay_goes_on(self, clock: ManualClock) -> None:
        world = World("legacy", clock)
        client = world.connect()
        task_id = world.put(client, "x", delay=60, pri=5)
        client.call("put", 0, "other", 0, 0, 0, 0, "y")
        clock.advance(20)
        moved = world.repair(world.queue().move, task_id, world.queue("queue_0/other"))
        assert (moved.state, moved.details["pri"]) == (DELAYED, 5)
        assert moved.due == pytest.approx(NOW + 60, abs=0.001)

    def test_without_room_nothing_moves(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        client = world.connect()
        client.call("queue.create_tube", "target", "limfifottl", {"capacity": 1})
        ids = [world.put(client, number) for number in range(2)]
        target = world.queue("target")
        world.repair(world.queue().move, ids[0], target)
        assert refused(world.repair, world.queue().move, ids[1], target) == (
            'there is no room in the queue "target"'
        )
        assert world.queue().task(ids[1]) is not None


class TestTubesOnly:
    def test_a_read_only_server_refuses_repairs(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        task_id = world.put(world.connect(), "x")
        queue = world.queue()
        world.box.set_read_only(True)
        for function, argument in ((queue.bury, task_id), (queue.delete, task_id), (queue.kick, 1)):
            assert "read-only" in refused(function, argument)
        assert "read-only" in refused(queue.put, "x", {})

    def test_the_page_of_a_task_that_has_gone_cannot_be_found(self, clock: ManualClock) -> None:
        world = World("fifottl", clock)
        client = world.connect()
        task_id = world.put(client, "x")
        world.call(client, "ack", world.take(client))
        assert "begin again with the first page" in refused(
            lambda: world.queue().tasks(READY, limit=1, after=task_id)
        )

    def test_ids_that_begin_again_have_new_times(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        client = world.connect()
        for _ in range(3):
            world.put(client, "x")
            clock.advance(10)
            assert world.queue().oldest_ready() == 10.0
            world.call(client, "ack", world.take(client))

    def test_there_are_few_times_of_very_many_puts(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("queue_lua_compat.tubes.put_times._ENTRIES_MAX", 4)
        world = World("fifo", clock)
        client = world.connect()
        for number in range(20):
            world.put(client, number)
            clock.advance(1)
        ages = [NOW + 20 - (task.created or 0) for task in world.queue().tasks(None, limit=20)]
        assert ages == sorted(ages, reverse=True)
        assert ages[0] == 20
        assert len(set(ages)) < 6

    def test_a_dropped_tube_is_gone(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        world.call(world.connect(), "drop")
        [source] = world.server.application.queue_sources
        assert list(source(world.box)) == []

    def test_durations_survive_a_reload(self, clock: ManualClock) -> None:
        world = World("utube", clock)
        client = world.connect()
        world.put(client, "x")
        world.take(client)
        world.server.reload()
        waits = world.queue().waits()
        assert waits is not None
        assert waits.count == 1


class TestLegacyOnly:
    def test_a_done_task_is_not_made_ready(self, clock: ManualClock) -> None:
        world = World("legacy", clock)
        client = world.connect()
        world.put(client, "x")
        task_id = world.take(client)
        world.call(client, "done", task_id, "result")
        queue = world.queue()
        assert queue.counts()[DONE] == 1
        for action in (queue.release, queue.bury):
            assert refused(action, task_id).endswith("is done")

    def test_a_task_of_another_tube_is_not_there(self, clock: ManualClock) -> None:
        world = World("legacy", clock)
        client = world.connect()
        world.put(client, "x")
        other = client.call("put", 0, "other", 0, 0, 0, 0, "y")[0]
        assert world.queue().task(other) is None

    def test_durations_of_a_limited_number_of_tubes(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("queue_lua_compat.legacy.tube_times._TIMES_MAX", 1)
        world = World("legacy", clock)
        client = world.connect()
        world.put(client, "x")
        world.take(client)
        client.call("put", 0, "other", 0, 0, 0, 0, "y")
        client.call("take", 0, "other", 0)
        assert world.queue().waits() is not None
        assert world.queue("queue_0/other").waits() is None
