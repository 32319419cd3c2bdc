"""The files that a backup copies: opened all at once, because a running server removes old ones.

A whole backup needs the newest complete snapshot and the logs that follow it; a continuation needs the logs
from where the earlier one ends.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple
from uuid import UUID

from iproto_server.storage.directory import StoredFile, find_logs, find_snapshots, list_files, read_header
from iproto_server.storage.errors import LogGapError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_TRIES: Final = 3
"""A server that takes snapshots may remove files before they are opened."""


class BackupError(Exception):
    """A backup cannot be made or restored; the message is one line for the user."""


class NothingToBackUpError(Exception):
    """There is no database; the message is one line for the user."""


class OpenFile(NamedTuple):
    """A file of a database, opened."""

    stored: StoredFile
    file: BinaryIO


class BackupSet(NamedTuple):
    """The files of a whole backup.

    Attributes:
        snapshot: The newest complete snapshot.
        logs: The logs that follow it, in their order.
    """

    snapshot: OpenFile
    logs: list[OpenFile]


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading, as it is now: a server may append to it or remove it meanwhile.

    Parameters:
        path: The file.

    Raises:
        OSError: It cannot be opened.
    """
    return BufferedReader(_FrozenFile(path))


class _FrozenFile(FileIO):
    """A file that does not grow."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._size = os.fstat(self.fileno()).st_size

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into a buffer; return the number of bytes."""
        left = max(0, self._size - self.tell())
        return super().readinto(memoryview(buffer)[:left])

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the position."""
        if whence == os.SEEK_END:
            offset, whence = self._size + offset, os.SEEK_SET
        return super().seek(offset, whence)


def open_newest(opened: ExitStack, snapshot_directory: Path, log_directory: Path) -> BackupSet:
    """Open the newest complete snapshot and the logs that follow it.

    Parameters:
        opened: Closes the files.
        snapshot_directory: The directory of the snapshots.
        log_directory: The directory of the logs.

    Raises:
        NothingToBackUpError: There is no snapshot.
        BackupError: No snapshot is complete, or the database uses the engine vinyl.
        StorageError: A file cannot be used, or a log is missing.
        OSError: A file cannot be read.
    """
    _refuse_vinyl(log_directory, snapshot_directory)
    for attempt in range(1, _TRIES + 1):
        with ExitStack() as files:
            try:
                newest = find_snapshots(snapshot_directory).newest
                if newest is None:
                    if list_files(snapshot_directory, FileType.SNAPSHOT):
                        raise BackupError(f"{snapshot_directory}: no snapshot is complete")
                    raise NothingToBackUpError(f"there is no snapshot in {snapshot_directory}")
                header = newest.header
                chain = find_logs(log_directory, header.vclock, header.instance_uuid)
                found = BackupSet(_open(files, newest), [_open(files, log) for log in chain.logs])
            except (FileNotFoundError, LogGapError):
                if attempt == _TRIES:
                    raise
                continue
            opened.enter_context(files.pop_all())
            return found
    raise AssertionError("the last attempt returns or raises")


def open_since(
    opened: ExitStack, log_directory: Path, vclock: VClock, instance_uuid: UUID | None = None
) -> list[OpenFile]:
    """Open the logs that follow a clock.

    Parameters:
        opened: Closes the files.
        log_directory: The directory of the logs.
        vclock: The clock.
        instance_uuid: The instance that the logs must belong to; None: any.

    Returns:
        The logs in their order; the first may begin before the clock. None of them: they do not reach back
        so far.

    Raises:
        StorageError: A file cannot be used, belongs to another instance, or is missing.
        OSError: A file cannot be read.
    """
    paths = list_files(log_directory, FileType.LOG)
    if not paths or not vclock.covers(read_header(paths[0], FileType.LOG).vclock):
        return []
    return [_open(opened, log) for log in find_logs(log_directory, vclock, instance_uuid).logs]


def _refuse_vinyl(*directories: Path) -> None:
    for directory in directories:
        for path in directory.glob("*.vylog"):
            raise BackupError(f"{path}: the database uses the engine vinyl, whose files cannot be backed up")


def _open(opened: ExitStack, stored: StoredFile) -> OpenFile:
    return OpenFile(stored, opened.enter_context(open_file(stored.path)))
