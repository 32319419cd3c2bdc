"""The snapshots and logs themselves: their sizes, and the range of changes in them.

Of each file, the header, the first and the last block are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import (
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from iproto_server.storage.xlog import FileType, Row, decode_rows
from pyspark_tarantool.source.batch.worker import ends_quietly
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.byte_ranges import read_blocks, whole_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, inspect_file
from pyspark_tarantool.source.io.filesystem import FoundFile, find_files
from pyspark_tarantool.source.options import ReadOptions

_NUMBER, _TEXT, _TIME, _FLAG = LongType(), StringType(), TimestampType(), BooleanType()


def _columns(**types: DataType) -> StructType:
    begin = {"file": _TEXT, "size_bytes": _NUMBER, "lsn": _NUMBER, "vclock": _TEXT}
    end = {"instance": _TEXT, "server_version": _TEXT}
    return StructType([StructField(name, kind) for name, kind in {**begin, **types, **end}.items()])


COLUMNS: Final[Mapping[str, StructType]] = {
    "snapshots": _columns(written=_TIME, complete=_FLAG),
    "logs": _columns(first_lsn=_NUMBER, last_lsn=_NUMBER, first_time=_TIME, last_time=_TIME, closed=_FLAG),
}
"""The columns by mode. `lsn` and `vclock` are those of a snapshot, or before the first row of a log."""

_TYPES: Final = {"snapshots": FileType.SNAPSHOT, "logs": FileType.LOG}
_TAIL: Final = 256 * 1024
"""The size of a file's end that is read first."""
_TOGETHER: Final = 32
"""The number of files for each task."""


class FileListReader(DataSourceReader):
    """Lists snapshots or logs.

    Parameters:
        mode: `snapshots` or `logs`.
        options: Of the query; they select the files.

    Raises:
        SourceError: If a path does not exist.
    """

    def __init__(self, mode: str, options: ReadOptions) -> None:
        self._file_type = _TYPES[mode]
        self._damage = (options.damaged, options.bad_records_path)
        found = {file.uri: file for file in find_files(options.paths)}
        if options.wal_dir is not None:
            found |= {file.uri: file for file in find_files([options.wal_dir])}
        self._files = [file for file in found.values() if file.uri.endswith(self._file_type.suffix)]
        if not found:
            raise SourceError(f"{', '.join(options.paths)}: there are no snapshots and no logs")

    def partitions(self) -> list[InputPartition]:
        """Groups of files; at least one."""
        groups = range(0, max(len(self._files), 1), _TOGETHER)
        return [InputPartition(self._files[start : start + _TOGETHER]) for start in groups]

    @ends_quietly
    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Describe some files.

        Parameters:
            partition: One of `partitions`.

        Yields:
            A row for each file; none for one that ends within its header.

        Raises:
            XlogError: If one is not a snapshot or log, or at damage that is not to be skipped.
            OSError: If one cannot be read.
        """
        files: list[FoundFile] = partition.value
        with DamageHandler(*self._damage) as damage:
            for found in files:
                file = inspect_file(found)
                if file is not None and file.header.file_type is self._file_type:
                    yield _described(file, damage)


def _described(file: DataFile, damage: DamageHandler) -> tuple[object, ...]:
    header = file.header
    origin = (str(header.instance_uuid), header.server_version)
    first = _first_row(file, damage)
    start = (file.uri, file.size, header.vclock.signature, str(header.vclock))
    if header.file_type is FileType.SNAPSHOT:
        return (*start, _time(first), file.closed, *origin)
    last = last_row(file, damage)
    lsns = (first.lsn if first else None, last.lsn if last else None)
    return (*start, *lsns, _time(first), _time(last), file.closed, *origin)


def _time(row: Row | None) -> datetime | None:
    return None if row is None else datetime.fromtimestamp(row.timestamp, UTC)


def _first_row(file: DataFile, damage: DamageHandler) -> Row | None:
    """The first row of a file; None if it has none."""
    block = next(read_blocks(whole_file(file), damage), None)
    return None if block is None else decode_rows(block.payload)[0]


def last_row(file: DataFile, damage: DamageHandler) -> Row | None:
    """Find the last row of a file, of which only the end is read.

    Parameters:
        file: The file.
        damage: Handles damage.

    Returns:
        The row; None if the file has none.

    Raises:
        XlogError: At damage that is not to be skipped.
    """
    whole = whole_file(file)
    tail = _TAIL
    while True:
        last = None
        part = whole._replace(start=max(whole.begin, whole.size - tail))
        for block in read_blocks(part, damage):
            last = block
        if last is not None:
            return decode_rows(last.payload)[-1]
        if part.start == whole.begin:
            return None
        tail *= 8
