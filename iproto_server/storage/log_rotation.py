"""Log rotation: rows are appended to the newest log of a directory, until a new log begins.

A log is created under a temporary name, and renamed once its header is written. A block that cannot be
written as a whole, or not be synced, is truncated, so a log always ends with a complete block.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from zstandard import ZstdError

from iproto_server.descriptors import spare
from iproto_server.storage.directory import IN_PROGRESS, file_name
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, XlogHeader, XlogWriter
from iproto_server.storage.xlog.writer import WritableFile, sync_directory

logger = logging.getLogger("iproto_server.wal")

MAX_SIZE: Final = 256 * 1024**2
"""Default size in bytes at which a new log begins."""

UNWRITTEN: Final = (OSError, MemoryError, ZstdError)
"""Errors of a failed write: of the system, or because there is no memory to compress in."""


class LogFile(WritableFile, Protocol):
    """An unbuffered file open for writing."""

    def fileno(self) -> int:
        """Return its descriptor."""

    def close(self) -> None:
        """Close the file."""


def open_log(path: Path) -> LogFile:
    """Create a file; an existing one is truncated."""
    return spare.open(lambda: path.open("wb", buffering=0))


def sync_file(file: LogFile) -> None:
    """Wait until the data of a file is on the disk."""
    os.fdatasync(file.fileno())


class RotatingLog:
    """Writes transactions to the newest log of a directory.

    Parameters:
        directory: The directory of the logs.
        instance_uuid: The instance that writes them.
        is_synced: Whether a write ends only when the rows are on the disk.
        server_version: The program's version, for the headers.
        previous_vclock: The clock in the header of the newest log; None if there is none.
        max_size: Size in bytes at which a new log begins.
        defer: Calls a function that may wait for the disk outside the event loop.
        open_file, sync_file: Create and sync files.

    Attributes:
        is_rotation_due: Whether the next transaction begins a new log, whatever the size of this one.
    """

    def __init__(
        self,
        directory: Path,
        instance_uuid: UUID,
        *,
        is_synced: bool,
        server_version: str,
        previous_vclock: VClock | None,
        max_size: int,
        defer: Callable[[Callable[[], None]], object],
        open_file: Callable[[Path], LogFile],
        sync_file: Callable[[LogFile], None],
    ) -> None:
        self.is_rotation_due = False
        self._directory = directory
        self._instance_uuid = instance_uuid
        self._is_synced = is_synced
        self._server_version = server_version
        self._max_size = max_size
        self._defer = defer
        self._open_file = open_file
        self._sync_file = sync_file
        self._file: LogFile | None = None
        self._writer: XlogWriter | None = None
        # The clocks at which the newest log and the one before it begin.
        self._newest = previous_vclock
        self._before_newest: VClock | None = None
        self._is_name_safe = False

    def write(self, blocks: Sequence[bytes], before: Callable[[], VClock]) -> int:
        """Write all blocks, or none.

        Parameters:
            blocks: The packed rows of each.
            before: Returns the clock before the first row; called only for a new log.

        Returns:
            The number of bytes written.

        Raises:
            One of `UNWRITTEN`: the log is unchanged.
        """
        if self._writer is not None and (self.is_rotation_due or self._writer.offset >= self._max_size):
            self._end_before(before())
        writer = self._begin(before()) if self._writer is None else self._writer
        begin = writer.offset
        written = writer.write(blocks)
        if self._is_synced:
            assert self._file is not None
            try:
                self._sync_file(self._file)
                if not self._is_name_safe:
                    sync_directory(self._directory)
                    self._is_name_safe = True
            except OSError:
                writer.cut_back(begin)
                raise
        return written

    def rotate(self, vclock: VClock) -> None:
        """Begin a new log. If that fails, the next transaction begins it.

        Parameters:
            vclock: The current clock.
        """
        self._end_before(vclock)
        if self._writer is None:
            try:
                self._begin(vclock)
            except OSError as error:
                logger.warning("cannot begin a new log: %s", error)

    def _begin(self, vclock: VClock) -> XlogWriter:
        """Create the log that begins at a clock; rename it once its header is written."""
        path = self._directory / file_name(FileType.LOG, vclock.signature)
        # A log without rows is replaced by one of the same name.
        is_another = self._newest is None or not self._newest.same_as(vclock)
        previous = self._newest if is_another else self._before_newest
        header = XlogHeader(FileType.LOG, self._instance_uuid, vclock, previous, self._server_version)
        temporary = path.with_name(path.name + IN_PROGRESS)
        file = self._open_file(temporary)
        try:
            writer = XlogWriter.create(file, header)
            temporary.rename(path)
        except OSError:
            file.close()
            temporary.unlink(missing_ok=True)
            raise
        self._file, self._writer = file, writer
        self._newest, self._before_newest = vclock, previous
        self._is_name_safe = False
        self.is_rotation_due = False
        if not self._is_synced:
            self._defer(self._sync_directory)
        return writer

    def _end_before(self, vclock: VClock) -> None:
        """End the file, unless it has no rows and would equal the next one."""
        if self._newest is not None and self._newest.same_as(vclock):
            self.is_rotation_due = False
        else:
            self.end()

    def end(self) -> None:
        """Write the end marker and close the file. If that fails, the rows are still safe."""
        self.is_rotation_due = False
        file, writer = self._file, self._writer
        if file is None or writer is None:
            return
        self._file = self._writer = None
        try:
            writer.end()
        except OSError as error:
            logger.warning("cannot write the end marker of a log: %s", error)
        self._defer(lambda: self._sync_and_close(file))

    def _sync_and_close(self, file: LogFile) -> None:
        try:
            self._sync_file(file)
        except OSError as error:
            logger.error("cannot sync a finished log: %s", error)
        finally:
            file.close()

    def _sync_directory(self) -> None:
        try:
            sync_directory(self._directory)
        except OSError as error:
            logger.error("cannot sync the directory of logs: %s", error)
