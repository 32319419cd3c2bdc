"""The tuples of a space in the newest snapshot, and the columns of a space's tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from iproto_server.storage.xlog import Block
from spark.source.columns import row_columns
from spark.source.damages import Damages
from spark.source.definitions import SpaceDefinition, read_definitions
from spark.source.errors import SourceError
from spark.source.files import DataFiles
from spark.source.filters import Filters
from spark.source.marks import Mark
from spark.source.options import Mode, ReadOptions
from spark.source.ranges import FileRange, read_blocks, split_file
from spark.source.snapshot_rows import read_tuples
from spark.source.snapshot_rows import tuples_of as tuples_of
from spark.source.state_files import StateFiles

_TOGETHER: Final = 1024**2
"""Blocks are read together until they have so many bytes."""


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
        self._space = space
        self._columns = row_columns(space, options, schema)
        self._filters = Filters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters on the fields of the primary key.

        Args:
            filters: Those that Spark has.

        Returns:
            Those that Spark has to evaluate.
        """
        types = self._columns.filter_types(self._space.primary_fields)
        return list(self._filters.accept(filters, types))

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
        mark = Mark([self._space.id])
        with Damages.of(self._options) as damages:
            blocks = (block for block in read_blocks(part, damages) if mark.is_in(block.payload))
            for some in together(blocks):
                for tuples in read_tuples(some, self._space.id, len(self._space.fields), part.uri, damages):
                    yield self._columns.batch_of(tuples, part.uri, self._filters)


def together(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Blocks in groups that are large enough for numpy and Arrow, and not too large for the memory.

    Args:
        blocks: The blocks.
    """
    group: list[Block] = []
    size = 0
    for block in blocks:
        group.append(block)
        size += len(block.payload)
        if size >= _TOGETHER:
            yield group
            group, size = [], 0
    if group:
        yield group
