"""A Spark session that runs queries from standard input, one JSON object a line, and prints their seconds.

echo '{"mode": "snapshot", "path": "data"}' | python -m bench.scenarios.spark_queries 1
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

from bench.workloads.history import SPACE
from pyspark_tarantool.session import start

_PARTITION: Final = 64 * 1024**2


def partition_bytes(mode: str, path: Path, cores: int) -> int:
    """Return the size of partitions: equal work for all cores, but at least about 64 MiB.

    In the mode `current` the task of each partition reads all logs, so there is one partition per core.
    """
    if cores == 1:
        return 0
    sizes = [file.stat().st_size for file in path.iterdir()]
    total = sum(sizes) if mode == "changes" else max(sizes)
    turns = 1 if mode == "current" else max(1, total // (cores * _PARTITION))
    return total // (cores * turns) + 1


def table(session: SparkSession, query: dict[str, Any], cores: int) -> DataFrame:
    """Return the data frame of a query."""
    path = query["path"]
    if query["mode"] == "json":
        return session.read.json(path)
    reader = session.read.format("tarantool").option("mode", query["mode"]).option("space", SPACE)
    reader = reader.option("partition_bytes", partition_bytes(query["mode"], Path(path), cores))
    return reader.option("number", "bigint").load(path)


def seconds_of(session: SparkSession, query: dict[str, Any], cores: int) -> float:
    """Measure the time to read all columns of all rows."""
    begin = time.perf_counter()
    table(session, query, cores).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin


def main() -> None:
    """Run queries until the end of standard input."""
    cores = int(sys.argv[1])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    with tempfile.TemporaryDirectory() as directory:
        session = start("bench", f"local[{cores}]", {"spark.local.dir": directory})
        for line in sys.stdin:
            print(seconds_of(session, json.loads(line), cores), flush=True)
        session.stop()


if __name__ == "__main__":
    main()
