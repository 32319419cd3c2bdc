"""Directories of logs and snapshots: file names, order of files, locking.

A file's name is the sum of its vector clock's components, in 20 digits. A log's clock is that of the moment
before its first row, so the last log whose clock is not later than a snapshot follows it, then all later
ones.
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
"""Suffix of a file that is not complete yet."""

DAMAGED: Final = ".damaged"
"""Suffix of an unreadable log that was renamed because a new log needs its name."""


class StoredFile(NamedTuple):
    """A file and its header."""

    path: Path
    header: XlogHeader


class Snapshots(NamedTuple):
    """The snapshots of a directory.

    Attributes:
        newest: The newest complete snapshot; None if there is none.
        incomplete: The newer snapshots without an end marker, newest first.
    """

    newest: StoredFile | None
    incomplete: list[Path]


class LogChain(NamedTuple):
    """The logs that follow a snapshot.

    Attributes:
        logs: The logs in order; the first may begin before the snapshot.
        truncated: A last log that ends within its header, as after a crash; it has no rows. None if there is
            none.
    """

    logs: list[StoredFile]
    truncated: Path | None


def make_directory(path: Path) -> list[Path]:
    """Make a directory and its missing parents.

    Parameters:
        path: The directory.

    Returns:
        The directories that were made, outermost first.

    Raises:
        OSError: A directory cannot be made.
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
    """Return the name of a file.

    Parameters:
        file_type: Log or snapshot.
        signature: The signature of its vector clock.
    """
    return f"{signature:020d}{file_type.suffix}"


def signature_of(path: Path) -> int:
    """Return the signature of a file's clock, as its name tells it.

    Parameters:
        path: Path of a log or snapshot.
    """
    return int(path.name.partition(".")[0])


def list_files(directory: Path, file_type: FileType) -> list[Path]:
    """List logs or snapshots.

    Parameters:
        directory: The directory to list.
        file_type: Log or snapshot.

    Returns:
        Their paths, oldest first.

    Raises:
        OSError: The directory cannot be read.
    """
    name = re.compile(r"[0-9]+" + re.escape(file_type.suffix))
    names = spare.open(lambda: os.listdir(directory))
    paths = [directory / found for found in names if name.fullmatch(found)]
    return sorted(paths, key=signature_of)


def read_header(path: Path, file_type: FileType) -> XlogHeader:
    """Read a file's header, and check that it matches the name.

    Parameters:
        path: The file.
        file_type: The type that the file must have.

    Returns:
        The header.

    Raises:
        XlogError: The file has another type, or its name does not match its clock.
        OSError: The file cannot be read.
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

    Parameters:
        directory: The directory of the snapshots.

    Raises:
        XlogError: The file is not a snapshot, or its name does not match its clock.
        OSError: The directory or the file cannot be read.
    """
    incomplete: list[Path] = []
    for path in reversed(list_files(directory, FileType.SNAPSHOT)):
        if has_end_marker(path):
            return Snapshots(StoredFile(path, read_header(path, FileType.SNAPSHOT)), incomplete)
        incomplete.append(path)
    return Snapshots(None, incomplete)


def has_end_marker(path: Path) -> bool:
    """Whether a file was closed properly: whether it ends with the end marker.

    Parameters:
        path: The file.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - MARKER_SIZE))
        return file.read() == END_MARKER


def find_logs(directory: Path, vclock: VClock, instance_uuid: uuid.UUID | None = None) -> LogChain:
    """Find the logs that follow a snapshot, and check by their headers that none is missing.

    Parameters:
        directory: The directory of the logs.
        vclock: The snapshot's clock; an empty one for a database without a snapshot.
        instance_uuid: The instance that the logs must belong to; None: any.

    Raises:
        LogGapError: Rows are missing between the snapshot and the logs, or between the logs.
        XlogError: A file is not a log, belongs to another instance, or has a name that does not match its
            clock.
        OSError: The directory or a file cannot be read.
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
            reason = f"the log belongs to the instance {header.instance_uuid}, not to {instance_uuid},"
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
    """Check that no rows are missing before a log.

    Parameters:
        vclock: The clock after the snapshot or log before it.
        log: The next log.

    Raises:
        LogGapError: Rows are missing before the log.
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
    """Locks a directory of logs against other servers, Tarantool included. Use as a context manager.

    The lock is an `flock` of the directory itself, so it ends with the process in any case.

    Parameters:
        directory: The directory of the logs.

    Raises:
        DirectoryLockedError: Another process holds the lock.
        OSError: The directory cannot be opened.
    """

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _lock_holder(os.fstat(self._descriptor))
            os.close(self._descriptor)
            process = "another process" if holder is None else f"the process {holder}"
            raise DirectoryLockedError(
                f"{directory}: {process} works with this directory; stop it, or choose another --work-dir"
            ) from None

    def release(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _lock_holder(file: os.stat_result) -> int | None:
    """Return the id of the process that has locked a file; None where the system does not tell.

    Source: proc(5), `/proc/locks`.
    """
    name = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None
    for line in locks.splitlines():
        # 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
        fields = line.split()
        if len(fields) == 8 and fields[1] == "FLOCK" and fields[5] == name and int(fields[4]) > 0:
            return int(fields[4])
    return None
