"""The snapshots and logs themselves: their sizes, and the range of changes in them.

Of each file, the header, the first and the last block are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import (
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import FileType, Row
from pyspark_tarantool.source.batch.worker import ends_quietly
from pyspark_tarantool.source.decode.cutoff import LOCAL
from pyspark_tarantool.source.decode.row_scanner import rows_of
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.byte_ranges import read_blocks, whole_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, inspect_file
from pyspark_tarantool.source.io.filesystem import FoundFile, find_files
from pyspark_tarantool.source.options import OnDamaged, ReadOptions

_NUMBER, _MEMBER, _TEXT = LongType(), IntegerType(), StringType()
_TIME, _FLAG = TimestampType(), BooleanType()


def _columns(**types: DataType) -> StructType:
    begin = {"file": _TEXT, "size_bytes": _NUMBER, "lsn": _NUMBER, "vclock": _TEXT}
    end = {"instance": _TEXT, "server_version": _TEXT, "damage": _TEXT}
    return StructType([StructField(name, kind) for name, kind in {**begin, **types, **end}.items()])


COLUMNS: Final[Mapping[str, StructType]] = {
    "snapshots": _columns(written=_TIME, complete=_FLAG),
    "logs": _columns(
        first_lsn=_NUMBER,
        first_replica_id=_MEMBER,
        last_lsn=_NUMBER,
        last_replica_id=_MEMBER,
        first_time=_TIME,
        last_time=_TIME,
        closed=_FLAG,
    ),
}
"""The columns by mode. `lsn` and `vclock` are those of a snapshot, or before the first row of a log. Others
are LSNs of a member: rows of local spaces, which are counted apart, have none."""

_TYPES: Final = {"snapshots": FileType.SNAPSHOT, "logs": FileType.LOG}
_MODES: Final = {file_type: mode for mode, file_type in _TYPES.items()}
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
        self._bad_records_path = options.bad_records_path if options.damaged is OnDamaged.SKIP else None
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
            OSError: If one cannot be read.
        """
        files: list[FoundFile] = partition.value
        with DamageHandler(OnDamaged.SKIP, self._bad_records_path) as damage:
            for found in files:
                before = len(damage.skipped)
                try:
                    file = inspect_file(found)
                except XlogError as error:
                    yield self._unreadable(found, error)
                    continue
                if file is not None and file.header.file_type is self._file_type:
                    described = _described(file, damage)
                    reasons = [str(error) for error, _ in damage.skipped[before:]]
                    yield (*described, reasons[0] if reasons else None)

    def _unreadable(self, found: FoundFile, error: XlogError) -> tuple[object, ...]:
        """The row of a file whose header cannot be read."""
        known = {"file": found.uri, "size_bytes": found.size, "damage": str(error)}
        return tuple(known.get(name) for name in COLUMNS[_MODES[self._file_type]].fieldNames())


def _described(file: DataFile, damage: DamageHandler) -> tuple[object, ...]:
    """The columns of a file but the last."""
    header = file.header
    origin = (str(header.instance_uuid), header.server_version)
    start = (file.uri, file.size, header.vclock.signature, str(header.vclock))
    if header.file_type is FileType.SNAPSHOT:
        return (*start, _time(_first_row(file, damage)), file.closed, *origin)
    first, last = _first_row(file, damage), last_row(file, damage)
    own_first = first if first is None or _is_own(first) else _first_row(file, damage, _is_own)
    own_last = last if last is None or _is_own(last) else last_row(file, damage, _is_own)
    lsns = (*_position(own_first), *_position(own_last))
    return (*start, *lsns, _time(first), _time(last), file.closed, *origin)


def _is_any(row: Row) -> bool:
    return True


def _is_own(row: Row) -> bool:
    """Whether a row has an LSN of its member: those of local spaces are counted apart."""
    return row.replica_id != LOCAL


def _position(row: Row | None) -> tuple[int | None, int | None]:
    return (None, None) if row is None else (row.lsn, row.replica_id)


def _time(row: Row | None) -> datetime | None:
    return None if row is None else datetime.fromtimestamp(row.timestamp, UTC)


def _first_row(file: DataFile, damage: DamageHandler, matches: Callable[[Row], bool] = _is_any) -> Row | None:
    """The first matching row of a file; None if it has none."""
    for block in read_blocks(whole_file(file), damage):
        for row in rows_of(block, file.uri, damage):
            if matches(row):
                return row
    return None


def last_row(file: DataFile, damage: DamageHandler, matches: Callable[[Row], bool] = _is_any) -> Row | None:
    """Find the last row of a file, of which only the end is read.

    Parameters:
        file: The file.
        damage: Handles damage.
        matches: Whether a row may be the one.

    Returns:
        The row; None if the file has none.

    Raises:
        XlogError: At damage that is not to be skipped.
    """
    whole = whole_file(file)
    tail = _TAIL
    while True:
        part = whole._replace(start=max(whole.begin, whole.size - tail))
        for block in reversed(list(read_blocks(part, damage))):
            for row in reversed(rows_of(block, file.uri, damage)):
                if matches(row):
                    return row
        if part.start == whole.begin:
            return None
        tail *= 8
