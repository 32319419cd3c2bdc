"""Sends rows to a running server, as procedure calls or changes of a space.

Each row is sent at least once. Unanswered requests are resent after a lost connection, Spark reruns failed
tasks, and a restarted stream writes its last batch again; rows sent before remain. So a row may arrive twice.
Repeating `operation = replace`, `upsert` and `delete` is harmless, calls of `queue.put` create two tasks, and
a repeated `insert` is refused. With `batch`, rows are written in one transaction, once:
`pyspark_tarantool.sink.exactly_once` uses that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.protocol import Key, RequestType
from pyspark_tarantool.sink.batch_transaction import BatchTransaction, connect
from pyspark_tarantool.sink.server_options import Operation, ServerOptions
from pyspark_tarantool.sink.tuples import EXTRA, Tuples
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.remote.connection import Connection, LostConnectionError
from pyspark_tarantool.source.remote.pipelined_client import PipelinedClient
from pyspark_tarantool.source.remote.remote_space import find_space
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

_REQUESTS = {
    Operation.REPLACE: RequestType.REPLACE,
    Operation.INSERT: RequestType.INSERT,
    Operation.UPSERT: RequestType.UPSERT,
    Operation.DELETE: RequestType.DELETE,
}


def server_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceWriter:
    """Create the writer of a table to a server.

    Parameters:
        options: The options, for `ServerOptions.parse`.
        schema: The columns of the table.
        overwrite: Whether the mode is `overwrite`.

    Raises:
        SourceError: If an option is wrong, or the mode is `overwrite`.
    """
    return ServerWriter(_checked(options, schema, overwrite, streaming=False), schema)


def server_stream_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> DataSourceStreamWriter:
    """Create the writer of a stream's batches to a server.

    Parameters:
        options: The options, for `ServerOptions.parse`.
        schema: The columns of the stream.
        overwrite: Whether the output mode is `complete`.

    Raises:
        SourceError: If an option is wrong, or the output mode is `complete`.
    """
    return ServerStreamWriter(_checked(options, schema, overwrite, streaming=True), schema)


def _checked(
    given: Mapping[str, str], schema: StructType, overwrite: bool, *, streaming: bool
) -> ServerOptions:
    options = ServerOptions.parse(given, streaming=streaming)
    if overwrite:
        raise SourceError(
            "data on a server is not overwritten, because others may be using it: truncate it yourself, "
            + (
                "and write in the output mode append or update"
                if streaming
                else "and write in the mode append"
            )
        )
    if options.procedure is not None:
        # Check the columns before any task starts.
        Tuples.of_arguments(schema, options.json_columns)
    return options


@dataclass
class Written(WriterCommitMessage):
    """The result of a task.

    Attributes:
        rows: The number of rows that the server accepted.
    """

    rows: int


class _RowSender:
    """Common code for tables and streams.

    Parameters:
        options: The destination, and the kind of requests.
        schema: The columns.
    """

    def __init__(self, options: ServerOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a partition; it runs on an executor.

        Parameters:
            iterator: The rows.

        Raises:
            SourceError: If the server refuses a row or is unreachable; rows sent before remain.
        """
        return send_rows(self._options, self._schema, iterator)


class ServerWriter(_RowSender, DataSourceArrowWriter):
    """Sends the rows of a table."""


class ServerStreamWriter(_RowSender, DataSourceStreamArrowWriter):
    """Sends the rows of a stream's batches."""


def send_rows(
    options: ServerOptions, schema: StructType, batches: Iterator[pyarrow.RecordBatch]
) -> WriterCommitMessage:
    """Send rows, and wait for all responses.

    Parameters:
        options: The destination, and the kind of requests.
        schema: The columns.
        batches: The rows.

    Raises:
        SourceError: If a row cannot be sent, or the server refuses it or is unreachable.
    """
    try:
        if options.batch is not None:
            return _send_batch(options, schema, batches)
        number = 0
        with PipelinedClient(
            options.uri, in_flight=options.in_flight, timeout=options.timeout, retries=options.retries
        ) as sender:
            requests = sender.ask(partial(_requests_of, options, schema))
            for request_type, body in requests(batches):
                sender.send(request_type, body)
                number += 1
            sender.finish()
    except SourceError as error:
        raise SourceError(f"partition {_partition()}: {error}") from None
    return Written(number)


def _send_batch(
    options: ServerOptions, schema: StructType, batches: Iterator[pyarrow.RecordBatch]
) -> WriterCommitMessage:
    """Send the rows of a batch in one transaction, unless the server has it already."""
    assert options.batch is not None
    context = TaskContext.get()
    if context is not None and context.partitionId() > 0:
        raise SourceError("a batch that takes effect once is written by one task: use coalesce(1)")
    try:
        with connect(options.uri, options.timeout) as connection:
            requests = _requests_of(options, schema, connection)
            transaction = BatchTransaction(
                connection,
                options.uri,
                options.batches_space,
                options.query,
                options.batch,
                options.in_flight,
            )
            return Written(transaction.run(requests(batches)) if transaction.is_needed else 0)
    except LostConnectionError as error:
        raise SourceError(f"{options.uri.address}: {error}") from None


Requests = Callable[[Iterable[pyarrow.RecordBatch]], Iterator[tuple[RequestType, bytes]]]
"""Converts rows to requests and their bodies, whose last value is the row."""


def _requests_of(options: ServerOptions, schema: StructType, connection: Connection) -> Requests:
    """Prepare the conversion of rows to requests."""
    has_datetimes = connection.has_datetimes
    if options.procedure is not None:
        tuples = Tuples.of_arguments(schema, options.json_columns, has_datetimes=has_datetimes)
        name = codec.pack(options.procedure)
        head = b"\x82" + bytes((Key.FUNCTION_NAME,)) + name + bytes((Key.TUPLE,))
        return partial(_simple_requests, tuples, RequestType.CALL, head)
    assert options.space is not None
    space = find_space(connection, options.space)
    request_type = _REQUESTS[options.operation]
    number = bytes((Key.SPACE_ID,)) + codec.pack(space.id)
    if options.operation is Operation.DELETE:
        tuples = Tuples.of_keys(schema, space, has_datetimes=has_datetimes)
        return partial(_simple_requests, tuples, request_type, b"\x82" + number + bytes((Key.KEY,)))
    tuples = Tuples.of_space(schema, space, has_datetimes=has_datetimes)
    if options.operation is Operation.UPSERT:
        head = b"\x83" + number + bytes((Key.OPS,))
        return partial(_upserts, tuples, _assigned(schema, space), head)
    return partial(_simple_requests, tuples, request_type, b"\x82" + number + bytes((Key.TUPLE,)))


def _simple_requests(
    tuples: Tuples, request_type: RequestType, head: bytes, batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[tuple[RequestType, bytes]]:
    """Requests with the packed row after a head that is always the same."""
    for number, row in _numbered_rows(tuples, batches):
        yield request_type, head + _packed(row, number)


def _numbered_rows(
    tuples: Tuples, batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[tuple[int, list[object]]]:
    """The rows, numbered from 0."""
    first = 0
    for batch in batches:
        yield from enumerate(tuples.rows(batch, first), first)
        first += batch.num_rows


def _upserts(
    tuples: Tuples, assigned: Sequence[int], head: bytes, batches: Iterable[pyarrow.RecordBatch]
) -> Iterator[tuple[RequestType, bytes]]:
    """Requests that insert a row, or assign its fields to the row with its key."""
    for number, row in _numbered_rows(tuples, batches):
        operations = _packed([["=", field, row[field]] for field in assigned], number)
        yield RequestType.UPSERT, head + operations + bytes((Key.TUPLE,)) + _packed(row, number)


def _assigned(schema: StructType, space: SpaceDefinition) -> list[int]:
    """The fields that an UPSERT assigns: those of the columns outside the primary key."""
    if EXTRA in schema.fieldNames() and EXTRA not in {field.name for field in space.fields}:
        raise SourceError(f'column "{EXTRA}": operation=upsert assigns fields of the format only')
    keys = {part.field_no for part in space.primary.parts}
    names = {field.name: number for number, field in enumerate(space.fields)}
    return sorted(names[name] for name in schema.fieldNames() if names[name] not in keys)


def _packed(row: list[object], number: int) -> bytes:
    try:
        return codec.pack(row)
    except BoxError as error:
        raise SourceError(f"row {number}: {error.message}") from None


def _partition() -> int | str:
    context = TaskContext.get()
    return "?" if context is None else context.partitionId()
