"""The logs in a directory: the newest one grows, until another is begun.

A log is made under a temporary name and has its own when its header is in it. What cannot be written whole,
or not be synced, is cut off again, so a log always ends with a whole block.
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

_COMPRESSION_LEVEL: Final = 1
"""Requests wait for it, and rows of a queue become no larger than by the level of snapshots."""

UNWRITTEN: Final = (OSError, MemoryError, ZstdError)
"""What is raised when rows could not be written: by the system, or for want of memory to compress them in."""


class LogFile(WritableFile, Protocol):
    """An unbuffered file open for writing."""

    def fileno(self) -> int:
        """Its descriptor."""

    def close(self) -> None:
        """Close it."""


def open_log(path: Path) -> LogFile:
    """Make a file; one that is there is emptied."""
    return spare.open(lambda: path.open("wb", buffering=0))


def sync_file(file: LogFile) -> None:
    """Wait until the disk has what was written to a file."""
    os.fdatasync(file.fileno())


class RotatingLog:
    """Writes transactions to the newest log of a directory.

    Args:
        directory: Where the logs are.
        instance_uuid: Whose logs they are.
        is_synced: Whether what is written must be on the disk.
        server_version: The program, in the headers' words.
        previous_vclock: The clock in the header of the newest log there is; None if there is none.
        max_size: A log that has reached so many bytes is followed by another one.
        defer: Calls a function that may wait for the disk, off the hot road.
        open_file, sync_file: How files are made and synced.

    Attributes:
        is_rotation_due: Whether the next transaction begins a new log, however large this one is.
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
        # Where the newest log begins, and where the one before it did.
        self._newest = previous_vclock
        self._before_newest: VClock | None = None
        self._is_name_safe = False

    def write(self, transactions: Sequence[bytes], before: Callable[[], VClock]) -> int:
        """Write transactions, all of them or none.

        Args:
            transactions: The rows of each.
            before: Answers the clock before the first row; only a new log needs it.

        Returns:
            How many bytes they are.

        Raises:
            One of `UNWRITTEN`: The log ends as it did before.
        """
        if self._writer is not None and (self.is_rotation_due or self._writer.offset >= self._max_size):
            self._end_before(before())
        writer = self._begin(before()) if self._writer is None else self._writer
        begin = writer.offset
        written = writer.write(transactions)
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
        """Begin a new log. Where that fails, the next transaction begins it.

        Args:
            vclock: The clock now.
        """
        self._end_before(vclock)
        if self._writer is None:
            try:
                self._begin(vclock)
            except OSError as error:
                logger.warning("cannot begin a new log: %s", error)

    def _begin(self, vclock: VClock) -> XlogWriter:
        """Make the log that begins at a clock; it has its name only when its header is in it."""
        path = self._directory / file_name(FileType.LOG, vclock.signature)
        # A log that had no rows gives way to another one of the same name.
        is_another = self._newest is None or not self._newest.same_as(vclock)
        previous = self._newest if is_another else self._before_newest
        header = XlogHeader(FileType.LOG, self._instance_uuid, vclock, previous, self._server_version)
        temporary = path.with_name(path.name + IN_PROGRESS)
        file = self._open_file(temporary)
        try:
            writer = XlogWriter.create(file, header, level=_COMPRESSION_LEVEL)
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
        """End the file, unless it has no rows yet and is what the next one would be."""
        if self._newest is not None and self._newest.same_as(vclock):
            self.is_rotation_due = False
        else:
            self.end()

    def end(self) -> None:
        """Write the end marker and close the file. Should that fail, the rows are safe all the same."""
        self.is_rotation_due = False
        file, writer = self._file, self._writer
        if file is None or writer is None:
            return
        self._file = self._writer = None
        try:
            writer.end()
        except OSError as error:
            logger.warning("cannot end a log properly: %s", error)
        self._defer(lambda: self._sync_and_close(file))

    def _sync_and_close(self, file: LogFile) -> None:
        try:
            self._sync_file(file)
        except OSError as error:
            logger.error("a log that has ended may not be on the disk: %s", error)
        finally:
            file.close()

    def _sync_directory(self) -> None:
        try:
            sync_directory(self._directory)
        except OSError as error:
            logger.error("the name of a log may not be on the disk: %s", error)
