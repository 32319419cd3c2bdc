"""What queues remember of each task is in structures that never move as a whole."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from bench.workloads.measured_queue import Caller, Result, World
from iproto_server import IncrementalDict
from queue_lua_compat.long_calls import TAKES
from tests.queue_lua_compat.slices.meter import Meter

MANY: Final = 2000
"""The number of tasks in each state, more than any other thing that a queue remembers."""

DIALECTS: Final = ("tutorial", "legacy", "fifo", "fifottl", "limfifottl", "utube", "utubettl")


def _reached(*roots: object) -> list[object]:
    """Return all objects that others refer to, but those of modules and classes."""
    modules = list(sys.modules.values())
    seen = {id(each) for module in modules for each in (module, vars(module))}
    found: list[object] = []
    left = list(roots)
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type):
            continue
        seen.add(id(each))
        found.append(each)
        left += gc.get_referents(each)
    return found


def _with_all_state(dialect: str) -> World:
    """Return a queue in which many tasks have become ready, were taken and touched."""
    world = World(dialect, MANY, Meter(), has_data_index=True)
    world.prepare()
    client = Caller(world)
    if dialect == "tutorial":
        for task in client.call("queue.take_many", MANY, 0):
            client.call("queue.touch", task["id"])
    elif dialect == "legacy":
        for task in client.call("queue.take_many", 0, "jobs", MANY, 0):
            client.call("queue.touch", 0, task[0])
    else:
        client.call("queue.tube.jobs:take_many", MANY, 0)
        world.client.call("queue.tube.jobs:release_all")
    world.clock.advance(2e6)
    return world


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_plain_dict_or_set_has_an_entry_of_each_task(dialect: str) -> None:
    world = _with_all_state(dialect)
    reached = _reached(world.box, world.application)
    assert len(reached) > 1000
    assert any(isinstance(each, IncrementalDict) and len(each) >= MANY for each in reached)
    assert [
        each
        for each in reached
        if isinstance(each, (dict, set)) and type(each) in (dict, set) and len(each) >= MANY
    ] == []


class Growth:
    """Notes by how many buckets the largest dict of a queue grows or shrinks in a turn."""

    def __init__(self) -> None:
        self.watched: list[Any] = []
        self.changes: list[int] = []

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        before = [each.buckets for each in self.watched]
        try:
            return function(*arguments)
        finally:
            both = zip(self.watched, before, strict=True)
            self.changes += [abs(each.buckets - buckets) for each, buckets in both]


@pytest.mark.parametrize("dialect", ["tutorial", "legacy"])
def test_owners_grow_and_shrink_as_much_as_a_slice_changes(dialect: str) -> None:
    meter = Growth()
    world = World(dialect, MANY, meter)
    world.prepare()
    where = (0, "jobs") if dialect == "legacy" else ()
    client = Caller(world)
    [*_, task] = client.call("queue.take_many", *where, 300, 0)
    key = task[0] if dialect == "legacy" else task["id"]
    meter.watched = [
        each
        for each in _reached(world.box, world.application)
        if isinstance(each, IncrementalDict) and key in each
    ]
    assert len(meter.watched) >= 2  # the owners by task, and the tasks of the owner
    taken = client.call("queue.take_many", *where, MANY, 0)
    assert len(taken) > 4 * TAKES
    assert 0 < max(meter.changes) <= TAKES + 1
    meter.changes = []
    client.close()
    assert 0 < max(meter.changes) <= 4 * TAKES
