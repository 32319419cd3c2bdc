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


_PARTITION: Final = 32 * 1024**2


def partition_bytes(mode: str, path: Path, cores: int) -> int:
    """How large partitions are: so that cores have as much to do each, and about 32 MiB or more at a time.

    In the mode `current` each partition's task reads all logs, so there is one for each core.
    """
    if cores == 1:
        return 0
    sizes = [file.stat().st_size for file in path.iterdir()]
    total = sum(sizes) if mode == "changes" else max(sizes)
    turns = 1 if mode == "current" else max(1, total // (cores * _PARTITION))
    return total // (cores * turns) + 1


def table(session: SparkSession, query: dict[str, Any]) -> DataFrame:
    """What a query reads."""
    path = query["path"]
    if query["mode"] == "json":
        return session.read.json(path)
    reader = session.read.format("tarantool").option("mode", query["mode"]).option("space", SPACE)
    reader = reader.option("partition_bytes", partition_bytes(query["mode"], Path(path), query["cores"]))
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
