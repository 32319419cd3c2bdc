"""A server's log files, written by the server's own code on a disk that fails, in a time of its own."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from iproto_server.storage.directory import list_files
from iproto_server.storage.log_rotation import LogFile, RotatingLog, open_log
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, OnDamage, RowEncoder, XlogReader, XlogWriter
from tests.storage.files import INSTANCE, blocks_of, insertion

START = 1_700_000_000

Written = tuple[int, int, int]
"""A row: member, LSN, and a time that no other row has."""


class LiveWriter:
    """Writes logs and knows which rows count.

    Parameters:
        directory: Where the logs are.

    Attributes:
        now: The time, in seconds since 1970.
        rows: The rows that were acknowledged, in the order of the logs.
        look: Is called while a write is going on that will fail, when the file has more than will stay.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = float(START)
        self.rows: list[Written] = []
        self.look: Callable[[], None] = lambda: None
        self.vclock = VClock()
        self._stamp = START
        self._accepts: int | None = None
        self._may_cut = True
        self._may_sync = True
        self._files = self._start(None)

    def _start(self, previous: VClock | None) -> RotatingLog:
        return RotatingLog(
            self.directory,
            INSTANCE,
            is_synced=True,
            server_version="2.11.0",
            previous_vclock=previous,
            max_size=600_000,
            defer=lambda job: job(),
            open_file=lambda path: _File(self, open_log(path)),
            sync_file=self._sync,
        )

    def _sync(self, file: LogFile) -> None:
        if not self._may_sync:
            self.look()
            raise OSError(errno.EIO, "fault")

    # -- what a server does --

    def _transactions(self, sizes: list[int], member: int) -> tuple[list[bytes], list[Written], VClock]:
        clock = self.vclock.copy()
        packed, rows = [], []
        for size in sizes:
            self._stamp += 1
            lsn = clock.get(member, 0) + 1
            clock[member] = lsn
            encoder = RowEncoder(member)
            packed.append(encoder.transaction(lsn, float(self._stamp), (insertion(512, lsn, "x" * size),)))
            rows.append((member, lsn, self._stamp))
        return packed, rows, clock

    def write(self, sizes: list[int], member: int = 1) -> None:
        """Write transactions with one row each, all at once.

        Parameters:
            sizes: How much text each row has.
            member: Whose rows they are.
        """
        packed, rows, clock = self._transactions(sizes, member)
        self._files.write(blocks_of(packed), lambda: self.vclock)
        self.rows += rows
        self.vclock = clock

    def fail_to_write(self, sizes: list[int], part: float, *, may_cut: bool = True) -> None:
        """The disk is full after a part of what is written; where that cannot be cut off, a log follows."""
        whole = XlogWriter(BytesIO(), 0).write(blocks_of(self._transactions(sizes, 1)[0]))
        self._accepts, self._may_cut = int(part * whole), may_cut
        self._expect_failure(sizes)
        if not may_cut:
            self.look()
            self._files.end()
        self._accepts, self._may_cut = None, True
        if not may_cut:
            self._files.rotate(self.vclock)

    def fail_to_sync(self, sizes: list[int]) -> None:
        """All is written, but the disk does not take it."""
        self._may_sync = False
        self._expect_failure(sizes)
        self._may_sync = True

    def _expect_failure(self, sizes: list[int]) -> None:
        try:
            self._files.write(blocks_of(self._transactions(sizes, 1)[0]), lambda: self.vclock)
        except OSError:
            return
        raise AssertionError("the write did not fail")

    def rotate(self) -> None:
        """Take a checkpoint: a log ends and another one begins."""
        self._files.rotate(self.vclock)

    def restart(self, torn: bytes = b"", *, cuts: bool = True) -> None:
        """Stop and start.

        Parameters:
            torn: What of an interrupted write is in the newest log; empty if it is ended properly.
            cuts: Whether the start cuts that off; Tarantool leaves it where it is.
        """
        if torn:
            newest = self._newest()
            if newest is not None:
                with newest.open("ab") as file:
                    file.write(torn)
                self._touch(newest)
                self.look()
                if cuts:
                    with newest.open("r+b") as file:
                        file.truncate(newest.stat().st_size - len(torn))
                    self._touch(newest)
        else:
            self._files.end()
        logs = list_files(self.directory, FileType.LOG)
        previous = None
        if logs:
            with XlogReader.open(logs[-1], OnDamage.CUT_TAIL) as reader:
                is_empty = next(reader.blocks(), None) is None
                header = reader.header
            previous = header.previous_vclock if is_empty else header.vclock
        self._files = self._start(previous)

    def collect(self, keep: int) -> None:
        """Remove all logs but the newest ones."""
        for path in list_files(self.directory, FileType.LOG)[:-keep]:
            path.unlink()

    def torn_block(self, size: int) -> bytes:
        """The beginning of a block."""
        packed, _, _ = self._transactions([size], 1)
        return (b"\xd5\xba\x0b\xab\xcd\x0f\xff\x00\xce\x01\x02\x03\x04\xa5" + bytes(5) + packed[0])[:size]

    def _newest(self) -> Path | None:
        return next(reversed(list_files(self.directory, FileType.LOG)), None)

    def _touch(self, path: Path) -> None:
        os.utime(path, (self.now, self.now))


class _File:
    """A file whose time of change is the writer's; it takes only so much."""

    def __init__(self, writer: LiveWriter, file: LogFile) -> None:
        self._writer = writer
        self._file = file
        self.fileno = file.fileno
        self.close = file.close
        self.seek = file.seek

    def write(self, data: bytes, /) -> int | None:
        writer = self._writer
        if writer._accepts is not None:
            if not writer._accepts:
                writer.look()
                raise OSError(errno.ENOSPC, "fault")
            data, writer._accepts = data[: writer._accepts], 0
        written = self._file.write(data)
        os.utime(self.fileno(), (writer.now, writer.now))
        return written

    def truncate(self, size: int, /) -> int:
        if not self._writer._may_cut:
            raise OSError(errno.EIO, "fault")
        result = self._file.truncate(size)
        os.utime(self.fileno(), (self._writer.now, self._writer.now))
        return result
