"""Forged logs: the server starts from them, and the checker detects the faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType, RowEncoder, RowType, XlogReader, XlogWriter, insert_body
from tests.conftest import StartServer
from tests.crash.checks.audit import Audit
from tests.crash.checks.checker import Books
from tests.crash.checks.finding import Kind
from tests.crash.loads.writer import Writer
from tests.iproto_client import IprotoClient
from tests.running_server import QUEUE_APPLICATION, RunningServer

APPLICATIONS = [QUEUE_APPLICATION, "tests.crash.servers.application:app"]
CLIENT = 0

Transaction = list[tuple[int, bytes]]
"""Request types and bodies."""


def work(address: str, books: Books, last: str) -> None:
    """Put a task, write rows, and end with a transaction of some kind."""
    with IprotoClient.at(address) as client:
        task = books.tasks.putting(is_delayed=False)
        books.tasks.put(task, client.call("queue.put", {"number": task.number}).data[0])
        world = books.worlds[CLIENT]
        writer = Writer(world, Random(1))
        for done in range(1000):
            operation = writer.next_operation()
            number = world.send(operation)
            answer = client.request(operation.request_type, operation.body)
            assert answer.error_code == operation.error_code
            if answer.ok:
                world.acknowledge(number)
            if done > 20 and operation.kind == last:
                return
    raise AssertionError(f"no {last} comes")


def forge(log: Path, change: Callable[[list[Transaction]], object]) -> None:
    """Rewrite a log with other transactions."""
    with XlogReader.open(log) as reader:
        rows = list(reader.transactions())
        header = reader.header
    transactions = [[(row.type, row.body) for row in transaction] for transaction in rows]
    change(transactions)
    lsn, timestamp = rows[0][0].lsn, rows[0][0].timestamp
    encoder = RowEncoder(rows[0][0].replica_id)
    with log.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header)
        for transaction in transactions:
            writer.write([encoder.transaction(lsn, timestamp, transaction)])
            lsn += len(transaction)


def nothing(transactions: list[Transaction]) -> None:
    pass


def lose_the_last(transactions: list[Transaction]) -> None:
    del transactions[-1]


def lose_half_of_the_last(transactions: list[Transaction]) -> None:
    del transactions[-1][1:]


def double_the_task(transactions: list[Transaction]) -> None:
    [body] = [body for [(_, body), *_] in transactions if b"number" in body and b"\xa1R" in body]
    space_id, task = (value for _, value in codec.split_map(body))
    fields = codec.unpack(task)
    copy = codec.pack([fields[0] + 1, *fields[1:]])
    transactions.append([(int(RowType.INSERT), insert_body(codec.unpack(space_id), copy))])


@pytest.mark.parametrize(
    ("last", "change", "kinds"),
    [
        ("insert", nothing, set()),
        ("insert", lose_the_last, {Kind.LOST}),
        ("update", lose_the_last, {Kind.LOST}),
        ("delete", lose_the_last, {Kind.LOST}),
        ("transfer", lose_the_last, {Kind.LOST}),
        ("transfer", lose_half_of_the_last, {Kind.LOST, Kind.HALF}),
        ("insert", double_the_task, {Kind.TASK}),
    ],
)
def test_a_forged_log(
    start_server: StartServer,
    tmp_path: Path,
    last: str,
    change: Callable[[list[Transaction]], object],
    kinds: set[Kind],
) -> None:
    books = Books()
    server = RunningServer(tmp_path, APPLICATIONS)
    work(server.address, books, last)
    server.kill()

    forge(list_files(tmp_path, FileType.LOG)[-1], change)

    server = start_server(APPLICATIONS, work_dir=tmp_path)
    findings = books.check(Audit.of(server.host, server.port))
    assert {finding.kind for finding in findings} == kinds, findings
