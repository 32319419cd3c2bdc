"""Requests over a socket: every one is answered, by its sync, in Tarantool's words."""

from __future__ import annotations

import base64

import msgpack
import pytest

from iproto_server.protocol import auth
from iproto_server.protocol.constants import Key, RequestType
from tests.iproto_client import IprotoClient, frame
from tests.server.conftest import Connect


class TestGreeting:
    def test_it_is_two_lines_of_64_bytes(self, client: IprotoClient) -> None:
        assert len(client.greeting) == 128
        assert client.greeting[63:64] == b"\n"
        assert client.greeting[127:] == b"\n"
        assert client.greeting.startswith(b"Tarantool 2.11.0 (Binary) ")

    def test_every_connection_has_its_own_salt(self, connect: Connect) -> None:
        salts = {base64.b64decode(connect().greeting[64:108]) for _ in range(3)}
        assert len(salts) == 3
        assert all(len(salt) == 32 for salt in salts)


class TestResponses:
    def test_the_header_has_the_23_bytes_that_the_node_driver_counts_on(self, client: IprotoClient) -> None:
        assert client.request(RequestType.PING).header_size == 23

    def test_pipelined_requests_are_answered_by_sync(self, client: IprotoClient) -> None:
        client.send_bytes(b"".join(frame(RequestType.PING, sync=sync) for sync in (7, 5, 2**64 - 1)))
        assert [client.receive().sync for _ in range(3)] == [7, 5, 2**64 - 1]

    def test_a_waiting_call_does_not_hold_up_the_next(self, client: IprotoClient) -> None:
        waiting = client.send(RequestType.CALL, {Key.FUNCTION_NAME: "park", Key.TUPLE: [10]})
        assert client.call("echo", 1).data == [[1]]
        client.send(RequestType.CALL, {Key.FUNCTION_NAME: "wake", Key.TUPLE: []})
        answers = {response.sync: response.data for response in (client.receive(), client.receive())}
        assert answers[waiting] == ["woken"]

    def test_a_request_may_come_byte_by_byte(self, client: IprotoClient) -> None:
        for byte in frame(RequestType.PING, sync=9):
            client.send_bytes(bytes([byte]))
        assert client.receive().sync == 9

    def test_requests_before_the_end_of_the_stream_are_answered(self, client: IprotoClient) -> None:
        client.send(RequestType.CALL, {Key.FUNCTION_NAME: "echo", Key.TUPLE: ["last"]})
        client.socket.shutdown(1)
        assert client.receive().data == [["last"]]
        assert client.closed_by_server()


class TestCall:
    @pytest.mark.parametrize(
        ("procedure", "data"),
        [
            ("nothing", []),
            ("nil", [None]),
            ("several", [1, "two", [3]]),
            ("row", [[1, "row"]]),
            ("rows", [[[1, "row"], [2, "row"]]]),
        ],
    )
    def test_what_a_procedure_returns_is_what_the_client_gets(
        self, client: IprotoClient, procedure: str, data: object
    ) -> None:
        assert client.call(procedure).data == data

    def test_the_number_of_values_has_four_bytes_as_in_tarantool(self, client: IprotoClient) -> None:
        assert client.call("nothing").raw_body == b"\x81\x30\xdd\0\0\0\0"
        assert client.call("nil").raw_body == b"\x81\x30\xdd\0\0\0\1\xc0"

    @pytest.mark.parametrize(
        ("procedure", "data"),
        [
            ("nothing", []),
            ("nil", [[None]]),
            ("several", [[1], ["two"], [3]]),
            ("row", [[1, "row"]]),
            ("rows", [[1, "row"], [2, "row"]]),
        ],
    )
    def test_call_16_answers_with_tuples(self, client: IprotoClient, procedure: str, data: object) -> None:
        body = {Key.FUNCTION_NAME: procedure, Key.TUPLE: []}
        assert client.request(RequestType.CALL_16, body).data == data

    def test_extension_types_pass_through_byte_for_byte(self, client: IprotoClient) -> None:
        values = [
            msgpack.ExtType(1, b"\x02\x01\x50\x0c"),  # decimal 1.500 (BCD)
            msgpack.ExtType(2, bytes(range(16))),  # uuid
            msgpack.ExtType(4, (1700000000).to_bytes(8, "little")),  # datetime
            msgpack.ExtType(6, b"\x01\x00\x05"),  # interval: 5 years
            msgpack.ExtType(42, b"unknown"),
        ]
        assert client.call("echo", *values).data == [values]

    def test_an_undefined_procedure(self, client: IprotoClient) -> None:
        assert client.call("no.such").failure == (33, "Procedure 'no.such' is not defined")
        assert client.call("box.no.such").failure == (33, "Procedure 'box.no.such' is not defined")

    def test_a_procedure_that_is_found_by_its_prefix(self, client: IprotoClient) -> None:
        assert client.call("named.ann:greet", 1).data == [["named.ann:greet", 1]]
        assert client.call("named.nobody").failure == (33, "Procedure 'named.nobody' is not defined")

    def test_an_error_comes_in_the_old_form_and_as_a_stack(self, client: IprotoClient) -> None:
        response = client.call("refuse")
        assert response.failure == (32, "no")
        (top,) = response.body[Key.ERROR][0]
        assert (top[3], top[5]) == ("no", 32)

    def test_an_error_undoes_what_the_procedure_did(self, client: IprotoClient) -> None:
        client.call("refuse")
        client.call("break")
        assert client.call("box.space.log:get", 99).data == []

    def test_an_exception_nobody_meant_is_an_error_too(self, client: IprotoClient) -> None:
        assert client.call("break").failure == (32, "ZeroDivisionError: by zero")
        assert client.call("echo").data == [[]]

    def test_a_result_that_cannot_be_packed_is_an_error(self, client: IprotoClient) -> None:
        assert client.call("unpackable").failure[0] == 32

    @pytest.mark.parametrize("arguments", [[], [1, 2, 3]])
    def test_arguments_that_do_not_fit(self, client: IprotoClient, arguments: list[object]) -> None:
        code, text = client.call("add", *arguments).failure
        assert code == 32
        assert text.startswith("add: ")

    def test_a_procedure_knows_who_calls(self, client: IprotoClient) -> None:
        session_id, user, peer, kind = client.call("who").data
        host, port = client.socket.getsockname()
        assert (user, peer, kind) == ("guest", f"{host}:{port}", "binary")
        assert client.call("box.session.id").data == [session_id]


class TestAsyncProcedures:
    def test_it_answers_when_it_is_done(self, connect: Connect) -> None:
        waiting, other = connect(), connect()
        sync = waiting.send(RequestType.CALL, {Key.FUNCTION_NAME: "gate.wait", Key.TUPLE: ["a"]})
        other.call("gate.open", "a")
        response = waiting.receive()
        assert (response.sync, response.data) == (sync, ["a"])

    def test_each_stretch_is_a_transaction(self, client: IprotoClient) -> None:
        client.call("box.space.log:truncate")
        assert client.call("stretches").failure == (32, "too late")
        assert client.call("box.space.log:select").data == [[[1, "kept"]]]

    def test_asyncio_works_in_it_as_anywhere(self, client: IprotoClient) -> None:
        assert client.call("timeout").data == ["timed out"]

    def test_arguments_that_do_not_fit(self, client: IprotoClient) -> None:
        assert client.call("gate.wait").failure[0] == 32


class TestPages:
    @pytest.fixture(autouse=True)
    def rows(self, client: IprotoClient, space_id: int) -> None:
        for value in range(1, 6):
            client.call("box.space.t:insert", [value])

    @staticmethod
    def select(space_id: int, **more: object) -> dict[Key, object]:
        page = {Key[name.upper()]: value for name, value in more.items()}
        return {Key.SPACE_ID: space_id, Key.LIMIT: 2, Key.ITERATOR: 2, Key.KEY: [], **page}

    def test_go_on_behind_the_position_of_the_last_row(self, client: IprotoClient, space_id: int) -> None:
        pages: list[object] = []
        position: str | None = ""
        while position is not None:
            body = self.select(space_id, fetch_position=True, after_position=position)
            answer = client.request(RequestType.SELECT, body)
            pages.append(answer.data)
            position = answer.body.get(Key.POSITION)
        assert pages == [[[1], [2]], [[3], [4]], [[5]], []]

    def test_go_on_behind_a_row(self, client: IprotoClient, space_id: int) -> None:
        answer = client.request(RequestType.SELECT, self.select(space_id, after_tuple=[3]))
        assert answer.data == [[4], [5]]
        assert Key.POSITION not in answer.body

    def test_can_be_called_for(self, client: IprotoClient, space_id: int) -> None:
        rows, position = client.call("box.space.t:select", [], {"limit": 2, "fetch_pos": True}).data
        assert (rows, position) == ([[1], [2]], "kQI")
        assert client.call("box.space.t:select", [], {"limit": 2, "after": position}).data == [[[3], [4]]]
        assert client.call("box.space.t:select", [], {"limit": 2, "after": [4]}).data == [[[5]]]
        assert client.call("box.space.t.index.pk:tuple_pos", [2]).data == ["kQI"]
        assert client.call("box.space.t:select", [9], {"fetch_pos": True}).data[0] == []

    def test_cannot_be_called_for_where_there_are_none(self, client: IprotoClient, space_id: int) -> None:
        index = client.call("box.space.t:create_index", "h", {"type": "hash"})
        assert index.ok, index
        text = "Index 'h' (HASH) of space 't' (memtx) does not support pagination"
        assert client.call("box.space.t.index.h:select", [], {"fetch_pos": True}).failure == (112, text)
        assert client.call("box.space.t.index.h:drop").ok

    @pytest.mark.parametrize(
        ("more", "failure"),
        [
            ({"after_position": "?"}, (247, "Iterator position is invalid")),
            ({"after_tuple": ["x"]}, (247, "Iterator position is invalid")),
            ({"after_position": 1}, (20, "Invalid MsgPack - packet body")),
            ({"after_tuple": {}}, (20, "Invalid MsgPack - packet body")),
            ({"fetch_position": 1}, (20, "Invalid MsgPack - packet body")),
        ],
    )
    def test_a_wrong_position_is_an_error(
        self, client: IprotoClient, space_id: int, more: dict[str, object], failure: tuple[int, str]
    ) -> None:
        assert client.request(RequestType.SELECT, self.select(space_id, **more)).failure == failure


class TestUpsert:
    def test_its_row_is_looked_at_before_its_operations(self, client: IprotoClient, space_id: int) -> None:
        body = {Key.SPACE_ID: space_id, Key.TUPLE: ["x"], Key.OPS: [["?", 1, 1]]}
        assert client.request(RequestType.UPSERT, body).error_code == 23
        assert client.request(RequestType.UPSERT, {**body, Key.TUPLE: [1]}).error_code == 28
        assert client.call("box.space.t:len").data == [0]


class TestOtherRequests:
    def test_id_tells_version_features_and_auth_type(self, client: IprotoClient) -> None:
        body = client.request(RequestType.ID, {Key.VERSION: 6, Key.FEATURES: [0, 1, 2, 3]}).body
        assert body[Key.VERSION] == 6
        assert body[Key.FEATURES] == [0, 1, 2, 3, 4, 5, 6]
        assert body[Key.AUTH_TYPE] == "chap-sha1"

    @pytest.mark.parametrize("kind", [RequestType.PING, RequestType.NOP])
    def test_ping_and_nop(self, client: IprotoClient, kind: RequestType) -> None:
        assert client.request(kind).status == 0

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            (RequestType.EVAL, {Key.EXPR: "return 1", Key.TUPLE: []}),
            (RequestType.EXECUTE, {Key.SQL_TEXT: "SELECT 1", Key.SQL_BIND: []}),
            (RequestType.PREPARE, {Key.SQL_TEXT: "SELECT 1"}),
            (RequestType.JOIN, {Key.INSTANCE_UUID: "00000000-0000-0000-0000-000000000001"}),
            (RequestType.SUBSCRIBE, {}),
            (RequestType.VOTE, {}),
            (RequestType.FETCH_SNAPSHOT, {}),
            (RequestType.REGISTER, {}),
        ],
    )
    def test_what_is_not_served_is_an_error_and_the_connection_lives(
        self, client: IprotoClient, kind: RequestType, body: dict[Key, object]
    ) -> None:
        assert not client.request(kind, body).ok
        assert client.request(RequestType.PING).status == 0

    @pytest.mark.parametrize(("kind", "shown"), [(300, 44), (99, 99), (200, 200)])
    def test_an_unknown_request_type(self, client: IprotoClient, kind: int, shown: int) -> None:
        assert client.request(kind, {}).failure == (48, f"Unknown request type {shown}")


class TestSchemaVersion:
    def test_ddl_raises_it(self, client: IprotoClient) -> None:
        before = client.request(RequestType.PING).schema_version
        after = client.call("box.schema.create_space", "t").schema_version
        assert after == before + 1
        assert client.call("box.space.t:create_index", "pk").schema_version == after + 1
        assert client.call("box.space.t:drop").schema_version > after + 1

    def test_data_does_not(self, client: IprotoClient) -> None:
        before = client.request(RequestType.PING).schema_version
        client.call("row")
        client.call("box.space.log:truncate")
        assert client.request(RequestType.PING).schema_version == before

    @pytest.mark.parametrize("kind", [RequestType.PING, RequestType.CALL])
    def test_a_stale_one_is_refused(self, client: IprotoClient, kind: RequestType) -> None:
        now = client.request(RequestType.PING).schema_version
        body = {Key.FUNCTION_NAME: "echo", Key.TUPLE: []}
        assert client.request(kind, body, {Key.SCHEMA_VERSION: now}).status == 0
        assert client.request(kind, body, {Key.SCHEMA_VERSION: 0}).status == 0
        error = client.request(kind, body, {Key.SCHEMA_VERSION: now + 1}).failure
        assert error == (109, f"Wrong schema version, current: {now + 1}, in request: {now}")
        error = client.request(kind, body, {Key.SCHEMA_VERSION: 2**32 - 1}).failure
        assert error == (109, f"Wrong schema version, current: -1, in request: {now}")


class TestAuthentication:
    @staticmethod
    def proof(client: IprotoClient, password: str, method: str = "chap-sha1") -> list[object]:
        salt = base64.b64decode(client.greeting[64:108])
        return [method, auth.scramble(password, salt)]

    def test_a_password_makes_the_session_the_users(self, client: IprotoClient) -> None:
        body = {Key.USER_NAME: "alice", Key.TUPLE: self.proof(client, "secret")}
        assert client.request(RequestType.AUTH, body).status == 0
        assert client.call("who").data[1] == "alice"

    def test_a_wrong_password_leaves_the_session_as_it_was(self, client: IprotoClient) -> None:
        body = {Key.USER_NAME: "alice", Key.TUPLE: self.proof(client, "wrong")}
        assert client.request(RequestType.AUTH, body).failure == (
            47,
            "User not found or supplied credentials are invalid",
        )
        assert client.call("who").data[1] == "guest"

    def test_an_unknown_user(self, client: IprotoClient) -> None:
        body = {Key.USER_NAME: "nobody", Key.TUPLE: self.proof(client, "x")}
        assert client.request(RequestType.AUTH, body).failure == (
            47,
            "User not found or supplied credentials are invalid",
        )

    def test_guest_needs_no_proof(self, client: IprotoClient) -> None:
        assert client.request(RequestType.AUTH, {Key.USER_NAME: "guest", Key.TUPLE: []}).status == 0

    def test_a_password_in_clear_is_refused_where_others_can_read_it(self, client: IprotoClient) -> None:
        body = {Key.USER_NAME: "alice", Key.TUPLE: ["pap-sha256", "secret"]}
        assert client.request(RequestType.AUTH, body).failure == (
            5,
            "Authentication method 'pap-sha256' does not support unencrypted connection",
        )
        assert client.request(RequestType.PING).status == 0

    def test_a_user_may_not_do_what_it_has_no_right_to(self, client: IprotoClient) -> None:
        client.request(RequestType.AUTH, {Key.USER_NAME: "alice", Key.TUPLE: self.proof(client, "secret")})
        response = client.call("box.space.log:select")
        assert response.failure == (42, "Read access to space 'log' is denied for user 'alice'")
        (top,) = response.body[Key.ERROR][0]
        assert top[6] == {"object_type": "space", "object_name": "log", "access_type": "Read"}


class TestMalformedRequests:
    @pytest.mark.parametrize(
        "payload",
        [
            b"\xc1",
            b"\x80",
            b"\x81\x00",
            msgpack.packb([1, 2]),
            b"\x82\x00\x0a\x01\x05",
            b"\x82\x00\x0a\x01\x05\xa1x",
            b"\xff" * 40,
        ],
        ids=repr,
    )
    def test_it_gets_an_error_and_the_connection_lives(self, client: IprotoClient, payload: bytes) -> None:
        client.send_bytes(msgpack.packb(len(payload)) + payload)
        assert client.receive().status & 0x8000
        assert client.request(RequestType.PING).status == 0

    def test_its_sync_is_echoed_when_it_could_be_read(self, client: IprotoClient) -> None:
        assert client.request(RequestType.SELECT, {Key.SPACE_ID: 512}).failure[0] == 69

    @pytest.mark.parametrize(
        "prefix", [b"\xa5hello", b"\x90", b"\xc0", b"\xcb" + bytes(8), b"\xc1", b"\xff"], ids=repr
    )
    def test_garbage_for_a_length_gets_an_error_and_the_connection_closes(
        self, client: IprotoClient, prefix: bytes
    ) -> None:
        client.send_bytes(frame(RequestType.PING, sync=3) + prefix)
        assert client.receive().sync == 3
        response = client.receive()
        assert (response.sync, response.failure[0]) == (0, 20)
        assert client.closed_by_server()

    def test_a_frame_above_the_maximum_is_refused_before_it_comes(self, client: IprotoClient) -> None:
        client.send_bytes(b"\xce\xff\xff\xff\xff")
        assert client.receive().failure[0] == 20
        assert client.closed_by_server()
