"""The logs of a directory that a server may be writing to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pyarrow import fs

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.data_files import DataFile, LogPart, inspect_file, parts_of
from pyspark_tarantool.source.io.filesystem import find_files, locate
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.stream.held_files import HeldFiles
from pyspark_tarantool.source.stream.offset import Offset, rows_between

SETTLING: Final = 1.0
"""Seconds without a change of the file after which its last rows count.

After a failed write or sync, a server truncates the log to the previous end and reuses the LSNs. It does so
before the next write, so only the last rows of a file can be affected.
"""

START_OVER: Final = (
    'to start over, give the query a new checkpointLocation: the option "starting" says where it begins, '
    "and mode=current reads what is in a space now"
)


class NewestLog(NamedTuple):
    """The newest log, which a server may be writing.

    Attributes:
        file: The log, with its size at the time of inspection.
        is_settled: Whether all of its rows count.
    """

    file: DataFile
    is_settled: bool


class LiveLogs:
    """Lists the logs of a directory repeatedly; a log that has not changed is not opened again.

    Parameters:
        options: Of the query.
        clock: The filesystem's time, in seconds since 1970.
        monotonic: A monotonic clock, in seconds.

    Attributes:
        where: The paths, for errors.
        held: Links to the files that the stream still has to read; None without the option `hold_path`.
    """

    def __init__(
        self,
        options: ReadOptions,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.where = options.wal_dir or ", ".join(options.paths)
        paths = [*options.paths, *([] if options.wal_dir is None else [options.wal_dir])]
        self.held = None if options.hold_path is None else HeldFiles(options.hold_path, paths)
        # Of a file that is found twice, the last one counts: a link, which no checkpoint removes.
        self._paths = paths if self.held is None else [*paths, self.held.directory]
        self._clock = clock
        self._monotonic = monotonic
        self._known: dict[tuple[str, int], DataFile | None] = {}
        # The newest log's name, size and modification time, and when this combination was first seen.
        self._last_seen: tuple[object, float] = (None, 0.0)

    def find(self) -> list[DataFile]:
        """List the logs, oldest first; the list may be empty.

        Raises:
            SourceError: If the path does not exist.
            XlogError: If a file is not a log.
            OSError: If one cannot be read, or was just removed.
        """
        if self.held is not None:
            self.held.refresh()
        return self._find(FileType.LOG)

    def snapshots(self) -> list[DataFile]:
        """List the complete snapshots, oldest first; see `find`."""
        return [file for file in self._find(FileType.SNAPSHOT) if file.closed]

    def _find(self, file_type: FileType) -> list[DataFile]:
        found = find_files(self._paths, (file_type.suffix,))
        files = {}
        for each in found:
            if each not in self._known:
                self._known[each] = inspect_file(each)
            file = self._known[each]
            if file is not None and file.header.file_type is file_type:
                files[str(file.header.vclock)] = file
        self._forget(file_type, found)
        return sorted(files.values(), key=lambda file: file.header.vclock.signature)

    def _forget(self, file_type: FileType, found: Iterable[tuple[str, int]]) -> None:
        """Forget files that were removed or have another size."""
        there = set(found)
        for key in [key for key in self._known if key[0].endswith(file_type.suffix) and key not in there]:
            del self._known[key]

    def newest(self, logs: list[DataFile]) -> NewestLog:
        """Get the newest log's size and modification time.

        Parameters:
            logs: What `find` has found; at least one.

        Raises:
            OSError: If it cannot be accessed.
        """
        file = logs[-1]
        filesystem, path = locate(file.uri)
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(file.uri)
        changed = info.mtime_ns
        seen = (file.uri, info.size, changed)
        now = self._monotonic()
        if seen != self._last_seen[0]:
            self._last_seen = (seen, now)
        # The second condition is for filesystems with another clock.
        is_settled = self._clock() - changed / 1e9 >= SETTLING or now - self._last_seen[1] >= SETTLING
        return NewestLog(file._replace(size=info.size), is_settled)

    def after(self, logs: list[DataFile], position: Offset) -> list[LogPart]:
        """Select the logs with the rows after a position.

        Parameters:
            logs: What `find` has found; at least one.
            position: The position read up to.

        Returns:
            The logs, oldest first; the first one begins at the position or before.

        Raises:
            SourceError: If rows after the position are gone, or the logs belong to another instance.
            LogGapError: If a log is missing between others.
        """
        uuid = str(logs[-1].header.instance_uuid)
        if position.instance and position.instance != uuid:
            raise SourceError(
                f"{self.where}: the logs belong to the instance {uuid}, but the stream has read those of "
                f"{position.instance}; {START_OVER}"
            )
        first = next(
            (number for number in reversed(range(len(logs))) if covers(position.vclock, logs[number])), None
        )
        if first is None:
            oldest = logs[0]
            gone = rows_between(position.vclock, oldest.header.vclock)
            raise SourceError(
                f"{self.where}: {gone} are gone: the oldest log is {name_of(oldest)}, with the clock "
                f"{oldest.header.vclock}, and the stream has only read {position.vclock}. Checkpoints of "
                f"the server remove old logs (its option checkpoint_count); {START_OVER}"
            )
        return parts_of(logs[first:])


def covers(vclock: VClock, log: DataFile) -> bool:
    """Whether a log contains the rows after a clock, according to its header."""
    return vclock.covers(log.header.vclock)


def name_of(file: DataFile) -> str:
    """A file's name without its directory, which may change."""
    return file.uri.replace("\\", "/").rpartition("/")[2]
