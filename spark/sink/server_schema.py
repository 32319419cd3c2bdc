"""The columns of a table into which rows are inserted: those of a space of a running server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql.types import StructType

from pyspark_tarantool.sink.pipelined_client import PipelinedClient
from pyspark_tarantool.sink.remote_space import find_space
from pyspark_tarantool.sink.server_options import ServerOptions
from pyspark_tarantool.source.arrow.columns import row_columns
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ExtraFields, ReadOptions


def server_schema(given: Mapping[str, str]) -> StructType:
    """The columns of a space, from its format on the server.

    Parameters:
        given: The options, for `ServerOptions.parse`.

    Raises:
        SourceError: If an option is wrong, the server is unreachable, or there is no such space.
    """
    options = ServerOptions.parse(given)
    if options.space is None:
        raise SourceError("a procedure has no columns: name the space, or write with df.write")
    with PipelinedClient(
        options.uri, in_flight=1, timeout=options.timeout, retries=options.retries
    ) as sender:
        space = sender.ask(partial(find_space, name_or_id=options.space))
    return row_columns(space, ReadOptions(paths=(), extra_fields=ExtraFields.DROP)).schema
