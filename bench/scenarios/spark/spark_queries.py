"""A Spark session that runs queries from standard input, one JSON object a line.

echo '{"mode": "snapshot", "path": "data"}' | python -m bench.scenarios.spark.spark_queries 1

The answer to each is a line with the seconds and the bytes of Java's heap, as JSON.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from bench.lib.query_process import Answer, answer_queries
from bench.workloads.history import SPACE
from pyspark_tarantool.session import start

_PARTITION: Final = 64 * 1024**2


def equal_partition_bytes(mode: str, path: Path, cores: int) -> int:
    """Return the size of partitions: equal work for all cores, but at least about 64 MiB.

    In the mode `current` there is one partition per core: the tasks of two partitions read all logs
    themselves, at the same time.
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
    partition_bytes = query.get("partition_bytes")
    if partition_bytes is None:
        partition_bytes = equal_partition_bytes(query["mode"], Path(path), cores)
    reader = session.read.format("tarantool").option("mode", query["mode"]).option("space", SPACE)
    reader = reader.option("partition_bytes", partition_bytes)
    return reader.option("number", "bigint").load(path)


class Heap:
    """The heap of a session's JVM.

    Parameters:
        session: the session.
    """

    def __init__(self, session: SparkSession) -> None:
        assert session.sparkContext._jvm is not None
        pools = session.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        self._pools = [pool for pool in pools if pool.getType().name() == "HEAP"]

    def forget_peak(self) -> None:
        """Begin with the present size."""
        for pool in self._pools:
            pool.resetPeakUsage()

    def peak(self) -> int:
        """Return the sum of the peaks of its pools, in bytes, including garbage."""
        return sum(int(pool.getPeakUsage().getUsed()) for pool in self._pools)


def main() -> None:
    """Run queries until the end of standard input."""
    cores = int(sys.argv[1])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    with tempfile.TemporaryDirectory() as directory:
        session = start("bench", f"local[{cores}]", {"spark.local.dir": directory})
        heap = Heap(session)

        def read(query: dict[str, Any]) -> Answer:
            """Read all columns of all rows."""
            heap.forget_peak()
            table(session, query, cores).write.format("noop").mode("overwrite").save()
            return {"heap": heap.peak()}

        answer_queries(read)
        session.stop()


if __name__ == "__main__":
    main()
