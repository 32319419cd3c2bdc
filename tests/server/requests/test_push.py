"""Messages that come before the answer: `box.session.push`."""

from __future__ import annotations

from collections.abc import Sequence

import msgpack
import pytest

from iproto_server import Box, BoxError, ErrorCode
from tests.iproto_client import CALL, CHUNK, FUNCTION_NAME, PING, TUPLE, IprotoClient
from tests.server.conftest import EVENTS, Connect


@pytest.fixture(scope="module")
def applications() -> Sequence[str]:
    return [EVENTS]


def send_call(client: IprotoClient, procedure: str, *arguments: object) -> int:
    return client.send(CALL, {FUNCTION_NAME: procedure, TUPLE: list(arguments)})


def test_messages_come_before_the_answer_in_their_order_with_its_number(client: IprotoClient) -> None:
    messages = [1, None, {"a": [1]}, "x" * 100_000, [1, 2]]
    sync = send_call(client, "push", *messages)
    for message in messages:
        chunk = client.receive()
        assert (chunk.status, chunk.sync, chunk.header_size) == (CHUNK, sync, 23)
        # The array's header is Tarantool's: always five bytes.
        assert chunk.raw_body == b"\x81\x30\xdd\x00\x00\x00\x01" + msgpack.packb(message)
    answer = client.receive()
    assert (answer.sync, answer.data) == (sync, ["answer"])


def test_what_cannot_be_packed_is_refused(client: IprotoClient) -> None:
    assert not client.call("push_unpackable").ok


@pytest.mark.parametrize("count", [0, 1, 3])
def test_messages_from_within_a_result_come_before_it(client: IprotoClient, count: int) -> None:
    results = [[number, "x" * 2000 * number] for number in range(count)]
    sync = send_call(client, "push_while_packing", *results)
    for _ in range(count):
        chunk = client.receive()
        assert (chunk.status, chunk.sync, chunk.body[0x30]) == (CHUNK, sync, ["while packing"])
    answer = client.receive()
    assert (answer.sync, answer.data) == (sync, ["first", *({"result": result} for result in results)])


def test_messages_from_within_a_result_that_cannot_be_packed_are_sent(client: IprotoClient) -> None:
    send_call(client, "push_while_failing")
    assert client.receive().body[0x30] == ["while packing"]
    assert client.receive().failure == (32, "unsupported Python type 'object'")
    assert client.request(PING).ok


def test_messages_of_a_call_that_fails_are_sent(client: IprotoClient) -> None:
    send_call(client, "push_and_fail", "message")
    assert client.receive().body[0x30] == ["message"]
    assert client.receive().failure == (32, "no")


def test_an_async_procedure_pushes_with_the_number_of_its_call(client: IprotoClient) -> None:
    first = send_call(client, "push_when_open", "one")
    second = send_call(client, "push_when_open", "two")
    for sync in (first, second):
        chunk = client.receive()
        assert (chunk.sync, chunk.body[0x30]) == (sync, ["before"])
    client.request(PING)
    send_call(client, "open", "one")
    answers = [client.receive() for _ in range(3)]
    chunk, answer = (answer for answer in answers if answer.sync == first)
    assert (chunk.status, chunk.body[0x30]) == (CHUNK, ["after"])
    assert answer.data == [first]
    send_call(client, "open", "two")
    answers = [client.receive() for _ in range(3)]
    chunk, answer = (answer for answer in answers if answer.sync == second)
    assert (chunk.status, chunk.body[0x30]) == (CHUNK, ["after"])
    assert answer.data == [second]


def test_who_is_woken_pushes_with_the_number_of_its_own_call(client: IprotoClient) -> None:
    waiting = send_call(client, "push_when_woken")
    waking = send_call(client, "wake")
    answers = [client.receive() for _ in range(3)]
    assert {answer.sync for answer in answers} == {waiting, waking}
    chunk, answer = (answer for answer in answers if answer.sync == waiting)
    assert (chunk.status, chunk.body[0x30]) == (CHUNK, ["woken"])
    assert answer.data == ["answer"]


def test_a_client_may_have_its_own_message_back(client: IprotoClient) -> None:
    send_call(client, "box.session.push", {"a": 1})
    assert client.receive().body[0x30] == [{"a": 1}]
    assert client.receive().data == [True]


def test_wrong_arguments_are_refused(client: IprotoClient) -> None:
    for arguments in ([], [1, 2]):
        assert client.call("box.session.push", *arguments).failure == (32, "Usage: box.session.push(data)")


def test_a_procedure_that_outlives_its_client_is_told_that_the_session_is_closed(
    client: IprotoClient, connect: Connect
) -> None:
    with connect() as gone:
        send_call(gone, "push_when_open_and_tell", "gate")
        assert gone.receive().body[0x30] == ["before"]
    client.call("open", "gate")
    outcome = None
    while outcome is None:
        outcome = client.call("box.watch_once", "outcome").data[0]
    assert outcome == [ErrorCode.SESSION_CLOSED, "Session is closed"]


def test_a_session_without_a_client_has_nobody_to_push_to() -> None:
    with pytest.raises(BoxError, match=r"^Session 'background' does not support push\(\)$") as caught:
        Box().session.push(1)
    assert caught.value.code == ErrorCode.UNSUPPORTED
