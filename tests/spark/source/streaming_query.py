"""A query that follows a live directory and keeps the changes as Parquet; a program, to be killed.

    python -m tests.spark.source.streaming_query DIRECTORY OUTPUT CHECKPOINT OPTIONS [once]

OPTIONS are those of the source, as JSON. Prints the clock of each batch that is done, as JSON. With `once` it
ends when all is read.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryListener

from pyspark_tarantool import session


class Progress(StreamingQueryListener):
    """Prints where the query is."""

    def onQueryStarted(self, event: object) -> None:
        """Nothing is done yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch is done."""
        offset = json.loads(event.progress.sources[0].endOffset or "{}")
        print(json.dumps(offset.get("vclock", {})), flush=True)

    def onQueryIdle(self, event: object) -> None:
        """There is nothing new."""

    def onQueryTerminated(self, event: object) -> None:
        """It has ended."""


def main(directory: str, output: str, checkpoint: str, options: str, *when: str) -> None:
    """Run the query."""
    config = {"spark.sql.shuffle.partitions": "2", "spark.ui.showConsoleProgress": "false"}
    spark = session.start("streaming query", "local[2]", config)
    spark.streams.addListener(Progress())
    stream = (
        spark.readStream.format("tarantool")
        .option("max_bytes_per_trigger", "200k")
        .option("partition_bytes", "50k")
        .options(**json.loads(options))
        .load(directory)
    )
    writer = stream.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if when else writer.trigger(processingTime="0 seconds")
    query = writer.start(output)
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
