"""Transactions that a client begins and ends by CALL: `box.begin`, `box.commit`, `box.rollback`."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server.protocol.constants import Key, RequestType
from tests.iproto_client import CALL_16, FUNCTION_NAME, TUPLE, IprotoClient
from tests.server.conftest import Connect
from tests.server.stream import CONFLICT, Stream


@pytest.mark.parametrize(("end", "rows"), [("box.commit", [[1]]), ("box.rollback", [])])
def test_in_a_stream_they_are_begin_commit_and_rollback(
    client: IprotoClient, space_id: int, end: str, rows: list[Any]
) -> None:
    stream = Stream(client)
    assert stream.call("box.begin").data == []
    stream.insert(space_id, [1])
    assert client.everything(space_id).data == []
    assert stream.call(end).data == []
    assert client.everything(space_id).data == rows
    assert stream.begin().ok


def test_requests_and_calls_may_be_mixed(client: IprotoClient, space_id: int) -> None:
    stream = Stream(client)
    stream.begin()
    stream.insert(space_id, [1])
    assert stream.request(CALL_16, {FUNCTION_NAME: "box.commit", TUPLE: []}).ok
    stream.call("box.begin")
    stream.insert(space_id, [2])
    assert stream.roll_back().ok
    assert client.everything(space_id).data == [[1]]


def test_there_is_one_transaction_at_a_time(client: IprotoClient) -> None:
    stream = Stream(client)
    stream.begin()
    text = "Operation is not permitted when there is an active transaction "
    assert stream.call("box.begin").failure == (79, text)


def test_the_end_of_none_is_no_error(client: IprotoClient) -> None:
    for name in ("box.commit", "box.rollback"):
        assert Stream(client).call(name).data == []
        assert client.call(name).data == []


def test_a_conflict_is_told_to_the_commit_and_not_to_the_rollback(
    client: IprotoClient, space_id: int
) -> None:
    for end, failure in (("box.commit", CONFLICT), ("box.rollback", None)):
        stream = Stream(client)
        stream.call("box.begin")
        stream.select(space_id)
        stream.insert(space_id, [1])
        client.request(RequestType.REPLACE, {Key.SPACE_ID: space_id, Key.TUPLE: [2]})
        answer = stream.call(end)
        assert answer.ok if failure is None else answer.failure == failure
        assert client.everything(space_id).data == [[2]]


@pytest.mark.parametrize("level", [0, 4, "READ_COMMITTED", "read-confirmed", "best-effort", "linearizable"])
def test_every_isolation_level_has_a_number_and_names(
    client: IprotoClient, space_id: int, level: object
) -> None:
    stream = Stream(client)
    assert stream.call("box.begin", {"txn_isolation": level, "timeout": 60}).ok
    stream.insert(space_id, [1])
    assert stream.commit().ok
    assert client.everything(space_id).data == [[1]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (1, "options should be a table"),
        ({"wait": "none"}, "unexpected option 'wait'"),
        ({"timeout": 0}, "timeout must be a number greater than 0"),
        ({"timeout": "1"}, "timeout must be a number greater than 0"),
        ({"timeout": True}, "timeout must be a number greater than 0"),
        *[
            (
                {"txn_isolation": level},
                "txn_isolation must be one of box.txn_isolation_level (keys or values)",
            )
            for level in (5, -1, "serializable", True, [1])
        ],
    ],
)
def test_wrong_options_begin_nothing(client: IprotoClient, space_id: int, options: object, text: str) -> None:
    stream = Stream(client)
    assert stream.call("box.begin", options).failure == (1, f"Illegal parameters, {text}")
    assert client.call("box.begin", options).failure == (1, f"Illegal parameters, {text}")
    stream.insert(space_id, [1])
    assert client.everything(space_id).data == [[1]]


def test_outside_of_a_stream_a_call_cannot_leave_a_transaction_open(client: IprotoClient) -> None:
    assert client.call("box.begin").failure == (30, "Transaction is active at return from function")


def test_who_may_not_execute_everything_may_not_call_them(connect: Connect, client: IprotoClient) -> None:
    client.call("box.schema.user.create", "mallory", {"password": "p"})
    mallory = connect()
    mallory.call("box.session.su", "mallory")
    stream = Stream(mallory)
    for name in ("box.begin", "box.commit", "box.rollback"):
        assert stream.call(name).failure == (
            42,
            f"Execute access to function '{name}' is denied for user 'mallory'",
        )
