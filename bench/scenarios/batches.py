"""How many tasks a second one client puts, takes and acknowledges, one in a call, and a hundred.

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
class Dialect:
    """How a queue's clients call what they do.

    Attributes:
        name: as in the table.
        application: that serves it.
        prefix: of its procedures' names.
        task: what `put_many` has for a task.
        task_id: finds the id in a task that was answered.
        put, take, ack: the arguments in front of all others: the space, say.
        prepare: the call that makes the queue, if there has to be one.
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


DIALECTS: Final = (
    Dialect("tutorial", "queue_lua_compat.tutorial:app", "queue.", _DATA, itemgetter("id")),
    Dialect(
        "older queue",
        "queue_lua_compat.legacy:app",
        "queue.",
        _DATA,
        itemgetter(0),
        put=(0, "jobs", 0, 3600, 3600, 0),
        take=(0, "jobs"),
        ack=(0,),
    ),
    Dialect(
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
    """Tasks in a second.

    Attributes:
        dialect: the dialect's name.
        operation: "put", "take" or "ack".
        single: one in a call.
        many: a hundred in a call.
    """

    dialect: str
    operation: str
    single: float
    many: float


def measure(dialect: Dialect, directory: Path, tasks: int) -> Iterator[Rates]:
    """Measure one dialect.

    Parameters:
        dialect: which.
        directory: for the server's files.
        tasks: how many are put, taken and acknowledged each way.
    """
    with QueueServer(OurQueue(dialect.application), directory) as server:
        connection = server.connection
        if dialect.prepare:
            connection.call(*dialect.prepare)
        _once(connection, dialect, BATCH)
        _many(connection, dialect, BATCH)
        singles = _once(connection, dialect, tasks)
        many = _many(connection, dialect, tasks)
        for operation in ("put", "take", "ack"):
            yield Rates(dialect.name, operation, tasks / singles[operation], tasks / many[operation])


def _once(connection: IprotoConnection, dialect: Dialect, tasks: int) -> dict[str, float]:
    """The seconds for so many tasks, one in a call."""
    call, times = _caller(connection, dialect), range(tasks)
    begun = time.perf_counter()
    for _ in times:
        call("put", *dialect.put, _DATA)
    put = time.perf_counter()
    ids = [dialect.task_id(call("take", *dialect.take, 0)) for _ in times]
    taken = time.perf_counter()
    for task_id in ids:
        call("ack", *dialect.ack, task_id)
    return {"put": put - begun, "take": taken - put, "ack": time.perf_counter() - taken}


def _many(connection: IprotoConnection, dialect: Dialect, tasks: int) -> dict[str, float]:
    """The seconds for so many tasks, a hundred in a call."""
    call, times = _caller(connection, dialect), range(0, tasks, BATCH)
    begun = time.perf_counter()
    for _ in times:
        call("put_many", *dialect.put, [dialect.task] * BATCH)
    put = time.perf_counter()
    batches = [list(map(dialect.task_id, call("take_many", *dialect.take, BATCH, 0))) for _ in times]
    taken = time.perf_counter()
    for ids in batches:
        call("ack_many", *dialect.ack, ids)
    return {"put": put - begun, "take": taken - put, "ack": time.perf_counter() - taken}


def _caller(connection: IprotoConnection, dialect: Dialect) -> Callable[..., Any]:
    def call(name: str, *arguments: object) -> Any:
        return connection.call(dialect.prefix + name, *arguments)[0]

    return call


def report(directory: Path, share: float, say: Callable[[str], None]) -> str:
    """Measure all dialects; a table of them.

    Parameters:
        directory: for the servers' files.
        share: how many tasks, as a part of the usual number.
        say: is told what goes on.
    """
    tasks = max(BATCH, round(TASKS * share / BATCH) * BATCH)
    rates: list[Rates] = []
    for dialect in DIALECTS:
        say(f"batches: {dialect.name}")
        rates += measure(dialect, directory / f"batches-{dialect.name.replace(' ', '-')}", tasks)
    return _table(rates)


def _table(rates: Sequence[Rates]) -> str:
    rows = [
        [
            each.dialect,
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
