"""No call of a client or an operator, and no timer, works on the whole backlog in one turn of the event loop.

The calls are found in the applications, so a new one is covered by itself; if one of its parameters has a new
name, a value for it is missing in `bench/workloads/call_arguments.py`. Work is counted, not timed.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from bench.workloads.call_arguments import ALL, arguments_of, calls_to_measure, expected_failure, method_of
from bench.workloads.measured_queue import Caller, World
from iproto_server import BoxError, Waiter
from tests.queue_lua_compat.slices.meter import Meter

MANY: Final = 2000
"""The number of tasks in each state."""
BUDGET: Final = 700
"""A turn may cost as much as so many puts of one task."""

DIALECTS: Final = ("tutorial", "legacy", "fifo", "fifottl", "limfifottl", "utube", "utubettl")


def _cost_of_a_put(world: World, meter: Meter) -> int:
    calls: dict[str, tuple[str, list[Any]]] = {
        "tutorial": ("queue.put", ["x"]),
        "legacy": ("queue.put", [0, "jobs", 0, 0, 0, 0, "x"]),
    }
    name, arguments = calls.get(world.dialect, ("queue.tube.jobs:put", ["x", {}]))
    meter.begin()
    for _ in range(5):
        world.client.call(name, *arguments)
    return min(meter.end())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_call_holds_the_loop(dialect: str) -> None:
    world = World(dialect, MANY, meter := Meter(), has_data_index=True)
    world.prepare()
    calls = calls_to_measure(world)
    assert len(calls) >= 20
    budget = BUDGET * _cost_of_a_put(world, meter)
    longest: dict[str, int] = {}
    for name in calls:
        method = method_of(name)
        world.prepare()
        arguments = arguments_of(world, name, calls[name])
        meter.begin()
        failure = ""
        try:
            world.client.call(name, *arguments)
        except BoxError as error:
            failure = error.message
        expected = expected_failure(dialect, method)
        assert not failure or (expected and expected in failure), f"{name}{arguments!r:.200}: {failure}"
        longest[name] = max(meter.end())
        if name in ("operator.drain", "operator.pause"):
            world.client.call("operator.resume", world.name())
    assert {name: cost for name, cost in longest.items() if cost > budget} == {}, budget


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_end_of_a_session_does_not_hold_the_loop(dialect: str) -> None:
    world = World(dialect, MANY, meter := Meter(), has_data_index=True)
    world.prepare()
    budget = BUDGET * _cost_of_a_put(world, meter)
    worker = Caller(world)
    method = {"tutorial": "queue.take_many", "legacy": "queue.take_many"}.get(
        dialect, "queue.tube.jobs:take_many"
    )
    where = (0, "jobs") if dialect == "legacy" else ()
    assert len(worker.call(method, *where, ALL, 0)) >= MANY
    meter.begin()
    worker.close()
    assert max(meter.end()) <= budget
    assert world.client.call("operator.queue", world.name())["tasks"]["ready"] >= MANY


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if dialect not in ("fifo", "utube")])
def test_many_due_tasks_do_not_hold_the_loop(dialect: str) -> None:
    world = World(dialect, MANY, meter := Meter(), has_data_index=True)
    world.prepare()
    budget = BUDGET * _cost_of_a_put(world, meter)
    meter.begin()
    world.clock.advance(2e6)
    assert max(meter.end()) <= budget
    assert world.client.call("operator.queue", world.name())["tasks"]["delayed"] == 0


@pytest.mark.parametrize("dialect", ["tutorial", "legacy", "fifottl"])
def test_many_waiters_do_not_hold_the_loop(dialect: str) -> None:
    world = World(dialect, MANY, meter := Meter(), has_data_index=True)
    world.prepare()
    world.client.call("operator.pause", world.name())
    waiters: list[Waiter] = []
    consumer = Caller(world)
    name = {"tutorial": "queue.take", "legacy": "queue.take"}.get(dialect, "queue.tube.jobs:take")
    where = (0, "jobs") if dialect == "legacy" else ()
    procedure = world.procedures.by_name.get(name) or world.procedures.find(name)
    assert procedure is not None
    arguments = (world.box, *where, 100)
    waiters += [world.box.run(consumer.session, procedure.function, *arguments) for _ in range(MANY)]
    budget = 2 * BUDGET * 100
    meter.begin()
    world.client.call("operator.resume", world.name())
    world.clock.advance(0)
    slices = meter.end()
    assert all(waiter.is_done for waiter in waiters)
    assert len(slices) > MANY // 200
    assert max(slices) <= budget
