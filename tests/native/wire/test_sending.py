"""The responses of connections: kept for the batch, and sent in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
import uvloop

from iproto_server.native._native import send_outputs
from iproto_server.server.connection.connection import Connection
from iproto_server.server.connection.group_commit import Batch as GroupCommit
from iproto_server.server.requests.dispatcher import Dispatcher
from tests.native.requests.sides import call
from tests.native.wire.connections import (
    ONE,
    Batch,
    Transport,
    connection_of,
)


@pytest.mark.parametrize("is_fast", [True, False])
def test_answers_wait_for_the_batch(is_fast: bool) -> None:
    """With the rows that they depend on, and announced once; the same on the fast path and beside it."""
    connection = connection_of()
    transactions = connection._server.transactions
    dispatcher = cast(Dispatcher, connection._server.dispatcher)
    handle: Any = dispatcher.handle if is_fast else dispatcher._answer

    class Journal:
        def append(self, statements: Sequence[Any]) -> bool:
            return True

        def position(self) -> int:
            return 0

    transactions.journal = cast(Any, Journal())
    for frame in (call("one", 1), call("put", 1, "a"), call("one", 2), call("drop", 1), call("nothing")):
        handle(connection, frame)
    batch = cast(Batch, connection._server.batch)
    assert batch._connections == [connection]
    assert connection._output.has_logged
    assert connection._has_output
    connection._output.refuse(lambda response: b"refused " + response[14:22])
    assert connection._output.take().count(b"refused") == 2


def test_several_answers_are_sent_in_one_piece() -> None:
    connection = connection_of()
    transport = connection._transport = cast(Any, Transport())
    for responses in ([b"one", b"two"], [], [b"three"]):
        for response in responses:
            connection.reply(response)
        connection.send_output()
    connection._send(b"")
    assert transport.written == [b"onetwo", b"three"]
    assert connection._server.traffic.sent == 11


class Failing:
    """A connection whose answers cannot be sent."""

    def send_output(self) -> None:
        raise LookupError("a fault")


def test_outputs_are_sent_in_order_until_one_fails() -> None:
    written: list[tuple[int, bytes]] = []
    connections: list[Any] = [connection_of() for _ in range(3)]
    for number, connection in enumerate(connections):

        def write(data: bytes, number: int = number) -> None:
            written.append((number, data))

        connection._transport = cast(Any, Transport())
        connection._transport.write = write
        connection._server.transactions.has_logged = number == 2
        connection.reply(b"one")
        connection.reply(b"two")
    assert connections[2].has_logged_output
    with pytest.raises(LookupError, match="a fault"):
        send_outputs([connections[2], connections[0], cast(Any, Failing()), connections[1]])
    assert [each._has_output for each in connections] == [False, True, False]
    assert [each._output.size for each in connections] == [0, 6, 0]
    assert written == [(2, b"onetwo"), (0, b"onetwo")]
    assert connections[2]._server.traffic.sent == 6


def test_only_a_list_of_connections_is_sent() -> None:
    with pytest.raises(TypeError, match="takes a list of connections"):
        send_outputs(cast(Any, ()))


def test_group_commit_is_scheduled_once_for_all_answers_of_an_iteration() -> None:
    class Inherited(GroupCommit):
        """Another class."""

    for owner in (GroupCommit, Inherited):
        loop = uvloop.new_event_loop()
        try:
            connections = [connection_of() for _ in range(2)]
            written: list[bytes] = []

            async def answer(
                owner: type[GroupCommit] = owner,
                connections: list[Connection] = connections,
                written: list[bytes] = written,
            ) -> None:
                batch = owner(connections[0]._server.transactions)
                for number, connection in enumerate(connections):
                    connection._server.batch = batch
                    transport = connection._transport = cast(Any, Transport())
                    transport.write = written.append
                    dispatcher = cast(Dispatcher, connection._server.dispatcher)
                    for _ in range(number + 1):
                        dispatcher.handle(connection, ONE)
                assert written == []
                assert batch._connections == connections
                await asyncio.sleep(0)
                assert len(written) == 2
                assert batch._connections == []
                assert not batch._is_scheduled

            loop.run_until_complete(answer())
        finally:
            loop.close()
        assert len(written[1]) == 2 * len(written[0])
