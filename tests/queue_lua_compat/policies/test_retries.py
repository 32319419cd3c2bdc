"""Delays before the next attempts."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import BoxError, ManualClock, TaskState
from queue_lua_compat.policies.options import Retry
from tests.queue_lua_compat.policies.worlds import DELAYING, FAILURES, World

READY, DELAYED = TaskState.READY, TaskState.DELAYED


class TestDelays:
    def test_they_grow_up_to_a_maximum(self) -> None:
        retry = Retry(delay=2, factor=3, max_delay=100, jitter=0)
        assert [retry.delay_after(attempts, 0.5) for attempts in range(1, 7)] == [2, 6, 18, 54, 100, 100]

    def test_jitter_shortens_them_by_up_to_its_part(self) -> None:
        retry = Retry(delay=10, factor=1, jitter=0.4)
        assert [retry.delay_after(1, chance) for chance in (0, 0.5, 1)] == [10, 8, 6]

    def test_many_attempts_do_not_overflow(self) -> None:
        assert Retry(delay=1, factor=1000, max_delay=60, jitter=0).delay_after(10_000, 0) == 60

    @pytest.mark.parametrize(
        ("wrong", "error"),
        [
            ("often", "retry must be a map"),
            (5, "retry must be a map"),
            (
                {"delays": 5},
                'retry has no option "delays", did you mean "delay"[?] it has delay, factor, jitter, max',
            ),
            ({"delay": -1}, "retry.delay must be a number from 0"),
            ({"delay": "1"}, "retry.delay must be a number"),
            ({"factor": 0.5}, "retry.factor must be a number from 1"),
            ({"jitter": 1.5}, "retry.jitter must be a number from 0 to 1"),
            ({"max_delay": float("nan")}, "retry.max_delay must be a number"),
            ({"delay": True}, "retry.delay must be a number"),
        ],
    )
    def test_wrong_ones_are_refused(self, wrong: object, error: str) -> None:
        with pytest.raises(BoxError, match=error):
            Retry.of(wrong)


@pytest.fixture(params=DELAYING)
def world(request: pytest.FixtureRequest, clock: ManualClock) -> World:
    return World(request.param, clock, {"retry": {"delay": 3, "factor": 2, "jitter": 0}})


@pytest.mark.parametrize("how", FAILURES)
def test_a_failed_task_is_ready_after_the_delay(
    world: World, client: Any, clock: ManualClock, how: str
) -> None:
    world.put(client, "x")
    for delay in (3, 6, 12):
        world.fail(how)
        assert world.tasks() == {"x": DELAYED}
        clock.advance(delay - 0.01)
        assert world.tasks() == {"x": DELAYED}
        clock.advance(0.01)
        assert world.tasks() == {"x": READY}


def test_a_delay_of_the_consumer_comes_first(world: World, client: Any, clock: ManualClock) -> None:
    world.put(client, "x")
    world.release(client, world.take(client), delay=60)
    clock.advance(59)
    assert world.tasks() == {"x": DELAYED}
    clock.advance(1)
    assert world.tasks() == {"x": READY}


def test_a_task_has_delays_of_its_own(world: World, client: Any, clock: ManualClock) -> None:
    world.put(client, "patient", retry={"delay": 100, "jitter": 0})
    world.fail("releases")
    world.put(client, "restless", retry=False)
    world.fail("releases")
    assert world.tasks() == {"patient": DELAYED, "restless": READY}


def test_the_delayed_task_serves_a_waiting_consumer(world: World, client: Any, clock: ManualClock) -> None:
    task_id = world.put(client, "x")
    world.fail("disconnects")
    waiting = world.take(client, 60)
    clock.advance(3)
    assert world.id_of(waiting.result) == task_id


def test_delays_survive_a_restart(world: World, client: Any, clock: ManualClock) -> None:
    world.put(client, "x")
    world.fail("releases")
    world.server.restart()
    assert world.tasks() == {"x": DELAYED}
    clock.advance(3)
    assert world.tasks() == {"x": READY}


@pytest.mark.parametrize("kind", ["fifo", "utube"])
def test_types_without_delays_have_no_retries(clock: ManualClock, kind: str) -> None:
    world = World(kind, clock)
    with pytest.raises(BoxError, match="have no delays"):
        world.configure(retry={"delay": 1})
    client = world.connect()
    with pytest.raises(BoxError, match="have no delays"):
        world.put(client, "x", retry={"delay": 1})
    with pytest.raises(BoxError, match="have no delays"):
        client.call("queue.create_tube", "mails", kind, {"retry": {}})
    assert world.names() == ["jobs"]
