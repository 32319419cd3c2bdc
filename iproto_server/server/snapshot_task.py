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

QUEUE_LENGTH: Final = 4
"""Maximum number of blocks that wait to be written."""

BUSY: Final = 100e-6
"""Seconds: the loop is busy with other work if an iteration takes longer."""

PAUSE: Final = 0.001
"""Seconds that a busy loop gets before the next slice, which takes half of that."""


class SnapshotTask:
    """Writes one snapshot: encodes rows on the loop in small slices, and writes them in a thread.

    Parameters:
        directory: the directory of the snapshots.
        header: its header.
        timestamp: time of the snapshot, in seconds since 1970.
        executor: an executor with a single thread.
        rate_limit: maximum bytes per second; None: no limit.
        now: returns steady time in seconds.
        sleep: waits for a number of seconds.

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
    ) -> None:
        self.path = directory / file_name(header.file_type, header.vclock.signature)
        self.rows = 0
        self._header = header
        self._timestamp = timestamp
        self._executor = executor
        self._rate_limit = rate_limit
        self._now = now
        self._sleep = sleep
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
        begun = self._now()
        with _as_box_error(f"failed to write to '{writer.temporary}' file"):
            for space_id, group_id, rows in view.slices():
                for block in writer.encoder.add(space_id, rows, group_id):
                    if len(self._waiting) >= QUEUE_LENGTH:
                        await self._waiting.popleft()
                    self._waiting.append(self._in_thread(writer.write_block, block))
                    if self._rate_limit:
                        await self._sleep(max(0.0, begun + writer.size / self._rate_limit - self._now()))
                await _yield_to_others()
            self.rows = writer.rows
            while self._waiting:
                await self._waiting.popleft()
            await self._in_thread(writer.finish)

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


async def _yield_to_others() -> None:
    """Yield to the loop for one iteration, and for longer if it has other work."""
    begun = time.perf_counter()
    await asyncio.sleep(0)
    if time.perf_counter() - begun > BUSY:
        await asyncio.sleep(PAUSE)


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
