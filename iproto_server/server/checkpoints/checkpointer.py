"""Checkpoints: takes snapshots while the server runs, and removes the files that they make obsolete.

A snapshot begins between two group commits: all committed rows are handed to the log, the clock is read, the
read view is opened and a new log begins, without an await. So the snapshot has exactly the rows up to its
clock, and the logs after it have all later ones. It gets its name when the log is written up to that clock;
if that write fails, the snapshot has rows that were rolled back, and is discarded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from iproto_server.box import Box, Waiter
from iproto_server.box.backoff import pause_after
from iproto_server.box.clock import Timer
from iproto_server.box.memtx.read_view import ReadView
from iproto_server.config.config import Config
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.server.checkpoints.snapshot_task import SnapshotTask
from iproto_server.server.connection.group_commit import Batch
from iproto_server.storage.directory import file_name, list_files, read_header, signature_of
from iproto_server.storage.garbage_collector import Pin, collect_garbage, complete_snapshots
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WriteAheadLog
from iproto_server.storage.xlog import FileType, XlogHeader
from iproto_server.text.counting import counted

logger = logging.getLogger("iproto_server.checkpoints")

Result = TypeVar("Result")

WATCH_INTERVAL: Final = 1.0
"""Seconds between two checks of the log's size."""

LONGEST_PAUSE: Final = 600.0
"""Seconds, at most, after a failed snapshot until one is taken because the log has grown."""

_MEGABYTE: Final = 1024**2


class Checkpointer:
    """Takes snapshots: at intervals, when the log has grown, and on request.

    Parameters:
        box: the database.
        log: its write-ahead log.
        batch: the group commit, which writes the log.
        config: the configuration: the options `checkpoint_…`, `snap_io_rate_limit` and the directories.
        last: the clock of the newest snapshot.
        now: returns steady time in seconds, for the rate limit and durations.
        sleep: waits for a number of seconds.
        chance: returns a random number between 0 and 1. The first snapshot is delayed by up to one interval,
            so that servers started together do not write at the same time.

    Attributes:
        taken: number of snapshots written.
        failed: number of failed snapshots.
        last_duration: duration of the last snapshot in seconds.
        last_rows: number of its rows.
    """

    def __init__(
        self,
        box: Box,
        log: WriteAheadLog,
        batch: Batch,
        config: Config,
        last: VClock,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.taken = 0
        self.failed = 0
        self.last_duration = 0.0
        self.last_rows = 0
        self._box = box
        self._log = log
        self._batch = batch
        self._config = config
        self._last = last
        self._now = now
        self._sleep = sleep
        self._chance = chance
        self._executor = ThreadPoolExecutor(1, "snapshot")
        self._task: asyncio.Task[None] | None = None
        self._timer: Timer | None = None
        self._watcher: Timer | None = None
        self._pin = Pin()
        self._failed_in_a_row = 0
        self._retry_at = 0.0

    # -- schedule --

    def start(self) -> None:
        """Start taking snapshots, also those of `box.snapshot()`, and allow backups."""
        self._box.take_snapshot = self.request
        self._box.start_backup, self._box.stop_backup = self.pin, self.unpin
        self._box.pinned_snapshot = lambda: self._pin.signature
        self._schedule(self._chance())
        self._watch()

    async def stop(self) -> None:
        """Stop taking snapshots, and cancel a running one."""
        self._box.take_snapshot = _refuse
        self._box.start_backup, self._box.stop_backup = _refuse_backup, _ignore
        for timer in (self._timer, self._watcher):
            if timer is not None:
                timer.cancel()
        self._timer = self._watcher = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._executor.shutdown(wait=False)

    def configure(self, config: Config) -> None:
        """Apply other options; a changed interval begins now."""
        is_other_interval = config.checkpoint_interval != self._config.checkpoint_interval
        self._config = config
        if is_other_interval and self._watcher is not None:
            self._schedule(self._chance())

    @property
    def is_running(self) -> bool:
        """Whether a snapshot is being written."""
        return self._task is not None

    def kept(self) -> list[Mapping[int, int]]:
        """The clocks of the existing snapshots, oldest first."""
        paths = list_files(self._config.snapshot_directory, FileType.SNAPSHOT)
        return [dict(read_header(path, FileType.SNAPSHOT).vclock) for path in paths]

    def request(self) -> Waiter:
        """Take a snapshot after the running transaction.

        Returns: a waiter whose result is "ok" when the snapshot is on the disk, or an error; see
            `Box.snapshot`.
        """
        waiter = Waiter(self._box.session.current, lambda: None)
        if self._task is not None:
            waiter.finish(error=BoxError(ErrorCode.CHECKPOINT_IN_PROGRESS))
            return waiter
        self._begin(waiter)
        # As in Tarantool, a requested snapshot restarts the schedule.
        self._schedule(self._chance())
        return waiter

    def on_signal(self) -> None:
        """Take a snapshot because of SIGUSR1, unless one is running; the result is logged."""
        name = signal.SIGUSR1.name
        if self._task is not None:
            logger.warning("no snapshot on %s: one is already running", name)
        elif self._watcher is None:
            logger.warning("no snapshot on %s: the server is stopping", name)
        else:
            logger.info("taking a snapshot on %s", name)
            self._begin()
            self._schedule(self._chance())

    def _schedule(self, delay: float = 0.0) -> None:
        """Schedule the next snapshot, delayed by a part of the interval."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        interval = self._config.checkpoint_interval
        if interval > 0:
            self._timer = self._box.clock.call_later(interval * (1 + delay), self._is_due)

    def _is_due(self) -> None:
        self._schedule()
        if self._task is None:
            self._begin()

    def _watch(self) -> None:
        self._watcher = self._box.clock.call_later(WATCH_INTERVAL, self._watch)
        is_large = self._log.size_since_checkpoint > self._config.checkpoint_wal_threshold
        if is_large and self._task is None and self._now() >= self._retry_at:
            self._begin()

    def _begin(self, waiter: Waiter | None = None) -> None:
        # The task begins in the next loop iteration, outside any running transaction. The loop's task factory
        # would run it in the transactions of the procedure that requested the snapshot.
        self._task = asyncio.Task(self._take(), loop=asyncio.get_running_loop())
        self._task.add_done_callback(partial(self._ended, waiter))

    def _ended(self, waiter: Waiter | None, task: asyncio.Task[None]) -> None:
        self._task = None
        failure = None if task.cancelled() else task.exception()
        error: BoxError | None = None
        if isinstance(failure, BoxError):
            error = failure
            self.failed += 1
            logger.error("snapshot failed: %s", error)
        elif failure is not None or task.cancelled():
            error = BoxError.with_message(ErrorCode.SYSTEM, "the snapshot was cancelled", type="SystemError")
            self.failed += 1
            logger.error("snapshot cancelled", exc_info=failure)
        self._failed_in_a_row = 0 if error is None else self._failed_in_a_row + 1
        if error is not None:
            self._retry_at = self._now() + pause_after(self._failed_in_a_row, LONGEST_PAUSE)
        if waiter is not None:
            waiter.finish("ok" if error is None else None, error)

    # -- snapshots --

    async def _take(self) -> None:
        begun = self._now()
        if not await self._is_up_to_date():
            rows = await self._write()
            self.taken += 1
            self.last_rows = rows
            self.last_duration = self._now() - begun
            logger.info("snapshot done, %s in %.1f s", counted(rows, "row"), self.last_duration)
        await self._collect_garbage()

    async def _is_up_to_date(self) -> bool:
        """Whether nothing has changed since the last snapshot, whose time is then updated."""
        self._batch.flush()
        if not self._log.vclock.same_as(self._last):
            return False
        path = self._config.snapshot_directory / file_name(FileType.SNAPSHOT, self._last.signature)
        try:
            await self._in_thread(os.utime, path)
        except OSError:
            return False
        return True

    async def _write(self) -> int:
        """Write a snapshot; return the number of its rows."""
        box, config = self._box, self._config
        # No await from here
        self._batch.flush()
        vclock = self._log.vclock
        safe = self._batch.written()
        safe.add_done_callback(_retrieve_exception)
        self._log.rotate()
        if box.transactions.take_out is not None:
            box.transactions.take_out()
        view = ReadView.of_kept(box.catalog)
        # to here.
        header = XlogHeader(FileType.SNAPSHOT, box.uuid, vclock, server_version=box.version)
        rate = config.snap_io_rate_limit
        task = SnapshotTask(
            config.snapshot_directory,
            header,
            box.clock.time_ns() / 1e9,
            self._executor,
            None if rate is None else rate * _MEGABYTE,
            self._now,
            self._sleep,
        )
        try:
            with view:
                await task.write(view)
            await asyncio.wait([safe])
            if safe.exception() is not None:
                raise BoxError(ErrorCode.CHECKPOINT_ROLLBACK) from safe.exception()
            await task.publish()
        except BaseException:
            safe.cancel()
            await task.discard()
            raise
        self._last = vclock
        return task.rows

    # -- backups --

    def pin(self, back: int) -> list[str]:
        """Keep a snapshot and the logs that follow it until `unpin`, or until the server stops.

        Parameters:
            back: which snapshot: 0 is the newest, 1 the one before it, and so on.

        Returns:
            The path of the snapshot, in a list.

        Raises:
            BoxError: BACKUP_IN_PROGRESS if one is kept already; MISSING_SNAPSHOT if there are not so many;
                SYSTEM if the directory cannot be read.
        """
        with self._pin.lock:
            if self._pin.signature is not None:
                raise BoxError(ErrorCode.BACKUP_IN_PROGRESS)
            try:
                snapshots = complete_snapshots(self._config.snapshot_directory)
            except OSError as error:
                text = f"cannot read the snapshots: {error.strerror}"
                raise BoxError.with_message(ErrorCode.SYSTEM, text, type="SystemError") from error
            if back >= len(snapshots):
                raise BoxError(ErrorCode.MISSING_SNAPSHOT)
            path = snapshots[-1 - back]
            self._pin.signature = signature_of(path)
        logger.info("%s and the logs after it are kept for a backup", path)
        return [str(path)]

    def unpin(self) -> None:
        """End a backup, if there is one, and remove what was kept for it alone."""
        with self._pin.lock:
            if self._pin.signature is None:
                return
            self._pin.signature = None
        logger.info("the backup has ended")
        _ = self._collect_garbage()

    def _collect_garbage(self) -> asyncio.Future[list[Path]]:
        config = self._config
        return self._in_thread(
            collect_garbage,
            config.snapshot_directory,
            config.log_directory,
            config.checkpoint_count,
            self._pin,
        )

    def _in_thread(self, function: Callable[..., Result], *args: object) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._executor, partial(function, *args))

    # -- counters --

    def counters(self) -> Iterator[tuple[str, int | float]]:
        """The counters, for Graphite."""
        yield "server.checkpoints.taken", self.taken
        yield "server.checkpoints.failed", self.failed
        yield "server.checkpoints.last_duration", self.last_duration
        yield "server.checkpoints.last_rows", self.last_rows


def _retrieve_exception(future: asyncio.Future[None]) -> None:
    """Retrieve the exception, because Python warns of those that are never retrieved."""
    if not future.cancelled():
        future.exception()


def _refuse_backup(back: int) -> list[str]:
    raise BoxError(ErrorCode.UNSUPPORTED, "A server that is stopping", "backups")


def _ignore() -> None:
    """Backups end with the server."""


def _refuse() -> Waiter:
    raise BoxError(ErrorCode.UNSUPPORTED, "A server that is stopping", "snapshots")
