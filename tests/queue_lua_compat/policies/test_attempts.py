"""Failed attempts are counted; a task that has failed too often is deleted, or becomes a dead letter."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import BoxError, ManualClock, TaskState
from tests.queue_lua_compat.conftest import QueueServer
from tests.queue_lua_compat.policies.worlds import DELAYING, FAILURES, KINDS, TTR, World

READY, TAKEN, DELAYED = TaskState.READY, TaskState.TAKEN, TaskState.DELAYED

POLICIES = ("_queue_settings", "_queue_attempts", "_queue_unique_keys")


def ways(world: World) -> tuple[str, ...]:
    """Return the ways in which attempts can fail in a queue."""
    return FAILURES if world.has_delays else FAILURES[:2]


def counts(details: Any) -> dict[str, int]:
    """Return the numbers of failed attempts among a task's details."""
    return {name: details.get(name, 0) for name in FAILURES}


class TestCounts:
    def test_a_queue_without_options_counts_nothing_and_stores_nothing(
        self, world: World, client: Any
    ) -> None:
        if world.kind == "tutorial":
            world.server = QueueServer(world.clock)  # without the time to run that it has here
            client = world.connect()
        world.put(client, "x")
        world.fail("releases")
        assert "releases" not in world.task().details
        assert [space.name for space in world.box.space if space.name in POLICIES] == []

    def test_releases_timeouts_and_lost_connections_are_counted_apart(
        self, world: World, client: Any
    ) -> None:
        world.configure(release_limit=100)
        world.put(client, "x")
        expected = dict.fromkeys(FAILURES, 0)
        for number, how in enumerate(ways(world), 1):
            for _ in range(number):
                world.fail(how)
            expected[how] = number
        assert counts(world.task().details) == expected

    def test_a_limit_of_zero_counts_without_a_limit(self, world: World, client: Any) -> None:
        world.configure(release_limit=0)
        world.put(client, "x")
        for _ in range(20):
            world.fail("releases")
        assert world.task().details["releases"] == 20

    def test_counts_survive_a_restart(self, world: World, client: Any) -> None:
        world.configure(release_limit=100)
        world.put(client, "x")
        for how in ways(world):
            world.fail(how)
        world.server.restart()
        assert counts(world.task().details) == dict.fromkeys(FAILURES, 0) | dict.fromkeys(ways(world), 1)

    def test_a_restart_is_no_failed_attempt(self, world: World, client: Any) -> None:
        world.configure(release_limit=1)
        world.put(client, "x")
        assert world.take(client) is not None
        world.server.restart()
        assert world.tasks() == {"x": READY}
        assert counts(world.task().details) == dict.fromkeys(FAILURES, 0)

    def test_an_operators_release_is_no_failed_attempt(self, world: World, client: Any) -> None:
        world.configure(release_limit=1)
        task_id = world.put(client, "x")
        world.take(client)
        world.operator(world.queue().release, task_id)
        assert world.tasks() == {"x": READY}

    def test_rows_are_removed_with_their_tasks(self, world: World, client: Any) -> None:
        world.configure(release_limit=100)
        for data in ("acknowledged", "deleted"):
            world.put(client, data)
            world.fail("releases")
            if data == "deleted":
                world.operator(world.queue().delete, world.task().id)
            else:
                world.ack(client, world.take(client))
        assert world.box.space["_queue_attempts"].len() == 0

    def test_a_rollback_takes_back_what_was_counted(self, world: World, client: Any) -> None:
        world.configure(release_limit=2)
        world.put(client, "x")
        task_id = world.take(client)

        with world.undone():
            world.release(client, task_id)
        assert world.tasks() == {"x": TAKEN}
        world.release(client, task_id)
        assert world.task().details["releases"] == 1


class TestLimits:
    @pytest.mark.parametrize("how", FAILURES)
    def test_a_task_that_has_reached_the_limit_is_deleted(self, world: World, client: Any, how: str) -> None:
        if how not in ways(world):
            pytest.skip("this type has no time to run")
        world.configure(release_limit=3)
        world.put(client, "poison")
        for attempt in range(3):
            assert world.tasks() == {"poison": READY}, attempt
            world.fail(how)
        assert world.tasks() == {}
        assert world.dead_letters == []

    def test_all_ways_count_towards_the_limit(self, world: World, client: Any) -> None:
        world.configure(release_limit=len(ways(world)))
        world.put(client, "poison")
        for how in ways(world):
            assert world.tasks() == {"poison": READY}
            world.fail(how)
        assert world.tasks() == {}

    def test_a_release_that_reaches_the_limit_answers_a_task_that_is_gone(
        self, world: World, client: Any
    ) -> None:
        world.configure(release_limit=2)
        task_id = world.put(client, "poison")
        assert not world.is_gone(world.release(client, world.take(client)))
        last = world.release(client, world.take(client))
        assert world.is_gone(last)
        assert world.id_of(last) == task_id

    def test_a_task_has_a_limit_of_its_own(self, world: World, client: Any) -> None:
        world.configure(release_limit=3)
        world.put(client, "fragile", release_limit=1)
        world.fail("releases")
        assert world.tasks() == {}
        world.put(client, "robust", release_limit=False)
        for _ in range(5):
            world.fail("releases")
        assert world.tasks() == {"robust": READY}

    def test_a_task_has_a_limit_where_the_queue_has_none(self, world: World, client: Any) -> None:
        world.put(client, "poison", release_limit=2, release_limit_policy="DLQ")
        world.put(client, "other")
        world.fail("releases")
        world.fail("releases")
        assert world.tasks() == {"other": READY}
        assert [world.data(task) for task in world.dead_letters] == ["poison"]

    def test_others_go_ahead(self, world: World, client: Any) -> None:
        world.configure(release_limit=1)
        for data in ("poison", "good"):
            world.put(client, data)
        world.fail("disconnects")
        assert world.ack(client, world.take(client)) is not None
        assert world.tasks() == {}


class TestDeadLetters:
    def fill(self, world: World, client: Any, *data: str) -> list[Any]:
        """Make dead letters, and return their ids."""
        world.configure(release_limit=1, release_limit_policy="DLQ")
        ids = [world.put(client, text) for text in data]
        for _ in data:
            world.fail("releases")
        return ids

    def test_they_are_in_a_queue_of_their_own_under_the_same_ids(self, world: World, client: Any) -> None:
        ids = self.fill(world, client, "a", "b")
        assert world.tasks() == {}
        assert {task.id: world.data(task) for task in world.dead_letters} == dict(zip(ids, "ab", strict=True))
        assert {task.state for task in world.dead_letters} == {READY}
        assert world.queue(f"{world.name}_dlq").dead_letters_of == world.name

    def test_they_keep_their_counts(self, world: World, client: Any) -> None:
        self.fill(world, client, "a")
        [task] = world.dead_letters
        assert counts(task.details) == {"releases": 1, "timeouts": 0, "disconnects": 0}

    def test_they_are_put_back_with_new_attempts(self, world: World, client: Any) -> None:
        [task_id] = self.fill(world, client, "a")
        [task] = world.dead_letters
        requeued = world.operator(world.queue(f"{world.name}_dlq").requeue, task.id)
        assert (requeued.id, requeued.state) == (task_id, READY)
        assert world.dead_letters == []
        assert world.tasks() == {"a": READY}
        assert counts(world.task().details) == dict.fromkeys(FAILURES, 0)
        world.fail("releases")
        assert [task.id for task in world.dead_letters] == [task_id]

    def test_a_task_that_is_put_back_serves_a_waiting_consumer(self, world: World, client: Any) -> None:
        [task_id] = self.fill(world, client, "a")
        waiting = world.take(client, 60)
        world.operator(world.queue(f"{world.name}_dlq").requeue, task_id)
        assert world.id_of(waiting.result) == task_id

    def test_they_survive_a_restart(self, world: World, client: Any) -> None:
        [task_id] = self.fill(world, client, "a")
        world.server.restart()
        assert [task.id for task in world.dead_letters] == [task_id]
        world.operator(world.queue(f"{world.name}_dlq").requeue, task_id)
        assert world.tasks() == {"a": READY}

    def test_deleted_ones_leave_nothing(self, world: World, client: Any) -> None:
        [task_id] = self.fill(world, client, "a")
        world.operator(world.queue(f"{world.name}_dlq").delete, task_id)
        assert world.dead_letters == []
        assert world.box.space["_queue_attempts"].len() == 0

    def test_a_queue_of_that_name_for_something_else_is_refused(self, world: World, client: Any) -> None:
        if world.kind == "tutorial":
            world.operator(world.box.schema.create_space, "queue_dlq")
        elif world.kind == "legacy":
            client.call("put", 0, "jobs_dlq", 0, 0, 0, 0, "other")
        else:
            client.call("queue.create_tube", "jobs_dlq", world.kind)
        with pytest.raises(BoxError, match=r"_dlq.*no dead letters"):
            world.configure(release_limit=1, release_limit_policy="DLQ")
        assert "release_limit" not in world.queue().settings

    def test_only_dead_letters_can_be_requeued(self, world: World, client: Any) -> None:
        task_id = world.put(client, "x")
        assert "requeue" not in world.queue().actions
        with pytest.raises(BoxError, match="has no requeue"):
            world.operator(world.queue().requeue, task_id)
        self.fill(world, client, "y")
        assert "requeue" in world.queue(f"{world.name}_dlq").actions

    def test_an_id_that_is_not_there(self, world: World, client: Any) -> None:
        self.fill(world, client, "a")
        with pytest.raises(BoxError, match="there is no task"):
            world.operator(world.queue(f"{world.name}_dlq").requeue, "77" if world.kind == "legacy" else 77)


class TestTubes:
    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("tutorial", "legacy")])
    def test_create_tube_has_the_options(self, clock: ManualClock, kind: str) -> None:
        world = World(kind, clock)
        client = world.connect()
        client.call("queue.create_tube", "mails", kind, {"release_limit": 2, "release_limit_policy": "DLQ"})
        assert world.names() == ["jobs", "mails", "mails_dlq"]
        client.call("queue.tube.mails:put", "poison")
        for _ in range(2):
            client.call("queue.tube.mails:release", client.call("queue.tube.mails:take", 0)[0])
        assert [row[2:][-1] for row in world.server.rows("mails_dlq")] == ["poison"]
        assert client.call("queue.tube.mails_dlq:take", 0)[-1] == "poison"
        assert client.call("queue.statistics", "mails")["calls"]["release"] == 2

    def test_dead_letters_get_the_tubes_time_to_live(self, clock: ManualClock) -> None:
        world = World("fifottl", clock)
        client = world.connect()
        world.configure(release_limit=1, release_limit_policy="DLQ")
        world.put(client, "x", ttl=100, pri=3)
        clock.advance(50)
        world.fail("releases")
        [task] = world.dead_letters
        assert (task.details["ttl"], task.details["pri"]) == (86400, 3)

    def test_an_id_that_is_used_again_does_not_replace_a_dead_letter(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        client = world.connect()
        world.configure(release_limit=1, release_limit_policy="DLQ")
        for data in ("first", "second"):  # a tube that is empty begins with 0 again
            assert world.put(client, data) == 0
            world.fail("releases")
        assert {task.id: task.data for task in world.dead_letters} == {0: "first", 1: "second"}

    def test_a_limited_tube_without_room_takes_no_dead_letter_back(self, clock: ManualClock) -> None:
        world = World("limfifottl", clock)
        client = world.connect()
        client.call("queue.create_tube", "small", "limfifottl", {"capacity": 1, "release_limit": 1})
        world.operator(lambda: world.queue("small").configure({"release_limit_policy": "DLQ"}))
        for data in ("a", "b"):
            client.call("queue.tube.small:put", data)
            client.call("queue.tube.small:release", client.call("queue.tube.small:take", 0)[0])
        client.call("queue.tube.small:put", "c")
        dead = world.queue("small_dlq")
        assert dead.counts()[READY] == 2
        with pytest.raises(BoxError, match="no room"):
            world.operator(dead.requeue, dead.tasks(None, limit=1)[0].id)
        assert dead.counts()[READY] == 2

    def test_a_dropped_tube_leaves_no_rows(self, clock: ManualClock) -> None:
        world = World("fifo", clock, {"release_limit": 5})
        client = world.connect()
        world.put(client, "x", unique_key="k", unique_for=60)
        world.fail("releases")
        client.call("queue.tube.jobs:drop")
        rows = [row for space in POLICIES for row in world.server.rows(space)]
        assert [row for row in rows if row[0] == "jobs" and row[-1] == 0] == []
        client.call("queue.create_tube", "jobs", "fifo")
        assert world.queue().settings == {}

    def test_the_owner_of_a_resumed_session_has_not_failed(self, clock: ManualClock) -> None:
        world = World("fifo", clock, {"release_limit": 1})
        client = world.connect()
        client.call("queue.cfg", {"ttr": 60})
        world.put(client, "x")
        owner = world.connect()
        session = owner.call("queue.identify")
        task_id = world.take(owner)
        owner.close()
        again = world.connect()
        again.call("queue.identify", session)
        assert world.is_gone(world.ack(again, task_id))


class TestTimesToRun:
    """The tutorial's queue has a time to run only as an option."""

    @pytest.fixture
    def world(self, clock: ManualClock) -> World:
        world = World("tutorial", clock)
        world.configure(ttr=None)
        return world

    def test_without_it_a_task_stays_taken(self, world: World, client: Any, clock: ManualClock) -> None:
        world.put(client, "x")
        world.take(client)
        clock.advance(86_400)
        assert world.tasks() == {"x": TAKEN}

    def test_the_queue_has_one(self, world: World, client: Any, clock: ManualClock) -> None:
        world.configure(ttr=5)
        task_id = world.put(client, "x")
        world.take(client)
        assert world.task().due == clock.time_ns() / 1e9 + 5
        clock.advance(4.9)
        assert world.tasks() == {"x": TAKEN}
        clock.advance(0.1)
        assert world.tasks() == {"x": READY}
        with pytest.raises(BoxError, match="not taken"):
            world.ack(client, task_id)

    def test_a_task_has_one_of_its_own(self, world: World, client: Any, clock: ManualClock) -> None:
        world.configure(ttr=5)
        world.put(client, "short", ttr=1)
        world.put(client, "long", ttr=60)
        world.put(client, "endless", ttr=False)
        for _ in range(3):
            world.take(client)
        clock.advance(1)
        assert world.tasks() == {"short": READY, "long": TAKEN, "endless": TAKEN}
        clock.advance(59)
        assert world.tasks() == {"short": READY, "long": READY, "endless": TAKEN}

    def test_touch_starts_it_again(self, world: World, client: Any, clock: ManualClock) -> None:
        task_id = world.put(client, "x", ttr=5)
        world.take(client)
        for _ in range(3):
            clock.advance(4)
            assert client.call("touch", task_id)["id"] == task_id
        clock.advance(4)
        assert world.tasks() == {"x": TAKEN}
        clock.advance(1)
        assert world.tasks() == {"x": READY}

    def test_touch_is_for_the_owner(self, world: World, client: Any) -> None:
        task_id = world.put(client, "x", ttr=5)
        with pytest.raises(BoxError, match="not taken by anybody"):
            client.call("touch", task_id)
        world.take(client)
        with pytest.raises(BoxError, match="Not you"):
            world.connect().call("touch", task_id)
        with pytest.raises(BoxError, match="was not found"):
            client.call("touch", 7)

    def test_it_serves_a_waiting_consumer(self, world: World, client: Any, clock: ManualClock) -> None:
        task_id = world.put(client, "x", ttr=5)
        world.take(client)
        waiting = world.take(world.connect(), 60)
        clock.advance(5)
        assert waiting.result["id"] == task_id

    def test_an_earlier_take_does_not_end_a_later_one(
        self, world: World, client: Any, clock: ManualClock
    ) -> None:
        task_id = world.put(client, "x", ttr=5)
        world.take(client)
        clock.advance(3)
        world.release(client, task_id)
        world.take(client)
        clock.advance(4)
        assert world.tasks() == {"x": TAKEN}
        clock.advance(1)
        assert world.tasks() == {"x": READY}

    @pytest.mark.parametrize("wrong", [0, -1, "soon", True, [], float("nan")])
    def test_a_wrong_one_is_refused(self, world: World, client: Any, wrong: object) -> None:
        with pytest.raises(BoxError, match="ttr must be"):
            world.put(client, "x", ttr=wrong)
        assert world.tasks() == {}


@pytest.mark.parametrize("kind", DELAYING)
def test_a_task_past_its_time_to_run_does_not_outlive_its_limit(clock: ManualClock, kind: str) -> None:
    world = World(kind, clock, {"release_limit": 2, "retry": {"delay": 5, "jitter": 0}})
    client = world.connect()
    world.put(client, "poison")
    world.take(client)
    clock.advance(TTR)
    assert world.tasks() == {"poison": DELAYED}
    clock.advance(5)
    world.take(client)
    clock.advance(TTR)
    assert world.tasks() == {}
