"""How many tasks a second one client puts, takes and acknowledges, one in a call, and a hundred.

The client waits for each answer before it sends the next request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.load import Connection
from bench.queue_server import OurQueue, QueueServer
from bench.table import table

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
        first: the arguments in front of all others: the space, say.
        task: what `put_many` has for a task.
        task_id: finds the id in a task that was answered.
        prepare: the call that makes the queue, if there has to be one.
    """

    name: str
    application: str
    prefix: str
    first: tuple[object, ...]
    task: object
    task_id: Callable[[Any], object]
    prepare: tuple[object, ...] = ()


DIALECTS: Final = (
    Dialect(
        "tubes, fifo",
        "queue_lua_compat.tubes:app",
        "queue.tube.jobs:",
        (),
        [_DATA],
        lambda task: task[0],
        ("queue.create_tube", "jobs", "fifo"),
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
            connection.call(*dialect.prepare)  # type: ignore[arg-type]
        _once(connection, dialect, BATCH)
        _many(connection, dialect, BATCH)
        singles = _once(connection, dialect, tasks)
        many = _many(connection, dialect, tasks)
        for operation in ("put", "take", "ack"):
            yield Rates(dialect.name, operation, tasks / singles[operation], tasks / many[operation])


def _once(connection: Connection, dialect: Dialect, tasks: int) -> dict[str, float]:
    """The seconds for so many tasks, one in a call."""
    call = _caller(connection, dialect)
    seconds: dict[str, float] = {}
    begun = time.perf_counter()
    for _ in range(tasks):
        call("put", _DATA)
    seconds["put"] = time.perf_counter() - begun
    begun = time.perf_counter()
    ids = [dialect.task_id(call("take", 0)) for _ in range(tasks)]
    seconds["take"] = time.perf_counter() - begun
    begun = time.perf_counter()
    for task_id in ids:
        call("ack", task_id)
    seconds["ack"] = time.perf_counter() - begun
    return seconds


def _many(connection: Connection, dialect: Dialect, tasks: int) -> dict[str, float]:
    """The seconds for so many tasks, a hundred in a call."""
    call = _caller(connection, dialect)
    seconds: dict[str, float] = {}
    begun = time.perf_counter()
    for _ in range(0, tasks, BATCH):
        call("put_many", [dialect.task] * BATCH)
    seconds["put"] = time.perf_counter() - begun
    begun = time.perf_counter()
    taken = [list(map(dialect.task_id, call("take_many", BATCH, 0))) for _ in range(0, tasks, BATCH)]
    seconds["take"] = time.perf_counter() - begun
    begun = time.perf_counter()
    for ids in taken:
        call("ack_many", ids)
    seconds["ack"] = time.perf_counter() - begun
    return seconds


def _caller(connection: Connection, dialect: Dialect) -> Callable[..., Any]:
    def call(name: str, *arguments: object) -> Any:
        answer = connection.call(dialect.prefix + name, *dialect.first, *arguments)
        return answer[0]

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
        rates += measure(dialect, directory / f"batches-{dialect.name.replace(', ', '-')}", tasks)
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
