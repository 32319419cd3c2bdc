"""Directories of logs and snapshots: names, order, and who may write.

A file's name is the sum of its vector clock's components, in 20 digits. A log's clock is what had happened
before its first row, so a snapshot is followed by the last log that is not later, and the logs behind that.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import uuid
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from iproto_server.descriptors import spare
from iproto_server.storage.errors import DirectoryLockedError, LogGapError, TruncatedFileError, XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog.block import END_MARKER, MARKER_SIZE
from iproto_server.storage.xlog.header import HEADER_MAX, FileType, XlogHeader

IN_PROGRESS: Final = ".inprogress"
"""What a file's name ends in until it may be used."""

DAMAGED: Final = ".damaged"
"""What the name of a log ends in that could not be read, and would be in the way of another one."""


class StoredFile(NamedTuple):
    """A file and its header."""

    path: Path
    header: XlogHeader


class Snapshots(NamedTuple):
    """The snapshots of a directory.

    Attributes:
        newest: The newest complete one; None if there is none.
        incomplete: Those that are newer but have no end marker, newest first.
    """

    newest: StoredFile | None
    incomplete: list[Path]


class LogChain(NamedTuple):
    """The logs that follow a snapshot.

    Attributes:
        logs: In order; the first may begin before the snapshot.
        truncated: A last log that ends within its header, as a crash may leave it: it has no rows.
    """

    logs: list[StoredFile]
    truncated: Path | None


def make_directory(path: Path) -> list[Path]:
    """Make a directory and those that it is in, where they are not there.

    Args:
        path: The directory.

    Returns:
        Those that were made, outermost first.

    Raises:
        OSError: If that fails.
    """
    made: list[Path] = []
    for directory in (*reversed(path.parents), path):
        if not directory.is_dir():
            try:
                directory.mkdir()
            except FileExistsError:
                if not directory.is_dir():
                    reason = os.strerror(errno.ENOTDIR)
                    raise NotADirectoryError(errno.ENOTDIR, reason, str(directory)) from None
            else:
                made.append(directory)
    return made


def file_name(file_type: FileType, signature: int) -> str:
    """The name of a file.

    Args:
        file_type: Log or snapshot.
        signature: Of its vector clock.
    """
    return f"{signature:020d}{file_type.suffix}"


def signature_of(path: Path) -> int:
    """The sum of a file's clock, as its name says.

    Args:
        path: Of a log or snapshot.
    """
    return int(path.name.partition(".")[0])


def list_files(directory: Path, file_type: FileType) -> list[Path]:
    """List logs or snapshots.

    Args:
        directory: Where they are.
        file_type: Which.

    Returns:
        Their paths, oldest first.

    Raises:
        OSError: If the directory cannot be read.
    """
    name = re.compile(r"[0-9]+" + re.escape(file_type.suffix))
    names = spare.open(lambda: os.listdir(directory))
    paths = [directory / found for found in names if name.fullmatch(found)]
    return sorted(paths, key=signature_of)


def read_header(path: Path, file_type: FileType) -> XlogHeader:
    """Read a file's header and check that the name is right.

    Args:
        path: The file.
        file_type: What it must be.

    Returns:
        The header.

    Raises:
        XlogError: If it is no such file, or has another file's name.
        OSError: If it cannot be read.
    """
    with spare.open(lambda: path.open("rb")) as file:
        header, _ = XlogHeader.decode(file.read(HEADER_MAX), str(path))
    if header.file_type is not file_type:
        raise XlogError(str(path), 0, f"the file is of type {header.file_type}, not {file_type},")
    if header.vclock.signature != signature_of(path):
        raise XlogError(str(path), 0, f"the name does not fit the clock {header.vclock}")
    return header


def find_snapshots(directory: Path) -> Snapshots:
    """Find the newest complete snapshot.

    Args:
        directory: Where to look.

    Raises:
        XlogError: If it is no snapshot, or has another file's name.
        OSError: If the directory or the file cannot be read.
    """
    incomplete: list[Path] = []
    for path in reversed(list_files(directory, FileType.SNAPSHOT)):
        if has_end_marker(path):
            return Snapshots(StoredFile(path, read_header(path, FileType.SNAPSHOT)), incomplete)
        incomplete.append(path)
    return Snapshots(None, incomplete)


def has_end_marker(path: Path) -> bool:
    """Tell whether a file was properly closed, as its last bytes say.

    Args:
        path: The file.

    Raises:
        OSError: If it cannot be read.
    """
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - MARKER_SIZE))
        return file.read() == END_MARKER


def find_logs(directory: Path, vclock: VClock, instance_uuid: uuid.UUID | None = None) -> LogChain:
    """Find the logs that follow a snapshot, and check that none is missing as far as the headers tell.

    Args:
        directory: Where to look.
        vclock: The snapshot's; an empty one for a database without snapshot.
        instance_uuid: Whose logs they must be; None to accept anybody's.

    Raises:
        LogGapError: If rows are missing between the snapshot and the logs, or between the logs.
        XlogError: If a file is no log, has another file's name or is another instance's.
        OSError: If the directory or a file cannot be read.
    """
    logs: list[StoredFile] = []
    truncated: Path | None = None
    paths = list_files(directory, FileType.LOG)
    # From the newest back to the first one that begins at or before the snapshot.
    for path in reversed(paths):
        try:
            header = read_header(path, FileType.LOG)
        except TruncatedFileError:
            if path != paths[-1]:
                raise
            truncated = path
            continue
        if instance_uuid is not None and header.instance_uuid != instance_uuid:
            reason = f"the log is of the instance {header.instance_uuid}, not of {instance_uuid},"
            raise XlogError(str(path), 0, reason)
        if logs:
            _check_order(StoredFile(path, header), logs[-1])
        logs.append(StoredFile(path, header))
        if vclock.covers(header.vclock):
            break
    logs.reverse()
    if logs:
        check_reached(vclock, logs[0])
    return LogChain(logs, truncated)


def check_reached(vclock: VClock, log: StoredFile) -> None:
    """Check that a log begins where the rows that were read so far end.

    Args:
        vclock: What is known, from the snapshot or the log before.
        log: The next log.

    Raises:
        LogGapError: If rows are missing before it.
    """
    if not vclock.covers(log.header.vclock):
        raise LogGapError(f"{log.path}: rows are missing between {vclock} and {log.header.vclock}")


def _check_order(before: StoredFile, after: StoredFile) -> None:
    if not after.header.vclock.covers(before.header.vclock):
        raise LogGapError(
            f"{after.path}: the clock {after.header.vclock} does not follow {before.header.vclock} "
            f"of {before.path.name}"
        )
    previous = after.header.previous_vclock
    if previous is not None and not previous.same_as(before.header.vclock):
        raise LogGapError(
            f"{after.path}: the log before it has the clock {before.header.vclock}, not {previous}: "
            "a log is missing"
        )


class DirectoryLock:
    """Keeps other servers, Tarantool among them, from using a directory of logs. Use as a context manager.

    The lock is that of `flock` on the directory itself; it ends with the process, however that ends.

    Args:
        directory: The directory of the logs.

    Raises:
        DirectoryLockedError: If another process has it.
        OSError: If the directory cannot be opened.
    """

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise DirectoryLockedError(f"{directory}: another process works with this directory") from None

    def release(self) -> None:
        """Let others have it."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
