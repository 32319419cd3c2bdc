"""Sends rows to a running server, as procedure calls or changes of a space.

Each row is sent at least once. Unanswered requests are resent after a lost connection, Spark reruns failed
tasks, and a restarted stream writes its last batch again; rows sent before remain. So a row may arrive twice.
Repeating `operation = replace` and `delete` is harmless, calls of `queue.put` create two tasks, and a
repeated `insert` is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
from pyspark_tarantool.sink.pipelined_client import PipelinedClient
from pyspark_tarantool.sink.remote_space import find_space
from pyspark_tarantool.sink.server_options import Operation, ServerOptions
from pyspark_tarantool.sink.tuples import Tuples
from pyspark_tarantool.source.errors import SourceError

_REQUESTS = {
    Operation.REPLACE: RequestType.REPLACE,
    Operation.INSERT: RequestType.INSERT,
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
    number = 0
    try:
        with PipelinedClient(
            options.uri, in_flight=options.in_flight, timeout=options.timeout, retries=options.retries
        ) as sender:
            tuples, request_type, body_of = _prepare(options, schema, sender)
            for batch in batches:
                first = number
                for row in tuples.rows(batch, first):
                    sender.send(request_type, body_of(_packed(row, number)))
                    number += 1
            sender.finish()
    except SourceError as error:
        raise SourceError(f"partition {_partition()}: {error}") from None
    return Written(number)


def _prepare(
    options: ServerOptions, schema: StructType, sender: PipelinedClient
) -> tuple[Tuples, RequestType, Callable[[bytes], bytes]]:
    """Prepare the conversion of rows to requests."""
    has_datetimes = sender.connection.has_datetimes
    if options.procedure is not None:
        tuples = Tuples.of_arguments(schema, options.json_columns, has_datetimes=has_datetimes)
        name = codec.pack(options.procedure)
        head = b"\x82" + bytes((Key.FUNCTION_NAME,)) + name + bytes((Key.TUPLE,))
        return tuples, RequestType.CALL, head.__add__
    assert options.space is not None
    space = sender.ask(partial(find_space, name_or_id=options.space))
    request_type = _REQUESTS[options.operation]
    number = bytes((Key.SPACE_ID,)) + codec.pack(space.id)
    if options.operation is Operation.DELETE:
        tuples = Tuples.of_keys(schema, space, has_datetimes=has_datetimes)
        return tuples, request_type, (b"\x82" + number + bytes((Key.KEY,))).__add__
    tuples = Tuples.of_space(schema, space, has_datetimes=has_datetimes)
    return tuples, request_type, (b"\x82" + number + bytes((Key.TUPLE,))).__add__


def _packed(row: list[object], number: int) -> bytes:
    try:
        return codec.pack(row)
    except BoxError as error:
        raise SourceError(f"row {number}: {error.message}") from None


def _partition() -> int | str:
    context = TaskContext.get()
    return "?" if context is None else context.partitionId()
