"""Streams over a socket: requests in order, and transactions that clients begin, use and end."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server.protocol.constants import Key, RequestType
from tests.iproto_client import IprotoClient
from tests.server.conftest import Connect
from tests.server.stream import CONFLICT, Stream


class TestTransactions:
    def test_others_see_it_when_it_is_committed(self, connect: Connect, space_id: int) -> None:
        stream, other = Stream(connect()), connect()
        assert stream.begin().ok
        assert stream.insert(space_id, [1, "a"]).data == [[1, "a"]]
        assert stream.select(space_id) == [[1, "a"]]
        assert other.everything(space_id).data == []
        assert stream.client.everything(space_id).data == [], "the same connection, but not the stream"
        assert stream.commit().ok
        assert other.everything(space_id).data == [[1, "a"]]

    def test_a_rollback_undoes_it(self, client: IprotoClient, space_id: int) -> None:
        stream = Stream(client)
        stream.begin()
        stream.insert(space_id, [1])
        assert stream.roll_back().ok
        assert client.everything(space_id).data == []

    def test_so_does_the_end_of_the_connection(self, connect: Connect, space_id: int) -> None:
        stream, other = Stream(connect()), Stream(connect())
        stream.begin()
        stream.insert(space_id, [1])
        stream.client.close()
        other.begin()
        # The end of a connection is noticed when it is: until then this is the other's own row all the same.
        assert other.insert(space_id, [1]).ok
        assert other.commit().ok

    def test_two_streams_of_a_connection_have_two_transactions(
        self, client: IprotoClient, space_id: int
    ) -> None:
        one, two = Stream(client, 1), Stream(client, 2)
        one.begin()
        two.begin()
        one.insert(space_id, [1])
        two.insert(space_id, [2])
        assert (one.select(space_id), two.select(space_id)) == ([[1]], [[2]])
        assert one.commit().ok
        assert two.commit().failure == CONFLICT
        assert client.everything(space_id).data == [[1]]

    def test_a_conflict_is_told_to_every_statement_until_the_rollback(
        self, client: IprotoClient, space_id: int
    ) -> None:
        stream = Stream(client)
        stream.begin()
        stream.insert(space_id, [1])
        client.request(RequestType.INSERT, {Key.SPACE_ID: space_id, Key.TUPLE: [1]})
        assert stream.insert(space_id, [2]).failure == CONFLICT
        assert stream.call("echo", 1).failure == CONFLICT
        assert stream.request(RequestType.PING).ok
        assert stream.roll_back().ok
        assert stream.insert(space_id, [2]).ok
        assert client.everything(space_id).data == [[1], [2]]

    def test_a_procedure_is_a_part_of_it(self, client: IprotoClient, space_id: int) -> None:
        stream = Stream(client)
        stream.begin()
        stream.call("box.space.t:insert", [1])
        assert client.everything(space_id).data == []
        stream.commit()
        assert client.everything(space_id).data == [[1]]

    def test_a_statement_that_fails_does_not_end_it(self, client: IprotoClient, space_id: int) -> None:
        stream = Stream(client)
        stream.begin()
        stream.insert(space_id, [1])
        assert stream.insert(space_id, [1]).failure[0] == 3
        assert stream.commit().ok
        assert client.everything(space_id).data == [[1]]

    def test_calls_that_wait_are_refused_in_it(self, client: IprotoClient) -> None:
        stream = Stream(client)
        stream.begin()
        assert stream.call("park", 10).failure == (
            5,
            "An interactive transaction does not support calls that wait",
        )
        assert stream.commit().ok

    def test_no_snapshot_is_taken_in_it(self, client: IprotoClient, space_id: int) -> None:
        stream = Stream(client)
        stream.begin()
        assert stream.insert(space_id, [1]).ok
        before = client.call("box.info.gc").data
        assert stream.call("box.snapshot").failure[0] == 5
        assert stream.roll_back().ok
        assert client.call("box.info.gc").data == before

    def test_it_can_be_pipelined(self, client: IprotoClient, space_id: int) -> None:
        stream = Stream(client)
        stream.send(RequestType.BEGIN)
        for number in range(50):
            stream.send(RequestType.INSERT, {Key.SPACE_ID: space_id, Key.TUPLE: [number]})
        stream.send(RequestType.COMMIT)
        assert all(client.receive().ok for _ in range(52))
        assert len(client.everything(space_id).data) == 50

    def test_ddl_in_it_ends_it(self, client: IprotoClient, space_id: int) -> None:
        stream = Stream(client)
        stream.begin()
        stream.insert(space_id, [1])
        assert stream.call("box.schema.create_space", "u").ok
        assert stream.commit().failure == (154, "Transaction has been aborted by a fiber yield")
        assert client.call("box.space.u:len").failure[0] != 0
        assert client.everything(space_id).data == []


class TestBeginAndEnd:
    def test_there_is_one_at_a_time(self, client: IprotoClient) -> None:
        stream = Stream(client)
        stream.begin()
        text = "Operation is not permitted when there is an active transaction "
        assert stream.begin().failure == (79, text)

    def test_the_end_of_none_is_no_error(self, client: IprotoClient) -> None:
        stream = Stream(client)
        assert stream.commit().ok
        assert stream.roll_back().ok

    @pytest.mark.parametrize(
        ("options", "failure"),
        [
            ({"timeout": -1.0}, (1, "timeout must be a number greater than 0")),
            ({"timeout": 1}, (20, "Invalid MsgPack - request body")),
            ({"txn_isolation": 5}, (1, "unknown isolation level")),
            ({"txn_isolation": "best-effort"}, (20, "Invalid MsgPack - request body")),
        ],
    )
    def test_options_are_checked_and_nothing_begins(
        self, client: IprotoClient, space_id: int, options: dict[str, Any], failure: tuple[int, str]
    ) -> None:
        stream = Stream(client)
        assert stream.begin(**options).failure == failure
        stream.insert(space_id, [1])
        assert client.everything(space_id).data == [[1]]

    @pytest.mark.parametrize("level", range(5))
    def test_every_isolation_level_works(self, client: IprotoClient, space_id: int, level: int) -> None:
        stream = Stream(client)
        assert stream.begin(txn_isolation=level, timeout=60.0).ok
        stream.insert(space_id, [1])
        assert stream.commit().ok
        assert client.everything(space_id).data == [[1]]

    @pytest.mark.parametrize("kind", [RequestType.BEGIN, RequestType.COMMIT, RequestType.ROLLBACK])
    def test_outside_of_a_stream_they_are_errors(self, client: IprotoClient, kind: RequestType) -> None:
        text = f"Unable to process {kind.name} request out of stream"
        assert client.request(kind).failure == (230, text)

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            (RequestType.AUTH, {Key.USER_NAME: "guest", Key.TUPLE: []}),
            (RequestType.ID, {Key.VERSION: 1, Key.FEATURES: []}),
        ],
    )
    def test_what_is_about_the_connection_is_an_error_in_a_stream(
        self, client: IprotoClient, kind: RequestType, body: dict[Key, Any]
    ) -> None:
        text = f"Unable to process {kind.name} request in stream"
        assert Stream(client).request(kind, body).failure == (229, text)


class TestOrder:
    def test_requests_of_a_stream_wait_for_each_other(self, client: IprotoClient) -> None:
        stream = Stream(client)
        parked = stream.send(RequestType.CALL, {Key.FUNCTION_NAME: "park", Key.TUPLE: [10]})
        behind = [
            stream.send(RequestType.CALL, {Key.FUNCTION_NAME: "echo", Key.TUPLE: [number]})
            for number in (1, 2)
        ]
        unknown = stream.send(RequestType.CALL, {Key.FUNCTION_NAME: "nobody", Key.TUPLE: []})
        assert client.request(RequestType.PING).ok
        client.send(RequestType.CALL, {Key.FUNCTION_NAME: "wake", Key.TUPLE: []})
        order = [client.receive().sync for _ in range(5)]
        assert [sync for sync in order if sync in (parked, *behind, unknown)] == [parked, *behind, unknown]

    def test_so_do_several_that_wait_themselves(self, client: IprotoClient) -> None:
        stream = Stream(client)
        park: dict[Any, Any] = {Key.FUNCTION_NAME: "park", Key.TUPLE: [10]}
        wake: dict[Any, Any] = {Key.FUNCTION_NAME: "wake", Key.TUPLE: []}
        parked = [stream.send(RequestType.CALL, park) for _ in range(2)]
        behind = stream.send(RequestType.PING)
        order = []
        for _ in range(2):
            client.send(RequestType.CALL, wake)
            order += [client.receive().sync for _ in range(2)]
        order.append(client.receive().sync)
        assert [sync for sync in order if sync in (*parked, behind)] == [*parked, behind]

    def test_other_streams_do_not(self, client: IprotoClient) -> None:
        Stream(client, 1).send(RequestType.CALL, {Key.FUNCTION_NAME: "park", Key.TUPLE: [10]})
        assert Stream(client, 2).call("echo", 1).data == [[1]]

    def test_what_was_still_to_come_is_carried_out_after_the_connection(
        self, connect: Connect, space_id: int
    ) -> None:
        stream, other = Stream(connect()), connect()
        stream.send(RequestType.CALL, {Key.FUNCTION_NAME: "park", Key.TUPLE: [10]})
        stream.send(RequestType.INSERT, {Key.SPACE_ID: space_id, Key.TUPLE: [1]})
        assert stream.client.request(RequestType.PING).ok
        stream.client.close()
        while other.everything(space_id).data != [[1]]:
            """The server hears of the end a moment later."""
