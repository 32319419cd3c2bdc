"""Watchers at the other end of a connection."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Sequence
from typing import Any

import msgpack
import pytest

from tests.conftest import StartServer
from tests.iproto_client import (
    CALL,
    EVENT,
    EVENT_DATA,
    EVENT_KEY,
    FUNCTION_NAME,
    ID,
    PING,
    SCHEMA_VERSION,
    TUPLE,
    UNWATCH,
    WATCH,
    WATCH_ONCE,
    IprotoClient,
)
from tests.server.conftest import ACCOUNTS, EVENTS, Connect


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    return [EVENTS, ACCOUNTS]


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """A key that no other test knows."""
    name: str = request.node.name
    return name


@pytest.fixture
def teller(connect: Connect) -> IprotoClient:
    """Another client, which broadcasts."""
    return connect()


def watch(client: IprotoClient, key: str) -> None:
    client.send(WATCH, {EVENT_KEY: key})


def event(client: IprotoClient) -> Any:
    """The value of the next thing that comes, which has to be an event."""
    answer = client.receive()
    assert answer.status == EVENT, answer
    return answer.body.get(EVENT_DATA)


def nothing_else_comes(client: IprotoClient) -> None:
    """Whatever was on its way would come before the answers, which are those of two turns of the loop."""
    for _ in range(2):
        sync = client.send(PING)
        assert client.receive().sync == sync


def test_the_features_are_announced(client: IprotoClient) -> None:
    body = client.request(ID, {0x54: 6, 0x55: [3, 6]}).body
    assert {3, 6} <= set(body[0x55])
    assert body[0x54] == 6


def test_watching_has_no_answer_but_an_event_at_once(client: IprotoClient, key: str) -> None:
    client.send(WATCH, {EVENT_KEY: key})
    answer = client.receive()
    assert (answer.status, answer.sync, answer.schema_version) == (EVENT, -1, -1)
    assert answer.raw_body == msgpack.packb({EVENT_KEY: key})
    nothing_else_comes(client)


def test_an_event_has_the_key_and_its_value(client: IprotoClient, teller: IprotoClient, key: str) -> None:
    value = {"a": [1, None, 2.5], "b": b"bytes"}
    assert teller.call("box.broadcast", key, value).data == []
    watch(client, key)
    answer = client.receive()
    assert answer.status == EVENT
    assert answer.body == {EVENT_KEY: key, EVENT_DATA: value}


def test_no_second_event_comes_before_the_first_was_acknowledged(
    client: IprotoClient, teller: IprotoClient, key: str
) -> None:
    watch(client, key)
    assert event(client) is None
    for value in range(5):
        teller.call("tell", key, value)
    nothing_else_comes(client)
    watch(client, key)
    assert event(client) == 4
    watch(client, key)
    nothing_else_comes(client)
    teller.call("tell", key, 5)
    assert event(client) == 5


def test_unwatching_has_no_answer_and_ends_it(client: IprotoClient, teller: IprotoClient, key: str) -> None:
    watch(client, key)
    event(client)
    watch(client, key)
    client.send(UNWATCH, {EVENT_KEY: key})
    client.send(UNWATCH, {EVENT_KEY: key})
    client.send(UNWATCH, {EVENT_KEY: "never watched"})
    client.request(PING)
    teller.call("tell", key, 1)
    nothing_else_comes(client)


def test_who_watches_again_after_unwatching_is_told_the_value_again(
    client: IprotoClient, teller: IprotoClient, key: str
) -> None:
    teller.call("tell", key, 1)
    watch(client, key)
    assert event(client) == 1
    client.send(UNWATCH, {EVENT_KEY: key})
    watch(client, key)
    assert event(client) == 1


def test_every_connection_acknowledges_for_itself(
    client: IprotoClient, teller: IprotoClient, key: str
) -> None:
    for connection in (client, teller):
        watch(connection, key)
        assert event(connection) is None
    watch(client, key)
    client.call("tell", key, 1)
    assert event(client) == 1
    nothing_else_comes(teller)


def test_a_key_of_bytes_that_are_no_text_comes_back_as_it_is(client: IprotoClient) -> None:
    key = b"\x81\x57\xa2\xff\xfe"
    client.send(WATCH, key)
    assert client.receive().raw_body == key


def test_watch_once_answers_the_value_and_watches_nothing(client: IprotoClient, key: str) -> None:
    assert client.request(WATCH_ONCE, {EVENT_KEY: key}).data == []
    client.call("tell", key, [1])
    assert client.request(WATCH_ONCE, {EVENT_KEY: key}).data == [[1]]
    client.call("tell", key)
    assert client.request(WATCH_ONCE, {EVENT_KEY: key}).data == []
    nothing_else_comes(client)


def test_a_request_without_a_key_is_answered_with_an_error(client: IprotoClient) -> None:
    bodies: list[Any] = [b"", b"\x80", b"\x90", b"\xc0"]
    bodies += [{EVENT_KEY: key} for key in (1, None, b"key", ["key"])] + [{0x20: []}]
    for kind, body in itertools.product((WATCH, UNWATCH, WATCH_ONCE), bodies):
        assert client.request(kind, body).error_code in (20, 69), (kind, body)
    nothing_else_comes(client)


def test_a_request_that_knows_another_schema_is_refused(client: IprotoClient) -> None:
    for kind in (WATCH, UNWATCH, WATCH_ONCE):
        assert client.request(kind, {EVENT_KEY: "key"}, {SCHEMA_VERSION: 1}).error_code == 109


def test_an_event_is_no_request(client: IprotoClient) -> None:
    assert not client.request(EVENT, {EVENT_KEY: "key"}).ok


def test_guest_without_rights_may_watch_but_not_broadcast(start_server: StartServer) -> None:
    server = start_server(
        [EVENTS, ACCOUNTS],
        ["--no-allow-guest"],
        listen="0.0.0.0:0",
    )
    with IprotoClient.at(f"127.0.0.1:{server.port}") as client:
        watch(client, "box.status")
        assert event(client)["status"] == "running"
        assert client.call("box.broadcast", "key", 1).error_code == 42
        assert client.call("box.watch_once", "key").error_code == 42


WRONG: list[tuple[str, list[Any], str]] = [
    ("box.broadcast", [], "Usage: box.broadcast(key[, value])"),
    ("box.broadcast", ["key", 1, 2], "Usage: box.broadcast(key[, value])"),
    ("box.broadcast", [{}, 1], "bad argument #1 to '?' (string expected, got table)"),
    ("box.broadcast", [True], "bad argument #1 to '?' (string expected, got boolean)"),
    ("box.broadcast", ["box.id", 1], "System event can't be override"),
    ("box.watch_once", [], "Usage: box.watch_once(key)"),
    ("box.watch_once", ["key", 1], "Usage: box.watch_once(key)"),
    ("box.watch", ["key"], "Usage: box.watch(key, function)"),
    ("box.watch", ["key", "print"], "bad argument #2 to '?' (function expected, got string)"),
]


def test_wrong_arguments_are_refused_in_lua_s_words(client: IprotoClient) -> None:
    for function, arguments, text in WRONG:
        assert client.call(function, *arguments).failure == (32, text)


def test_a_number_is_a_key_as_lua_writes_it(client: IprotoClient) -> None:
    client.call("box.broadcast", 7, "seven")
    assert client.call("box.watch_once", "7").data == ["seven"]
    assert client.call("box.watch_once", 7).data == ["seven"]


def test_a_value_told_in_a_transaction_that_fails_stays(client: IprotoClient) -> None:
    assert client.call("tell_and_fail", 5).failure == (32, "no")
    assert client.call("box.watch_once", "row").data == [5]


def test_an_async_watcher_of_the_application_runs_as_the_server_and_never_beside_itself(
    client: IprotoClient,
) -> None:
    watch(client, "echo")
    assert event(client) is None
    watch(client, "echo")
    for value in range(3):
        client.send(CALL, {FUNCTION_NAME: "tell", TUPLE: ["local", value]})
    last = None
    while last != 2:
        answer = client.receive()
        if answer.status == EVENT:
            last = answer.body.get(EVENT_DATA)
            watch(client, "echo")
    told = client.call("told").data[0]
    assert [kind for kind, _ in told] == ["begins", "admin"] * (len(told) // 2)
    assert told[-1] == ["admin", 2]


def test_a_change_of_the_schema_is_an_event(client: IprotoClient, teller: IprotoClient) -> None:
    watch(client, "box.schema")
    before = event(client)["version"]
    watch(client, "box.schema")
    answer = teller.call("create", "another")
    assert answer.data == [answer.schema_version]
    assert event(client) == {"version": answer.schema_version}
    assert answer.schema_version > before


def test_the_server_tells_who_it_is(client: IprotoClient) -> None:
    info = client.call("box.info").data[0]
    watch(client, "box.id")
    identity = client.receive()
    assert identity.body[EVENT_KEY] == "box.id"
    value = identity.body[EVENT_DATA]
    assert value["id"] == info["id"]
    assert value["instance_uuid"] == msgpack.ExtType(2, bytes.fromhex(info["uuid"].replace("-", "")))
    watch(client, "box.status")
    assert event(client) == {"is_ro": False, "is_ro_cfg": False, "status": "running"}
    watch(client, "box.election")
    assert event(client) == {"term": 1, "role": "follower", "is_ro": False, "leader": 0}


def test_a_client_that_does_not_read_is_told_the_newest_value_when_it_does(
    start_server: StartServer,
) -> None:
    server = start_server([EVENTS], ["--write-high-water", "64K", "--net-msg-max", "2"])
    big = "x" * 200_000
    keys = [f"key {number}" for number in range(50)]
    with IprotoClient.at(server.address) as teller:
        for key in keys:
            teller.call("tell", key, big)
        with IprotoClient.at(server.address, receive_buffer=4096) as slow:
            for key in keys:
                watch(slow, key)
            slow.send(PING)  # never read before the values have changed
            for key in keys:
                teller.call("tell", key, "new")
            values: dict[str, str] = {}
            while len(values) < len(keys):
                answer = slow.receive()
                if answer.status == EVENT:
                    values[answer.body[EVENT_KEY]] = answer.body[EVENT_DATA]
            # What the buffers hold was sent before; all else was not kept for the client.
            assert sum(value == big for value in values.values()) < 30
            for key in keys:
                watch(slow, key)
            while any(value == big for value in values.values()):
                answer = slow.receive()
                if answer.status == EVENT:
                    values[answer.body[EVENT_KEY]] = answer.body[EVENT_DATA]
            assert set(values.values()) == {"new"}


def test_a_closed_connection_watches_nothing(client: IprotoClient, connect: Connect, key: str) -> None:
    for _ in range(20):
        with connect() as gone:
            watch(gone, key)
            assert event(gone) is None
    client.call("tell", key, 1)
    watch(client, key)
    assert event(client) == 1


def test_a_stopping_server_tells_and_waits_until_the_clients_have_left(start_server: StartServer) -> None:
    server = start_server([EVENTS])
    client = IprotoClient.at(server.address)
    other = IprotoClient.at(server.address)
    watch(client, "box.shutdown")
    assert event(client) is None
    watch(client, "box.shutdown")
    client.request(PING)
    waiting = client.send(CALL, {FUNCTION_NAME: "push_when_woken", TUPLE: []})
    client.request(PING)
    server.process.signal(signal.SIGTERM)
    first, second = client.receive(), client.receive()
    assert {first.sync, second.sync} == {waiting, -1}
    assert {first.body.get(EVENT_DATA), second.body.get(EVENT_DATA)} == {True, None}
    # It still works on what it is asked, and new clients cannot connect.
    assert client.call("tell", "key", 1).ok
    with pytest.raises(ConnectionRefusedError):
        IprotoClient.at(server.address)
    client.close()
    assert other.closed_by_server()
    other.close()
    assert server.process.wait() == 0


def test_a_client_that_does_not_leave_does_not_hold_up_the_stop(start_server: StartServer) -> None:
    server = start_server([EVENTS])
    with IprotoClient.at(server.address) as client:
        watch(client, "box.shutdown")
        assert event(client) is None
        watch(client, "box.shutdown")
        client.request(PING)
        server.process.signal(signal.SIGTERM)
        assert event(client) is True
        assert client.closed_by_server()
    assert server.process.wait() == 0
