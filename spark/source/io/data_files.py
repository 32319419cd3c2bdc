"""Lists snapshots and logs, and selects those that make up a state of the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO, NamedTuple

from iproto_server.storage.errors import LogGapError, TruncatedFileError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, XlogHeader
from iproto_server.storage.xlog.block import END_MARKER, MARKER_SIZE
from iproto_server.storage.xlog.header import HEADER_MAX
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.filesystem import FoundFile, find_files, open_file
from pyspark_tarantool.source.options import ReadOptions


class DataFile(NamedTuple):
    """A snapshot or a log.

    Attributes:
        uri: Its path or URI.
        size: Its size in bytes when it was inspected.
        header: Its header.
        begin: The offset after the header.
        closed: Whether it ends with the end marker; otherwise it is the last log, or its server has crashed.
    """

    uri: str
    size: int
    header: XlogHeader
    begin: int
    closed: bool


class LogPart(NamedTuple):
    """A log, and the end of its valid rows.

    Attributes:
        file: The log.
        end: The clock of the next log; later rows are leftovers of a failed write. None for the last log.
    """

    file: DataFile
    end: VClock | None

    def has(self, member: int, lsn: int) -> bool:
        """Whether a row of the log counts.

        Parameters:
            member: The member that wrote it.
            lsn: Its LSN.

        Returns:
            False for rows of earlier logs, and for leftovers of failed writes.
        """
        return self.file.header.vclock.get(member, 0) < lsn and (
            self.end is None or lsn <= self.end.get(member, 0)
        )


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The available files.

    Attributes:
        snapshots: Oldest first.
        logs: Oldest first.
    """

    snapshots: tuple[DataFile, ...]
    logs: tuple[DataFile, ...]

    @classmethod
    def find(cls, options: ReadOptions) -> DataFiles:
        """Find the files of a query.

        A last log that ends within its header has no rows and is ignored. So are incomplete snapshots, which
        lack the end marker, unless there is no other snapshot.

        Parameters:
            options: Of the query.

        Raises:
            SourceError: If there are none, or a directory cannot be read.
            XlogError: If one is not a snapshot or log, regardless of the option `damaged`.
        """
        found = find_files(options.paths)
        if options.wal_dir is not None:
            known = {file.uri for file in found}
            found += [file for file in find_files([options.wal_dir]) if file.uri not in known]
        files = [file for file in map(inspect_file, found) if file is not None]
        if not files:
            raise SourceError(f"{', '.join(options.paths)}: there are no snapshots and no logs")
        snapshots = _sorted(files, FileType.SNAPSHOT)
        complete = [file for file in snapshots if file.closed]
        return cls(tuple(complete or snapshots), tuple(_sorted(files, FileType.LOG)))

    def newest_snapshot(self) -> DataFile:
        """The newest snapshot.

        Raises:
            SourceError: If there is none.
        """
        if not self.snapshots:
            raise SourceError(f"there is no snapshot, only logs such as {self.logs[0].uri}")
        return self.snapshots[-1]

    def logs_after(self, vclock: VClock) -> list[LogPart]:
        """The logs that follow a snapshot.

        Parameters:
            vclock: The snapshot's clock; an empty one for all logs.

        Returns:
            The logs, oldest first; the first may begin before the snapshot.

        Raises:
            LogGapError: If rows are missing between the snapshot and the logs, or between the logs.
        """
        chain: list[DataFile] = []
        for log in reversed(self.logs):
            chain.append(log)
            if vclock.covers(log.header.vclock):
                break
        chain.reverse()
        if chain and not vclock.covers(chain[0].header.vclock):
            first = chain[0]
            raise LogGapError(f"{first.uri}: rows are missing between {vclock} and {first.header.vclock}")
        return parts_of(chain)


def inspect_file(found: FoundFile) -> DataFile | None:
    """Read a file's header and see whether it was properly closed.

    Parameters:
        found: The file.

    Returns:
        Its description; None if it ends within its header, as a log may after a crash.

    Raises:
        XlogError: If it is not a snapshot or log.
        OSError: If it cannot be read.
    """
    with open_file(found.uri) as file:
        try:
            header, begin = XlogHeader.decode(_read(file, HEADER_MAX), found.uri)
        except TruncatedFileError:
            return None
        file.seek(max(begin, found.size - MARKER_SIZE))
        return DataFile(found.uri, found.size, header, begin, _read(file, MARKER_SIZE) == END_MARKER)


def _read(file: BinaryIO, count: int) -> bytes:
    """Read up to a number of bytes: unbuffered files may return less per call."""
    pieces = b""
    while len(pieces) < count and (piece := file.read(count - len(pieces))):
        pieces += piece
    return pieces


def parts_of(logs: Sequence[DataFile]) -> list[LogPart]:
    """Determine the end of the valid rows of consecutive logs.

    Parameters:
        logs: Oldest first.

    Raises:
        LogGapError: If one is missing between them, according to the headers.
    """
    for before, after in pairwise(logs):
        previous = after.header.previous_vclock
        if not after.header.vclock.covers(before.header.vclock) or (
            previous is not None and not previous.same_as(before.header.vclock)
        ):
            raise LogGapError(
                f"{after.uri}: it follows a log with the clock {previous or after.header.vclock}, not "
                f"{before.uri} with {before.header.vclock}: a log is missing"
            )
    ends = [log.header.vclock for log in logs[1:]]
    return [LogPart(log, end) for log, end in zip(logs, [*ends, None][: len(logs)], strict=True)]


def _sorted(files: Iterable[DataFile], file_type: FileType) -> list[DataFile]:
    """Files of a type, oldest first, each clock once: a file may exist under two names."""
    by_clock = {str(file.header.vclock): file for file in files if file.header.file_type is file_type}
    return sorted(by_clock.values(), key=lambda file: file.header.vclock.signature)
