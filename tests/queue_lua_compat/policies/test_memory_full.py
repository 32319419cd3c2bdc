"""A server without memory: puts are refused, and nothing that changes or removes a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from iproto_server import ErrorCode, ManualClock, QueueState, TaskState
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.native._native import set_memory_limit
from tests.box.refusal import refusal
from tests.queue_lua_compat.policies.worlds import DELAYING, FAILURES, KINDS, TTR, World

POLICIES: dict[str, dict[str, object]] = {
    "none": {},
    "counting": {"release_limit": 0},
    "deleting": {"release_limit": 1},
    "dead letters": {"release_limit": 1, "release_limit_policy": "DLQ"},
    "retrying": {"retry": {"delay": 1, "jitter": 0}},
}
every_policy = pytest.mark.parametrize("policy", POLICIES)


@pytest.fixture
def full() -> Iterator[Callable[[], None]]:
    """Take all memory away: whatever needs a byte more is refused, updates of existing rows included."""

    def fill() -> None:
        set_memory_limit(1, 0)
        budget.limit = 1

    yield fill
    budget.end()


def worlds(kinds: tuple[str, ...] = KINDS) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", kinds)


def world_of(kind: str, clock: ManualClock, policy: str = "none", tasks: int = 5) -> World:
    if policy == "retrying" and kind not in DELAYING:
        pytest.skip("tasks of this type have no delays")
    world = World(kind, clock, POLICIES[policy])
    client = world.connect()
    for number in range(tasks):
        world.put(client, number)
    return world


def check_puts_are_refused(world: World) -> None:
    with refusal(ErrorCode.MEMORY_ISSUE):
        world.put(world.connect(), "one more")


@every_policy
@worlds()
class TestAFullServer:
    def test_refuses_puts(self, kind: str, policy: str, clock: ManualClock, full: Callable[[], None]) -> None:
        world = world_of(kind, clock, policy)
        full()
        check_puts_are_refused(world)
        assert world.tasks() == dict.fromkeys(range(5), TaskState.READY)

    def test_is_drained(self, kind: str, policy: str, clock: ManualClock, full: Callable[[], None]) -> None:
        world = world_of(kind, clock, policy)
        full()
        for _ in range(5):
            client = world.connect()
            world.ack(client, world.take(client))
        assert world.tasks() == {}
        assert world.take(world.connect()) is None

    @pytest.mark.parametrize("how", FAILURES)
    def test_ends_failed_attempts(
        self, kind: str, policy: str, how: str, clock: ManualClock, full: Callable[[], None]
    ) -> None:
        if how == "timeouts" and kind not in DELAYING:
            pytest.skip("this type has no time to run")
        world = world_of(kind, clock, policy)
        full()
        for _ in range(5):
            world.fail(how)
        states = set(world.tasks().values())
        clock.advance(60)
        if "release_limit" in POLICIES[policy] and POLICIES[policy]["release_limit"]:
            assert world.tasks() == {}
            assert len(world.dead_letters) == (5 if policy == "dead letters" else 0)
        else:
            # Nothing stays taken, whether it is ready at once or after a delay.
            assert TaskState.TAKEN not in states
            assert world.tasks() == dict.fromkeys(range(5), TaskState.READY)
        check_puts_are_refused(world)


@worlds()
class TestOperators:
    def test_change_policies_and_states_for_the_first_time(
        self, kind: str, clock: ManualClock, full: Callable[[], None]
    ) -> None:
        world = world_of(kind, clock)
        full()
        world.configure(release_limit=3, release_limit_policy="DLQ")
        for action, state in (
            ("pause", QueueState.PAUSED),
            ("drain", QueueState.DRAINING),
            ("resume", QueueState.RUNNING),
        ):
            world.operator(lambda action=action: getattr(world.queue(), action)())
            assert world.queue().state == state
        assert world.queue().settings["release_limit"] == 3
        check_puts_are_refused(world)

    def test_repair_tasks(self, kind: str, clock: ManualClock, full: Callable[[], None]) -> None:
        world = world_of(kind, clock)
        world.configure(release_limit=1, release_limit_policy="DLQ")
        full()
        first = world.queue().tasks(None, limit=1)[0].id
        taken = world.take(world.connect())
        world.operator(lambda: world.queue().release(taken))
        if "bury" in world.queue().actions:
            world.operator(lambda: world.queue().bury(first))
            assert world.operator(lambda: world.queue().kick(10)) == 1
        assert set(world.tasks().values()) == {TaskState.READY}
        world.fail("releases")
        [letter] = world.dead_letters
        world.operator(lambda: world.queue(f"{world.name}_dlq").requeue(letter.id))
        assert len(world.tasks()) == 5
        for task in world.queue().tasks(None, limit=10):
            world.operator(lambda task=task: world.queue().delete(task.id))
        assert world.tasks() == {}

    def test_restart_the_server(self, kind: str, clock: ManualClock, full: Callable[[], None]) -> None:
        world = world_of(kind, clock)
        client = world.connect()
        for _ in range(3):
            world.take(client)
        full()
        budget.end()  # recovery and setups are not limited
        world.server.restart()
        full()
        assert world.tasks() == dict.fromkeys(range(5), TaskState.READY)
        client = world.connect()
        world.ack(client, world.take(client))
        assert len(world.tasks()) == 4


@worlds()
def test_a_unique_key_is_given_back(kind: str, clock: ManualClock, full: Callable[[], None]) -> None:
    world = world_of(kind, clock, tasks=0)
    client = world.connect()
    world.put(client, 1, unique_key="forgotten")
    world.put(client, 2, unique_key="remembered", unique_for=60)
    full()
    for _ in range(2):
        world.ack(client, world.take(client))
    assert world.is_gone(world.put_task(client, 2, unique_key="remembered"))
    with refusal(ErrorCode.MEMORY_ISSUE):
        world.put(client, 1, unique_key="forgotten")


@worlds(("fifottl", "utubettl", "limfifottl"))
def test_times_of_a_tube(kind: str, clock: ManualClock, full: Callable[[], None]) -> None:
    world = world_of(kind, clock)
    full()
    client = world.connect()
    task_id = world.take(client)
    client.call("queue.tube.jobs:touch", task_id, 2 * TTR)
    clock.advance(TTR + 1)
    assert world.queue().task(task_id).state == TaskState.TAKEN  # type: ignore[union-attr]
    world.release(client, task_id, delay=5)
    assert world.queue().task(task_id).state == TaskState.DELAYED  # type: ignore[union-attr]
    clock.advance(5)
    assert world.queue().task(task_id).state == TaskState.READY  # type: ignore[union-attr]
    clock.advance(2 * 86400)
    assert world.tasks() == {}


@worlds(("fifo", "utube", "fifottl"))
def test_a_tube_is_truncated_and_dropped(kind: str, clock: ManualClock, full: Callable[[], None]) -> None:
    world = world_of(kind, clock, "counting")
    world.fail("releases")
    full()
    world.connect().call("queue.tube.jobs:truncate")
    assert world.tasks() == {}
    world.connect().call("queue.tube.jobs:drop")
    assert world.names() == []


@pytest.mark.parametrize("kind", ["utube", "utubettl"])
def test_the_ready_buffer_of_sub_queues(kind: str, clock: ManualClock, full: Callable[[], None]) -> None:
    world = World("fifo", clock)
    client = world.connect()
    client.call("queue.create_tube", "buffered", kind, {"storage_mode": "ready_buffer"})
    for number in range(4):
        client.call("queue.tube.buffered:put", number, {"utube": f"{number % 2}"})
    full()
    seen = []
    for _ in range(4):
        task = client.call("queue.tube.buffered:take", 0)
        seen.append(task[2])
        client.call("queue.tube.buffered:ack", task[0])
    assert sorted(seen) == [0, 1, 2, 3]


def test_a_waiting_take_waits(clock: ManualClock, full: Callable[[], None]) -> None:
    world = world_of("fifo", clock)
    full()
    world.operator(lambda: world.queue().pause())
    waiter = world.take(world.connect(), 10)
    world.operator(lambda: world.queue().resume())
    assert waiter.is_done


class TestLegacy:
    def test_touch_requeue_bury_dig_and_delete(self, clock: ManualClock, full: Callable[[], None]) -> None:
        world = world_of("legacy", clock)
        client = world.connect()
        full()
        first = world.take(client)
        client.call("touch", 0, first)
        client.call("requeue", 0, first)
        second = world.take(client)
        client.call("bury", 0, second)
        client.call("dig", 0, second)
        client.call("delete", 0, second)
        assert len(world.tasks()) == 4

    def test_done_that_does_not_grow(self, clock: ManualClock, full: Callable[[], None]) -> None:
        world = world_of("legacy", clock)
        client = world.connect()
        full()
        client.call("done", 0, world.take(client), 9)
        assert world.tasks()[9] == TaskState.DONE
        with refusal(ErrorCode.MEMORY_ISSUE):
            client.call("done", 0, world.take(client), "x" * 1_000_000)


@worlds()
def test_changes_by_clients_are_refused(kind: str, clock: ManualClock, full: Callable[[], None]) -> None:
    world = world_of(kind, clock)
    world.fail("releases")
    full()
    spaces = {"tutorial": "queue", "legacy": "queue_0"}
    space = world.box.space[spaces.get(kind, "jobs")]
    row = next(iter(space.pairs()))
    data = len(row) - 1
    with refusal(ErrorCode.MEMORY_ISSUE):
        space.update(row[0], [("=", data, "x" * 1_000_000)])
    with refusal(ErrorCode.MEMORY_ISSUE):
        space.core().update(0, [row[0]], space.core().parse_operations([("=", data, "x" * 100_000)]))
    with refusal(ErrorCode.MEMORY_ISSUE):
        space.replace([*row[:data], "x" * 100_000])
    assert space.get(row[0]) == row
