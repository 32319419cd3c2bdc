"""Queries in a Spark of their own, whose seconds are the last line on stdout: what `bench.pipeline` measures.

echo '[{"mode": "snapshot", "path": "data", "cores": 1}]' | python -m bench.pipeline_queries 1
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from bench.history import SPACE
from spark.session import start

WARM_UPS: Final = 2
"""How often queries run before they count: Java compiles what is run often, also during the second time."""


def table(session: SparkSession, query: dict[str, Any]) -> DataFrame:
    """What a query reads: each file in as many partitions as there are cores."""
    path = query["path"]
    if query["mode"] == "json":
        return session.read.json(path)
    reader = session.read.format("tarantool").option("mode", query["mode"]).option("space", SPACE)
    if query["cores"] == 1:
        reader = reader.option("partition_bytes", 0)
    else:
        largest = max(file.stat().st_size for file in Path(path).iterdir())
        reader = reader.option("partition_bytes", largest // query["cores"] + 1)
    return reader.option("number", "bigint").load(path)


def seconds_of(session: SparkSession, query: dict[str, Any]) -> float:
    """How long it takes to make all columns of all rows."""
    begin = time.perf_counter()
    table(session, query).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin


def main() -> None:
    """Run the queries that stdin has."""
    cores = int(sys.argv[1])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    queries = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as directory:
        session = start("bench", f"local[{cores}]", {"spark.local.dir": directory})
        for query in WARM_UPS * queries:
            seconds_of(session, query)
        print(json.dumps([seconds_of(session, query) for query in queries]))
        session.stop()


if __name__ == "__main__":
    main()
