"""The longest turn of the event loop for every call of clients and operators on many tasks.

    python -m bench.scenarios.server.slices [--tasks N] [--dialects NAME ...] [--tubes N]

A turn is what runs until other clients are served. Each is measured in processor time of its thread, so that
other processes do not count. There are neither sockets nor files: a turn ends before its rows are written.
"""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from inspect import Signature
from typing import Any, Final, TypeVar

from bench.lib.table import Table
from bench.workloads.call_arguments import (
    ALL,
    LAST,
    arguments_of,
    calls_to_measure,
    expected_failure,
    method_of,
)
from bench.workloads.measured_queue import PAGE, Caller, World
from iproto_server import BoxError, Waiter

Result = TypeVar("Result")

TASKS: Final = 1_000_000
TUBES: Final = 10_000
WAITERS: Final = 10_000
DIALECTS: Final = ("tutorial", "legacy", "fifottl")
MANY_TUBES: Final = "tubes"
_HEAD: Final = ("call", "turns", "longest, ms", "all, ms")


class ProcessorTime:
    """Measures turns in processor time."""

    def __init__(self) -> None:
        self._turns: list[float] | None = None

    def begin(self) -> None:
        """Begin to measure."""
        self._turns = []

    def end(self, name: str) -> tuple[str, ...]:
        """Return the line of the table about what was measured."""
        turns, self._turns = self._turns or [0.0], None
        line = (name, f"{len(turns):,}", f"{max(turns) * 1e3:.1f}", f"{sum(turns) * 1e3:,.0f}")
        print(*line, sep="\t", file=sys.stderr, flush=True)
        return line

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function, and measure the turn."""
        if self._turns is None:
            return function(*arguments)
        begun = time.thread_time()
        try:
            return function(*arguments)
        finally:
            self._turns.append(time.thread_time() - begun)


def measure(dialect: str, tasks: int) -> list[tuple[str, ...]]:
    """Measure every call of a dialect.

    Parameters:
        dialect: one of `World`.
        tasks: the number of tasks of all states together.
    """
    meter = ProcessorTime()
    world = World(dialect, 1, meter)
    world.many = tasks // len(world.states)
    calls = calls_to_measure(world)
    last = [name for name in calls if method_of(name) in LAST]
    return [
        *(_measure_call(world, meter, name, calls[name]) for name in calls if name not in last),
        *_measure_events(world, meter),
        *(_measure_call(world, meter, name, calls[name], is_last=True) for name in last),
    ]


def _measure_call(
    world: World, meter: ProcessorTime, name: str, signature: Signature, *, is_last: bool = False
) -> tuple[str, ...]:
    if not is_last:
        world.prepare()
    arguments = arguments_of(world, name, signature)
    meter.begin()
    try:
        world.client.call(name, *arguments)
    except BoxError as error:
        if expected_failure(world.dialect, method_of(name)) not in error.message:
            raise
    line = meter.end(name.replace(":", " "))
    if name in ("operator.drain", "operator.pause"):
        world.client.call("operator.resume", world.name())
    return line


def _measure_events(world: World, meter: ProcessorTime) -> Iterator[tuple[str, ...]]:
    """Measure the end of a session, due tasks, and waiting takes."""
    world.prepare()
    take = "queue.tube.jobs:take" if world.is_tube else "queue.take"
    where = (0, "jobs") if world.is_legacy else ()
    worker = Caller(world)
    taken = len(worker.call(f"{take}_many", *where, ALL, 0))
    meter.begin()
    worker.close()
    yield meter.end(f"end of a session with {taken:,} tasks")
    world.prepare()
    if "delayed" in world.states:
        meter.begin()
        world.clock.advance(2e6)
        yield meter.end(f"{world.many:,} tasks are due at one moment")
    world.client.call("operator.pause", world.name())
    procedure = world.procedures.by_name.get(take) or world.procedures.find(take)
    assert procedure is not None
    session, arguments = Caller(world).session, (world.box, *where, 100)
    waiters: list[Waiter] = [world.box.run(session, procedure.function, *arguments) for _ in range(WAITERS)]
    meter.begin()
    world.client.call("operator.resume", world.name())
    world.clock.advance(0)
    yield meter.end(f"{sum(waiter.is_done for waiter in waiters):,} waiting takes are served")


def measure_tubes(tubes: int) -> list[tuple[str, ...]]:
    """Measure the calls that look for a queue among many."""
    meter = ProcessorTime()
    world = World("fifottl", 10, meter)
    for number in range(tubes - 1):
        world.client.call("queue.create_tube", f"tube{number}", "fifottl", {})
    world.prepare()
    lines: list[tuple[str, ...]] = []
    for name, arguments in (
        ("queue.create_tube", ["last", "fifottl", {}]),
        ("queue.tube.last:drop", []),
        ("queue.statistics", []),
        ("operator.queue", ["jobs"]),
        ("operator.queues", [{"limit": PAGE}]),
        ("operator.queues", [{"limit": PAGE, "after": "tube5"}]),
        ("operator.sessions", [{"limit": PAGE}]),
        ("operator.tasks", ["jobs", {"limit": PAGE}]),
        ("operator.put", ["jobs", "x", {}]),
        ("operator.pause", ["jobs"]),
    ):
        meter.begin()
        world.client.call(name, *arguments)
        lines.append(meter.end(name.replace(":", " ")))
    return lines


def main(arguments: list[str]) -> None:
    """Run the scenario, each dialect in a process of its own."""
    parser = ArgumentParser(prog="bench.scenarios.server.slices", description=__doc__)
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--tubes", type=int, default=TUBES)
    parser.add_argument("--dialects", nargs="+", default=[*DIALECTS, MANY_TUBES])
    given: Namespace = parser.parse_args(arguments)
    if len(given.dialects) > 1:
        for dialect in given.dialects:
            numbers = ["--tasks", str(given.tasks), "--tubes", str(given.tubes)]
            subprocess.run(
                [sys.executable, "-m", "bench.scenarios.server.slices", *numbers, "--dialects", dialect],
                check=True,
            )
        return
    logging.disable(logging.CRITICAL)
    # The server's process freezes what a start leaves, and collects rarely; here all objects are new.
    gc.disable()
    [dialect] = given.dialects
    is_many = dialect == MANY_TUBES
    lines = measure_tubes(given.tubes) if is_many else measure(dialect, given.tasks)
    title = f"{given.tubes:,} tubes" if is_many else f"{dialect}, {given.tasks:,} tasks"
    print(Table(title, _HEAD, lines).markdown(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
