"""A disk that is full, broken or slow: nothing acknowledged is lost, nothing refused is kept, reads go on."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server import Application, Box, Waiter, WaitQueue
from iproto_server.protocol.constants import Key
from tests.iproto_client import (
    CALL,
    FUNCTION_NAME,
    INSERT,
    PING,
    SPACE_ID,
    TUPLE,
    IprotoClient,
    frame,
)
from tests.server.faults.faulty_disk import WAL_IO
from tests.server.in_process import ServerInProcess, Start, queue_servers

SPACE = 700


def application() -> Application:
    """A space, and an async procedure that changes it, waits, and changes it again."""
    app = Application("rows")
    lines: dict[str, WaitQueue] = {}

    @app.setup
    def setup(box: Box) -> None:
        space = box.schema.create_space("rows", id=SPACE, if_not_exists=True)
        space.create_index("primary", if_not_exists=True)
        lines["line"] = WaitQueue(box)

    @app.procedure("rows.pair")
    def pair(box: Box, first: int, second: int) -> int:
        box.space.rows.insert([first])
        box.space.rows.insert([second])
        return 2

    @app.procedure("rows.wait")
    def wait(box: Box) -> Waiter:
        return lines["line"].park(30, lambda: "woken")

    @app.procedure("rows.wake")
    def insert_and_wake(box: Box, number: int) -> int:
        box.space.rows.insert([number])
        lines["line"].wake()
        return number

    @app.procedure("rows.after")
    def after(box: Box, first: int, second: int) -> int:
        box.space.rows.insert([first])
        box.on_commit(lambda: box.space.rows.insert([second]))
        return first

    @app.procedure("rows.steps")
    async def steps(box: Box, first: int, second: int) -> object:
        import asyncio

        box.space.rows.insert([first])
        try:
            await asyncio.sleep(0)
        except Exception as error:  # noqa: BLE001  # what it is, is what the test asks
            return f"{type(error).__name__}: {error}"
        box.space.rows.insert([second])
        return "done"

    return app


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with queue_servers(tmp_path, application()) as start:
        yield start


def rows(client: IprotoClient) -> list[int]:
    return [row[0] for row in client.everything(SPACE).data]


def insert(client: IprotoClient, number: int) -> tuple[int, str] | None:
    answer = client.request(INSERT, {SPACE_ID: SPACE, TUPLE: [number]})
    return None if answer.ok else answer.failure


class TestFullDisk:
    def test_writes_are_refused_reads_are_served_and_with_space_it_goes_on(
        self, start: Start, tmp_path: Path
    ) -> None:
        server = start()
        client = server.connect()
        assert insert(client, 1) is None
        server.disk.fault = errno.ENOSPC
        for number in (2, 3):
            assert insert(client, number) == WAL_IO
            assert rows(client) == [1]
            assert client.request(PING).ok
        assert client.call("rows.pair", 4, 5).failure == WAL_IO
        assert client.call("queue.put", "x").failure == WAL_IO
        assert client.call("queue.stats").data == [{"total": 0, "ready": 0, "waiting": 0, "taken": 0}]
        server.disk.fault = None
        assert insert(client, 2) is None
        assert rows(client) == [1, 2]

    def test_who_wakes_a_stream_is_refused_though_the_streams_next_requests_change_nothing(
        self, start: Start
    ) -> None:
        server = start()
        waker, client = server.connect(), server.connect()
        stream = {Key.STREAM_ID: 1}
        sent = [
            client.send(CALL, {FUNCTION_NAME: "rows.wait", TUPLE: []}, stream),
            client.send(PING, {}, stream),
        ]
        assert client.request(PING).ok
        server.disk.fault = errno.ENOSPC
        assert waker.call("rows.wake", 1).failure == WAL_IO
        assert [client.receive().sync for _ in sent] == sent
        assert rows(waker) == []

    def test_who_wakes_a_take_that_cannot_be_written_is_answered_for_the_own_change_alone(
        self, start: Start
    ) -> None:
        server = start()
        client, waiting = server.connect(), server.connect()
        server.disk.fault = errno.ENOSPC
        assert client.call("queue.put", "a").failure == WAL_IO
        waiting.send(CALL, {FUNCTION_NAME: "queue.take", TUPLE: [30]})
        assert waiting.request(PING).ok
        server.disk.passes = 1  # for the put, which is written at once as long as the disk fails
        assert client.call("queue.put", "b").ok
        assert waiting.receive().failure == WAL_IO
        assert client.call("queue.stats").data == [{"total": 1, "ready": 1, "waiting": 0, "taken": 0}]
        server.disk.fault = None
        [task] = client.call("queue.take").data
        assert (task["data"], server.failures) == ("b", 2)

    def test_what_is_to_be_done_after_a_commit_is_another_change(self, start: Start) -> None:
        server = start()
        client = server.connect()
        server.disk.fault = errno.ENOSPC
        assert insert(client, 1) == WAL_IO
        server.disk.passes = 1
        assert client.call("rows.after", 2, 3).data == [2]
        assert rows(client) == [2]
        server.disk.fault = None
        assert client.call("rows.after", 4, 5).data == [4]
        assert rows(client) == [2, 4, 5]

    def test_in_one_batch_those_who_wrote_are_refused_and_the_others_answered(self, start: Start) -> None:
        server = start()
        client = server.connect()
        server.disk.fault = errno.ENOSPC
        requests = [
            frame(PING, sync=1),
            frame(INSERT, {SPACE_ID: SPACE, TUPLE: [1]}, sync=2),
            frame(PING, sync=3),
            frame(INSERT, {SPACE_ID: SPACE, TUPLE: ["wrong"]}, sync=4),
            frame(CALL, {FUNCTION_NAME: "rows.pair", TUPLE: [2, 3]}, sync=5),
        ]
        client.send_bytes(b"".join(requests))
        answers = {answer.sync: answer for answer in (client.receive() for _ in requests)}
        assert answers[1].ok
        assert answers[3].ok
        assert answers[2].failure == answers[5].failure == WAL_IO
        assert answers[4].error_code == 23
        assert rows(client) == []

    def test_a_short_write_is_none(self, start: Start, tmp_path: Path) -> None:
        server = start()
        client = server.connect()
        assert insert(client, 1) is None
        [log] = tmp_path.glob("*.xlog")
        size = log.stat().st_size
        server.disk.fault, server.disk.accepts = errno.ENOSPC, 25
        assert insert(client, 2) == WAL_IO
        assert log.stat().st_size == size

    def test_what_was_acknowledged_is_there_after_a_restart_and_nothing_else(self, tmp_path: Path) -> None:
        with ServerInProcess(tmp_path, [application()]) as server:
            client = server.connect()
            kept = []
            for number in range(30):
                server.disk.fault = errno.EIO if number % 3 == 1 else None
                if insert(client, number) is None:
                    kept.append(number)
            server.disk.fault = None
            assert len(kept) == 20
        with ServerInProcess(tmp_path, [application()]) as server:
            assert rows(server.connect()) == kept

    def test_ddl_is_refused_too_and_leaves_no_trace(self, start: Start) -> None:
        server = start()
        client = server.connect()
        server.disk.fault = errno.ENOSPC
        assert client.call("box.schema.space.create", "other").failure == WAL_IO
        server.disk.fault = None
        assert client.call("box.schema.space.create", "other").ok


class TestQueueOnAFullDisk:
    def test_a_task_that_could_not_be_acknowledged_is_still_its_takers(self, start: Start) -> None:
        server = start()
        client, other = server.connect(), server.connect()
        client.call("queue.put", "task")
        [task] = client.call("queue.take").data
        server.disk.fault = errno.ENOSPC
        assert client.call("queue.ack", task["id"]).failure == WAL_IO
        assert client.call("queue.release", task["id"]).failure == WAL_IO
        assert "Not you" in other.call("queue.ack", task["id"]).failure[1]
        server.disk.fault = None
        assert client.call("queue.ack", task["id"]).ok
        assert client.call("queue.stats").data == [{"total": 0, "ready": 0, "waiting": 0, "taken": 0}]

    def test_a_task_that_could_not_be_taken_is_ready_for_others(self, start: Start) -> None:
        server = start()
        client = server.connect()
        client.call("queue.put", "task")
        server.disk.fault = errno.ENOSPC
        assert client.call("queue.take").failure == WAL_IO
        server.disk.fault = None
        assert server.connect().call("queue.take").data[0]["data"] == "task"

    def test_who_waits_for_a_task_gets_it_when_it_can_be_put(self, start: Start) -> None:
        server = start()
        producer, consumer = server.connect(), server.connect()
        consumer.send(CALL, {FUNCTION_NAME: "queue.take", TUPLE: [60]})
        server.disk.fault = errno.ENOSPC
        assert producer.call("queue.put", "refused").failure == WAL_IO
        answer = consumer.receive()
        assert answer.failure == WAL_IO  # its take was undone with the put
        consumer.send(CALL, {FUNCTION_NAME: "queue.take", TUPLE: [60]})
        server.disk.fault = None
        assert producer.call("queue.put", "task").ok
        assert consumer.receive().data[0]["data"] == "task"

    def test_tasks_of_a_client_that_went_while_the_disk_was_full_come_back(self, start: Start) -> None:
        server = start()
        client, other = server.connect(), server.connect()
        client.call("queue.put", "task")
        client.call("queue.take")
        server.disk.fault = errno.ENOSPC
        assert other.call("queue.put", "x").failure == WAL_IO
        client.close()
        assert other.call("queue.take").data == []
        server.disk.fault = None
        assert other.call("queue.take", 30).data[0]["data"] == "task"

    def test_a_delayed_task_comes_when_the_disk_has_space_again(self, start: Start) -> None:
        server = start()
        client = server.connect()
        client.call("queue.put", "task", {"delay": 0.05})
        server.disk.fault = errno.ENOSPC
        while not server.failures:
            assert client.request(PING).ok
        assert client.call("queue.stats").data[0]["waiting"] == 1
        server.disk.fault = None
        assert client.call("queue.take", 30).data[0]["data"] == "task"


class TestAsyncProcedures:
    def test_a_stretch_that_cannot_be_written_fails_where_the_procedure_waits(self, start: Start) -> None:
        server = start()
        client = server.connect()
        server.disk.fault = errno.EIO
        assert client.call("rows.steps", 1, 2).data == ["BoxError: Failed to write to disk"]
        assert rows(client) == []
        server.disk.fault = None
        assert client.call("rows.steps", 1, 2).data == ["done"]
        assert rows(client) == [1, 2]

    def test_its_answer_waits_for_its_last_stretch(self, start: Start) -> None:
        server = start(wal_mode="fsync")
        client, other = server.connect(), server.connect()
        server.disk.may_sync.clear()
        server.disk.is_syncing.clear()
        client.send(CALL, {FUNCTION_NAME: "rows.steps", TUPLE: [1, 2]})
        assert server.disk.is_syncing.wait(30)
        assert rows(other) == [1]  # the second stretch has not begun
        server.disk.may_sync.set()
        assert client.receive().data == ["done"]
        assert rows(other) == [1, 2]


class TestSyncing:
    """`wal_mode = fsync`: an answer is a promise that the disk has it; nobody else waits for that."""

    def test_a_write_is_answered_when_the_disk_has_it_and_reads_go_on_meanwhile(self, start: Start) -> None:
        server = start(wal_mode="fsync")
        writer, reader = server.connect(), server.connect()
        server.disk.may_sync.clear()
        server.disk.is_syncing.clear()
        writer.send(INSERT, {SPACE_ID: SPACE, TUPLE: [1]})
        assert server.disk.is_syncing.wait(30)
        for _ in range(3):
            assert reader.request(PING).ok
            assert rows(reader) == [1]
        writer.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            writer.receive()
        server.disk.may_sync.set()

    def test_what_is_written_meanwhile_is_the_next_batch(self, start: Start) -> None:
        server = start(wal_mode="fsync")
        clients = [server.connect() for _ in range(20)]
        before = server.disk.synced
        server.disk.may_sync.clear()
        server.disk.is_syncing.clear()
        clients[0].send(INSERT, {SPACE_ID: SPACE, TUPLE: [0]})
        assert server.disk.is_syncing.wait(30)
        for number, client in enumerate(clients[1:], 1):
            client.send(INSERT, {SPACE_ID: SPACE, TUPLE: [number]})
        reader = server.connect()
        while len(rows(reader)) < 20:
            pass
        server.disk.may_sync.set()
        assert all(client.receive().ok for client in clients)
        assert server.disk.synced - before == 2

    def test_when_syncing_fails_everything_since_is_undone_and_refused(self, start: Start) -> None:
        server = start(wal_mode="fsync")
        first, second, reader = server.connect(), server.connect(), server.connect()
        assert insert(first, 1) is None
        server.disk.may_sync.clear()
        server.disk.is_syncing.clear()
        first.send(INSERT, {SPACE_ID: SPACE, TUPLE: [2]})
        assert server.disk.is_syncing.wait(30)
        second.send(INSERT, {SPACE_ID: SPACE, TUPLE: [3]})
        while len(rows(reader)) < 3:
            pass
        server.disk.sync_fault = errno.EIO
        server.disk.may_sync.set()
        assert first.receive().failure == WAL_IO
        assert second.receive().failure == WAL_IO
        assert rows(reader) == [1]
        server.disk.sync_fault = None
        assert insert(first, 4) is None

    def test_what_was_acknowledged_is_there_after_a_restart(self, tmp_path: Path) -> None:
        with ServerInProcess(tmp_path, [application()], wal_mode="fsync") as server:
            client = server.connect()
            kept = []
            for number in range(20):
                server.disk.sync_fault = errno.EIO if number % 3 == 1 else None
                if insert(client, number) is None:
                    kept.append(number)
            server.disk.sync_fault = None
            assert len(kept) == 13
        with ServerInProcess(tmp_path, [application()], wal_mode="fsync") as server:
            assert rows(server.connect()) == kept
