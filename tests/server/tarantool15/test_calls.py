"""Calls, triggers, fields and faults of Tarantool 1.5's clients."""

from __future__ import annotations

import re
import struct

import pytest

from tests.iproto_client import IprotoClient
from tests.protocol.tarantool15.box15_client import (
    CALL,
    PING,
    RETURN_TUPLE,
    SELECT,
    Client15,
    call_body,
    frame,
    select_body,
    u32,
    u64,
)
from tests.running_server import RunningServer
from tests.server.tarantool15.application15 import NULLABLE, PLAIN, RESULTS, TYPED
from tests.server.tarantool15.codes import (
    ILLEGAL_PARAMS,
    NO_SUCH_PROC,
    PROC_LUA,
    PROC_RET,
    ROW,
    Connect15,
)

pytestmark = pytest.mark.usefixtures("empty_spaces")


TUPLES: dict[str, list[list[bytes]]] = {
    "nothing": [],
    "nil": [[b"nil"]],
    "true": [[b"true"]],
    "number": [[u32(7)]],
    "negative": [[struct.pack("<i", -7)]],
    "long": [[u64(2**32)]],
    "number64": [[u64(7)]],
    "fraction": [[u32(7)]],
    "text": [["é".encode()]],
    "bytes": [[b"\xff\0"]],
    "list": [[u32(1), b"two", b"nil", b"false"]],
    "several": [[u32(1)], [u32(2), u32(3)], [b"four"]],
    "lists": [[u32(1)], [u32(2), u32(3)]],
    "mixed lists": [[u32(1)], [u32(2)]],
    "dictionary": [[u32(1), u32(2)]],
    "dictionary of lists": [[u32(1)], [u32(2)]],
    "empty list": [[]],
}
"""What results are as tuples."""


class TestCall:
    def test_arguments_are_texts_where_they_are_some(self, client: Client15) -> None:
        arguments = [b"", b"text", "é".encode(), b"\xff", u32(1)]
        assert client.call("types", *arguments).tuples == [[b"str", b"str", b"str", b"bytes", b"str"]]
        assert client.call("echo", *arguments).tuples == [arguments]

    @pytest.mark.parametrize("which", TUPLES)
    def test_what_a_procedure_returns_is_tuples(self, client: Client15, which: str) -> None:
        answer = client.call("result", which.encode())
        assert (answer.code, answer.tuples) == (0, TUPLES[which])
        assert answer.count == len(TUPLES[which])

    @pytest.mark.parametrize("which", sorted(set(RESULTS) - set(TUPLES)))
    def test_what_has_no_bytes_is_refused(self, client: Client15, which: str) -> None:
        answer = client.call("result", which.encode())
        assert (answer.code, answer.status) == (PROC_RET, 2)

    def test_rows_are_told_as_select_tells_them(self, client: Client15) -> None:
        client.insert(TYPED, *ROW)
        assert client.call("rows").tuples == client.select(TYPED, []).tuples == [ROW]

    def test_one_that_waits_is_answered_when_it_is_done(self, connect: Connect15) -> None:
        client, other = connect(), connect()
        waiting = client.send(CALL, call_body(b"park", b"20"))
        assert client.request(PING).kind == PING
        other.call("wake")
        answer = client.receive()
        assert (answer.request_id, answer.tuples) == (waiting, [[b"woken"]])

    def test_one_that_has_waited_in_vain_returns_nothing(self, client: Client15) -> None:
        answer = client.call("park", b"0.01")
        assert (answer.code, answer.tuples) == (0, [])

    def test_an_async_one(self, client: Client15) -> None:
        assert client.call("later", b"a", b"b").tuples == [[b"a", b"b"]]

    @pytest.mark.parametrize(
        ("name", "arguments", "code", "message"),
        [
            ("nope", [], NO_SUCH_PROC, "Procedure 'nope' is not defined"),
            ("", [], NO_SUCH_PROC, "Procedure '' is not defined"),
            ("fail", [b""], PROC_LUA, "Lua error: on purpose"),
            ("fail", [b"python"], PROC_LUA, "Lua error: ValueError: on purpose"),
            ("fail", [b"own"], 30000, "my own"),
            ("fail", [], PROC_LUA, "Lua error: fail: missing a required argument: 'how'"),
            ("push", [], 10, "Tarantool 1.5's protocol does not support messages before the answer"),
        ],
    )
    def test_what_fails(
        self, client: Client15, name: str, arguments: list[bytes], code: int, message: str
    ) -> None:
        answer = client.call(name, *arguments)
        assert (answer.code, answer.status, answer.message) == (code, 2, message)

    def test_a_name_that_is_no_text(self, client: Client15) -> None:
        answer = client.request(CALL, call_body(b"\xff"))
        assert answer.code == NO_SUCH_PROC
        assert b"'\xff'" in answer.raw

    def test_functions_of_the_box(self, client: Client15) -> None:
        client.insert(TYPED, *ROW)
        assert client.call("box.space.typed:len").tuples == [[u32(1)]]
        assert client.call("box.space.typed:select").tuples == [ROW]

    def test_a_session_is_its_connection_s(self, connect: Connect15) -> None:
        client, other = connect(), connect()
        assert client.call("remember", b"mine").tuples == [[b"nil"]]
        assert other.call("remember", b"other").tuples == [[b"nil"]]
        assert client.call("remember", b"").tuples == [[b"mine"]]

    def test_a_request_s_number_is_what_procedures_see(self, client: Client15) -> None:
        client.send_bytes(frame(CALL, call_body(b"sync"), 77))
        assert client.receive().tuples == [[u32(77)]]


class TestTriggers:
    def test_they_run_when_clients_come_and_go(self, connect: Connect15) -> None:
        client, other = connect(), connect()
        other.call("echo")
        peer = "{}:{}".format(*other.socket.getsockname())
        other.close()
        told: list[bytes] = []
        while not told or told[-1] != b"disconnect":
            told = client.call("events").tuples[0]
        assert f"connect {peer}".encode() in told


class TestFields:
    def test_what_others_store_is_told_as_lua_told_it(self, client: Client15) -> None:
        client.call("put.kinds")
        assert client.select(PLAIN, [b"kinds"]).tuples == [
            [b"kinds", u32(7), struct.pack("<i", -7), u64(2**40), u32(1), b"true", b"nil", b"\xff", b"text"]
        ]

    def test_what_has_no_bytes_is_refused(self, client: Client15) -> None:
        client.call("put.nested")
        assert client.select(PLAIN, [b"nested"]).code == PROC_RET
        assert client.delete(PLAIN, b"nested", flags=RETURN_TUPLE).code == PROC_RET
        assert client.delete(PLAIN, b"nested").count == 1

    @pytest.mark.parametrize("number", [0, -1, 2**31 - 1, -(2**31)])
    def test_signed_numbers(self, client: Client15, iproto: IprotoClient, number: int) -> None:
        packed = struct.pack("<i", number)
        client.insert(NULLABLE, b"id", packed)
        assert iproto.call("box.space.nullable:select").data == [[["id", number]]]
        assert client.select(NULLABLE, [b"id"]).tuples == [[b"id", packed]]

    def test_nil_and_fields_that_are_not_there(self, client: Client15, iproto: IprotoClient) -> None:
        client.insert(NULLABLE, b"nil", b"nil")
        client.insert(NULLABLE, b"short")
        assert iproto.call("box.space.nullable:select").data == [[["nil", None], ["short"]]]
        assert client.select(NULLABLE, []).tuples == [[b"nil", b"nil"], [b"short"]]

    def test_what_others_read(self, client: Client15, iproto: IprotoClient) -> None:
        client.insert(TYPED, u64(1), "é".encode(), u32(10), u64(100), b"\xff", u32(1))
        assert iproto.call("box.space.typed:select").data == [[[1, "é", 10, 100, b"\xff", "\1\0\0\0"]]]
        assert client.select(TYPED, [u32(1)]).tuples[0][0] == u32(1), "it fits into four bytes"

    def test_texts_of_any_bytes_are_keys(self, client: Client15) -> None:
        for key in (b"\xff", b"\0", b"", "é".encode()):
            assert client.insert(PLAIN, key, key).count == 1
            assert client.select(PLAIN, [key]).tuples == [[key, key]]
        assert client.select(PLAIN, []).count == 4


class TestFaults:
    def test_a_type_there_is_not(self, client: Client15) -> None:
        answer = client.request(18, b"whatever")
        assert (answer.code, answer.status) == (ILLEGAL_PARAMS, 2)
        assert answer.message == "unsupported command code, check the error log"

    def test_a_body_that_cannot_be_understood_is_answered_and_the_next_one_served(
        self, client: Client15
    ) -> None:
        assert client.request(SELECT, b"x").code == ILLEGAL_PARAMS
        assert client.request(SELECT, select_body(TYPED, [u32(1)])).code == 0

    def test_what_is_announced_too_large_ends_the_connection_without_a_word(self, client: Client15) -> None:
        client.send_bytes(frame(PING, b"", 5) + u32(SELECT, 2**32 - 1, 6))
        assert client.receive().request_id == 5
        assert client.closed_by_server()

    def test_another_protocol_s_client_is_shown_the_door(self, client: Client15) -> None:
        client.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
        assert client.closed_by_server()

    def test_requests_before_the_end_of_the_stream_are_answered(self, client: Client15) -> None:
        client.send(CALL, call_body(b"echo", b"last"))
        client.socket.shutdown(1)
        assert client.receive().tuples == [[b"last"]]
        assert client.closed_by_server()

    def test_a_request_may_come_byte_by_byte(self, client: Client15) -> None:
        for byte in frame(CALL, call_body(b"echo", b"slow"), 9):
            client.send_bytes(bytes([byte]))
        assert client.receive().request_id == 9

    def test_a_thousand_requests_at_a_time_are_all_answered(self, client: Client15) -> None:
        client.send_bytes(b"".join(frame(CALL, call_body(b"echo", b"x"), number) for number in range(1000)))
        assert [client.receive().request_id for _ in range(1000)] == list(range(1000))

    def test_numbers_of_requests_need_not_differ(self, client: Client15) -> None:
        client.send_bytes(frame(PING, b"", 7) + frame(CALL, call_body(b"echo"), 7))
        assert [client.receive().request_id for _ in range(2)] == [7, 7]


def test_requests_are_counted_as_others_are(client: Client15, iproto: IprotoClient) -> None:
    before = iproto.call("box.stat").data[0]
    client.insert(TYPED, *ROW)
    client.select(TYPED, [u32(1)])
    client.delete(TYPED, u32(1))
    client.call("nope")
    after = iproto.call("box.stat").data[0]
    grown = {name for name in after if after[name]["total"] > before[name]["total"]}
    assert {"REPLACE", "SELECT", "DELETE", "CALL", "ERROR"} <= grown


def test_nothing_was_logged_as_an_error(server: RunningServer) -> None:
    logged = re.findall(r"^\S+ (?:error|crit) (.*)$", server.process.output, re.MULTILINE)
    assert all("fail raised ValueError" in line for line in logged), logged
