"""Consumers that report failures with a release, and ask for more time without changing the stored one."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import BoxError, ManualClock, TaskState
from iproto_server.managed_queue import oldest_taken
from tests.queue_lua_compat.policies.worlds import DELAYING, TTR, TUBES, World

REPORTING = ("tutorial", *TUBES)
"""The queues of which clients report failures."""


@pytest.fixture(params=REPORTING)
def world(request: pytest.FixtureRequest, clock: ManualClock) -> World:
    return World(request.param, clock)


def report(world: World, client: Any, **options: object) -> Any:
    """Take a task, report a failure, and return what the consumer is told."""
    answer = world._call(client, "release", world.take(client), {"failed": True, **options})
    return answer["failure"] if world.kind == "tutorial" else answer[3]


def test_the_answer_tells_the_delay(world: World, client: Any) -> None:
    world.put(client, "x")
    delay = {"delay": 5} if world.has_delays else {}
    assert report(world, client, **delay) == {"attempts": None, "delay": delay.get("delay", 0), "ended": None}


def test_the_queues_retry_comes_before_the_delay(world: World, client: Any, clock: ManualClock) -> None:
    if not world.has_delays:
        pytest.skip("this type has no delays")
    world.configure(retry={"delay": 60, "jitter": 0})
    world.put(client, "x")
    assert report(world, client, delay=5) == {"attempts": 1, "delay": 60, "ended": None}
    clock.advance(59)
    assert world.tasks() == {"x": TaskState.DELAYED}


@pytest.mark.parametrize("policy", ["DELETE", "DLQ"])
def test_the_answer_tells_of_the_end(world: World, client: Any, policy: str) -> None:
    world.configure(release_limit=1, release_limit_policy=policy)
    world.put(client, "x")
    assert report(world, client, max_failures=9) == {"attempts": 1, "delay": 0, "ended": policy}
    assert world.tasks() == {}


@pytest.mark.parametrize("kind", TUBES)
def test_max_failures_buries_whoever_has_failed(clock: ManualClock, kind: str) -> None:
    world = World(kind, clock)
    world.put(world.connect(), "x")
    for number in (1, 2):
        told = report(world, world.connect(), max_failures=3)  # another consumer
        assert (told["attempts"], told["ended"]) == (number, None)
    assert report(world, world.connect(), max_failures=3) == {"attempts": 3, "delay": 0, "ended": "bury"}
    assert world.tasks() == {"x": TaskState.BURIED}
    world.operator(world.queue().kick, 1)
    assert report(world, world.connect(), max_failures=3)["attempts"] == 1


@pytest.mark.parametrize("kind", TUBES)
def test_a_new_task_with_the_same_id_has_not_failed(clock: ManualClock, kind: str) -> None:
    world = World(kind, clock)
    client = world.connect()
    first = world.put(client, "x")
    assert report(world, client, max_failures=3)["attempts"] == 1
    world.ack(client, world.take(client))
    assert world.put(client, "x") == first
    assert report(world, client, max_failures=3)["attempts"] == 1


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"failed": "yes"}, "failed must be true or false, not 'yes'"),
        ({"failed": True, "max_failures": 0}, "max_failures must be a whole number of at least 1, not 0"),
        ({"failed": True, "max_failures": 1.5}, "max_failures must be a whole number of at least 1, not 1.5"),
        ({"failed": True, "max_failures": True}, "max_failures must be a whole number"),
    ],
)
def test_wrong_reports_are_refused(world: World, client: Any, wrong: dict[str, object], error: str) -> None:
    world.put(client, "x")
    task_id = world.take(client)
    with pytest.raises(BoxError, match=error):
        world._call(client, "release", task_id, wrong)
    assert world.tasks() == {"x": TaskState.TAKEN}


@pytest.mark.parametrize("options", [{}, {"failed": False}])
def test_without_a_report_the_answer_is_that_of_the_original(
    world: World, client: Any, options: dict[str, object]
) -> None:
    world.put(client, "x")
    answer = world._call(client, "release", world.take(client), options)
    assert "failure" not in answer if world.kind == "tutorial" else len(answer) == 3


@pytest.mark.parametrize("kind", DELAYING)
def test_a_touch_leaves_the_time_of_the_take(clock: ManualClock, kind: str) -> None:
    world = World(kind, clock)
    client = world.connect()
    world.put(client, "x")
    taken_at = clock.time_ns() / 1e9
    task_id = world.take(client)
    assert world.task().touched_at is None
    for _ in range(3):
        clock.advance(TTR / 2)
        touch = (task_id, TTR, {"keep_ttr": True}) if kind in TUBES else (*world._space, task_id)
        world._call(client, "touch", *touch)
    task = world.task()
    assert task.taken_at == pytest.approx(taken_at, abs=0.001)
    assert task.touched_at == pytest.approx(taken_at + 1.5 * TTR, abs=0.001)
    assert oldest_taken(world.queue()) == pytest.approx(1.5 * TTR, abs=0.001)
    assert task.details.get("ttr", TTR) == TTR
    assert [held.id for held in world.queue().tasks(TaskState.TAKEN, limit=9, older=1.4 * TTR)] == [task_id]
    world.ack(client, task_id)
    services = world.queue().services()
    assert services is not None
    assert services.sum == pytest.approx(1.5 * TTR, abs=0.001)
    assert oldest_taken(world.queue()) is None


@pytest.mark.parametrize("kind", DELAYING)
def test_the_next_take_begins_anew(clock: ManualClock, kind: str) -> None:
    world = World(kind, clock)
    client = world.connect()
    world.put(client, "x")
    task_id = world.take(client)
    world._call(client, "touch", *world._space, task_id, *((TTR,) if kind in TUBES else ()))
    world.release(client, task_id)
    assert world.task().touched_at is None
    clock.advance(1)
    world.take(client)
    task = world.task()
    assert task.taken_at == pytest.approx(clock.time_ns() / 1e9, abs=0.001)
    assert task.touched_at is None


def test_a_plain_touch_is_that_of_the_module(clock: ManualClock) -> None:
    world = World("fifottl", clock)
    client = world.connect()
    world.put(client, "x")
    client.call("queue.tube.jobs:touch", world.take(client), 5)
    assert world.task().details["ttr"] == TTR + 5


def test_an_undone_touch_leaves_no_trace(clock: ManualClock) -> None:
    world = World("legacy", clock)
    client = world.connect()
    world.put(client, "x")
    task_id = world.take(client)
    with world.undone():
        client.call("touch", 0, task_id)
    assert world.task().touched_at is None
