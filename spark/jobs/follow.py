"""Repeats a job whenever the server has logged something, as a stream of changes tells."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from threading import Lock

from pyspark.sql import DataFrame, SparkSession


def follow(
    session: SparkSession, path: str, options: Mapping[str, str], seconds: float, work: Callable[[], None]
) -> None:
    """Do some work now, and again after each batch of changes, until the stream is stopped.

    Parameters:
        session: The session.
        path: The directory of the logs.
        options: The data source's options, without `mode`.
        seconds: The minimum time between two batches.
        work: The work; it reads the files itself.

    Raises:
        StreamingQueryException: If following the logs or the work fails.
    """
    one_at_a_time = Lock()

    def again(changes: DataFrame, number: int) -> None:
        if not changes.isEmpty():
            with one_at_a_time:
                work()

    reader = session.readStream.format("tarantool").options(**options)
    changes = reader.options(mode="changes", tuples="json", starting="latest").load(path)
    with tempfile.TemporaryDirectory(prefix="follow-") as directory:
        query = (
            changes.select("lsn")
            .writeStream.foreachBatch(again)
            .option("checkpointLocation", directory)
            .trigger(processingTime=f"{seconds} seconds")
            .start()
        )
        try:
            # Later changes belong to a batch, so the work may begin.
            query.processAllAvailable()
            with one_at_a_time:
                work()
            query.awaitTermination()
        finally:
            query.stop()
