"""Reads the tuples of a space from a running server, page by page.

Each task reads a range of the primary key over a connection of its own: pages of a limited number of rows,
each continuing after the key of the last row. So a row that exists during the whole query is returned once;
rows that are changed meanwhile are returned as of some time during it. With `consistent=true`, one task reads
everything in one transaction, as of one point in time.

A stream that follows a server without its files would subscribe to it as a replica; there is none yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructField, StructType

from iproto_server.box.key.key_part import reader_of
from iproto_server.codec import msgpack as codec
from iproto_server.iterator_type import IteratorType
from iproto_server.protocol import Key, RequestType
from pyspark_tarantool.source.arrow.columns import row_columns
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch.filtered_reader import FilteredReader
from pyspark_tarantool.source.batch.worker import ends_quietly
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.remote.connection import Connection, LostConnectionError
from pyspark_tarantool.source.remote.key_ranges import KeyRange, key_scale
from pyspark_tarantool.source.remote.pipelined_client import PipelinedClient
from pyspark_tarantool.source.remote.remote_options import RemoteOptions
from pyspark_tarantool.source.remote.remote_space import find_space
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

_METADATA: Final = "tarantool.remote_space"
"""The schema carries the space to the reader, which Spark creates in another process."""

_STREAM: Final = 1
"""The stream of a consistent query's transaction."""

_PREFIX: Final = b"\x81" + bytes((Key.DATA,))


def remote_schema(options: RemoteOptions) -> StructType:
    """The columns of a space on a server.

    Parameters:
        options: Of the query.

    Raises:
        SourceError: If the server is unreachable, or there is no such space.
    """
    with _client(options) as client:
        space = _space(options, client)
    first, *others = row_columns(space, options.columns).schema
    return StructType(
        [StructField(first.name, first.dataType, first.nullable, {_METADATA: space.pack()}), *others]
    )


class SpaceReader(FilteredReader):
    """Reads the tuples of a space on a server; tasks share ranges of its primary key.

    Parameters:
        options: Of the query.
        schema: The requested columns.

    Raises:
        SourceError: If the server is unreachable, or there is no such space or column.
    """

    def __init__(self, options: RemoteOptions, schema: StructType) -> None:
        self._options = options
        self._space = _space_of(options, schema)
        self._columns = row_columns(self._space, options.columns, schema)
        self._scale = key_scale(self._space)
        self._filters = Filters()
        kind = self._space.indexes[0].type.upper()
        if kind != "TREE" and not options.consistent:
            raise SourceError(
                f"space '{self._space.name}' has a {kind} primary index, whose "
                "order changes between pages: read it with consistent=true, or from the server's files"
            )

    @property
    def filter_types(self) -> Mapping[str, pa.DataType]:
        """The fields of the primary key; the server gets comparisons of its first field."""
        return self._columns.filter_types(self._space.primary_fields)

    def partitions(self) -> list[InputPartition]:
        """The ranges of the primary key.

        Raises:
            SourceError: If the server is unreachable.
        """
        scale = self._scale
        wanted = KeyRange() if scale is None else scale.range_of(self._filters.conditions)
        if wanted.is_empty:
            return []
        if scale is None or self._options.consistent or self._options.partitions == 1:
            return [InputPartition(wanted)]
        with _client(self._options) as client:
            ends = client.ask(partial(self._ends, wanted))
        if ends is None:
            return []
        return [InputPartition(part) for part in scale.split(wanted, *ends, self._options.partitions)]

    @ends_quietly
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a range.

        Parameters:
            partition: One of `partitions`.

        Yields:
            Record batches, one per page.

        Raises:
            SourceError: If the server is unreachable or refuses, or a value does not fit its column.
        """
        if partition.value is None:  # Spark calls this even without partitions.
            return
        origin = str(self._options.uri.address)
        with _client(self._options) as client:
            pages = self._consistent_pages if self._options.consistent else self._pages
            for raws in pages(client, partition.value):
                yield self._columns.batch(raws, origin, self._filters)

    def _ends(self, wanted: KeyRange, connection: Connection) -> tuple[Any, Any] | None:
        """The lowest and the highest value in a range; None if there is none."""
        assert self._scale is not None
        first = _select(connection, self._space, *self._first(wanted), 1)
        if wanted.high is None:
            last = _select(connection, self._space, IteratorType.LE, [], 1)
        else:
            last = _select(connection, self._space, IteratorType.LT, [self._scale.key(wanted.high)], 1)
        if not first or not last:
            return None
        low, high = (self._scale.of(codec.unpack(raw)[self._scale.place]) for raw in (first[0], last[0]))
        return None if low > high else (low, high)

    def _first(self, wanted: KeyRange) -> tuple[IteratorType, list[Any]]:
        """The iterator and the key of the first page of a range."""
        if wanted.low is None or self._scale is None:
            return IteratorType.ALL, []
        return IteratorType.GE, [self._scale.key(wanted.low)]

    def _pages(self, client: PipelinedClient, wanted: KeyRange) -> Iterator[list[bytes]]:
        """The pages of a range, each requested again if the connection is lost."""

        def page(iterator: IteratorType, key: list[Any]) -> list[bytes]:
            return client.ask(
                lambda connection: _select(connection, self._space, iterator, key, self._options.page_rows)
            )

        return self._walk(page, wanted)

    def _consistent_pages(self, client: PipelinedClient, wanted: KeyRange) -> Iterator[list[bytes]]:
        """The pages of a range, in one transaction."""
        connection, address = client.connection, self._options.uri.address
        if not connection.has_transactions:
            raise SourceError(
                f"{address}: consistent=true requires interactive transactions, which this server (version "
                f"{'.'.join(map(str, connection.version))}) does not have: read it with consistent=false, "
                "or read its files"
            )

        def page(iterator: IteratorType, key: list[Any]) -> list[bytes]:
            return _select(connection, self._space, iterator, key, self._options.page_rows, _STREAM)

        try:
            connection.ask(RequestType.BEGIN, {}, _STREAM)
            yield from self._walk(page, wanted)
            connection.ask(RequestType.ROLLBACK, {}, _STREAM)
        except LostConnectionError as error:
            raise SourceError(f"{address}: {error}: the transaction of consistent=true is lost") from None

    def _walk(self, page: Any, wanted: KeyRange) -> Iterator[list[bytes]]:
        scale, parts = self._scale, list(map(reader_of, self._space.primary.parts))
        iterator, key = self._first(wanted)
        while True:
            raws = page(iterator, key)
            if not raws:
                return
            last = codec.unpack(raws[-1])
            is_full = len(raws) == self._options.page_rows
            if scale is not None and wanted.high is not None and scale.of(last[scale.place]) >= wanted.high:
                raws = raws[: self._count_below(raws, wanted.high)]
                is_full = False
            if raws:
                yield raws
            if not is_full:
                return
            iterator, key = IteratorType.GT, [read(last) for read in parts]

    def _count_below(self, raws: list[bytes], high: Any) -> int:
        """The number of sorted tuples below the end of a range."""
        assert self._scale is not None
        low, end = 0, len(raws)
        while low < end:
            middle = (low + end) // 2
            if self._scale.of(codec.unpack(raws[middle])[self._scale.place]) < high:
                low = middle + 1
            else:
                end = middle
        return low


def _client(options: RemoteOptions) -> PipelinedClient:
    return PipelinedClient(options.uri, in_flight=1, timeout=options.timeout, retries=options.retries)


def _space(options: RemoteOptions, client: PipelinedClient) -> SpaceDefinition:
    assert options.columns.space is not None
    return client.ask(partial(find_space, name_or_id=options.columns.space))


def _space_of(options: RemoteOptions, schema: StructType) -> SpaceDefinition:
    """The space that a schema was made for, or else as the server has it now."""
    packed = schema.fields[0].metadata.get(_METADATA) if schema.fields else None
    if packed is not None:
        space = SpaceDefinition.unpack(packed)
        if options.columns.space in (space.id, space.name):
            return space
    with _client(options) as client:
        return _space(options, client)


def _select(
    connection: Connection,
    space: SpaceDefinition,
    iterator: IteratorType,
    key: list[Any],
    limit: int,
    stream: int = 0,
) -> list[bytes]:
    """The packed tuples that a SELECT of the primary index returns."""
    body = connection.ask_raw(
        RequestType.SELECT,
        {
            Key.SPACE_ID: space.id,
            Key.INDEX_ID: 0,
            Key.LIMIT: limit,
            Key.OFFSET: 0,
            Key.ITERATOR: iterator,
            Key.KEY: key,
        },
        stream,
    )
    if body.startswith(_PREFIX):
        return codec.split_array(body[len(_PREFIX) :])
    return codec.split_array(dict(codec.split_map(body))[bytes((Key.DATA,))])
