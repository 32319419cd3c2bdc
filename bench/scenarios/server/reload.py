"""Effect of repeated reloads of an application on its clients.

    python -m bench.scenarios.server.reload [--queue tutorial|legacy|tubes] [--clients N] [--reloads N]
                                     [--pause SECONDS]

Each client puts a task (every fourth one delayed), takes one and acknowledges it, without pause, while
another client calls `package.reload`. The output shows errors, tasks that were lost or delivered twice, and
the server's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgpack
import uvloop

from bench.lib.process import ServerProcess
from bench.lib.table import table
from bench.peers.queue_server import OurQueue, QueueServer

CLIENTS: Final = 50
RELOADS: Final = 100
PAUSE: Final = 0.1
"""Seconds between two reloads."""
DELAY: Final = 0.05
"""The delay of delayed tasks, in seconds."""
TAKE_WITHIN: Final = 20.0
WARM_UP: Final = 0.1
"""The share of the reloads before the first measurement of memory."""

_GREETING: Final = 128
_CALL: Final = 10
_TYPE, _SYNC, _FUNCTION_NAME, _TUPLE, _DATA, _ERROR = 0x00, 0x01, 0x22, 0x21, 0x30, 0x31
_MEBIBYTE: Final = 2**20


@dataclass(frozen=True)
class QueueCalls:
    """The calls of one queue's clients.

    Attributes:
        prepare: the call that creates the tube; None if none is needed.
        put: makes the call that puts a task, from the task's number and a delay in seconds.
        take: the call that takes a task.
        taken: finds the id and the number of the task in the answer.
        ack: the call that acknowledges a task, without the id.
    """

    prepare: tuple[Any, ...] | None
    put: Callable[[int, float], tuple[Any, ...]]
    take: tuple[Any, ...]
    taken: Callable[[Any], tuple[Any, int]]
    ack: tuple[Any, ...]


QUEUES: Final = {
    "tutorial": QueueCalls(
        None,
        lambda number, delay: ("queue.put", number, {"delay": delay} if delay else {}),
        ("queue.take", TAKE_WITHIN),
        lambda task: (task["id"], task["data"]),
        ("queue.ack",),
    ),
    "legacy": QueueCalls(
        None,
        lambda number, delay: ("queue.put", 0, "tube", delay, 0, 0, 0, number),
        ("queue.take", 0, "tube", TAKE_WITHIN),
        lambda task: (task[0], task[3]),
        ("queue.ack", 0),
    ),
    "tubes": QueueCalls(
        ("queue.create_tube", "jobs", "fifottl"),
        lambda number, delay: ("queue.tube.jobs:put", number, {"delay": delay}),
        ("queue.tube.jobs:take", TAKE_WITHIN),
        lambda task: (task[0], task[2]),
        ("queue.tube.jobs:ack",),
    ),
}


@dataclass
class Report:
    """The results of a run.

    Attributes:
        reloads: the milliseconds that each call of `package.reload` took.
        generation: the answer to the last of them.
        put: the number of tasks.
        acknowledged: the number of acknowledgements of each task, by its number.
        longest: the duration of the slowest put or ack, in milliseconds.
        errors: the errors that clients received.
        before: the server's memory after the first reloads, in bytes.
        after: the server's memory at the end, in bytes.
    """

    reloads: list[float] = field(default_factory=list)
    generation: int = 1
    put: int = 0
    acknowledged: Counter[int] = field(default_factory=Counter)
    longest: float = 0.0
    errors: list[str] = field(default_factory=list)
    before: int = 0
    after: int = 0

    @property
    def lost(self) -> int:
        """The number of tasks without an acknowledgement."""
        return self.put - len(self.acknowledged)

    @property
    def twice(self) -> int:
        """The number of tasks that were acknowledged more than once."""
        return sum(times > 1 for times in self.acknowledged.values())


class _Client:
    """A connection with one call at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sync = 0

    async def call(self, name: str, *arguments: object) -> Any:
        """Call a procedure and return its values. Raises RuntimeError with the text of an error answer."""
        self._sync += 1
        frame = msgpack.packb({_TYPE: _CALL, _SYNC: self._sync})
        frame += msgpack.packb({_FUNCTION_NAME: name, _TUPLE: arguments})
        self._writer.write(b"\xce" + len(frame).to_bytes(4, "big") + frame)
        prefix = await self._reader.readexactly(5)
        unpacker = msgpack.Unpacker(strict_map_key=False)
        unpacker.feed(await self._reader.readexactly(int.from_bytes(prefix[1:], "big")))
        unpacker.unpack()
        body = unpacker.unpack()
        if _DATA not in body:
            raise RuntimeError(f"{name}: {body[_ERROR]}")
        return body[_DATA]


@asynccontextmanager
async def _connected(address: tuple[str, int]) -> Any:
    reader, writer = await asyncio.open_connection(*address)
    try:
        await reader.readexactly(_GREETING)
        yield _Client(reader, writer)
    finally:
        writer.close()


async def _work(
    address: tuple[str, int],
    calls: QueueCalls,
    report: Report,
    numbers: Iterator[int],
    is_over: asyncio.Event,
) -> None:
    """Put, take and acknowledge tasks until as many were taken as were put."""
    try:
        async with _connected(address) as client:
            while not is_over.is_set():
                number = next(numbers)
                begun = time.perf_counter()
                await client.call(*calls.put(number, DELAY if number % 4 == 0 else 0))
                report.longest = max(report.longest, (time.perf_counter() - begun) * 1000)
                report.put += 1
                [task] = await client.call(*calls.take)
                task_id, number = calls.taken(task)
                begun = time.perf_counter()
                await client.call(*calls.ack, task_id)
                report.longest = max(report.longest, (time.perf_counter() - begun) * 1000)
                report.acknowledged[number] += 1
    except (RuntimeError, OSError, ValueError, asyncio.IncompleteReadError) as error:
        report.errors.append(f"{type(error).__name__}: {error}")


async def _reload(
    server: ServerProcess, address: tuple[str, int], report: Report, reloads: int, pause: float
) -> None:
    async with _connected(address) as client:
        for number in range(reloads):
            await asyncio.sleep(pause)
            begun = time.perf_counter()
            [report.generation] = await client.call("package.reload")
            report.reloads.append((time.perf_counter() - begun) * 1000)
            if number == int(reloads * WARM_UP):
                report.before = server.memory()
        report.after = server.memory()


async def _run(server: QueueServer, calls: QueueCalls, clients: int, reloads: int, pause: float) -> Report:
    report = Report()
    if calls.prepare is not None:
        async with _connected(server.address) as client:
            await client.call(*calls.prepare)
    is_over = asyncio.Event()
    numbers = count(1)
    workers = [
        asyncio.create_task(_work(server.address, calls, report, numbers, is_over)) for _ in range(clients)
    ]
    try:
        await _reload(server.process, server.address, report, reloads, pause)
    finally:
        is_over.set()
        await asyncio.gather(*workers)
    return report


def run(directory: Path, clients: int, reloads: int, pause: float, queue: str = "tutorial") -> Report:
    """Measure once.

    Parameters:
        directory: the directory for the server's files.
        clients: the number of clients.
        reloads: the number of reloads.
        pause: seconds between two reloads.
        queue: one of `QUEUES`.
    """
    ours = OurQueue(f"queue_lua_compat.{queue}:app")
    with QueueServer(ours, directory) as server, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(server, QUEUES[queue], clients, reloads, pause))


def shown(report: Report) -> str:
    """Format the results as a table."""
    rows = [
        ["reloads", f"{len(report.reloads)}"],
        ["generation", f"{report.generation}"],
        ["a reload, ms (median)", f"{median(report.reloads):.1f}"],
        ["a reload, ms (longest)", f"{max(report.reloads):.1f}"],
        ["put or ack, ms (longest)", f"{report.longest:.1f}"],
        ["tasks", f"{report.put}"],
        ["lost", f"{report.lost}"],
        ["acknowledged twice", f"{report.twice}"],
        ["errors", f"{len(report.errors)}"],
        ["memory, MiB (after the first reloads)", f"{report.before / _MEBIBYTE:.1f}"],
        ["memory, MiB (at the end)", f"{report.after / _MEBIBYTE:.1f}"],
    ]
    return "\n".join([table("Reloading under load", ["what", "figure"], rows), *report.errors[:10]])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns 1 if tasks were lost, delivered twice or refused, otherwise 0."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.scenarios.server.reload", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--queue", choices=QUEUES, default="tutorial")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--reloads", type=int, default=RELOADS)
    parser.add_argument("--pause", type=float, default=PAUSE)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        report = run(Path(directory) / "data", given.clients, given.reloads, given.pause, given.queue)
    print(shown(report))
    return 1 if report.errors or report.lost or report.twice else 0


if __name__ == "__main__":
    sys.exit(main())
