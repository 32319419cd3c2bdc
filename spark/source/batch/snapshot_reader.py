"""The tuples of a space in the newest snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_tarantool.source.arrow.columns import row_columns
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch.filtered_reader import FilteredReader
from pyspark_tarantool.source.batch.worker import ends_quietly
from pyspark_tarantool.source.decode.snapshot_rows import read_tuples
from pyspark_tarantool.source.decode.snapshot_rows import tuples_of as tuples_of
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import FileRange, group_blocks, read_blocks, split_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFiles
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.schema.definitions import SpaceDefinition
from pyspark_tarantool.source.schema.system_rows import read_definitions


def snapshot_schema(options: ReadOptions) -> StructType:
    """The columns of a space's tuples in the newest snapshot.

    Parameters:
        options: Of the query; the mode is snapshot.

    Raises:
        SourceError: If there is no snapshot, or no such space.
        XlogError: If the snapshot's beginning cannot be read.
    """
    return row_columns(_space(options, DataFiles.find(options)), options).schema


def _space(options: ReadOptions, files: DataFiles) -> SpaceDefinition:
    definitions = read_definitions(files.newest_snapshot(), (), DamageHandler(options.damaged))
    if options.space is None:
        raise SourceError('the option "space" is missing: the name or the id of a space')
    space = definitions.space(options.space)
    space.check_stored()
    return space


class SnapshotReader(FilteredReader):
    """Reads the tuples of a space in the newest snapshot; tasks share its blocks.

    Parameters:
        options: Of the query.
        schema: The requested columns.

    Raises:
        SourceError: If there is no snapshot, no such space, or no such column.
        XlogError: If the snapshot's beginning cannot be read.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        files = DataFiles.find(options)
        space = _space(options, files)
        self._options = options
        self._file = files.newest_snapshot()
        self._space = space
        self._columns = row_columns(space, options, schema)
        self._filters = Filters()

    @property
    def filter_types(self) -> Mapping[str, pa.DataType]:
        """The fields of the primary key."""
        return self._columns.filter_types(self._space.primary_fields)

    def partitions(self) -> list[InputPartition]:
        """The ranges of the file."""
        return [InputPartition(part) for part in split_file(self._file, self._options.partition_bytes)]

    @ends_quietly
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a range.

        Parameters:
            partition: One of `partitions`.

        Yields:
            Record batches.

        Raises:
            XlogError: At damage that is not to be skipped.
            SourceError: If a value does not fit its column.
            OSError: If the file cannot be read.
        """
        part: FileRange = partition.value
        block_filter = BlockFilter([self._space.id])
        with DamageHandler.of(self._options) as damage:
            blocks = (block for block in read_blocks(part, damage) if block_filter.matches(block.payload))
            for some in group_blocks(blocks):
                for tuples in read_tuples(some, self._space.id, len(self._space.fields), part.uri, damage):
                    yield self._columns.batch_of(tuples, part.uri, self._filters)
