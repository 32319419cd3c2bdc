"""Queries in a Spark of their own, whose seconds are the last line on stdout: what `bench.pipeline` measures.

echo '[{"mode": "snapshot", "path": "data", "cores": 1}]' | python -m bench.pipeline_queries 1
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.history import SPACE
from spark.session import start


def table(session: SparkSession, query: dict[str, Any]) -> DataFrame:
    """What a query reads: with two cores in as many partitions, at least, as there are cores."""
    if query["mode"] == "json":
        return session.read.json(query["path"])
    reader = session.read.format("tarantool").option("mode", query["mode"]).option("space", SPACE)
    if query["cores"] == 1:
        reader = reader.option("partition_bytes", 0)
    return reader.option("number", "bigint").load(query["path"])


def seconds_of(session: SparkSession, query: dict[str, Any]) -> float:
    """How long it takes to make all columns of all rows."""
    begin = time.perf_counter()
    table(session, query).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin


def main() -> None:
    """Run the queries that stdin has."""
    cores = int(sys.argv[1])
    queries = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as directory:
        session = start("bench", f"local[{cores}]", {"spark.local.dir": directory})
        session.range(1000).write.format("noop").mode("overwrite").save()  # what Spark does once
        print(json.dumps([seconds_of(session, query) for query in queries]))
        session.stop()


if __name__ == "__main__":
    main()
