"""A disk that fails or stalls when a test tells it to."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

from iproto_server.storage.log_rotation import LogFile, open_log, sync_file

WAL_IO = (40, "Failed to write to disk")
"""What clients are told whose changes could not be logged."""


class FaultyDisk:
    """Makes files that fail when they are told to, for `WriteAheadLog`.

    Attributes:
        fault: The errno of the error that writing has for its answer; None: it works.
        passes: How many writes work before that.
        accepts: How many bytes are written before that.
        may_cut: Whether what was written can be cut off again.
        sync_fault: The errno of the error that syncing has for its answer; None: it works.
        may_sync: Syncing waits while this is not set.
        is_syncing: Set when syncing has begun.
        synced: How often a file was to be synced.
    """

    def __init__(self) -> None:
        self.fault: int | None = None
        self.passes = 0
        self.accepts = 0
        self.may_cut = True
        self.sync_fault: int | None = None
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.is_syncing = threading.Event()
        self.synced = 0

    def open(self, path: Path) -> LogFile:
        """Make a file."""
        return _FaultyFile(self, open_log(path))

    def sync(self, file: LogFile) -> None:
        """Sync a file."""
        self.synced += 1
        self.is_syncing.set()
        assert self.may_sync.wait(30)
        if self.sync_fault is not None:
            raise OSError(self.sync_fault, "fault")
        sync_file(file)


class _FaultyFile:
    def __init__(self, disk: FaultyDisk, file: LogFile) -> None:
        self._disk = disk
        self._file = file
        self.seek = file.seek
        self.fileno = file.fileno
        self.close = file.close

    def truncate(self, size: int, /) -> int:
        if not self._disk.may_cut:
            raise OSError(errno.EIO, "fault")
        return self._file.truncate(size)

    def write(self, data: bytes, /) -> int | None:
        disk = self._disk
        if disk.passes:
            disk.passes -= 1
        elif disk.fault is not None:
            if not disk.accepts:
                raise OSError(disk.fault, "fault")
            data, disk.accepts = data[: disk.accepts], 0
        return self._file.write(data)
