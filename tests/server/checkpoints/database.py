"""A database whose checkpoints are under the test's control."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from iproto_server import Box, BoxError, ManualClock, Waiter
from iproto_server.config.config import Config
from iproto_server.server.checkpoints.checkpointer import Checkpointer
from iproto_server.server.connection.group_commit import Batch
from iproto_server.storage.directory import list_files, read_header
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.storage import Storage, StorageOptions
from iproto_server.storage.wal import WalMode
from iproto_server.storage.xlog import FileType
from tests.server.faults.faulty_disk import FaultyDisk

HOUR = 3600.0
LARGE = 20_000
"""Rows that take several slices."""


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
