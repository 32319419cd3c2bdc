"""Tasks per second that one client puts, takes and acknowledges, with one and with a hundred tasks in a call.

The client waits for each answer before it sends the next request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from bench.lib.table import table
from bench.peers.iproto import IprotoConnection
from bench.peers.queue_server import OurQueue, QueueServer

TASKS: Final = 20_000
BATCH: Final = 100
REQUIRED: Final = 3.0
_DATA: Final = "test data"


@dataclass(frozen=True)
class QueueProcedures:
    """The procedures of one queue.

    Attributes:
        name: its name in the table.
        application: the application that serves it.
        prefix: the beginning of its procedures' names.
        task: a task as `put_many` takes it.
        task_id: finds the id in a task that a call has returned.
        put, take, ack: the first arguments of these procedures, such as the space.
        prepare: the call that creates the queue; empty if none is needed.
    """

    name: str
    application: str
    prefix: str
    task: object
    task_id: Callable[[Any], object]
    put: tuple[object, ...] = ()
    take: tuple[object, ...] = ()
    ack: tuple[object, ...] = ()
    prepare: tuple[str, ...] = ()


QUEUES: Final = (
    QueueProcedures("tutorial", "queue_lua_compat.tutorial:app", "queue.", _DATA, itemgetter("id")),
    QueueProcedures(
        "legacy queue",
        "queue_lua_compat.legacy:app",
        "queue.",
        _DATA,
        itemgetter(0),
        put=(0, "jobs", 0, 3600, 3600, 0),
        take=(0, "jobs"),
        ack=(0,),
    ),
    QueueProcedures(
        "tubes, fifo",
        "queue_lua_compat.tubes:app",
        "queue.tube.jobs:",
        [_DATA],
        itemgetter(0),
        prepare=("queue.create_tube", "jobs", "fifo"),
    ),
)


@dataclass(frozen=True, slots=True)
class Rates:
    """Tasks per second.

    Attributes:
        queue: the queue's name.
        operation: "put", "take" or "ack".
        single: one in a call.
        many: a hundred in a call.
    """

    queue: str
    operation: str
    single: float
    many: float


def measure(queue: QueueProcedures, directory: Path, tasks: int) -> Iterator[Rates]:
    """Measure one queue.

    Parameters:
        queue: the queue.
        directory: the directory for the server's files.
        tasks: the number of tasks per operation and batch size.
    """
    with QueueServer(OurQueue(queue.application), directory) as server:
        connection = server.connection
        if queue.prepare:
            connection.call(*queue.prepare)
        _once(connection, queue, BATCH)
        _many(connection, queue, BATCH)
        singles = _once(connection, queue, tasks)
        many = _many(connection, queue, tasks)
        for operation in ("put", "take", "ack"):
            yield Rates(queue.name, operation, tasks / singles[operation], tasks / many[operation])


def _once(connection: IprotoConnection, queue: QueueProcedures, tasks: int) -> dict[str, float]:
    """Return the seconds per operation, with one task in a call."""
    call, times = _caller(connection, queue), range(tasks)
    begun = time.perf_counter()
    for _ in times:
        call("put", *queue.put, _DATA)
    put = time.perf_counter()
    ids = [queue.task_id(call("take", *queue.take, 0)) for _ in times]
    taken = time.perf_counter()
    for task_id in ids:
        call("ack", *queue.ack, task_id)
    return {"put": put - begun, "take": taken - put, "ack": time.perf_counter() - taken}


def _many(connection: IprotoConnection, queue: QueueProcedures, tasks: int) -> dict[str, float]:
    """Return the seconds per operation, with a hundred tasks in a call."""
    call, times = _caller(connection, queue), range(0, tasks, BATCH)
    begun = time.perf_counter()
    for _ in times:
        call("put_many", *queue.put, [queue.task] * BATCH)
    put = time.perf_counter()
    batches = [list(map(queue.task_id, call("take_many", *queue.take, BATCH, 0))) for _ in times]
    taken = time.perf_counter()
    for ids in batches:
        call("ack_many", *queue.ack, ids)
    return {"put": put - begun, "take": taken - put, "ack": time.perf_counter() - taken}


def _caller(connection: IprotoConnection, queue: QueueProcedures) -> Callable[..., Any]:
    def call(name: str, *arguments: object) -> Any:
        return connection.call(queue.prefix + name, *arguments)[0]

    return call


def report(directory: Path, share: float, say: Callable[[str], None]) -> str:
    """Measure all queues and format a table.

    Parameters:
        directory: the directory for the servers' files.
        share: the number of tasks, as a fraction of the default.
        say: called with progress messages.
    """
    tasks = max(BATCH, round(TASKS * share / BATCH) * BATCH)
    rates: list[Rates] = []
    for queue in QUEUES:
        say(f"batches: {queue.name}")
        rates += measure(queue, directory / f"batches-{queue.name.replace(' ', '-')}", tasks)
    return _table(rates)


def _table(rates: Sequence[Rates]) -> str:
    rows = [
        [
            each.queue,
            each.operation,
            f"{each.single:,.0f}",
            f"{each.many:,.0f}",
            f"{each.many / each.single:.1f}",
            "yes" if each.many >= REQUIRED * each.single else "no",
        ]
        for each in rates
    ]
    header = ["", "", "one\nin a call", f"{BATCH}\nin a call", "ratio", f"at least\n{REQUIRED:g}"]
    return table("Tasks in a second, one client that waits for each answer", header, rows, texts=2)
