"""The common parts of backups and restored directories: the logs read, the range of rows, the new directory.

A backup is a directory with one snapshot and the logs that follow it. Its continuation has logs alone: the
first begins at the clock at which the earlier backup ends. Together they are a database's files.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from uuid import UUID

from iproto_server.storage.backup_set import BackupError
from iproto_server.storage.directory import (
    IN_PROGRESS,
    DirectoryLock,
    StoredFile,
    file_name,
    find_logs,
    find_snapshots,
    list_files,
    make_directory,
    read_header,
)
from iproto_server.storage.errors import DirectoryLockedError, StorageError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, FileType, OnDamage, Row, XlogHeader, XlogReader
from iproto_server.storage.xlog.block import END_MARKER
from iproto_server.storage.xlog.writer import sync_directory
from iproto_server.text.counting import counted
from iproto_server.tools.files.check_files import FileCheck, Findings

PIECE: Final = 1024**2
"""Bytes copied at a time."""


class Moment(NamedTuple):
    """A position in a database's history.

    Attributes:
        vclock: the clock after its last row.
        time: the greatest time of the rows up to there, in seconds since 1970.
    """

    vclock: VClock
    time: float


class Saved(NamedTuple):
    """The contents of a directory.

    Attributes:
        snapshots, logs: numbers of files.
        size: their bytes.
        begin, end: the range of the rows; the snapshot is the beginning.
    """

    snapshots: int
    logs: int
    size: int
    begin: Moment
    end: Moment

    def lines(self, directory: Path) -> list[str]:
        """Describe it to the user.

        Parameters:
            directory: the directory.
        """
        files = " and ".join(
            counted(number, noun)
            for number, noun in ((self.snapshots, "snapshot"), (self.logs, "log"))
            if number
        )
        return [
            f"{directory}: {files}, {counted(self.size, 'byte')}",
            f"LSN {lsn_text(self.begin.vclock)} to {lsn_text(self.end.vclock)}",
            f"{time_text(self.begin.time)} to {time_text(self.end.time)}",
        ]


class LogPart(NamedTuple):
    """A log as far as it can be read.

    Attributes:
        log: its path and header.
        size: where its last complete block ends, in bytes from the beginning of the file.
        end: the clock after its last row.
    """

    log: StoredFile
    size: int
    end: VClock


def lsn_text(vclock: VClock) -> str:
    """The LSN at a clock; the clock itself if there are several members.

    Parameters:
        vclock: the clock.
    """
    members = [member for member in vclock if member]
    if len(members) > 1:
        return str(vclock)
    return str(vclock[members[0]]) if members else "0"


def time_text(seconds: float) -> str:
    """A time in UTC, rounded up to a microsecond, so that no row is later than its text.

    Parameters:
        seconds: seconds since 1970.
    """
    moment = datetime.fromtimestamp(rounded_up(seconds), UTC)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def rounded_up(seconds: float) -> float:
    """Round a time up to a microsecond.

    Parameters:
        seconds: seconds since 1970.
    """
    return math.ceil(seconds * 1e6) / 1e6


def log_blocks(reader: XlogReader, vclock: VClock) -> Iterator[tuple[Block, list[Row]]]:
    """Iterate over a log's blocks, up to the last complete one.

    Parameters:
        reader: the reader, at the log's beginning.
        vclock: the clock of the log's beginning; after each block, the clock there.

    Raises:
        XlogError: the log is damaged.
        OSError: it cannot be read.
    """
    for block, rows in reader.row_blocks():
        yield block, rows
        for row in rows:
            vclock[row.replica_id] = max(row.lsn, vclock.get(row.replica_id, 0))


def snapshot_time(path: Path) -> float:
    """Return the time of a snapshot, in seconds since 1970.

    Parameters:
        path: the snapshot.

    Raises:
        XlogError: its first block cannot be read.
        OSError: the file cannot be read.
    """
    with XlogReader.open(path) as reader:
        for _, rows in reader.row_blocks():
            return rows[0].timestamp
    return 0.0


def end_of(directory: Path) -> tuple[Moment, UUID, LogPart | None]:
    """Find where a backup or its continuation ends.

    Parameters:
        directory: the backup.

    Returns:
        The end, the instance, and the last log; None if there is only a snapshot.

    Raises:
        BackupError: it has neither a snapshot nor a log.
        StorageError: its files cannot be used.
        OSError: a file cannot be read.
    """
    snapshot = find_snapshots(directory).newest
    paths = list_files(directory, FileType.LOG)
    if snapshot is None and not paths:
        raise BackupError(f"{directory}: there is no backup in this directory")
    vclock, time = VClock(), 0.0
    if snapshot is not None:
        vclock, time = snapshot.header.vclock.copy(), snapshot_time(snapshot.path)
    if not paths:
        assert snapshot is not None
        return Moment(vclock, time), snapshot.header.instance_uuid, None
    log = StoredFile(paths[-1], read_header(paths[-1], FileType.LOG))
    clock = log.header.vclock.copy()
    with XlogReader.open(log.path, OnDamage.CUT_TAIL) as reader:
        for _, rows in log_blocks(reader, clock):
            time = max(time, *(row.timestamp for row in rows))
        part = LogPart(log, reader.good_end, clock)
    end = clock if clock.covers(vclock) else vclock
    return Moment(end, time), log.header.instance_uuid, part


def check_target(target: Path, sources: Sequence[Path]) -> Path:
    """Check that a directory can be made.

    Parameters:
        target: the directory.
        sources: directories that are read.

    Returns:
        The directory's own path, without symbolic links.

    Raises:
        BackupError: it is not empty, is no directory, or is inside a source.
        OSError: it cannot be read.
    """
    resolved = target.resolve()
    for source in sources:
        if resolved == source.resolve() or source.resolve() in resolved.parents:
            raise BackupError(f"{target} is inside {source}, which is to be read: choose another directory")
    if resolved.exists():
        if not resolved.is_dir():
            raise BackupError(f"{target} is not a directory")
        if any(resolved.iterdir()):
            raise BackupError(f"{target} is not empty: choose a new directory")
    return resolved


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Make a directory that appears when it is complete and on disk. If the block raises, nothing remains.

    Only its owner may use a new directory. An empty one that is there is replaced; owner and mode stay.

    Parameters:
        target: the directory; see `check_target`.

    Yields:
        The directory under its temporary name; files must be synced by the block.

    Raises:
        BackupError: another process makes the same directory.
        OSError: a step failed.
    """
    temporary = target.with_name(target.name + IN_PROGRESS)
    for made in make_directory(target.parent):
        sync_directory(made.parent)
    temporary.mkdir(0o700, exist_ok=True)
    try:
        lock = DirectoryLock(temporary)
    except DirectoryLockedError:
        raise BackupError(f"{temporary}: another process is writing to this directory") from None
    with lock:
        _remove_left(temporary)
        try:
            yield temporary
            if target.exists():
                shutil.copymode(target, temporary)
                owner = target.stat()
                os.chown(temporary, owner.st_uid, owner.st_gid)
            sync_directory(temporary)
            temporary.rename(target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    sync_directory(target.parent)


def _remove_left(temporary: Path) -> None:
    """Remove what an interrupted command has left."""
    suffixes = {file_type.suffix for file_type in FileType}
    left = list(temporary.iterdir())
    if any(path.suffix not in suffixes or not path.is_file() for path in left):
        raise BackupError(f"{temporary} has files that no backup leaves there: remove it")
    for path in left:
        path.unlink()


class NewFile:
    """A new file of a backup or a restored database. Use as a context manager, which syncs it at the end.

    Parameters:
        path: the file, which must not exist.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")

    def write(self, data: bytes) -> None:
        """Append bytes.

        Parameters:
            data: the bytes.

        Raises:
            OSError: they cannot be written.
        """
        self._file.write(data)

    def copy(self, source: BinaryIO, start: int, end: int) -> None:
        """Append a part of another file.

        Parameters:
            source: the other file.
            start, end: the part, in bytes from the beginning of the file.

        Raises:
            BackupError: the other file has become shorter.
            OSError: a file cannot be read or written.
        """
        source.seek(start)
        while start < end:
            piece = source.read(min(PIECE, end - start))
            if not piece:
                raise BackupError("a file has become shorter while it was copied: try again")
            self._file.write(piece)
            start += len(piece)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())


def copy_snapshot(source: BinaryIO, directory: Path, name: str) -> None:
    """Copy a snapshot.

    Parameters:
        source: the snapshot.
        directory: the new directory.
        name: the snapshot's name.

    Raises:
        OSError: a file cannot be read or written.
    """
    with NewFile(directory / name) as file:
        file.copy(source, 0, source.seek(0, os.SEEK_END))


def copy_log(
    source: BinaryIO, start: int, end: int, directory: Path, header: XlogHeader, last_block: bytes = b""
) -> None:
    """Copy blocks of a log, under a header of their own and with an end marker.

    Parameters:
        source: the log.
        start, end: the blocks, in bytes from the beginning of the file.
        directory: the new directory.
        header: the header.
        last_block: a block to append.

    Raises:
        OSError: a file cannot be read or written.
    """
    with NewFile(directory / file_name(FileType.LOG, header.vclock.signature)) as file:
        file.write(header.encode())
        file.copy(source, start, end)
        file.write(last_block + END_MARKER)


def verify(directory: Path, begin: VClock, instance_uuid: UUID) -> tuple[int, int, int]:
    """Verify the files of a new directory, as `iproto-server check` reads them.

    Parameters:
        directory: the directory.
        begin: the clock that its logs follow.
        instance_uuid: the instance that they belong to.

    Returns:
        The numbers of snapshots, logs, and bytes.

    Raises:
        BackupError: a file is damaged.
        OSError: a file cannot be read.
    """
    problems: list[str] = []
    findings = Findings(problem=problems.append, note=lambda text: None)
    files = FileCheck(findings)
    files.check_snapshots(directory)
    files.check_logs(directory)
    try:
        find_logs(directory, begin, instance_uuid)
    except StorageError as error:
        problems.append(str(error))
    if problems:
        problem = problems[0].replace(f"{directory}{os.sep}", "")
        raise BackupError(f"the copy is damaged: {problem}; `iproto-server check` verifies the source")
    size = sum(path.stat().st_size for path in directory.iterdir())
    return findings.snapshots, findings.logs, size
