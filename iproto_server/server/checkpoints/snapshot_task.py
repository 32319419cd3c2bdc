"""Writes one snapshot while the server runs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from iproto_server.box.memtx.read_view import ReadView
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.storage.directory import file_name
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.xlog import XlogHeader

logger = logging.getLogger("iproto_server.checkpoints")

Result = TypeVar("Result")

QUEUE_LENGTH: Final = 2
"""Maximum number of slices that wait to be written."""

SLICE: Final = 100e-6
SLICE_BLOCKS: Final = 4
"""A slice is complete after so many seconds, or with so many blocks; the compiled engine takes as long."""

BUSY: Final = 0.2
"""The snapshot pauses if other work takes a greater share of the loop's time."""

PAUSE: Final = 0.012
"""Seconds between two slices then."""


class SnapshotTask:
    """Writes one snapshot: encodes rows on the loop in small slices, and writes them in a thread.

    While the loop is busy with other work, there is a pause after each slice.

    Parameters:
        directory: the directory of the snapshots.
        header: its header.
        timestamp: time of the snapshot, in seconds since 1970.
        executor: an executor with a single thread.
        rate_limit: maximum bytes per second; None: no limit.
        now: returns steady time in seconds.
        sleep: waits for a number of seconds; 0: for one iteration of the loop.
        used: returns the processor time that the loop's thread has used, in seconds.

    Attributes:
        path: path of the complete file.
        rows: number of rows written.
    """

    def __init__(
        self,
        directory: Path,
        header: XlogHeader,
        timestamp: float,
        executor: Executor,
        rate_limit: float | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        used: Callable[[], float] = time.thread_time,
    ) -> None:
        self.path = directory / file_name(header.file_type, header.vclock.signature)
        self.rows = 0
        self._header = header
        self._timestamp = timestamp
        self._executor = executor
        self._rate_limit = rate_limit
        self._now = now
        self._sleep = sleep
        self._used = used
        self._is_busy = False
        self._writer: SnapshotWriter | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def write(self, view: ReadView) -> None:
        """Write and sync all rows of a view, in a file with a temporary name.

        Parameters:
            view: the read view.

        Raises:
            BoxError: SYSTEM, the file cannot be written.
        """
        with _as_box_error(f"failed to create file '{self.path}'"):
            writer = await self._in_thread(self._open)
        logger.info("saving snapshot %s", writer.temporary)
        started = self._now()
        with _as_box_error(f"failed to write to '{writer.temporary}' file"):
            most_blocks = 1 if self._rate_limit else SLICE_BLOCKS
            begun, used, blocks = self._now(), self._used(), list[list[bytes]]()
            for part in view.parts():
                blocks += writer.encoder.read(part)
                if len(blocks) < most_blocks and self._now() - begun < SLICE:
                    continue
                own = self._used() - used
                await self._begin_writing(writer, blocks)
                if self._rate_limit:
                    await self._until_written()
                    await self._sleep(max(0.0, started + writer.size / self._rate_limit - self._now()))
                await self._sleep(PAUSE if self._is_busy else 0)
                self._is_busy = self._used() - used - own > BUSY * (self._now() - begun)
                begun, used, blocks = self._now(), self._used(), []
            await self._begin_writing(writer, blocks)
            self.rows = writer.rows
            await self._until_written()
            await self._in_thread(writer.finish)

    async def _begin_writing(self, writer: SnapshotWriter, blocks: list[list[bytes]]) -> None:
        """Let the thread write blocks, once it is not too far behind."""
        if not blocks:
            return
        if len(self._waiting) >= QUEUE_LENGTH:
            await self._waiting.popleft()
        self._waiting.append(self._in_thread(writer.write_blocks, blocks))

    async def _until_written(self) -> None:
        """Wait until the thread has written all blocks."""
        while self._waiting:
            await self._waiting.popleft()

    async def publish(self) -> None:
        """Give the file its name.

        Raises:
            BoxError: SYSTEM, the file cannot be renamed.
        """
        assert self._writer is not None
        with _as_box_error(f"failed to rename '{self._writer.temporary}' file"):
            await self._in_thread(self._writer.publish)

    async def discard(self) -> None:
        """Remove the file unless it is published."""
        await asyncio.gather(*self._waiting, return_exceptions=True)
        # The single thread works in order, so a file that is being created exists by then.
        await self._in_thread(self._abort)

    def _open(self) -> SnapshotWriter:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = SnapshotWriter(self.path.parent, self._header, self._timestamp)
        return self._writer

    def _abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()

    def _in_thread(self, function: Callable[..., Result], *args: object) -> asyncio.Future[Result]:
        return asyncio.get_running_loop().run_in_executor(self._executor, partial(function, *args))


@contextmanager
def _as_box_error(text: str) -> Iterator[None]:
    """Log an OSError and convert it to the BoxError that Tarantool sends."""
    try:
        yield
    except OSError as error:
        failure = BoxError.with_message(ErrorCode.SYSTEM, text, type="SystemError")
        failure.errno = error.errno or 0
        logger.error("%s: %s", text, error.strerror)
        raise failure from error
