"""The data source that Spark knows as `tarantool`."""

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from spark.source.errors import SourceError
from spark.source.options import Mode, ReadOptions

if TYPE_CHECKING:
    from spark.source.state.state_files import FoundState


class TarantoolDataSource(DataSource):
    """Snapshots and logs of a Tarantool or of this server as tables, and tables written to either.

        spark.dataSource.register(TarantoolDataSource)
        spark.read.format("tarantool").option("space", "queue").load("/var/lib/tarantool/queue")
        spark.read.format("tarantool").option("mode", "changes").load("/var/lib/tarantool/queue")
        spark.readStream.format("tarantool").load("/var/lib/tarantool/queue")
        tasks.write.format("tarantool").option("url", "127.0.0.1:3301").option("procedure", "queue.put")

    The options are those of `ReadOptions`, and of `spark.sink` for writing; docs/SPARK.md explains them.
    """

    _found: FoundState | None = None
    """What the columns were made for: Spark makes the reader of a copy, in another process, where logs need
    not be looked through once more."""

    @classmethod
    def name(cls) -> str:
        """What it is called in `format(…)`."""
        return "tarantool"

    def schema(self) -> StructType:
        """The columns, as the space's format and the options make them.

        Raises:
            SourceError: If an option is wrong, or there is no such space.
            XlogError: If the files that define the spaces cannot be read.
        """
        # What a query does not need is not imported: each plan has a process of its own.
        try:
            options = ReadOptions.parse(self.options)
        except SourceError:
            # Spark asks for the columns before it says that it is a stream's.
            options = ReadOptions.parse(self.options, streaming=True)
        if options.mode is Mode.CHANGES:
            from spark.source.batch.changes_reader import changes_schema

            return changes_schema(options)
        if options.mode is Mode.SNAPSHOT:
            from spark.source.batch.snapshot_reader import snapshot_schema

            return snapshot_schema(options)
        from spark.source.state.state_files import FoundState
        from spark.source.state.state_reader import state_schema

        self._found = FoundState.find(options)
        return state_schema(options, self._found.state)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make what reads a table once.

        Parameters:
            schema: The columns that are wanted: all there are, or those that the user names.
        """
        options = ReadOptions.parse(self.options)
        reader: DataSourceReader
        if options.mode is Mode.CHANGES:
            from spark.source.batch.changes_reader import ChangesReader

            reader = ChangesReader(options, schema)
        elif options.mode is Mode.SNAPSHOT:
            from spark.source.batch.snapshot_reader import SnapshotReader

            reader = SnapshotReader(options, schema)
        else:
            from spark.source.state.state_files import FoundState
            from spark.source.state.state_reader import StateReader

            reader = StateReader(options, schema, FoundState.find(options, self._found).state)
        if not options.pushdown:
            # Spark refuses readers that push filters down where its configuration does not let them.
            reader.pushFilters = MethodType(DataSourceReader.pushFilters, reader)  # type: ignore[method-assign]
        return reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Make what follows the logs of a directory.

        Parameters:
            schema: The columns that are wanted.
        """
        from spark.source.stream.stream_reader import ChangesStreamReader

        return ChangesStreamReader(ReadOptions.parse(self.options, streaming=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Make what writes a table: to a server if the option `url` is given, else to a snapshot.

        Parameters:
            schema: The columns of the table.
            overwrite: Whether the mode is `overwrite`.
        """
        if "url" in self.options:
            from spark.sink.server_writer import server_writer

            return server_writer(self.options, schema, overwrite)
        from spark.sink.snapshot_writer import snapshot_writer

        return snapshot_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Make what writes the batches of a stream to a server.

        Parameters:
            schema: The columns of the stream.
            overwrite: Whether the output mode is `complete`.
        """
        from spark.sink.server_writer import server_stream_writer

        return server_stream_writer(self.options, schema, overwrite)
