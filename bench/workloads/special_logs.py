"""Logs that are not like those of a busy queue: with many UPSERTs, or with large transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Final

from bench.workloads.history import SPACE, History, HistoryWriter, Request, packed_ids, packed_tasks
from iproto_server.codec.msgpack import pack
from iproto_server.storage.xlog import RowType, delete_body, insert_body, upsert_body

UPSERTS_PER_TASK: Final = 10
TRANSACTION_ROWS: Final = 1000
DONE: Final = 0.55
"""The share of tasks that are taken and acknowledged."""

_AT_A_TIME: Final = 1000
_STRIDE: Final = 7919
"""A prime; consecutive UPSERTs are of tasks so far from each other."""


class LogKind(StrEnum):
    """The content of the logs."""

    SINGLE = "single"
    """Puts, takes and acknowledgements, each a transaction of one row: for comparison."""

    TRANSACTIONS = "transactions"
    """The same in transactions of 1,000 rows."""

    UPSERTS = "upserts"
    """Ten UPSERTs of each task, which count in a field; half of the tasks are in the snapshot."""


def write_special_logs(writer: HistoryWriter, kind: LogKind, directory: Path, rows: int) -> History:
    """Write a snapshot and logs.

    Parameters:
        writer: writes them.
        kind: the content of the logs.
        directory: the directory for the files.
        rows: the number of rows in the logs; the actual one may be less by a few.
    """
    if kind is LogKind.UPSERTS:
        tasks = rows // UPSERTS_PER_TASK
        standing = tasks // 2
        return writer.write_transactions(directory, standing, _upserts(tasks), tasks)
    added = int(rows / (1 + 2 * DONE))
    done = int(added * DONE)
    if kind is LogKind.SINGLE:
        return writer.write(directory, 0, added, done)
    requests = _task_requests(added, done)
    transactions = iter(lambda: list(islice(requests, TRANSACTION_ROWS)), [])
    return writer.write_transactions(directory, 0, transactions, added - done)


def _upserts(tasks: int) -> Iterator[Sequence[Request]]:
    """Yield transactions of one UPSERT."""
    operations = pack([["+", 2, 1]])
    for begin in range(0, tasks * UPSERTS_PER_TASK, _AT_A_TIME):
        end = min(begin + _AT_A_TIME, tasks * UPSERTS_PER_TASK)
        for task in packed_tasks([number * _STRIDE % tasks for number in range(begin, end)], "R"):
            yield [(int(RowType.UPSERT), upsert_body(SPACE, task, operations))]


def _task_requests(added: int, done: int) -> Iterator[Request]:
    """Yield puts, takes and acknowledgements."""
    insert, replace, delete = map(int, (RowType.INSERT, RowType.REPLACE, RowType.DELETE))
    for begin in range(0, added, _AT_A_TIME):
        numbers = range(begin, min(begin + _AT_A_TIME, added))
        rows = zip(
            numbers, packed_tasks(numbers, "R"), packed_tasks(numbers, "T"), packed_ids(numbers), strict=True
        )
        for number, ready, taken, key in rows:
            yield insert, insert_body(SPACE, ready)
            if number < done:
                yield replace, insert_body(SPACE, taken)
                yield delete, delete_body(SPACE, key)
