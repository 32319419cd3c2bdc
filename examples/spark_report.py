"""Counts the tasks of a data directory by status, with Spark.

    pip install '.[spark]'
    python examples/spark_report.py ./data --space queue

The server may run meanwhile; Spark reads its files only.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

from pyspark_tarantool.session import start


def tasks_by_status(session: SparkSession, directory: str, space: str) -> dict[str, int]:
    """Count the rows of a space by their field `status`.

    Parameters:
        session: a session from `pyspark_tarantool.session.start`.
        directory: the directory with snapshots and logs.
        space: the name of the space.

    Returns:
        The number of rows of each status.
    """
    tasks = session.read.format("tarantool").option("space", space).load(directory)
    rows = tasks.groupBy("status").count().collect()
    return {row["status"]: row["count"] for row in rows}


def main() -> None:
    """Read the command line and print the counts."""
    parser = argparse.ArgumentParser(description="Count the tasks of a data directory by status.")
    parser.add_argument("directory", help="directory with snapshots and logs")
    parser.add_argument("--space", default="queue", help="name of the space (queue)")
    arguments = parser.parse_args()
    counts = tasks_by_status(start("spark_report"), arguments.directory, arguments.space)
    for status, count in sorted(counts.items()):
        print(f"{status}: {count}")


if __name__ == "__main__":
    main()
