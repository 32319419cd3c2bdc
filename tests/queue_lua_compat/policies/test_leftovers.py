"""What a queue leaves when it is dropped or renamed, and what earlier versions have left."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import ManualClock, QueueState, TaskState
from queue_lua_compat.policies import key_expiry
from queue_lua_compat.policies.key_expiry import KeyExpiry
from tests.queue_lua_compat.policies.test_attempts import POLICIES
from tests.queue_lua_compat.policies.worlds import TUBES, World

KEYS = "_queue_unique_keys"


def rows(world: World) -> dict[str, list[Any]]:
    """Return the rows of policies, by their spaces."""
    return {name: list(world.box.space[name].pairs()) for name in POLICIES if name in world.box.space}


def use(world: World) -> None:
    """Leave rows of each kind: settings, failed attempts, a key of a task, and one that is remembered."""
    client = world.connect()
    world.configure(release_limit=9)
    world.operator(lambda: world.queue().drain())
    world.operator(lambda: world.queue().resume())
    world.put(client, "gone", unique_key="remembered", unique_for=3600)
    world.ack(client, world.take(client))
    world.put(client, "failed", unique_key="held")
    world.fail("releases")
    assert all(rows(world).values())


def drop(world: World) -> None:
    client = world.connect()
    if world.kind == "legacy":
        world.box.run(client.session, world.box.space["queue_0"].drop)
    else:
        client.call("queue.tube.jobs:drop")


def create(world: World) -> None:
    if world.kind == "legacy":
        world.connect().call("put", 0, "jobs")
        world.connect().call("truncate", 0, "jobs")
    else:
        world.connect().call("queue.create_tube", "jobs", world.kind)


def check_is_new(world: World) -> None:
    client = world.connect()
    queue = world.queue()
    assert queue.state == QueueState.RUNNING
    assert not queue.settings
    for key in ("remembered", "held"):
        assert not world.is_gone(world.put_task(client, key, unique_key=key))
    assert world.tasks() == {"remembered": TaskState.READY, "held": TaskState.READY}
    assert queue.tasks(None, limit=9)[0].details.get("releases", 0) == 0


@pytest.mark.parametrize("kind", [*TUBES, "legacy"])
class TestADroppedQueue:
    def test_leaves_nothing(self, kind: str, clock: ManualClock) -> None:
        world = World(kind, clock)
        use(world)
        drop(world)
        assert not any(rows(world).values())
        create(world)
        check_is_new(world)

    def test_keeps_all_if_the_drop_is_undone(self, kind: str, clock: ManualClock) -> None:
        world = World(kind, clock)
        use(world)
        before = rows(world)
        with world.undone():
            drop(world)
        assert rows(world) == before

    def test_left_by_an_earlier_version_is_forgotten_at_the_start(
        self, kind: str, clock: ManualClock
    ) -> None:
        world = World(kind, clock)
        use(world)
        left = rows(world)
        drop(world)
        for space, of_space in left.items():
            for row in of_space:
                world.box.space[space].replace(row)
        world.box.space["_queue_settings"].replace(["queue", "paused", "", {}])  # one of the tutorial
        other = "x" if kind == "legacy" else "space/x"
        world.box.space["_queue_settings"].replace([other, "paused", "", {}])
        world.server.restart()
        assert [len(each) for each in rows(world).values()] == [2, 0, 0]
        create(world)
        check_is_new(world)

    def test_left_by_an_earlier_version_is_forgotten_when_it_is_created_again(
        self, kind: str, clock: ManualClock
    ) -> None:
        world = World(kind, clock)
        use(world)
        left = rows(world)
        drop(world)
        for space, of_space in left.items():
            for row in of_space:
                world.box.space[space].replace(row)
        create(world)
        check_is_new(world)


def test_a_new_space_of_the_tutorial_has_no_policy(clock: ManualClock) -> None:
    world = World("tutorial", clock)
    use(world)
    world.box.run(world.connect().session, world.box.space["queue"].drop)
    world.server.restart()
    check_is_new(world)


class TestARenamedSpace:
    def test_keeps_the_policies_of_its_tubes(self, clock: ManualClock) -> None:
        world = World("legacy", clock)
        use(world)
        world.configure(release_limit=2, release_limit_policy="DLQ")
        world.operator(lambda: world.queue().pause())
        before = {name: len(found) for name, found in rows(world).items()}
        world.box.run(world.connect().session, world.box.space["queue_0"].rename, "renamed")
        for _ in range(2):
            assert {name: len(found) for name, found in rows(world).items()} == before
            assert {row[0] for found in rows(world).values() for row in found} == {
                "renamed/jobs",
                "renamed/jobs_dlq",
            }
            world.name = "renamed/jobs"
            assert world.queue().state == QueueState.PAUSED
            assert world.queue().settings["release_limit"] == 2
            assert world.queue("renamed/jobs_dlq").dead_letters_of == "renamed/jobs"
            [task] = world.queue().tasks(None, limit=9)
            assert task.details["releases"] == 1
            world.server.restart()

    def test_leaves_nothing_for_the_next_one(self, clock: ManualClock) -> None:
        world = World("legacy", clock)
        use(world)
        world.box.run(world.connect().session, world.box.space["queue_0"].rename, "renamed")
        create(world)
        check_is_new(world)

    def test_back_if_that_is_undone(self, clock: ManualClock) -> None:
        world = World("legacy", clock)
        use(world)
        before = rows(world)
        with world.undone():
            world.box.run(world.connect().session, world.box.space["queue_0"].rename, "renamed")
        assert rows(world) == before
        world.fail("releases")
        [task] = world.queue().tasks(None, limit=9)
        assert task.details["releases"] == 2


class TestExpiredKeys:
    def test_leave_without_another_put(self, world: World, client: Any, clock: ManualClock) -> None:
        for number in range(20):
            world.put(client, number, unique_key=f"order {number}", unique_for=60 + number)
            world.ack(client, world.take(client))
        clock.advance(59)
        assert world.box.space[KEYS].len() == 20
        clock.advance(1)
        assert world.box.space[KEYS].len() == 19
        clock.advance(19)
        assert world.box.space[KEYS].len() == 0

    def test_also_after_a_restart(self, world: World, client: Any, clock: ManualClock) -> None:
        for number in range(3):
            world.put(client, number, unique_key=f"order {number}", unique_for=60)
            world.ack(client, world.take(client))
        clock.advance(10)
        world.server.restart()
        assert world.box.space[KEYS].len() == 3
        clock.advance(50)
        assert world.box.space[KEYS].len() == 0

    def test_leave_in_slices(self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
        world = World("fifo", clock)
        client = world.connect()
        for number in range(25):
            world.put(client, number, unique_key=f"order {number}", unique_for=60)
            world.ack(client, world.take(client))
        removed: list[int] = []
        remove = KeyExpiry._remove_expired

        def counting(self: KeyExpiry) -> float:
            before = world.box.space[KEYS].len()
            moment = remove(self)
            removed.append(before - world.box.space[KEYS].len())
            return moment

        monkeypatch.setattr(key_expiry, "_SLICE", 10)
        monkeypatch.setattr(KeyExpiry, "_remove_expired", counting)
        world.server.restart()
        clock.advance(60)
        assert removed == [0, 10, 10, 5]

    def test_stay_while_the_instance_is_read_only(self, clock: ManualClock) -> None:
        world = World("tutorial", clock)
        client = world.connect()
        world.put(client, "x", unique_key="order 7", unique_for=60)
        world.ack(client, world.take(client))
        world.box.set_read_only(True)
        clock.advance(100)
        assert world.box.space[KEYS].len() == 1
        world.box.set_read_only(False)
        clock.advance(60)
        assert world.box.space[KEYS].len() == 0


class TestADropOfManyKeys:
    def remember(self, world: World, number: int) -> None:
        client = world.connect()
        world.put(client, "x", unique_key="first", unique_for=3600)
        world.ack(client, world.take(client))
        later = 10**18
        for place in range(number):
            world.box.space[KEYS].insert(["jobs", f"order {place}", 1, 60, later])

    def test_is_done_in_slices(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        self.remember(world, 450)
        waiter = world.connect().call("queue.tube.jobs:drop")
        assert world.names() == []
        assert not waiter.is_done
        assert world.box.space[KEYS].len() == 350  # a hundred and one in the first slice
        clock.advance(1)
        assert waiter.is_done
        assert waiter.result is True
        assert world.box.space[KEYS].len() == 0

    def test_does_not_touch_a_new_queue_of_that_name(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        self.remember(world, 450)
        waiter = world.connect().call("queue.tube.jobs:drop")
        create(world)
        client = world.connect()
        for number in range(450):
            assert not world.is_gone(world.put_task(client, number, unique_key=f"order {number}"))
        clock.advance(10)
        assert waiter.is_done
        assert world.box.space[KEYS].len() == 450
        assert len(world.queue().tasks(None, limit=1000)) == 450

    def test_is_completed_at_the_next_start(self, clock: ManualClock) -> None:
        world = World("fifo", clock)
        self.remember(world, 450)
        world.connect().call("queue.tube.jobs:drop")
        assert world.box.space[KEYS].len()
        world.server.restart()
        assert world.box.space[KEYS].len() == 0
