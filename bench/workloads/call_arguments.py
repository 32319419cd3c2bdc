"""Arguments for every call of clients and operators, so that it works on as many tasks as it can."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from bench.workloads.measured_queue import PAGE, World

NOT_MEASURED: Final = {
    # They read no tasks, and need a whole server.
    *("operator.status", "operator.snapshot"),
    *("operator.backup_start", "operator.backup_read", "operator.backup_stop"),
    # They are about schedules, not tasks.
    *("operator.schedules", "operator.schedule", "operator.unschedule"),
}
LAST: Final = ("put_unique", "truncate", "drop")
"""Methods after which an index makes others slower, or no task is left."""

ALL: Final = 20_000
"""The number of tasks that calls ask for."""

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


def method_of(name: str) -> str:
    """Return the last part of a call's name."""
    return name.rpartition(":")[2].rpartition(".")[2]


def calls_to_measure(world: World) -> dict[str, inspect.Signature]:
    """Return the calls with their parameters, those that leave no task last."""
    calls = {name: signature for name, signature in world.calls().items() if name not in NOT_MEASURED}
    return dict(sorted(calls.items(), key=lambda call: (method_of(call[0]) in LAST, call[0])))


def expected_failure(dialect: str, method: str) -> str:
    """Return a part of the error that a call may answer; empty if it must succeed."""
    return REFUSED.get((dialect, method)) or REFUSED.get(("", method), "")


def _own(world: World) -> list[Any]:
    """Return tasks that the client has taken, as far as it is among those of a page."""
    mine = world.client.session.id
    found = world.client.call("operator.tasks", world.name(), {"state": "taken", "limit": PAGE})
    return [task["id"] for task in found if task["session"] == mine][:100]


def arguments_of(world: World, name: str, signature: inspect.Signature) -> list[Any]:
    """Return the arguments of a call.

    Parameters:
        world: the server.
        name: the call's name.
        signature: its parameters.
    """
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
