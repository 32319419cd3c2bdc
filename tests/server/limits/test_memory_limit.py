"""The option `memtx_memory`: what clients are told, and what a server does that is full."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from iproto_server.box.memtx.memory_budget import budget
from tests.conftest import StartServer
from tests.iproto_client import (
    DELETE,
    INSERT,
    KEY,
    OPERATIONS,
    REPLACE,
    SPACE_ID,
    TUPLE,
    UPDATE,
    UPSERT,
    Answer,
    IprotoClient,
)
from tests.protocol.tarantool15.box15_client import INSERT as INSERT_15
from tests.protocol.tarantool15.box15_client import PING as PING_15
from tests.protocol.tarantool15.box15_client import Client15, insert_body, u64
from tests.running_server import RunningServer
from tests.server.in_process import ServerInProcess
from tests.server.limits.memory_application import SPACE, app
from tests.server.stream import Stream

MEBIBYTE = 2**20
LIMIT = 16 * MEBIBYTE
TEXT = re.compile(r"Failed to allocate \d+ bytes in slab allocator for memtx_tuple")
APPLICATION = "tests.server.limits.memory_application:app"
LIMITED = ["--memtx-memory", "16M"]


def insert(client: IprotoClient, number: int, size: int) -> Answer:
    return client.request(INSERT, {SPACE_ID: SPACE, TUPLE: [number, "x" * size]})


def fill(client: IprotoClient, size: int = 100_000) -> int:
    """Insert rows until one is refused; return how many were inserted."""
    for number in range(1000):
        answer = insert(client, number, size)
        if not answer.ok:
            assert is_refused(answer)
            return number
    pytest.fail("nothing was refused")


def is_refused(answer: Answer) -> bool:
    code, text = answer.failure
    return code == 2 and TEXT.fullmatch(text) is not None


@pytest.fixture
def server(start_server: StartServer) -> RunningServer:
    """A server with 16 megabytes."""
    return start_server([APPLICATION], LIMITED)


@pytest.fixture
def client(server: RunningServer) -> Iterator[IprotoClient]:
    with IprotoClient.at(server.address) as client:
        yield client


def change(client: IprotoClient, number: int, text: str) -> Answer:
    return client.request(UPDATE, {SPACE_ID: SPACE, KEY: [number], TUPLE: [["=", 1, text]]})


def delete(client: IprotoClient, number: int) -> Answer:
    return client.request(DELETE, {SPACE_ID: SPACE, KEY: [number]})


class TestAFullServer:
    def test_refuses_changes_that_need_memory(self, client: IprotoClient) -> None:
        count = fill(client)
        assert 100 < count < 160
        large = "y" * 3 * MEBIBYTE
        row = {SPACE_ID: SPACE, TUPLE: [1, large]}
        assert is_refused(client.request(REPLACE, row))
        assert is_refused(change(client, 1, large))
        assert is_refused(client.request(UPSERT, {**row, OPERATIONS: [["=", 1, large]]}))
        assert is_refused(client.request(UPSERT, {SPACE_ID: SPACE, TUPLE: [9999, large], OPERATIONS: []}))
        assert is_refused(client.call("box.space.rows:insert", [9999, large]))
        assert client.call("box.space.rows:get", 1).data == [[1, "x" * 100_000]]
        assert client.call("box.space.rows:len").data == [count]
        # Changes that need no memory are made, on the same connection.
        assert change(client, 1, "y" * 100_000).ok
        assert client.call("box.space.rows.index.text:max").data == [[1, "y" * 100_000]]

    def test_is_drained_and_filled_again(self, client: IprotoClient) -> None:
        count = fill(client)
        for _ in range(3):
            assert all(delete(client, number).ok for number in range(count))
            assert fill(client) == count

    def test_undoes_a_procedure(self, client: IprotoClient) -> None:
        count = fill(client)
        assert is_refused(client.call("insert_two", [9998, "small"], [9999, "y" * 5 * MEBIBYTE]))
        assert client.call("box.space.rows:len").data == [count]

    def test_refuses_in_a_stream_and_keeps_its_transaction(self, client: IprotoClient) -> None:
        count = fill(client)
        stream = Stream(client)
        assert stream.begin().ok
        for number in range(5):
            assert stream.request(DELETE, {SPACE_ID: SPACE, KEY: [number]}).ok
        assert is_refused(stream.insert(SPACE, [9999, "y" * 5 * MEBIBYTE]))
        assert is_refused(stream.insert(SPACE, [9999, "y"]))  # deleted rows count until the commit
        assert stream.commit().ok
        assert client.call("box.space.rows:len").data == [count - 5]
        assert client.request(INSERT, {SPACE_ID: SPACE, TUPLE: [9999, "y"]}).ok

    def test_rolls_a_stream_back(self, server: RunningServer, client: IprotoClient) -> None:
        count = fill(client)
        stream = Stream(client)
        stream.begin()
        for number in range(count):
            assert stream.request(DELETE, {SPACE_ID: SPACE, KEY: [number]}).ok
        with IprotoClient.at(server.address) as other:
            # The transaction's deletes do not give its memory to others.
            assert other.call("box.space.rows:len").data == [count]
            assert is_refused(insert(other, 9999, 5 * MEBIBYTE))
            assert stream.roll_back().ok
            assert other.call("box.space.rows:len").data == [count]

    def test_tells_clients_of_1_5(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION], [*LIMITED, "--listen-1-5", "127.0.0.1:0"])
        port = server.process.wait_for(r"listening on 127.0.0.1:(\d+), protocol of Tarantool 1.5")[1]
        with closing(Client15("127.0.0.1", int(port))) as old:
            answer = old.request(INSERT_15, insert_body(SPACE, u64(9999), b"y" * 20 * MEBIBYTE))
            # The protocol's own number for "no memory", and that the request may be repeated.
            assert (answer.code, answer.status) == (7, 1)
            assert TEXT.fullmatch(answer.message)
            assert old.request(INSERT_15, insert_body(SPACE, u64(9999), b"y")).code == 0
            assert old.request(PING_15).kind == PING_15

    def test_serves_tasks(self, start_server: StartServer) -> None:
        server = start_server(["queue_lua_compat.tubes:app"], LIMITED)
        with IprotoClient.at(server.address) as client:
            assert client.call("queue.create_tube", "jobs", "fifottl").ok
            put = 0
            while client.call("queue.tube.jobs:put", "z" * 10_000, {"ttr": 60}).ok:
                put += 1
            assert put > 500
            for _ in range(put):
                [task] = client.call("queue.tube.jobs:take", 0).data
                assert client.call("queue.tube.jobs:release", task[0]).ok
                [task] = client.call("queue.tube.jobs:take", 0).data
                assert client.call("queue.tube.jobs:ack", task[0]).ok
            assert client.call("queue.tube.jobs:put", "z" * 10_000).ok

    def test_shows_its_memory(self, client: IprotoClient) -> None:
        fill(client)
        [slab] = client.call("box.slab.info").data
        assert slab["quota_size"] == LIMIT
        assert slab["arena_size"] == slab["quota_used"] <= LIMIT
        assert 10 * MEBIBYTE < slab["items_used"] <= slab["items_size"] <= slab["arena_size"]
        assert slab["items_used"] < slab["arena_used"] <= slab["arena_size"]
        assert slab["quota_used_ratio"] == f"{100 * slab['quota_used'] / LIMIT:.2f}%"
        [memory] = client.call("box.info.memory").data
        assert memory["data"] == slab["items_used"]
        assert memory["index"] == slab["arena_used"] - slab["items_used"] > 0

    def test_logs_one_line(self, server: RunningServer, client: IprotoClient) -> None:
        fill(client)
        for _ in range(5):
            assert is_refused(insert(client, 9999, 100_000))
        server.process.wait_for("refused a row: memtx_memory is used up")
        assert "\n".join(server.process.lines).count("memtx_memory is used up") == 1

    def test_takes_snapshots(self, server: RunningServer, client: IprotoClient) -> None:
        fill(client)
        assert client.call("box.snapshot").data == ["ok"]


class TestARecoveredServer:
    def test_may_hold_more_than_its_limit(self, start_server: StartServer, tmp_path: Path) -> None:
        server = start_server([APPLICATION], work_dir=tmp_path)
        with IprotoClient.at(server.address) as client:
            assert all(insert(client, number, 100_000).ok for number in range(250))
        server.stop()
        server = start_server([APPLICATION], LIMITED, work_dir=tmp_path)
        with IprotoClient.at(server.address) as client:
            server.process.wait_for("the data exceeds memtx_memory: new rows are refused")
            assert client.call("box.space.rows:len").data == [250]
            assert is_refused(insert(client, 9999, 1))
            assert change(client, 1, "y" * 100_000).ok
            assert all(delete(client, number).ok for number in range(150))
            assert insert(client, 9999, 1).ok
        server.stop()
        server = start_server([APPLICATION], LIMITED, work_dir=tmp_path)
        with IprotoClient.at(server.address) as client:
            assert client.call("box.space.rows:len").data == [101]
        server.stop()
        assert "exceeds memtx_memory" not in server.process.output


class TestTheOptionWhileTheServerRuns:
    def test_it_grows(self, client: IprotoClient) -> None:
        count = fill(client)
        assert client.call("box.cfg", {"memtx_memory": 2 * LIMIT}).ok
        assert client.call("box.slab.info").data[0]["quota_size"] == 2 * LIMIT
        assert insert(client, count, 100_000).ok
        assert client.call("box.cfg", {"memtx_memory": None}).ok
        assert insert(client, 9999, 2 * LIMIT).ok

    def test_other_values_are_refused(self, client: IprotoClient) -> None:
        assert client.call("box.cfg", {"memtx_memory": 2 * LIMIT}).ok
        bounds = f"is out of bounds: from {LIMIT} to {2**63 - 1}"
        for value, reason in (
            (LIMIT // 2, f"8388608 bytes {bounds}"),
            (2 * LIMIT - 1, "cannot decrease memory size at runtime"),
            ("64M", "should be of type number"),
            (True, "should be of type number"),
            (-1, "-1 is not a number of bytes, such as 16320, 64K or 256M"),
        ):
            expected = (59, f"Incorrect value for option 'memtx_memory': {reason}")
            assert client.call("box.cfg", {"memtx_memory": value}).failure == expected
            assert client.call("box.slab.info").data[0]["quota_size"] == 2 * LIMIT

    def test_there_is_none_to_begin_with(self, start_server: StartServer) -> None:
        server = start_server([APPLICATION])
        with IprotoClient.at(server.address) as client:
            text = "Incorrect value for option 'memtx_memory': cannot decrease memory size at runtime"
            assert client.call("box.cfg", {"memtx_memory": LIMIT}).failure == (59, text)
            assert insert(client, 1, 2 * LIMIT).ok


def test_refusals_and_memory_are_counted(tmp_path: Path) -> None:
    with ServerInProcess(tmp_path, [app], memtx_memory=LIMIT) as server, server.connect() as client:

        async def counters() -> dict[str, float]:
            return dict(server.server.metrics())

        assert server.run(counters())["server.refused.memtx_memory"] == 0
        assert budget.limit == LIMIT
        assert is_refused(insert(client, 1, 2 * LIMIT))
        found = server.run(counters())
        assert found["server.refused.memtx_memory"] == 1
        assert 0 < found["server.memtx.items_used"] < found["server.memtx.arena_size"]
    assert budget.limit is None
