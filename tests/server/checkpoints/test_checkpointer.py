"""Checkpoints: when snapshots are taken, what is in them, and what happens when they cannot be written."""

from __future__ import annotations

import asyncio
import errno
import logging
import shutil
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from iproto_server import Application, Box, BoxError, ErrorCode, ManualClock, Waiter
from iproto_server.config.config import Config
from iproto_server.server.checkpoints.checkpointer import WATCH_INTERVAL, Checkpointer
from iproto_server.server.connection.group_commit import Batch
from iproto_server.storage.directory import list_files, read_header
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.storage import Storage, StorageOptions
from iproto_server.storage.wal import WalMode
from iproto_server.storage.xlog import FileType
from tests.real_tarantool import RealTarantool
from tests.server.in_process import ServerInProcess
from tests.storage.faulty_disk import FaultyDisk

HOUR = 3600.0
LARGE = 20_000
"""Rows that take several slices."""

IN_FLIGHT = 300
"""Changes that may wait for the disk at once."""

IN_PROGRESS = (ErrorCode.CHECKPOINT_IN_PROGRESS, "Snapshot is already in progress")
CANCELLED = (ErrorCode.SYSTEM, "the snapshot was cancelled")


class Database:
    """A database with files and checkpoints in the test's loop, whose time and disk the test rules."""

    def __init__(self, directory: Path, wal_mode: str = "write", **options: Any) -> None:
        self.directory = directory
        self.clock = ManualClock()
        self.disk = FaultyDisk()
        self.box = Box(None, self.clock)
        self._executor = ThreadPoolExecutor(1)
        self.config = Config(work_dir=directory, **{"checkpoint_interval": 0.0, **options})
        self.storage = Storage(
            self.box,
            StorageOptions(directory, directory, WalMode(wal_mode), 2**30, False, None, "2.11.0"),
            lambda job: job(),
            open_file=self.disk.open,
            sync_file=self.disk.sync,
        )
        self.batch = Batch(self.box.transactions, self.storage.log, self._executor)
        self.now = 0.0
        self.slept = 0.0
        self.checkpointer = Checkpointer(
            self.box,
            self.storage.log,
            self.batch,
            self.config,
            self.storage.recovered.checkpoint,
            now=lambda: self.now,
            sleep=self._sleep,
            chance=lambda: 0.5,
        )

    async def _sleep(self, seconds: float) -> None:
        # As long as that, at least, everything that waits is written.
        await asyncio.get_running_loop().run_in_executor(self.checkpointer._executor, lambda: None)
        self.slept += seconds
        self.now += seconds

    async def close(self) -> None:
        await self.checkpointer.stop()
        await self.batch.drain()
        self.storage.close()
        self._executor.shutdown()

    def fill(self, count: int, name: str = "rows") -> None:
        """Make a space of so many rows."""
        with self.box.in_transaction():
            space = self.box.schema.create_space(name)
            space.create_index("primary")
            for number in range(count):
                space.insert([number, "as it was"])

    @property
    def lsn(self) -> int:
        """The number of the last row."""
        return self.storage.log.position()

    @property
    def snapshots(self) -> list[int]:
        """The clocks of the snapshots there are."""
        return [
            read_header(path, FileType.SNAPSHOT).vclock.get(1, 0)
            for path in list_files(self.directory, FileType.SNAPSHOT)
        ]

    @property
    def unfinished(self) -> list[Path]:
        """Files without a name yet."""
        return list(self.directory.glob("*.snap.inprogress"))

    async def snapshot(self) -> object:
        """Take a snapshot; the answer, or the error's number and text."""
        return await answer(self.box.snapshot())

    async def settled(self) -> None:
        """Wait until no snapshot is being written."""
        task = self.checkpointer._task
        if task is not None:
            await asyncio.wait([task])
            await asyncio.sleep(0)


async def answer(waiter: Waiter) -> object:
    """What a waiter is done with, or the error's number and text."""
    done = asyncio.Event()
    waiter.on_done(lambda _: done.set())
    await asyncio.wait_for(done.wait(), 30)
    if waiter.error is None:
        return waiter.result
    assert isinstance(waiter.error, BoxError)
    return waiter.error.code, waiter.error.message


@asynccontextmanager
async def running(directory: Path, wal_mode: str = "write", **options: Any) -> AsyncIterator[Database]:
    """A database whose checkpoints are running."""
    database = Database(directory, wal_mode, **options)
    database.checkpointer.start()
    try:
        yield database
    finally:
        await database.close()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


def contents(directory: Path, name: str = "rows") -> dict[int, Any]:
    """A space's rows as they are after recovery from a directory's files: second fields by first ones."""
    box = Box()
    assert recover(box, directory, directory, read_only=True) is not None
    return {row[0]: row[1] for row in box.space[name].pairs()}


def contents_of(snapshot: Path, elsewhere: Path, name: str = "rows") -> dict[int, Any]:
    """A space's rows as a snapshot alone has them."""
    elsewhere.mkdir()
    shutil.copy(snapshot, elsewhere)
    return contents(elsewhere, name)


class TestWhen:
    def test_every_interval_and_the_first_time_up_to_one_interval_later(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path, checkpoint_interval=HOUR) as database:
                database.fill(1)
                database.clock.advance(1.5 * HOUR - 1)
                await database.settled()
                assert database.snapshots == [0]
                database.clock.advance(1)
                await database.settled()
                assert database.snapshots == [0, database.lsn]
                database.box.space.rows.insert([2])
                database.clock.advance(HOUR)
                await database.settled()
                assert database.snapshots[-1] == database.lsn
                assert database.checkpointer.taken == 2

        run(scenario())

    def test_no_interval_is_never(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path, checkpoint_interval=0.0) as database:
                database.fill(1)
                database.clock.advance(10 * HOUR)
                await database.settled()
                assert database.snapshots == [0]

        run(scenario())

    def test_one_by_hand_begins_a_new_schedule(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path, checkpoint_interval=HOUR) as database:
                database.fill(1)
                database.clock.advance(1.4 * HOUR)
                assert await database.snapshot() == "ok"
                database.box.space.rows.insert([2])
                database.clock.advance(1.4 * HOUR)
                await database.settled()
                assert database.checkpointer.taken == 1
                database.clock.advance(0.2 * HOUR)
                await database.settled()
                assert database.checkpointer.taken == 2

        run(scenario())

    def test_when_the_log_has_grown(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path, checkpoint_wal_threshold=10_000) as database:
                database.fill(1)
                for number in range(1, 10):
                    database.box.space.rows.insert([number, "x" * 1000])
                    database.batch.flush()
                    database.clock.advance(WATCH_INTERVAL)
                    await database.settled()
                    assert database.checkpointer.taken == 0
                database.box.space.rows.insert([10, "x" * 1000])
                database.batch.flush()
                for _ in range(2):
                    database.clock.advance(WATCH_INTERVAL)
                    await database.settled()
                    assert database.checkpointer.taken == 1

        run(scenario())

    def test_not_while_one_is_being_written(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path, checkpoint_interval=HOUR, checkpoint_wal_threshold=1) as database:
                database.fill(LARGE)
                first = database.box.snapshot()
                assert await database.snapshot() == IN_PROGRESS
                await asyncio.sleep(0)
                assert await database.snapshot() == IN_PROGRESS
                database.clock.advance(2 * HOUR)
                assert await answer(first) == "ok"
                assert database.checkpointer.taken == 1

        run(scenario())

    def test_nothing_new_is_as_good_as_a_new_one(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path) as database:
                path = tmp_path / "00000000000000000000.snap"
                before = path.stat()
                assert await database.snapshot() == "ok"
                assert database.snapshots == [0]
                assert path.stat().st_ino == before.st_ino
                assert path.stat().st_mtime_ns > before.st_mtime_ns
                path.unlink()
                assert await database.snapshot() == "ok"
                assert database.snapshots == [0]
                assert database.checkpointer.taken == 1

        run(scenario())


class TestTheMoment:
    def test_it_is_when_the_running_transaction_has_ended(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path) as database:
                database.fill(1)
                with database.box.in_transaction():
                    database.box.space.rows.insert([1, "before"])
                    waiter = database.box.snapshot()
                    database.box.space.rows.insert([2, "after"])
                with pytest.raises(RuntimeError), database.box.in_transaction():
                    database.box.space.rows.insert([3, "undone"])
                    raise RuntimeError
                assert await answer(waiter) == "ok"
                assert database.snapshots[-1] == database.lsn

        run(scenario())
        expected = {0: "as it was", 1: "before", 2: "after"}
        assert contents(tmp_path) == expected
        assert contents_of(sorted(tmp_path.glob("*.snap"))[-1], tmp_path / "alone") == expected

    @pytest.mark.parametrize("wal_mode", ["none", "write", "fsync"])
    def test_under_load_it_has_the_rows_up_to_its_clock_and_the_logs_have_the_rest(
        self, tmp_path: Path, wal_mode: str
    ) -> None:
        """What a snapshot must not do: leave out rows that are just below its clock."""
        history: list[tuple[int, int, str | None]] = []

        async def write(database: Database) -> None:
            space = database.box.space.rows
            for step in count():
                if database.checkpointer.taken == 3:
                    break
                number = step % (LARGE // 2)
                for place in (number, LARGE - 1 - number, LARGE // 2 + number):
                    if number % 3 and space.get(place) is not None:
                        space.delete(place)
                        history.append((database.lsn, place, None))
                    else:
                        space.replace([place, f"changed {step}"])
                        history.append((database.lsn, place, f"changed {step}"))
                await asyncio.sleep(0)
                # Clients wait for their answers, too: what is not written yet does not grow without end.
                while len(database.box.transactions.unwritten) > IN_FLIGHT:
                    await database.batch.written()

        async def scenario() -> None:
            async with running(tmp_path, wal_mode, checkpoint_count=100) as database:
                database.fill(LARGE)
                writing = asyncio.ensure_future(write(database))
                for _ in range(3):
                    assert await database.snapshot() == "ok"
                await writing

        run(scenario())

        def state(lsn: int) -> dict[int, str]:
            rows = dict.fromkeys(range(LARGE), "as it was")
            for number, place, value in history:
                if number > lsn:
                    break
                if value is None:
                    del rows[place]
                else:
                    rows[place] = value
            return rows

        if wal_mode != "none":
            assert contents(tmp_path) == state(history[-1][0])
        paths = sorted(tmp_path.glob("*.snap"))
        assert len(paths) == 4
        for path in paths[1:]:
            clock = read_header(path, FileType.SNAPSHOT).vclock
            assert contents_of(path, tmp_path / path.stem) == state(clock[1])

    def test_the_log_begins_a_new_file(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path) as database:
                database.fill(10)
                assert await database.snapshot() == "ok"
                clock = database.lsn
                database.box.space.rows.insert([10])
                database.batch.flush()
                assert list_files(tmp_path, FileType.LOG)[-1].name == f"{clock:020d}.xlog"

        run(scenario())

    def test_rows_of_temporary_spaces_are_left_out(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path) as database:
                database.fill(1)
                space = database.box.schema.create_space("passing", temporary=True)
                space.create_index("primary")
                space.insert([1])
                assert await database.snapshot() == "ok"

        run(scenario())
        assert contents(tmp_path, "passing") == {}

    def test_it_has_the_header_of_the_instance(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with running(tmp_path) as database:
                database.fill(1)
                local = database.box.schema.create_space("own", is_local=True)
                local.create_index("primary")
                local.insert([1, "local"])
                assert await database.snapshot() == "ok"
                header = read_header(list_files(tmp_path, FileType.SNAPSHOT)[-1], FileType.SNAPSHOT)
                assert header.instance_uuid == database.box.uuid
                assert header.vclock == {0: 1, 1: database.lsn}
                assert header.server_version == database.box.version

        run(scenario())
        assert contents(tmp_path, "own") == {1: "local"}


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
