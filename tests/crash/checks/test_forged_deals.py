"""Logs with forged deals: one is missing, incomplete, or there although it was rolled back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType, RowType, insert_body
from tests.conftest import StartServer
from tests.crash import schema
from tests.crash.books.deals import Deal
from tests.crash.checks.audit import Audit
from tests.crash.checks.checker import Books
from tests.crash.checks.finding import Kind
from tests.crash.checks.test_forged import (
    APPLICATIONS,
    Transaction,
    forge,
    lose_half_of_the_last,
    lose_the_last,
    nothing,
)
from tests.crash.schema import Row
from tests.iproto_client import (
    BEGIN,
    CALL,
    COMMIT,
    FUNCTION_NAME,
    INSERT,
    ROLLBACK,
    SPACE_ID,
    STREAM_ID,
    TUPLE,
    IprotoClient,
)
from tests.running_server import RunningServer

DEALS = 5


def deal(client: IprotoClient, books: Books, end: int) -> Deal:
    """Make a deal as a transaction of a stream, and end it with a COMMIT or a ROLLBACK."""
    deal = books.deals.begin(1, 2, 10)
    stream = {STREAM_ID: 1}
    assert client.request(BEGIN, {}, stream).ok
    assert client.request(CALL, {FUNCTION_NAME: "crash.deal", TUPLE: deal.row}, stream).ok
    assert client.request(end, {}, stream).ok
    if end == COMMIT:
        books.deals.committed(deal)
    return deal


def repeat_what_was_rolled_back(transactions: list[Transaction]) -> None:
    """Write a deal after the last one, with the rows that it would have."""
    moved = 10 * (DEALS + 1)
    shares = [
        [1, schema.BALANCE - moved, DEALS + 1, 1],
        [2, schema.BALANCE + moved, DEALS + 1, 2],
    ]
    transactions.append(
        [
            *((int(RowType.REPLACE), insert_body(schema.SHARES_ID, codec.pack(share))) for share in shares),
            (int(RowType.INSERT), insert_body(schema.DEALS_ID, codec.pack([DEALS + 1, 1, 2, 10]))),
        ]
    )


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (nothing, set()),
        (lose_the_last, {Kind.LOST}),
        (lose_half_of_the_last, {Kind.LOST, Kind.HALF}),
        (repeat_what_was_rolled_back, {Kind.ROLLBACK}),
    ],
)
def test_forged_deals(
    start_server: StartServer,
    tmp_path: Path,
    change: Callable[[list[Transaction]], object],
    kinds: set[Kind],
) -> None:
    books = Books()
    server = RunningServer(tmp_path, APPLICATIONS)
    with IprotoClient.at(server.address) as client:
        for _ in range(DEALS):
            deal(client, books, COMMIT)
        deal(client, books, ROLLBACK)
        server.kill()

    forge(list_files(tmp_path, FileType.LOG)[-1], change)

    server = start_server(APPLICATIONS, work_dir=tmp_path)
    findings = books.check(Audit.of(server.host, server.port))
    assert {finding.kind for finding in findings} == kinds, findings


def number(client: IprotoClient, books: Books) -> Row:
    body = {SPACE_ID: schema.NUMBERED_ID, TUPLE: [None, books.numbering.insert()]}
    row: Row = client.request(INSERT, body).data[0]
    return row


def test_a_number_that_is_forgotten_is_given_again(start_server: StartServer, tmp_path: Path) -> None:
    books = Books()
    server = RunningServer(tmp_path, APPLICATIONS)
    with IprotoClient.at(server.address) as client:
        for _ in range(3):
            assert books.numbering.inserted(number(client, books)) == []
        server.kill()

    forge(list_files(tmp_path, FileType.LOG)[-1], lose_the_last)

    server = start_server(APPLICATIONS, work_dir=tmp_path)
    findings = books.check(Audit.of(server.host, server.port))
    assert {finding.kind for finding in findings} == {Kind.LOST}, findings
    with IprotoClient.at(server.address) as client:
        [finding] = books.numbering.inserted(number(client, books))
    assert finding.kind == Kind.COUNTER
