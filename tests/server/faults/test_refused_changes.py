"""What a failed write takes with it: everything that rests on what was not written, and nothing else."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iproto_server import Application, Box, Waiter, WaitQueue
from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType
from tests.iproto_client import (
    CALL,
    DELETE,
    FUNCTION_NAME,
    INSERT,
    KEY,
    PING,
    REPLACE,
    SPACE_ID,
    TUPLE,
    IprotoClient,
    frame,
)
from tests.server.faults.faulty_disk import WAL_IO
from tests.server.in_process import ServerInProcess, Start, queue_servers

KEPT, SCRATCH = 700, 701


def application() -> Application:
    """A space that is kept and one that is not, and calls that wait after they have changed something."""
    app = Application("rows")
    lines: dict[str, WaitQueue] = {}

    @app.setup
    def setup(box: Box) -> None:
        for name, number, temporary in (("kept", KEPT, False), ("scratch", SCRATCH, True)):
            space = box.schema.create_space(name, id=number, temporary=temporary, if_not_exists=True)
            space.create_index("primary", if_not_exists=True)
            space.create_index("second", parts=[(1, "unsigned"), (0, "unsigned")], if_not_exists=True)
        lines["line"] = WaitQueue(box)

    @app.procedure("both")
    def both(box: Box, key: int, value: int) -> None:
        box.space.kept.replace([key, value])
        box.space.scratch.replace([key, value])

    @app.procedure("insert_and_wait")
    def insert_and_wait(box: Box, key: int) -> Waiter:
        box.space.kept.insert([key, 0])
        return lines["line"].park(60, lambda: "woken")

    @app.procedure("wake")
    def wake(box: Box) -> None:
        box.on_commit(lines["line"].wake)

    @app.procedure("take_for_me")
    async def take_for_me(box: Box) -> object:
        try:
            return await lines["line"].park(60, lambda: list(box.space.kept.delete(1) or ()))
        except Exception as error:  # noqa: BLE001  # what it is, is what the test asks
            return f"{type(error).__name__}: {error}"

    @app.procedure("insert_and_wake")
    def insert_and_wake(box: Box, key: int) -> None:
        box.space.kept.insert([key, 0])
        box.on_commit(lines["line"].wake)

    @app.procedure("commit_twice")
    def commit_twice(box: Box, first: int, second: int) -> None:
        box.space.kept.insert([first, 0])
        box.commit()
        box.begin()
        box.space.kept.insert([second, 0])

    @app.procedure("apologize")
    def apologize(box: Box, key: int) -> None:
        box.space.kept.insert([key, 0])
        box.on_rollback(lambda: box.space.kept.insert([key + 100, 0]))

    return app


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with queue_servers(tmp_path, application()) as start:
        yield start


def rows(client: IprotoClient, space: int = KEPT, index: int = 0) -> list[Any]:
    return list(client.everything(space, index).data)


def hold(server: ServerInProcess) -> None:
    """Let the disk take its time from now on."""
    server.disk.may_sync.clear()
    server.disk.is_syncing.clear()


def call(client: IprotoClient, name: str, *arguments: object) -> None:
    client.send(CALL, {FUNCTION_NAME: name, TUPLE: list(arguments)})


class TestWhileTheDiskIsWaitedFor:
    """`wal_mode = fsync`: what happens while a write goes on is undone with it, the newest first."""

    def test_a_change_of_a_temporary_space_that_rests_on_it(self, start: Start) -> None:
        server = start(wal_mode="fsync")
        client, other, reader = server.connect(), server.connect(), server.connect()
        assert client.call("both", 1, 10).ok
        hold(server)
        call(client, "both", 1, 20)
        assert server.disk.is_syncing.wait(30)
        other.send(REPLACE, {SPACE_ID: SCRATCH, TUPLE: [1, 30]})
        while rows(reader, SCRATCH) != [[1, 30]]:
            pass
        server.disk.sync_fault = errno.EIO
        server.disk.may_sync.set()
        assert client.receive().failure == WAL_IO
        assert other.receive().failure == WAL_IO
        for space in (KEPT, SCRATCH):
            assert rows(reader, space) == rows(reader, space, 1) == [[1, 10]]
        server.disk.sync_fault = None
        assert other.request(REPLACE, {SPACE_ID: SCRATCH, TUPLE: [1, 40]}).ok
        assert rows(reader, SCRATCH, 1) == [[1, 40]]

    def test_several_batches_several_times_in_a_row_with_ddl_and_waiting_takes(self, start: Start) -> None:
        server = start(wal_mode="fsync")
        first, second, consumer, reader = (server.connect() for _ in range(4))
        for turn in range(3):
            call(consumer, "queue.take", 60)
            while not server.run(in_flight(server)):
                pass
            hold(server)
            first.send(INSERT, {SPACE_ID: KEPT, TUPLE: [turn, 0]})
            assert server.disk.is_syncing.wait(30)
            call(second, "box.snapshot")
            call(second, "box.schema.space.create", f"other {turn}")
            call(second, "queue.put", "task")
            while not reader.call("queue.stats").data[0]["total"]:
                pass
            server.disk.sync_fault = errno.EIO
            server.disk.may_sync.set()
            assert first.receive().failure == WAL_IO
            assert [second.receive().ok for _ in range(3)] == [False] * 3
            assert consumer.receive().failure == WAL_IO
            assert rows(reader) == []
            assert reader.call("queue.stats").data == [{"total": 0, "ready": 0, "waiting": 0, "taken": 0}]
            assert rows(reader, 281)[-1][2] != f"other {turn}"
        server.disk.sync_fault = None
        assert second.call("queue.put", "task").ok
        assert consumer.call("queue.take").data[0]["data"] == "task"
        assert second.call("box.schema.space.create", "other 0").ok
        assert second.call("box.snapshot").data == ["ok"]

    def test_answers_of_two_writes_are_kept_apart(self, start: Start) -> None:
        """A write ends, and the next one begins, between two requests of one connection."""
        server = start(wal_mode="fsync")
        other = server.connect()
        client = server.connect()
        assert client.request(PING).ok
        hold(server)
        other.send(INSERT, {SPACE_ID: KEPT, TUPLE: [1, 0]})
        assert server.disk.is_syncing.wait(30)

        async def two_requests() -> None:
            server.disk.may_sync.set()
            server.server._disk.submit(hold, server).result(30)
            await asyncio.sleep(0)
            # The write has ended, and in the next iteration the loop will be told.
            connection = max(server.server.state.connections, key=lambda some: some.session.id)
            handle, (first, second) = server.server.dispatcher.handle, frames
            asyncio.get_running_loop().call_soon(handle, connection, second)
            handle(connection, first)

        frames = [frame(INSERT, {SPACE_ID: KEPT, TUPLE: [number, 0]}, sync=number)[1:] for number in (2, 3)]
        server.run(two_requests())
        assert server.disk.is_syncing.wait(30)
        server.disk.fault = errno.ENOSPC
        server.disk.may_sync.set()
        assert other.receive().ok
        answers = {answer.sync: answer for answer in (client.receive(), client.receive())}
        assert answers[2].ok
        assert answers[3].failure == WAL_IO
        assert rows(client) == [[1, 0], [2, 0]]

    def test_what_on_rollback_does_is_a_change_of_its_own(self, start: Start) -> None:
        server = start(wal_mode="fsync")
        client = server.connect()
        hold(server)
        call(client, "apologize", 1)
        assert server.disk.is_syncing.wait(30)
        server.disk.sync_fault = errno.EIO
        server.disk.may_sync.set()
        assert client.receive().failure == WAL_IO
        server.disk.sync_fault = None
        while client.request(PING).ok and rows(client) == [[101, 0]] and server.run(is_writing(server)):
            pass
        assert rows(client) in ([], [[101, 0]])


async def in_flight(server: ServerInProcess) -> int:
    return server.server.state.in_flight


async def is_writing(server: ServerInProcess) -> bool:
    return server.server.box.transactions.is_writing


class TestCallsThatWait:
    def test_one_that_has_changed_something_is_not_answered_before_that_is_safe(self, start: Start) -> None:
        server = start(wal_mode="fsync")
        client, other = server.connect(), server.connect()
        hold(server)
        call(client, "insert_and_wait", 1)
        assert server.disk.is_syncing.wait(30)
        assert other.call("wake").ok
        client.socket.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.receive()
        server.disk.may_sync.set()

    @pytest.mark.parametrize("mode", ["write", "fsync"])
    def test_nor_with_success_where_it_was_undone(self, start: Start, mode: str) -> None:
        server = start(wal_mode=mode)
        client = server.connect()
        server.disk.fault = errno.ENOSPC
        requests = [
            frame(CALL, {FUNCTION_NAME: "insert_and_wait", TUPLE: [1]}, sync=1),
            frame(CALL, {FUNCTION_NAME: "wake", TUPLE: []}, sync=2),
        ]
        client.send_bytes(b"".join(requests))
        answers = {answer.sync: answer for answer in (client.receive() for _ in requests)}
        assert answers[1].failure == WAL_IO
        assert answers[2].ok
        assert rows(client) == []

    @pytest.mark.parametrize("mode", ["write", "fsync"])
    def test_a_coroutine_does_not_go_on_with_what_was_undone(self, start: Start, mode: str) -> None:
        server = start(wal_mode=mode)
        producer, consumer = server.connect(), server.connect()
        call(consumer, "take_for_me")
        while not server.run(in_flight(server)):
            pass
        server.disk.fault = errno.ENOSPC
        assert producer.call("insert_and_wake", 1).failure == WAL_IO
        assert consumer.receive().data == ["BoxError: Failed to write to disk"]
        server.disk.fault = None
        assert rows(producer) == []
        call(consumer, "take_for_me")
        while not server.run(in_flight(server)):
            pass
        assert producer.call("insert_and_wake", 1).ok
        assert consumer.receive().data == [[1, 0]]
        assert rows(producer) == []


class TestProcedures:
    def test_every_part_that_one_commits_is_undone(self, start: Start) -> None:
        server = start()
        client = server.connect()
        server.disk.fault = errno.ENOSPC
        assert client.call("commit_twice", 1, 2).failure == WAL_IO
        assert client.call("commit_twice", 1, 2).failure == WAL_IO
        assert rows(client) == []
        server.disk.fault = None
        assert client.call("commit_twice", 1, 2).ok
        assert rows(client) == [[1, 0], [2, 0]]


class TestQueue:
    def test_counters_when_the_space_was_emptied_in_a_batch_that_failed(self, start: Start) -> None:
        server = start()
        client = server.connect()
        assert client.call("queue.put", "kept").ok
        space = client.space_id("queue")
        server.disk.fault = errno.ENOSPC
        requests = [
            frame(CALL, {FUNCTION_NAME: "queue.put", TUPLE: ["a"]}, sync=1),
            frame(CALL, {FUNCTION_NAME: "queue.take", TUPLE: []}, sync=2),
            frame(CALL, {FUNCTION_NAME: "box.space.queue:truncate", TUPLE: []}, sync=3),
            frame(CALL, {FUNCTION_NAME: "queue.put", TUPLE: ["b"]}, sync=4),
            frame(CALL, {FUNCTION_NAME: "queue.put", TUPLE: ["c", {"delay": 100}]}, sync=5),
        ]
        client.send_bytes(b"".join(requests))
        assert {client.receive().failure for _ in requests} == {WAL_IO}
        server.disk.fault = None
        assert [row[3] for row in rows(client, space)] == ["kept"]
        assert client.call("queue.stats").data == [{"total": 1, "ready": 1, "waiting": 0, "taken": 0}]
        [task] = client.call("queue.take").data
        assert client.call("queue.ack", task["id"]).ok
        assert client.call("queue.stats").data == [{"total": 0, "ready": 0, "waiting": 0, "taken": 0}]


class TestSnapshots:
    def test_on_a_log_that_cannot_be_written_and_tried_again(self, tmp_path: Path) -> None:
        with ServerInProcess(tmp_path, [application()]) as server:
            client = server.connect()
            assert client.request(INSERT, {SPACE_ID: KEPT, TUPLE: [1, 1]}).ok
            blocked = [tmp_path / f"{number:020d}.snap.inprogress" for number in range(100)]
            for path in blocked:
                path.mkdir()
            for number in range(3):
                assert not client.call("box.snapshot").ok
                server.disk.fault, server.disk.accepts = errno.ENOSPC, 10 * number
                assert client.request(INSERT, {SPACE_ID: KEPT, TUPLE: [2, 2]}).failure == WAL_IO
                assert not client.call("box.snapshot").ok
                server.disk.fault = None
            assert client.request(INSERT, {SPACE_ID: KEPT, TUPLE: [3, 3]}).ok
            for path in blocked:
                path.rmdir()
        with ServerInProcess(tmp_path, [application()]) as server:
            client = server.connect()
            assert rows(client) == [[1, 1], [3, 3]]
            assert client.call("box.snapshot").data == ["ok"]
            assert client.request(DELETE, {SPACE_ID: KEPT, KEY: [1]}).ok
        with ServerInProcess(tmp_path, [application()]) as server:
            assert rows(server.connect()) == [[3, 3]]

    def test_rows_that_are_undone_while_it_is_written_are_not_in_it(self, tmp_path: Path) -> None:
        with ServerInProcess(tmp_path, [application()], wal_mode="fsync") as server:
            client, other = server.connect(), server.connect()
            assert client.request(INSERT, {SPACE_ID: KEPT, TUPLE: [1, 1]}).ok
            hold(server)
            client.send(INSERT, {SPACE_ID: KEPT, TUPLE: [2, 2]})
            assert server.disk.is_syncing.wait(30)
            call(other, "box.snapshot")
            before = list_files(tmp_path, FileType.SNAPSHOT)
            while not list(tmp_path.glob("*.snap.inprogress")):
                """Its file has no name before the log is safe."""
            server.disk.sync_fault = errno.EIO
            server.disk.may_sync.set()
            assert client.receive().failure == WAL_IO
            assert not other.receive().ok
            assert list_files(tmp_path, FileType.SNAPSHOT) == before
            assert not list(tmp_path.glob("*.inprogress"))
            server.disk.sync_fault = None
            assert client.request(INSERT, {SPACE_ID: KEPT, TUPLE: [3, 3]}).ok
            assert other.call("box.snapshot").data == ["ok"]
        with ServerInProcess(tmp_path, [application()]) as server:
            assert rows(server.connect()) == [[1, 1], [3, 3]]


@pytest.mark.parametrize("mode", ["write", "fsync"])
def test_stopping_on_a_disk_that_fails_answers_everybody_and_loses_nothing(tmp_path: Path, mode: str) -> None:
    with ServerInProcess(tmp_path, [application()], wal_mode=mode) as server:
        client, waiting = server.connect(), server.connect()
        assert client.request(INSERT, {SPACE_ID: KEPT, TUPLE: [1, 1]}).ok
        call(waiting, "take_for_me")
        while not server.run(in_flight(server)):
            pass
        server.disk.fault = errno.ENOSPC
        client.send(INSERT, {SPACE_ID: KEPT, TUPLE: [2, 2]})
        server.run(asyncio.wait_for(server.server.stop(), 30))
        assert client.receive().failure == WAL_IO
        assert waiting.receive().ok
        server.server.stop = nothing  # type: ignore[method-assign]
    with ServerInProcess(tmp_path, [application()], wal_mode=mode) as server:
        assert rows(server.connect()) == [[1, 1]]


async def nothing() -> None:
    """It has stopped."""
