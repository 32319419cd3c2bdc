"""Checkpoints: when snapshots are taken, and what is in them."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path

import pytest

from iproto_server import ErrorCode
from iproto_server.server.checkpoints.checkpointer import WATCH_INTERVAL
from iproto_server.storage.directory import list_files, read_header
from iproto_server.storage.xlog import FileType
from tests.server.checkpoints.database import (
    HOUR,
    LARGE,
    Database,
    answer,
    contents,
    contents_of,
    run,
    running,
)

IN_FLIGHT = 300
"""Changes that may wait for the disk at once."""

IN_PROGRESS = (ErrorCode.CHECKPOINT_IN_PROGRESS, "Snapshot is already in progress")


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
