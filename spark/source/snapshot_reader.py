"""The tuples of a space in the newest snapshot, and the columns of a space's tuples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import Block, RowType, decode_rows, decode_tuples
from spark.source.columns import row_columns
from spark.source.damages import Damages
from spark.source.definitions import SpaceDefinition, marks_of, read_definitions
from spark.source.errors import SourceError
from spark.source.files import DataFiles
from spark.source.options import Mode, ReadOptions
from spark.source.ranges import FileRange, read_blocks, split_file
from spark.source.state_files import StateFiles

BATCH_ROWS: Final = 8192
BATCH_BYTES: Final = 2 * 1024**2
"""A batch ends when it has so many rows, or so many bytes of packed tuples."""


def state_schema(options: ReadOptions) -> StructType:
    """The columns of a space's tuples.

    Args:
        options: Of the query: a mode that shows states.

    Raises:
        SourceError: If there are no files, or no such space.
        XlogError: If the files that define the spaces cannot be read.
        LogGapError: If a log is missing.
    """
    return row_columns(state_space(options, DataFiles.find(options)), options).schema


def state_space(options: ReadOptions, files: DataFiles) -> SpaceDefinition:
    """The space that a query is about, as it is in the newest snapshot, or was at the moment asked for.

    Args:
        options: Of the query: a mode that shows states.
        files: Those that were found.

    Raises:
        SourceError: If there is no such space, or no state of that moment.
        XlogError: If the files that define the spaces cannot be read.
        LogGapError: If a log is missing.
    """
    if options.mode is not Mode.SNAPSHOT:
        return StateFiles.find(options, files).space
    definitions = read_definitions(files.newest_snapshot(), (), Damages(options.damaged))
    if options.space is None:
        raise SourceError('the option "space" is missing: the name or the id of a space')
    return definitions.space(options.space)


class SnapshotReader(DataSourceReader):
    """Reads the tuples of a space in the newest snapshot, its blocks shared among tasks.

    Args:
        options: Of the query.
        schema: The columns that are wanted.

    Raises:
        SourceError: If there is no snapshot, no such space, or no such column.
        XlogError: If the snapshot's beginning cannot be read.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        files = DataFiles.find(options)
        space = state_space(options, files)
        self._options = options
        self._file = files.newest_snapshot()
        self._space_id = space.id
        self._columns = row_columns(space, options, schema)

    def partitions(self) -> list[InputPartition]:
        """The ranges of the file."""
        return [InputPartition(part) for part in split_file(self._file, self._options.partition_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a range.

        Args:
            partition: One of `partitions`.

        Yields:
            Record batches.

        Raises:
            XlogError: At damage that is not to be skipped.
            SourceError: If a value does not fit its column.
            OSError: If the file cannot be read.
        """
        part: FileRange = partition.value
        raws: list[bytes] = []
        size = 0
        with Damages.of(self._options) as damages:
            for block in read_blocks(part, damages):
                found = tuples_of(block, self._space_id, part.uri, damages)
                raws += found
                size += sum(map(len, found))
                if len(raws) >= BATCH_ROWS or size >= BATCH_BYTES:
                    yield self._columns.batch(raws, part.uri)
                    raws, size = [], 0
            if raws:
                yield self._columns.batch(raws, part.uri)


def tuples_of(block: Block, space_id: int, name: str, damages: Damages) -> list[bytes]:
    """The tuples of a space in a block of a snapshot.

    Args:
        block: The block.
        space_id: The space's number.
        name: The file's name.
        damages: What is done about rows that cannot be read.

    Raises:
        XlogError: If they cannot be read, and that is not to be skipped.
    """
    if not any(mark in block.payload for mark in marks_of([space_id])):
        return []
    tuples = decode_tuples(block.payload)
    if tuples is not None:
        return [raw for number, raw in tuples if number == space_id]
    try:
        rows = decode_rows(block.payload)
    except ValueError as error:
        damages.add(XlogError(name, block.start, str(error)), block.end)
        return []
    return [
        row.tuple_raw
        for row in rows
        if row.space_id == space_id and row.type == RowType.INSERT and row.tuple_raw is not None
    ]
