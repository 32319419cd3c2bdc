"""What all clients together may leave unread, and whose requests wait."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from iproto_server import Application, Box, ManualClock
from iproto_server.config.address import Address
from iproto_server.native._native import LARGE_ANSWER
from iproto_server.protocol.constants import Key, RequestType
from iproto_server.server.connection.connection import Connection
from iproto_server.server.limits.rate_limited_log import RateLimitedLog
from iproto_server.server.limits.unsent_limit import SCAN_TICKS, STALL_TICKS, TICK, UnsentLimit
from tests.iproto_client import IprotoClient, frame
from tests.protocol.tarantool15.box15_client import Client15, select_body
from tests.server.in_process import ServerInProcess

MEBIBYTE = 2**20


@dataclass(eq=False)
class Client:
    """A connection as the limit sees it."""

    unsent: int = 0
    is_let_go: bool = False
    limit: int | None = None

    def has_room(self) -> None:
        self.is_let_go = True

    def limit_unsent(self, size: int | None) -> None:
        self.limit = size


class Limit:
    """The limit, of a megabyte, with its clock and clients."""

    def __init__(self, count: int) -> None:
        self.clock = ManualClock()
        self.clients = [Client() for _ in range(count)]
        config = SimpleNamespace(max_unsent=MEBIBYTE)
        self.limit = UnsentLimit(
            lambda: cast(Any, config),
            cast(Any, set(self.clients)),
            self.clock,
            RateLimitedLog(logging.getLogger("iproto_server.test"), self.clock),
        )

    def ask(self, number: int, size: int) -> bool:
        """Ask for room for a client's answer; one that is made is not read."""
        client = self.clients[number]
        client.is_let_go = False
        if not self.limit.admit(cast(Any, client), size):
            return False
        client.unsent += size
        return True

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.clock.advance(TICK)

    def let_go(self) -> list[int]:
        """The clients that may ask again."""
        return [number for number, client in enumerate(self.clients) if client.is_let_go]


HALF, LITTLE = MEBIBYTE // 2, 10_000


class TestTheLine:
    def test_answers_are_made_while_there_is_room(self) -> None:
        limit = Limit(4)
        assert [limit.ask(number, HALF) for number in range(4)] == [True, True, False, False]
        assert limit.limit.unsent == MEBIBYTE

    def test_one_that_is_larger_than_the_limit_is_made_when_it_is_the_only_one(self) -> None:
        limit = Limit(2)
        assert limit.ask(0, 100 * MEBIBYTE)
        assert not limit.ask(1, LARGE_ANSWER + 1)

    def test_who_waits_longest_goes_first_when_there_is_room(self) -> None:
        limit = Limit(5)
        assert [limit.ask(number, HALF) for number in range(5)] == [True, True, False, False, False]
        limit.clients[1].unsent = 0
        limit.tick()
        # One of the two has room, the other goes beyond the limit.
        assert limit.let_go() == [2, 3]
        assert limit.ask(3, HALF)
        assert limit.ask(2, HALF)
        assert not limit.ask(4, HALF)

    def test_beyond_the_limit_there_is_one_at_a_time(self) -> None:
        limit = Limit(5)
        limit.ask(0, 2 * MEBIBYTE)
        assert [limit.ask(number, HALF) for number in range(1, 5)] == [False] * 4
        limit.tick()
        assert limit.let_go() == [1]
        assert limit.ask(1, HALF)
        for _ in range(STALL_TICKS * 3):
            limit.clients[1].unsent -= 1
            limit.tick()
            assert limit.let_go() == []
        limit.clients[1].unsent = 0
        limit.tick()
        assert limit.let_go() == [2]

    def test_one_who_reads_nothing_keeps_nobody_waiting_for_long(self) -> None:
        limit = Limit(5)
        limit.ask(0, 2 * MEBIBYTE)
        for number in range(1, 5):
            assert not limit.ask(number, HALF)
        for number in range(1, 5):
            limit.tick(STALL_TICKS + 2)
            assert limit.let_go() == [number]
            assert limit.ask(number, HALF)

    def test_one_who_goes_makes_room(self) -> None:
        limit = Limit(4)
        limit.ask(0, MEBIBYTE)
        assert not limit.ask(1, HALF)
        assert not limit.ask(2, HALF)
        limit.limit.forget(cast(Any, limit.clients[1]))
        limit.limit.forget(cast(Any, limit.clients[0]))
        assert limit.let_go() == [2]

    def test_a_promise_is_kept_whatever_has_come_since(self) -> None:
        limit = Limit(4)
        limit.ask(0, MEBIBYTE)
        assert not limit.ask(1, HALF)
        limit.clients[0].unsent = 0
        limit.tick()
        assert limit.let_go() == [1]
        assert limit.ask(2, HALF)
        assert not limit.ask(3, HALF)
        assert limit.ask(1, HALF)

    def test_who_has_left_much_unread_waits_sooner_and_no_longer_than_needed(self) -> None:
        limit = Limit(3)
        slow, other, quick = limit.clients
        slow.unsent, other.unsent = MEBIBYTE, 2 * LARGE_ANSWER
        limit.tick(SCAN_TICKS)
        assert limit.limit.unsent == 0, "nobody has looked: there was no large answer"
        limit.limit.add(cast(Any, slow))
        limit.tick(SCAN_TICKS)
        assert (slow.limit, other.limit, quick.limit) == (LARGE_ANSWER, LARGE_ANSWER, None)
        slow.unsent = LARGE_ANSWER
        limit.tick()
        assert (slow.limit, other.limit) == (None, None)

    def test_there_is_no_timer_while_nobody_is_slow(self) -> None:
        limit = Limit(2)
        assert limit.clock.pending == 0
        limit.ask(0, HALF)
        assert limit.clock.pending == 1
        limit.clients[0].unsent = 0
        limit.tick()
        assert limit.clock.pending == 0


app = Application("rows")


@app.setup
def setup(box: Box) -> None:
    space = box.schema.create_space("rows", if_not_exists=True)
    space.create_index("primary", if_not_exists=True)
    for number in range(40):
        space.replace([number, "x" * 100_000])


class Unread(ServerInProcess):
    """A server with a space of 4 MB, whose ticks come when the test says so."""

    def __init__(self, work_dir: Path, **options: Any) -> None:
        listen = (Address("127.0.0.1", 0),)
        super().__init__(
            work_dir, [app], listen=listen, listen_1_5=listen, max_unsent=10 * MEBIBYTE, **options
        )
        self.clock = ManualClock()

    def __enter__(self) -> Unread:
        super().__enter__()
        self.server.state.unsent._clock = self.clock
        self.space_id = self.in_loop(lambda: self.server.box.space["rows"].id)
        return self

    def in_loop(self, function: Callable[[], Any]) -> Any:
        """Call something in the server's loop."""

        async def call() -> Any:
            await asyncio.sleep(0)
            return function()

        return self.run(call())

    def deaf(self) -> IprotoClient:
        """A client that reads nothing unless it is told to."""
        client = IprotoClient.at(self.server.box.listen[0], receive_buffer=4096)
        self._clients.append(client)
        assert client.request(RequestType.PING).ok
        self.in_loop(self._keep_in_the_process)
        return client

    def _keep_in_the_process(self) -> None:
        """Let the system take next to nothing of what is written."""
        for connection in self.server.state.connections:
            assert isinstance(connection, Connection)
            accepted = connection._transport.get_extra_info("socket")
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def select(self, sync: int = 0) -> bytes:
        """A SELECT of all rows."""
        body = {Key.SPACE_ID: self.space_id, Key.LIMIT: 1000, Key.ITERATOR: 2, Key.KEY: []}
        return frame(RequestType.SELECT, body, sync=sync)

    def waiting(self) -> int:
        number: int = self.in_loop(lambda: len(self.server.state.unsent._waiting))
        return number

    def until_waiting(self, count: int) -> None:
        end = time.monotonic() + 20
        while self.waiting() != count:
            assert time.monotonic() < end, f"{self.waiting()} wait"

    def tick(self, count: int = 1) -> None:
        for _ in range(count):
            self.in_loop(lambda: self.clock.advance(TICK))


@pytest.fixture(params=[{}, {"wal_mode": "fsync"}], ids=["write", "fsync"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Unread]:
    with ExitStack() as running:
        yield running.enter_context(Unread(tmp_path, **request.param))


@pytest.mark.slow
def test_of_many_unread_selects_most_wait_and_all_are_answered_whole(server: Unread) -> None:
    deaf = [server.deaf() for _ in range(20)]
    for client in deaf:
        client.send_bytes(server.select(sync=5))
        client.send_bytes(frame(RequestType.PING, sync=6))
    server.until_waiting(18)
    assert server.in_loop(lambda: server.server.state.unsent.unsent) < 10 * MEBIBYTE
    assert server.in_loop(lambda: server.server.state.unsent.waited) == 18
    # Small answers do not wait, nor does who has nothing unread.
    other = server.connect()
    assert other.request(RequestType.PING).ok
    by_key = {Key.SPACE_ID: server.space_id, Key.LIMIT: 1, Key.KEY: [7]}
    del by_key[Key.KEY]
    assert other.request(RequestType.SELECT, {**by_key, Key.SPACE_ID: 280, Key.KEY: [280]}).ok
    for client in deaf:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MEBIBYTE)
    remaining = list(deaf)
    end = time.monotonic() + 60
    while remaining:
        assert time.monotonic() < end, f"{len(remaining)} have no answer"
        ready = [client for client in remaining if has_answer(client)]
        for client in ready:
            answer = client.receive()
            assert (answer.sync, len(answer.data)) == (5, 40)
            assert all(len(row[1]) == 100_000 for row in answer.data)
            assert client.receive().sync == 6
            remaining.remove(client)
        server.tick()
    assert server.waiting() == 0


def has_answer(client: IprotoClient) -> bool:
    """Whether something can be read."""
    client.socket.setblocking(False)
    try:
        return bool(client.socket.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False
    finally:
        client.socket.settimeout(20)


def test_who_never_reads_does_not_keep_a_reader_waiting_for_ever(server: Unread) -> None:
    deaf = [server.deaf() for _ in range(6)]
    for client in deaf:
        client.send_bytes(server.select())
    server.until_waiting(4)
    reader = server.connect()
    reader.send_bytes(server.select(sync=8))
    server.until_waiting(5)
    for _ in range(5):
        server.tick(STALL_TICKS + 2)
    answer = reader.receive()
    assert (answer.sync, len(answer.data)) == (8, 40)


def test_who_has_gone_makes_room(server: Unread) -> None:
    deaf = [server.deaf() for _ in range(3)]
    for client in deaf:
        client.send_bytes(server.select())
    server.until_waiting(1)
    reader = server.connect()
    reader.send_bytes(server.select(sync=8))
    server.until_waiting(2)
    for client in deaf:
        client.close()
    assert len(reader.receive().data) == 40


def test_a_select_of_a_stream_s_transaction_waits_as_well(server: Unread) -> None:
    for _ in range(2):
        server.deaf().send_bytes(server.select())
    client = server.connect()
    assert client.request(RequestType.BEGIN, {}, {Key.STREAM_ID: 1}).ok
    body = {Key.SPACE_ID: server.space_id, Key.LIMIT: 1000, Key.ITERATOR: 2, Key.KEY: []}
    client.send(RequestType.SELECT, body, {Key.STREAM_ID: 1})
    client.send(RequestType.COMMIT, {}, {Key.STREAM_ID: 1})
    server.until_waiting(1)
    server.tick(2)
    assert len(client.receive().data) == 40
    assert client.receive().ok


def test_pages_wait_as_well(server: Unread) -> None:
    for _ in range(2):
        server.deaf().send_bytes(server.select())
    client = server.connect()
    body = {Key.SPACE_ID: server.space_id, Key.LIMIT: 1000, Key.KEY: [], Key.FETCH_POSITION: True}
    client.send(RequestType.SELECT, body)
    server.until_waiting(1)
    server.tick(2)
    assert len(client.receive().data) == 40


def test_requests_of_1_5_wait_as_well(server: Unread) -> None:
    for _ in range(2):
        server.deaf().send_bytes(server.select())
    _, listener = server.server.listeners
    with closing(Client15(listener.address.host, listener.address.port)) as client:
        keys = [[struct.pack("<Q", number)] for number in range(40)]
        client.send(17, select_body(server.space_id, *keys))
        server.until_waiting(1)
        server.tick(2)
        assert client.receive().count == 40


def test_a_request_that_waits_is_counted_once(server: Unread) -> None:
    before = server.in_loop(lambda: server.server.dispatcher.requests[RequestType.SELECT])
    for _ in range(2):
        server.deaf().send_bytes(server.select())
    client = server.connect()
    client.send_bytes(server.select())
    server.until_waiting(1)
    server.tick(2)
    assert len(client.receive().data) == 40
    assert server.in_loop(lambda: server.server.dispatcher.requests[RequestType.SELECT]) == before + 3
