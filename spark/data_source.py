"""The Spark data source `tarantool`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from pyspark_tarantool.extras import explains_missing
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import Mode, ReadOptions
from pyspark_tarantool.table_options import (
    is_new_table,
    options_of_new_table,
    recall,
    remember,
    with_password,
)

if TYPE_CHECKING:
    from pyspark_tarantool.source.batch.filtered_reader import FilteredReader
    from pyspark_tarantool.source.metadata.modes import MetadataQuery
    from pyspark_tarantool.source.remote.remote_options import RemoteOptions
    from pyspark_tarantool.source.state.state_files import FoundState

_STREAMING: Final = frozenset({"starting", "max_bytes_per_trigger"})
"""The options of streams alone."""


class TarantoolDataSource(DataSource):
    """Snapshots and logs of a Tarantool or of this server as tables, and tables written to either.

        spark.dataSource.register(TarantoolDataSource)
        spark.read.format("tarantool").option("space", "queue").load("/var/lib/tarantool/queue")
        spark.read.format("tarantool").option("mode", "changes").load("/var/lib/tarantool/queue")
        spark.readStream.format("tarantool").load("/var/lib/tarantool/queue")
        tasks.write.format("tarantool").option("url", "127.0.0.1:3301").option("procedure", "queue.put")

    With a `url`, a space is read from a running server.

    The options are those of `ReadOptions` and `RemoteOptions`, and of `sink` for writing; docs/SPARK.md
    explains them.
    """

    _found: FoundState | None = None
    """The state that the columns were made for. Spark creates the reader from a copy in another process,
    which need not scan the logs again."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(…)`."""
        return "tarantool"

    @explains_missing
    def schema(self) -> StructType:
        """The columns, derived from the space's format and the options.

        Raises:
            SourceError: If an option is wrong, or there is no such space.
            XlogError: If the files that define the spaces cannot be read.
        """
        if is_new_table(self.options):
            given = options_of_new_table(self.options)
            return remember(self._schema(with_password(given)), given)
        return self._schema(with_password(recall(self.options, StructType())))

    def _schema(self, given: Mapping[str, str]) -> StructType:
        # Import only what the query needs: each plan runs in a new process.
        remote = _of_server(given)
        if remote is not None:
            from pyspark_tarantool.source.remote.space_reader import remote_schema

            return remote_schema(remote)
        about = _about_files(given)
        if about is not None:
            return about.schema()
        options = parse_either(given)
        if options.mode is Mode.CHANGES:
            from pyspark_tarantool.source.batch.changes_reader import changes_schema

            return changes_schema(options)
        if options.mode is Mode.SNAPSHOT:
            from pyspark_tarantool.source.batch.snapshot_reader import snapshot_schema

            return snapshot_schema(options)
        from pyspark_tarantool.source.state.state_files import FoundState
        from pyspark_tarantool.source.state.state_reader import state_schema

        self._found = FoundState.find(options)
        return state_schema(options, self._found.state)

    @explains_missing
    def reader(self, schema: StructType) -> DataSourceReader:
        """Create the reader of a batch query.

        Parameters:
            schema: The requested columns: all of them, or those that the user names.
        """
        given = with_password(recall(self.options, schema))
        reader: FilteredReader
        remote = _of_server(given)
        if remote is not None:
            from pyspark_tarantool.source.remote.space_reader import SpaceReader

            return _filtered(SpaceReader(remote, schema), remote.columns)
        about = _about_files(given)
        if about is not None:
            return about.reader()
        options = ReadOptions.parse(given)
        if options.mode is Mode.CHANGES:
            from pyspark_tarantool.source.batch.changes_reader import ChangesReader

            reader = ChangesReader(options, schema)
        elif options.mode is Mode.SNAPSHOT:
            from pyspark_tarantool.source.batch.snapshot_reader import SnapshotReader

            reader = SnapshotReader(options, schema)
        else:
            from pyspark_tarantool.source.state.state_files import FoundState
            from pyspark_tarantool.source.state.state_reader import StateReader

            reader = StateReader(options, schema, FoundState.find(options, self._found).state)
        return _filtered(reader, options)

    @explains_missing
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Create the reader of a stream, which follows the logs of a directory.

        Parameters:
            schema: The requested columns.
        """
        given = with_password(recall(self.options, schema))
        if _of_server(given) is not None:
            raise SourceError(
                "a stream follows the logs of a directory, not a server: pass the directory to load(PATH)"
            )
        from pyspark_tarantool.source.stream.stream_reader import ChangesStreamReader

        return ChangesStreamReader(ReadOptions.parse(given, streaming=True), schema)

    @explains_missing
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Create the writer of a table: to a server if the option `url` is given, else to a snapshot.

        Parameters:
            schema: The columns of the table.
            overwrite: Whether the mode is `overwrite`.
        """
        given = with_password(recall(self.options, schema, writing=True))
        if "url" in given:
            from pyspark_tarantool.sink.server_writer import server_writer

            return server_writer(given, schema, overwrite)
        from pyspark_tarantool.sink.snapshot_writer import snapshot_writer

        return snapshot_writer(given, schema, overwrite)

    @explains_missing
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Create the writer that sends the batches of a stream to a server.

        Parameters:
            schema: The columns of the stream.
            overwrite: Whether the output mode is `complete`.
        """
        from pyspark_tarantool.sink.server_writer import server_stream_writer

        return server_stream_writer(
            with_password(recall(self.options, schema, writing=True)), schema, overwrite
        )


def _of_server(given: Mapping[str, str]) -> RemoteOptions | None:
    """The query of a running server's space, if the options name a server."""
    from pyspark_tarantool.source.remote.remote_options import RemoteOptions, is_remote

    return RemoteOptions.parse(given) if is_remote(given) else None


def _about_files(given: Mapping[str, str]) -> MetadataQuery | None:
    """The query of a table about the files, if the options are for one."""
    from pyspark_tarantool.source.metadata.modes import MetadataQuery

    return MetadataQuery.parse(given)


def parse_either(given: Mapping[str, str]) -> ReadOptions:
    """Parse the options of a query or of a stream: Spark asks for the columns before it announces a stream.

    Parameters:
        given: The options, from Spark.

    Raises:
        SourceError: If they fit neither. It is about streams only if an option is for streams alone.
    """
    try:
        return ReadOptions.parse(given)
    except SourceError:
        names = {name.lower(): value for name, value in given.items()}
        if names.get("mode", Mode.CHANGES).lower() != Mode.CHANGES:
            raise
        try:
            return ReadOptions.parse(given, streaming=True)
        except SourceError:
            if names.keys() & _STREAMING:
                raise
        raise


def _filtered(reader: FilteredReader, options: ReadOptions) -> FilteredReader:
    """The reader, restricted to the rows that the option `where` selects."""
    if options.where is not None:
        reader.restrict_to(options.where)
    return reader


DefaultSource = TarantoolDataSource
"""The name under which Spark looks for data sources in installed packages named `pyspark_…`."""
