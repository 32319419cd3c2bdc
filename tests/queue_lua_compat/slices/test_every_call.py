"""No call of a client or an operator, and no timer, works on the whole backlog in one turn of the event loop.

The calls are found in the applications, so a new one is covered by itself; if one of its parameters has a new
name, a value for it is missing in `VALUES`. Work is counted, not timed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

import pytest

from iproto_server import BoxError, Waiter
from tests.queue_lua_compat.slices.world import PAGE, Caller, World

MANY: Final = 2000
"""The number of tasks in each state."""
BUDGET: Final = 700
"""A turn may cost as much as so many puts of one task."""

DIALECTS: Final = ("tutorial", "legacy", "fifo", "fifottl", "limfifottl", "utube", "utubettl")

NOT_MEASURED: Final = {
    # They read no tasks, and need a whole server.
    *("operator.status", "operator.snapshot"),
    *("operator.backup_start", "operator.backup_read", "operator.backup_stop"),
    # They are about schedules, not tasks.
    *("operator.schedules", "operator.schedule", "operator.unschedule"),
}
LAST: Final = ("truncate", "drop")
"""Methods after which no task is left."""

ALL: Final = 10**6

VALUES: Final[dict[str, Callable[[World], Any]]] = {
    "space": lambda world: 0,
    "tube": lambda world: "jobs",
    "queue": lambda world: world.name(),
    "target": lambda world: world.name("other"),
    "n": lambda world: ALL,
    "count": lambda world: ALL,
    "timeout": lambda world: 0,
    "data": lambda world: "x",
    "tasks": lambda world: [["x"]],
    **dict.fromkeys(("delay", "ttl", "ttr", "pri"), lambda world: 0),
    "delta": lambda world: 1,
    "task_id": lambda world: _own(world)[0],
    "task_ids": lambda world: _own(world),
    "ids": lambda world: world.ids("taken"),
    "name": lambda world: None,
    "kind": lambda world: world.dialect,
    "user": lambda world: "guest",
    "role": lambda world: "public",
    "options": lambda world: None,
}

OPTIONS: Final[dict[str, Callable[[World], list[Any]]]] = {
    "operator.queues": lambda world: [{"limit": PAGE}],
    "operator.queue": lambda world: [world.name()],
    "operator.sessions": lambda world: [{"limit": PAGE}],
    "operator.tasks": lambda world: [world.name(), {"state": "taken", "limit": PAGE, "older": 1e9}],
    "operator.put": lambda world: [world.name(), "x", {}],
    "operator.kick": lambda world: [world.name(), 10_000],
    "operator.bury": lambda world: [world.name(), world.ids("taken")],
    "operator.configure": lambda world: [world.name(), {"strict_options": False}],
    "operator.requeue": lambda world: [world.name(), world.ids("taken")],
    "queue.create_tube": lambda world: ["another", world.dialect, {}],
    "queue.put_unique": lambda world: [0, "jobs", 0, 0, 0, 0, "x"],
    "queue.dig": lambda world: [0, world.ids("buried", 1)[0]],
    "queue.unbury": lambda world: [0, world.ids("buried", 1)[0]],
}
"""The arguments of calls for which those by the names of the parameters do not do."""

REFUSED: Final = {
    ("fifo", "touch"): "does not support touch",
    ("utube", "touch"): "does not support touch",
    ("tutorial", "kick"): "has no kick",
    ("tutorial", "bury"): "has no bury",
    ("tutorial", "move"): "cannot be the target of its own tasks",
    ("", "requeue"): "has no requeue",
    ("", "drop"): "There are taken tasks in the tube",
    ("", "done"): "Only consumer that took the task can it done",
}
"""Calls that answer with an error, by the dialect (or any) and the method."""


def _own(world: World) -> list[Any]:
    """Return tasks that the client has taken, as far as it is among those of a page."""
    mine = world.client.session.id
    found = world.client.call("operator.tasks", world.name(), {"state": "taken", "limit": PAGE})
    return [task["id"] for task in found if task["session"] == mine][:100]


def _arguments(world: World, name: str, signature: inspect.Signature) -> list[Any]:
    if name in OPTIONS:
        return OPTIONS[name](world)
    wanted = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "box") and parameter.kind is not parameter.VAR_POSITIONAL
    ]
    missing = [parameter for parameter in wanted if parameter not in VALUES]
    assert not missing, f"{name} has the new parameters {missing}: add them to VALUES"
    values = [VALUES[parameter](world) for parameter in wanted]
    if any(parameter.name == "task_ids" for parameter in signature.parameters.values()) and not values:
        values = [_own(world)]
    while values and values[-1] is None:
        values.pop()
    return values


def _cost_of_a_put(world: World) -> int:
    calls: dict[str, tuple[str, list[Any]]] = {
        "tutorial": ("queue.put", ["x"]),
        "legacy": ("queue.put", [0, "jobs", 0, 0, 0, 0, "x"]),
    }
    name, arguments = calls.get(world.dialect, ("queue.tube.jobs:put", ["x", {}]))
    world.meter.begin()
    for _ in range(5):
        world.client.call(name, *arguments)
    return min(world.meter.end())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_call_holds_the_loop(dialect: str) -> None:
    world = World(dialect, MANY)
    world.prepare()
    calls = {name: signature for name, signature in world.calls().items() if name not in NOT_MEASURED}
    assert len(calls) >= 20
    budget = BUDGET * _cost_of_a_put(world)
    longest: dict[str, int] = {}
    for name in sorted(calls, key=lambda name: (name.rpartition(":")[2].rpartition(".")[2] in LAST, name)):
        method = name.rpartition(":")[2].rpartition(".")[2]
        world.prepare()
        arguments = _arguments(world, name, calls[name])
        world.meter.begin()
        failure = ""
        try:
            world.client.call(name, *arguments)
        except BoxError as error:
            failure = error.message
        expected = REFUSED.get((dialect, method)) or REFUSED.get(("", method), "")
        assert not failure or (expected and expected in failure), f"{name}{arguments!r:.200}: {failure}"
        longest[name] = max(world.meter.end())
        if name in ("operator.drain", "operator.pause"):
            world.client.call("operator.resume", world.name())
    assert {name: cost for name, cost in longest.items() if cost > budget} == {}, budget


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_end_of_a_session_does_not_hold_the_loop(dialect: str) -> None:
    world = World(dialect, MANY)
    world.prepare()
    budget = BUDGET * _cost_of_a_put(world)
    worker = Caller(world)
    method = {"tutorial": "queue.take_many", "legacy": "queue.take_many"}.get(
        dialect, "queue.tube.jobs:take_many"
    )
    where = (0, "jobs") if dialect == "legacy" else ()
    assert len(worker.call(method, *where, ALL, 0)) >= MANY
    world.meter.begin()
    worker.close()
    assert max(world.meter.end()) <= budget
    assert world.client.call("operator.queue", world.name())["tasks"]["ready"] >= MANY


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS if dialect not in ("fifo", "utube")])
def test_many_due_tasks_do_not_hold_the_loop(dialect: str) -> None:
    world = World(dialect, MANY)
    world.prepare()
    budget = BUDGET * _cost_of_a_put(world)
    world.meter.begin()
    world.clock.advance(2e6)
    assert max(world.meter.end()) <= budget
    assert world.client.call("operator.queue", world.name())["tasks"]["delayed"] == 0


@pytest.mark.parametrize("dialect", ["tutorial", "legacy", "fifottl"])
def test_many_waiters_do_not_hold_the_loop(dialect: str) -> None:
    world = World(dialect, MANY)
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
    world.meter.begin()
    world.client.call("operator.resume", world.name())
    world.clock.advance(0)
    slices = world.meter.end()
    assert all(waiter.is_done for waiter in waiters)
    assert len(slices) > MANY // 200
    assert max(slices) <= budget
