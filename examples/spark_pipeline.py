"""Keeps the history of a queue as Parquet, counts it by the hour, and makes a page of it, with Spark.

    pip install '.[spark]'
    python examples/spark_pipeline.py ./data ./warehouse

The server may run meanwhile. Each call continues where the one before stopped, so cron can repeat it:

    ./data  ->  warehouse/changes  ->  warehouse/hourly  ->  warehouse/report.html
    logs        one row per change     one row per hour      for people
                                       and kind of change
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from pyspark_tarantool import start
from pyspark_tarantool.report import Finding, Level, Report, Series, columns
from pyspark_tarantool.report.quantities import moment, number

HOUR = 3600


def store_changes(session: SparkSession, directory: str, warehouse: str, space: str) -> DataFrame:
    """Append the changes that were logged since the last call; each is stored exactly once.

    Parameters:
        session: a session from `start`.
        directory: the directory with the logs.
        warehouse: the directory of the results.
        space: the name of the space.

    Returns:
        All changes that are stored.
    """
    stream = session.readStream.format("tarantool").options(mode="changes", space=space).load(directory)
    query = (
        stream.select("lsn", "timestamp", "operation", "key", "after")
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{warehouse}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{warehouse}/changes")
    )
    query.awaitTermination()
    return session.read.parquet(f"{warehouse}/changes")


def count_by_hour(changes: DataFrame, warehouse: str) -> DataFrame:
    """Count the changes of each hour by their operation, and store the result.

    Parameters:
        changes: the result of `store_changes`.
        warehouse: the directory of the results.

    Returns:
        A row for each hour and operation: `hour`, `operation`, `changes`.
    """
    hour = sql.date_trunc("hour", "timestamp").alias("hour")
    counted = changes.groupBy(hour, "operation").agg(sql.count("*").alias("changes"))
    counted.coalesce(1).write.mode("overwrite").parquet(f"{warehouse}/hourly")
    return changes.sparkSession.read.parquet(f"{warehouse}/hourly").orderBy("hour", "operation")


def write_report(hourly: DataFrame, file: Path) -> None:
    """Write the page.

    Parameters:
        hourly: the result of `count_by_hour`.
        file: the page; an existing one is replaced.
    """
    rows = hourly.collect()
    hours = sorted({row.hour for row in rows})
    counts = {(row.hour, row.operation): row.changes for row in rows}
    operations = sorted({row.operation for row in rows})
    total = sum(row.changes for row in rows)
    report = Report("Changes of the queue", "By the hour")
    busiest = max(hours, key=lambda hour: sum(row.changes for row in rows if row.hour == hour))
    summary = f"{number(total)} changes were logged from {moment(hours[0])} on."
    report.set_opening(summary, [Finding(Level.GOOD, f"The busiest hour began at {moment(busiest)}.")])
    series = [Series(name, [counts.get((hour, name), 0) for hour in hours]) for name in operations]
    report.add_chart(
        columns(hours, HOUR, series, "Time (UTC)", "Changes in an hour"), "The changes by their operation."
    )
    report.add_table("", ["hour", "operation", "changes"], [list(row) for row in rows])
    report.write(str(file))


def run(session: SparkSession, directory: str, warehouse: str, space: str) -> DataFrame:
    """Run all steps, and return the changes by the hour; the parameters are those of `store_changes`."""
    hourly = count_by_hour(store_changes(session, directory, warehouse, space), warehouse)
    if not hourly.isEmpty():
        write_report(hourly, Path(warehouse, "report.html"))
    return hourly


def main() -> None:
    """Read the command line and print the result."""
    parser = argparse.ArgumentParser(description="Keep the history of a queue, and count it by the hour.")
    parser.add_argument("directory", help="directory with snapshots and logs")
    parser.add_argument("warehouse", help="directory of the results")
    parser.add_argument("--space", default="queue", help="name of the space (queue)")
    arguments = parser.parse_args()
    run(start("spark_pipeline"), arguments.directory, arguments.warehouse, arguments.space).show()


if __name__ == "__main__":
    main()
