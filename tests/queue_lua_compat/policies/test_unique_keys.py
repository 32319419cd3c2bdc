"""A put with a unique key answers the task that was put with it before."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import BoxError, ManualClock, TaskState
from tests.queue_lua_compat.policies.worlds import World

READY = TaskState.READY


def test_a_second_put_answers_the_first_task(world: World, client: Any) -> None:
    first = world.put(client, "x", unique_key="order 7")
    assert world.put(client, "again", unique_key="order 7") == first
    assert world.put(client, "other", unique_key="order 8") != first
    assert world.tasks() == {"x": READY, "other": READY}


def test_in_any_state(world: World, client: Any) -> None:
    first = world.put(client, "x", unique_key="order 7")
    world.take(client)
    answer = world.put_task(client, "again", unique_key="order 7")
    assert world.id_of(answer) == first
    assert not world.is_gone(answer)


def test_the_key_is_free_when_the_task_is_gone(world: World, client: Any) -> None:
    world.put(client, "x", unique_key="order 7")
    world.ack(client, world.take(client))
    answer = world.put_task(client, "y", unique_key="order 7")
    assert not world.is_gone(answer)
    assert world.tasks() == {"y": READY}


def test_unless_it_is_remembered(world: World, client: Any, clock: ManualClock) -> None:
    first = world.put(client, "x", unique_key="order 7", unique_for=60)
    world.ack(client, world.take(client))
    clock.advance(59)
    answer = world.put_task(client, "x", unique_key="order 7", unique_for=60)
    assert world.is_gone(answer)
    assert world.id_of(answer) == first
    assert world.tasks() == {}
    clock.advance(1)
    assert not world.is_gone(world.put_task(client, "x", unique_key="order 7", unique_for=60))


def test_the_time_begins_when_the_task_is_gone(world: World, client: Any, clock: ManualClock) -> None:
    world.put(client, "x", unique_key="order 7", unique_for=60)
    clock.advance(3600)
    world.ack(client, world.take(client))
    clock.advance(59)
    assert world.is_gone(world.put_task(client, "x", unique_key="order 7"))


def test_keys_survive_a_restart(world: World, client: Any, clock: ManualClock) -> None:
    first = world.put(client, "x", unique_key="stands")
    world.put(client, "y", unique_key="gone", unique_for=60)
    world.take(client)
    world.ack(client, world.take(client))
    world.server.restart()
    client = world.connect()
    assert world.put(client, "x", unique_key="stands") == first
    assert world.is_gone(world.put_task(client, "y", unique_key="gone"))
    clock.advance(60)
    assert not world.is_gone(world.put_task(client, "y", unique_key="gone"))


def test_a_failed_transaction_forgets_the_key(world: World, client: Any) -> None:
    with world.undone():
        world.put(client, "x", unique_key="order 7")
    world.put(client, "y", unique_key="order 7")
    assert world.tasks() == {"y": READY}


def test_a_task_deleted_by_its_limit_is_gone(world: World, client: Any) -> None:
    world.put(client, "poison", unique_key="order 7", unique_for=60, release_limit=1)
    world.fail("releases")
    assert world.is_gone(world.put_task(client, "poison", unique_key="order 7"))


def test_an_operators_put_answers_a_task_that_is_gone(world: World, client: Any) -> None:
    options = {"unique_key": "order 7", "unique_for": 60}
    first = world.operator(world.queue().put, "x", options)
    assert world.operator(world.queue().put, "x", options).id == first.id
    world.ack(client, world.take(client))
    again = world.operator(world.queue().put, "x", options)
    assert (again.id, again.state) == (first.id, TaskState.DONE)


def test_numbers_are_keys_as_well(world: World, client: Any) -> None:
    assert world.put(client, "x", unique_key=7) == world.put(client, "y", unique_key="7")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"unique_key": ""}, "unique_key must be a text of 1 to 1000 characters"),
        ({"unique_key": "x" * 1001}, "unique_key must be a text of 1 to 1000 characters"),
        ({"unique_key": 1.5}, "unique_key must be a text"),
        ({"unique_key": True}, "unique_key must be a text"),
        ({"unique_for": 60}, "unique_for needs a unique_key"),
        ({"unique_key": "k", "unique_for": -1}, "unique_for must be a number from 0"),
        ({"unique_key": "k", "unique_for": "a while"}, "unique_for must be a number"),
        ({"release_limit": "many"}, "release_limit must be a whole number"),
        ({"release_limit": 1.5}, "release_limit must be a whole number"),
        ({"release_limit": True}, "release_limit must be a whole number"),
        ({"release_limit_policy": "dlq"}, "release_limit_policy must be DELETE or DLQ, not 'dlq'"),
        ({"retry": 5}, "retry must be a map, or false for none"),
    ],
)
def test_wrong_options_are_refused(world: World, client: Any, options: dict[str, object], error: str) -> None:
    with pytest.raises(BoxError, match=error):
        world.put(client, "x", **options)
    assert world.tasks() == {}


def test_a_limited_tube_has_no_timeout_with_these_options(clock: ManualClock) -> None:
    world = World("limfifottl", clock)
    with pytest.raises(BoxError, match="a put with unique_key has no timeout"):
        world.put(world.connect(), "x", unique_key="k", timeout=5)


def test_bulk_puts_have_keys(clock: ManualClock) -> None:
    world = World("fifo", clock)
    tasks = world.connect().call(
        "queue.tube.jobs:put_many", [["a", {"unique_key": "k"}], ["b", {"unique_key": "k"}]]
    )
    assert [list(task) for task in tasks] == [[0, "r", "a"], [0, "r", "a"]]
