"""The logs of a directory in which somebody is writing: which there are, which follow a position."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pyarrow import fs

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType
from spark.source.errors import SourceError
from spark.source.io.data_files import DataFile, LogPart, inspect_file, parts_of
from spark.source.io.filesystem import find_files, locate
from spark.source.options import ReadOptions
from spark.source.stream.offset import Offset, rows_between

SETTLING: Final = 1.0
"""What was written last, and nothing after it, counts after so many seconds without a change of the file.

A server that cannot write all, or cannot sync it, cuts off again what it has written, and gives its numbers
to other rows. It does so before it writes anything else; only the last rows of a file can be concerned.
"""

START_OVER: Final = (
    'to start over, give the query a new checkpointLocation: the option "starting" says where it begins, '
    "and mode=current reads what is in a space now"
)


class NewestLog(NamedTuple):
    """The log that is being written.

    Attributes:
        file: The log; its size is that of the moment when it was looked at.
        is_settled: Whether all that is in it counts.
    """

    file: DataFile
    is_settled: bool


class LiveLogs:
    """Finds logs, again and again; a log that was looked at and has not grown is not opened again.

    Parameters:
        options: Of the query.
        clock: The time, in seconds since 1970, as the filesystem has it.
        monotonic: A time that is never set, in seconds.
    """

    def __init__(
        self,
        options: ReadOptions,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.where = options.wal_dir or ", ".join(options.paths)
        self._paths = [*options.paths, *([] if options.wal_dir is None else [options.wal_dir])]
        self._clock = clock
        self._monotonic = monotonic
        self._known: dict[tuple[str, int], DataFile | None] = {}
        # The newest log's name, size and time of change, and when it was first seen so.
        self._last_seen: tuple[object, float] = (None, 0.0)

    def find(self) -> list[DataFile]:
        """The logs there are, oldest first; none is an answer, too.

        Raises:
            SourceError: If there is nothing at the path.
            XlogError: If a file is no log.
            OSError: If one cannot be read, or has just been removed.
        """
        return self._find(FileType.LOG)

    def snapshots(self) -> list[DataFile]:
        """The complete snapshots there are, oldest first; see `find`."""
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
        """Forget files that are not there any more, or not of that size."""
        there = set(found)
        for key in [key for key in self._known if key[0].endswith(file_type.suffix) and key not in there]:
            del self._known[key]

    def newest(self, logs: list[DataFile]) -> NewestLog:
        """Look at the newest log, at its size and at when it was changed.

        Parameters:
            logs: What `find` has found; at least one.

        Raises:
            OSError: If it cannot be looked at.
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
        # The second is for filesystems whose time is not ours.
        is_settled = self._clock() - changed / 1e9 >= SETTLING or now - self._last_seen[1] >= SETTLING
        return NewestLog(file._replace(size=info.size), is_settled)

    def after(self, logs: list[DataFile], position: Offset) -> list[LogPart]:
        """The logs that have what follows a position.

        Parameters:
            logs: What `find` has found; at least one.
            position: What has been read.

        Returns:
            The logs, oldest first; the first one begins at the position or before.

        Raises:
            SourceError: If rows between the position and the logs are gone, or the logs are somebody else's.
            LogGapError: If a log is missing between others.
        """
        uuid = str(logs[-1].header.instance_uuid)
        if position.instance and position.instance != uuid:
            raise SourceError(
                f"{self.where}: the logs are those of the instance {uuid}, but the stream has read those of "
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
                f"{oldest.header.vclock}, and the stream has only come to {position.vclock}. Checkpoints of "
                f"the server remove old logs (its option checkpoint_count); {START_OVER}"
            )
        return parts_of(logs[first:])


def covers(vclock: VClock, log: DataFile) -> bool:
    """Tell whether a log has all that follows a clock, as far as its header tells."""
    return vclock.covers(log.header.vclock)


def name_of(file: DataFile) -> str:
    """A file's name without its directory, which may be another one tomorrow."""
    return file.uri.replace("\\", "/").rpartition("/")[2]
