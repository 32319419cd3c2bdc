"""Writes the batches of a stream to a server so that each takes effect exactly once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame

from pyspark_tarantool.sink.server_options import ServerOptions
from pyspark_tarantool.source.errors import SourceError

_QUERY_ID: Final = "sql.streaming.queryId"
"""The property in which Spark has the id of the query whose batch is processed."""


def exactly_once(query: str | None = None, **options: str) -> Callable[[DataFrame, int], None]:
    """Create a function for `foreachBatch` that writes each batch exactly once.

        changes.writeStream.foreachBatch(exactly_once(url="127.0.0.1:3301", space="accounts")).start()

    A batch is written in one transaction, by one task, in the order of its rows. The same transaction stores
    the batch's number in the space `spark_batches` of the server; a batch that Spark repeats is found there
    and left out.

    Parameters:
        query: The name under which numbers are stored; None for the query's id, which is in its checkpoint.
            A query with a new checkpoint counts its batches anew, so it needs another name.
        options: The options for writing to a server: `url`, `space` or `procedure`, and so on;
            `batches_space` is the name of the space of batch numbers.

    Returns:
        The function; it raises SourceError if a batch cannot be written.

    Raises:
        SourceError: If an option is wrong.
    """
    ServerOptions.parse({**options, "query": query or "x", "batch": "0"})

    def write(batch: DataFrame, number: int) -> None:
        name = query or _query_id(batch)
        # coalesce, unlike repartition, keeps the order of the rows.
        rows = batch.coalesce(1).write.format("tarantool").mode("append")
        rows.options(**options, query=name, batch=str(number)).save()

    return write


def _query_id(batch: DataFrame) -> str:
    """The id of the query that a batch belongs to."""
    # A session of Spark Connect has no context.
    context = getattr(batch.sparkSession, "sparkContext", None)
    name: str | None = None if context is None else context.getLocalProperty(_QUERY_ID)
    if not name:
        raise SourceError('the id of the query is unknown: pass a name, exactly_once("my query", …)')
    return name
