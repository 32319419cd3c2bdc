"""Messages that a procedure sends before its answer (`box.session.push`), in the client libraries."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
import tarantool
from asynctnt import PushIterator
from asynctnt.exceptions import TarantoolDatabaseError, TarantoolNotConnectedError

from tests.clients.applications.features import TELLTALE
from tests.clients.drivers.bridge import NetBox
from tests.clients.drivers.connections import with_asynctnt, with_python
from tests.clients.drivers.driver import ClientError, Target

MESSAGES = [1, "two", [3], {"four": 5}, None, True]
_gates = count(1)


@pytest.fixture
def gate() -> str:
    """Return a name that no other test uses."""
    return f"push_{next(_gates)}"


class TestAsynctnt:
    async def test_iterates_over_them_and_has_the_answer_then(self, target: Target) -> None:
        async with with_asynctnt(target) as connection:
            call = connection.call("features.push", MESSAGES, push_subscribe=True)
            assert [message async for message in PushIterator(call)] == [[message] for message in MESSAGES]
            assert (await call).body == ["answer"]

    async def test_has_each_when_it_is_sent(self, target: Target, gate: str) -> None:
        async with with_asynctnt(target) as connection:
            call = connection.call("features.push_when_open", [gate], push_subscribe=True)
            messages = PushIterator(call)
            assert await anext(messages) == ["before"]
            assert not messages.response.done()
            await connection.call("features.open", [gate])
            assert [message async for message in messages] == [["after"]]
            assert (await call).body == ["answer"]

    async def test_tells_those_of_two_calls_apart(self, target: Target) -> None:
        async with with_asynctnt(target) as connection:
            calls = [
                connection.call("features.push", [number] * 3, push_subscribe=True) for number in range(5)
            ]
            for number, call in enumerate(calls):
                assert [message async for message in PushIterator(call)] == [[number]] * 3

    async def test_has_them_in_a_stream(self, our_server: Target) -> None:
        async with with_asynctnt(our_server) as connection, connection.stream() as stream:
            call = stream.call("features.push", [1, 2], push_subscribe=True)
            assert [message async for message in PushIterator(call)] == [[1], [2]]

    async def test_leaves_out_what_nobody_asked_for(self, target: Target) -> None:
        async with with_asynctnt(target) as connection:
            call = connection.call("features.push", MESSAGES)
            assert (await call).body == ["answer"]
            with pytest.raises(ValueError, match="push_subscribe=True"):
                PushIterator(call)

    async def test_raises_the_error_behind_them(self, target: Target) -> None:
        async with with_asynctnt(target) as connection:
            call = connection.call("features.push_and_fail", ["last words"], push_subscribe=True)
            with pytest.raises(TarantoolDatabaseError) as raised:
                async for message in PushIterator(call):
                    assert message == ["last words"]
            assert (raised.value.code, raised.value.message) == (1000, "failed")
            await connection.ping()

    async def test_raises_when_the_connection_ends_before_the_answer(self, target: Target, gate: str) -> None:
        async with with_asynctnt(target) as connection:
            call = connection.call("features.push_when_open", [gate], push_subscribe=True)
            messages = PushIterator(call)
            assert await anext(messages) == ["before"]
            await connection.disconnect()
            with pytest.raises(TarantoolNotConnectedError):
                await anext(messages)
        async with with_asynctnt(target) as connection:
            await connection.call("features.open", [gate])


class TestTarantoolPython:
    def test_calls_back_with_each_before_it_returns_the_answer(self, target: Target) -> None:
        heard: list[object] = []
        with with_python(target) as connection:
            answer = connection.call(
                "features.push",
                MESSAGES,
                on_push=lambda message, context: context.append(message),
                on_push_ctx=heard,
            )
        assert answer.data == ["answer"]
        assert heard == [[message] for message in MESSAGES]

    def test_leaves_out_what_nobody_asked_for(self, target: Target) -> None:
        with with_python(target) as connection:
            assert connection.call("features.push", MESSAGES).data == ["answer"]
            assert connection.ping() > 0

    def test_calls_back_before_it_raises_the_error_behind_them(self, target: Target) -> None:
        heard: list[object] = []
        with with_python(target) as connection:
            with pytest.raises(tarantool.DatabaseError) as raised:
                connection.call(
                    "features.push_and_fail", ["last words"], on_push=lambda message, _: heard.append(message)
                )
            assert connection.ping() > 0
        assert raised.value.args == (1000, "failed")
        assert heard == [["last words"]]

    def test_calls_back_with_those_of_triggers(self, target: Target) -> None:
        heard: list[object] = []
        with with_python(target) as connection:
            on_push = {"on_push": lambda message, _: heard.append(message)}
            connection.insert(TELLTALE, [1, "a"], **on_push)
            connection.replace(TELLTALE, [2, "b"], **on_push)
            connection.update(TELLTALE, 1, [("=", 1, "c")], **on_push)
            connection.upsert(TELLTALE, [3, "d"], [("=", 1, "e")], **on_push)
            for number in (1, 2, 3):
                connection.delete(TELLTALE, number, **on_push)
            assert list(connection.select(TELLTALE, **on_push)) == []
        assert heard == [
            *([["here", number]] for number in (1, 2, 1, 3)),
            *([["gone", number]] for number in (1, 2, 3)),
        ]

    def test_wants_something_to_call(self, target: Target) -> None:
        with with_python(target) as connection, pytest.raises(TypeError, match="must be callable"):
            connection.call("features.push", [1], on_push=1)


@pytest.mark.real_tarantool
class TestNetBox:
    def test_collects_them_in_a_table(self, target: Target) -> None:
        connection = NetBox(target)
        assert connection.request("call_with_pushes", "features.push", [1, "two", [3]]) == {
            "pushed": [1, "two", [3]],
            "answer": "answer",
        }
        connection.close()

    def test_iterates_over_those_of_an_asynchronous_call(self, target: Target) -> None:
        connection = NetBox(target)
        assert connection.request("iterate_over_pushes", "features.push", [1, 2]) == [1, 2, "answer"]
        connection.close()

    def test_raises_the_error_behind_them(self, target: Target) -> None:
        connection = NetBox(target)
        with pytest.raises(ClientError) as raised:
            connection.request("call_with_pushes", "features.push_and_fail", ["last words"])
        assert (raised.value.code, raised.value.message) == (1000, "failed")
        connection.close()


async def test_a_message_goes_to_the_client_that_called_only(target: Target, gate: str) -> None:
    async with with_asynctnt(target) as connection, with_asynctnt(target) as other:
        waiting = connection.call("features.push_when_open", [gate], push_subscribe=True)
        messages = PushIterator(waiting)
        assert await anext(messages) == ["before"]
        call = other.call("features.push", ["for the other"], push_subscribe=True)
        assert [message async for message in PushIterator(call)] == [["for the other"]]
        await asyncio.gather(other.call("features.open", [gate]), waiting)
        assert [message async for message in messages] == [["after"]]
