"""A Spark session that reads spaces of running servers, one query of standard input after the other.

echo '{"url": "127.0.0.1:3301", "space": "queue", "page_rows": 1000}' |
    python -m bench.scenarios.spark.spark_server_queries 1

The argument is the number of cores for all processes of Spark.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count, lit

from bench.lib.query_process import answer_queries
from pyspark_tarantool.session import start


def read(session: SparkSession, query: dict[str, Any]) -> int:
    """Read all columns of all rows, and return the number of rows.

    Parameters:
        session: the session.
        query: the options of the data source.
    """
    frame = session.read.format("tarantool").options(**query).option("number", "bigint").load()
    # This takes less than a twentieth of the time.
    rows = Observation()
    frame.observe(rows, count(lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    return int(rows.get["rows"])


def main() -> None:
    """Read until the end of standard input."""
    cores = int(sys.argv[1])
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    with tempfile.TemporaryDirectory() as directory:
        session = start("bench", f"local[{cores}]", {"spark.local.dir": directory})
        answer_queries(lambda query: {"rows": read(session, query)})
        session.stop()


if __name__ == "__main__":
    main()
