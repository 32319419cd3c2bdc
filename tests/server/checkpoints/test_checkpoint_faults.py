"""Checkpoints that cannot be written, and those at the end of a server."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from iproto_server import Application, Box, BoxError, ErrorCode, Waiter
from iproto_server.storage.directory import list_files
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.xlog import FileType
from tests.real_tarantool import RealTarantool
from tests.server.checkpoints.database import (
    HOUR,
    LARGE,
    answer,
    contents,
    contents_of,
    run,
    running,
)
from tests.server.in_process import ServerInProcess

CANCELLED = (ErrorCode.SYSTEM, "the snapshot was cancelled")


class TestTheDisk:
    def test_it_has_its_name_when_the_log_is_safe(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        finish, publish = SnapshotWriter.finish, SnapshotWriter.publish
        happened: list[str] = []

        async def scenario() -> None:
            loop, finished = asyncio.get_running_loop(), asyncio.Event()

            def finish_and_tell(writer: SnapshotWriter) -> None:
                finish(writer)
                loop.call_soon_threadsafe(finished.set)

            def publish_and_tell(writer: SnapshotWriter) -> Path:
                happened.append("it is named")
                return publish(writer)

            async with running(tmp_path, "fsync") as database:
                monkeypatch.setattr(SnapshotWriter, "finish", finish_and_tell)
                monkeypatch.setattr(SnapshotWriter, "publish", publish_and_tell)
                database.fill(10)
                await database.batch.drain()
                database.disk.may_sync.clear()
                database.box.space.rows.insert([10, "not yet safe"])
                waiter = database.box.snapshot()
                await asyncio.wait_for(finished.wait(), 30)
                for _ in range(10):
                    await asyncio.sleep(0)
                assert not waiter.is_done
                assert database.snapshots == [0]
                happened.append("the log may be safe")
                database.disk.may_sync.set()
                assert await answer(waiter) == "ok"
                assert database.snapshots == [0, database.lsn]

        run(scenario())
        assert happened == ["the log may be safe", "it is named"]
        assert contents(tmp_path)[10] == "not yet safe"

    @pytest.mark.parametrize("count", [10, LARGE])
    def test_it_is_given_up_when_the_log_cannot_be_written(self, tmp_path: Path, count: int) -> None:
        """It would have rows that were undone, under numbers that other rows will have."""

        async def scenario() -> None:
            async with running(tmp_path, "fsync") as database:
                database.fill(count)
                await database.batch.drain()
                database.disk.sync_fault = errno.EIO
                database.box.space.rows.insert([-1 % 2**32, "to be undone"])
                failure = await database.snapshot()
                assert failure == (134, "Can't start a checkpoint while in cascading rollback")
                assert database.snapshots == [0]
                assert database.unfinished == []
                assert database.box.space.rows.len() == count
                database.disk.sync_fault = None
                database.box.space.rows.insert([count, "kept"])
                assert await database.snapshot() == "ok"

        run(scenario())
        assert len(contents(tmp_path)) == count + 1

    def test_a_full_disk_leaves_nothing_behind_and_the_next_one_succeeds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        written: list[int] = []
        write_blocks = SnapshotWriter.write_blocks

        def fill_up(writer: SnapshotWriter, blocks: Sequence[list[bytes]]) -> None:
            if written:
                raise OSError(errno.ENOSPC, "No space left on device")
            written.append(len(blocks))
            write_blocks(writer, blocks)

        async def scenario() -> None:
            async with running(tmp_path, checkpoint_interval=HOUR) as database:
                database.fill(LARGE)
                monkeypatch.setattr(SnapshotWriter, "write_blocks", fill_up)
                path = tmp_path / f"{database.lsn:020d}.snap.inprogress"
                waiter = database.box.snapshot()
                assert await answer(waiter) == (ErrorCode.SYSTEM, f"failed to write to '{path}' file")
                assert isinstance(waiter.error, BoxError)
                assert (waiter.error.type, waiter.error.errno) == ("SystemError", errno.ENOSPC)
                assert database.unfinished == []
                assert database.snapshots == [0]
                database.box.space.rows.insert([LARGE, "the server goes on"])
                for expected in (2, 3):
                    database.clock.advance(2 * HOUR)
                    await database.settled()
                    assert database.checkpointer.failed == expected
                monkeypatch.undo()
                database.clock.advance(HOUR)
                await database.settled()
                assert database.snapshots == [0, database.lsn]

        run(scenario())
        assert "No space left on device" in caplog.text
        assert len(contents(tmp_path)) == LARGE + 1

    def test_a_directory_that_cannot_be_written_to(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path, memtx_dir=Path("snapshots")) as database:
                database.fill(1)
                (tmp_path / "snapshots").write_text("not a directory")
                path = tmp_path / "snapshots" / f"{database.lsn:020d}.snap"
                assert await database.snapshot() == (ErrorCode.SYSTEM, f"failed to create file '{path}'")
                (tmp_path / "snapshots").unlink()
                # As in Tarantool, a directory that has gone is made again.
                assert await database.snapshot() == "ok"
                assert path.exists()

        run(scenario())

    def test_a_name_that_cannot_be_given(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path) as database:
                database.fill(1)
                path = tmp_path / f"{database.lsn:020d}.snap"
                path.mkdir()
                failure = await database.snapshot()
                assert failure == (ErrorCode.SYSTEM, f"failed to rename '{path}.inprogress' file")
                assert database.unfinished == []

        run(scenario())

    def test_it_is_written_no_faster_than_allowed(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path, snap_io_rate_limit=0.01) as database:
                database.fill(LARGE)
                assert await database.snapshot() == "ok"
                size = list_files(tmp_path, FileType.SNAPSHOT)[-1].stat().st_size
                assert 0.5 * size / (0.01 * 2**20) < database.slept <= size / (0.01 * 2**20)
                assert database.checkpointer.last_duration == database.slept

        run(scenario())

    def test_old_files_are_removed(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)

        async def scenario() -> None:
            async with running(tmp_path, checkpoint_count=2) as database:
                clocks = [0]
                for number in range(4):
                    database.fill(10, f"rows{number}")
                    assert await database.snapshot() == "ok"
                    clocks.append(database.lsn)
                assert database.snapshots == clocks[-2:]
                logs = [int(path.stem) for path in list_files(tmp_path, FileType.LOG)]
                assert min(logs) == clocks[-2]

        run(scenario())
        assert f"removed {tmp_path}/00000000000000000000.snap" in caplog.messages
        assert contents(tmp_path, "rows3") == dict.fromkeys(range(10), "as it was")


class TestTheEnd:
    def test_one_that_is_being_written_is_given_up(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            for turns in (0, 1, 5):
                directory = tmp_path / str(turns)
                directory.mkdir()
                async with running(directory) as database:
                    database.fill(LARGE)
                    waiter = database.box.snapshot()
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    await database.checkpointer.stop()
                    assert await answer(waiter) == CANCELLED
                    assert database.unfinished == []
                    assert database.snapshots == [0]
                    assert database.clock.pending == 0

        run(scenario())

    def test_there_are_none_without_files_or_after_the_end(self, tmp_path: Path) -> None:
        with pytest.raises(BoxError, match="A box without files does not support snapshots"):
            _ = Box().snapshot()

        async def scenario() -> None:
            async with running(tmp_path) as database:
                await database.checkpointer.stop()
                with pytest.raises(BoxError, match="A server that is stopping does not support snapshots"):
                    _ = database.box.snapshot()

        run(scenario())


def application() -> Application:
    """Procedures that take snapshots."""
    app = Application("snapshots")

    @app.setup
    def setup(box: Box) -> None:
        space = box.schema.create_space("rows", if_not_exists=True)
        space.create_index("primary", if_not_exists=True)

    @app.procedure("rows.save")
    def save(box: Box, number: int) -> Waiter:
        box.space.rows.insert([number, "saved"])
        return box.snapshot()

    @app.procedure("rows.save_and_go_on")
    async def save_and_go_on(box: Box, number: int) -> object:
        box.space.rows.insert([number, "before"])
        result = await box.snapshot()
        box.space.rows.replace([number, "after"])
        return [result, box.space.rows.get(number)]

    @app.procedure("rows.save_twice")
    async def save_twice(box: Box) -> object:
        first = box.snapshot()
        try:
            await box.snapshot()
        except BoxError as error:
            return [error.message, await first]
        return None

    return app


class TestProcedures:
    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[ServerInProcess]:
        with ServerInProcess(tmp_path, [application()]) as server:
            yield server

    def test_any_client_may_ask_for_one(self, server: ServerInProcess, tmp_path: Path) -> None:
        client = server.connect()
        assert client.call("box.snapshot").data == ["ok"]
        assert client.call("rows.save", 1).data == ["ok"]
        path = list_files(tmp_path, FileType.SNAPSHOT)[-1]
        assert contents_of(path, tmp_path / "alone") == {1: "saved"}

    def test_an_async_procedure_awaits_it(self, server: ServerInProcess, tmp_path: Path) -> None:
        client = server.connect()
        assert client.call("rows.save_and_go_on", 1).data == [["ok", [1, "after"]]]
        path = list_files(tmp_path, FileType.SNAPSHOT)[-1]
        assert contents_of(path, tmp_path / "alone") == {1: "before"}
        assert contents(tmp_path) == {1: "after"}

    def test_its_error_is_raised_where_it_is_awaited(self, server: ServerInProcess) -> None:
        client = server.connect()
        assert client.call("rows.save_twice").data == [["Snapshot is already in progress", "ok"]]


@pytest.mark.real_tarantool
def test_a_real_tarantool_starts_from_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, checkpoint_count=1) as database:
            database.fill(LARGE)
            waiter = database.box.snapshot()
            for number in range(100):
                database.box.space.rows.replace([number, "changed while it was being written"])
                await asyncio.sleep(0)
            assert await answer(waiter) == "ok"

    run(scenario())
    question = """
        local changed, count = 0, 0
        for _, row in box.space.rows:pairs() do
            count = count + 1
            if row[2] ~= 'as it was' then changed = changed + 1 end
        end
        require('log').info('tests: ' .. count .. ' rows, ' .. changed .. ' changed')
    """
    with RealTarantool(tmp_path, question, {"wal_mode": "'write'"}) as tarantool:
        assert f"tests: {LARGE} rows, 100 changed" in tarantool.process.output
