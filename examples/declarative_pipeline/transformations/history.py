"""The history of a queue, and its changes by the hour, as tables of a Spark Declarative Pipeline.

    pip install '.[pipelines]'
    export SPARK_CONF_DIR=examples/declarative_pipeline
    spark-pipelines run --spec $SPARK_CONF_DIR/spark-pipeline.yml

The server may run meanwhile. Each run continues where the one before stopped:

    the server's directory  ->  changes             ->  hourly
    snapshot, then logs         one row per change      one row per hour and kind of change
"""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

spark = SparkSession.active()


@dp.table(comment="The rows of the first snapshot, then each change after it, once.")
def changes() -> DataFrame:
    """Follow the space `spark.queue.space` in the directory `spark.queue.directory`.

    Returns:
        A stream with the columns `lsn`, `timestamp`, `operation`, `key` and `after`.
    """
    stream = (
        spark.readStream.format("tarantool")
        .options(readChangeFeed="true", space=spark.conf.get("spark.queue.space"))
        .load(spark.conf.get("spark.queue.directory"))
    )
    return stream.select("lsn", "timestamp", "operation", "key", "after")


@dp.materialized_view(comment="The number of changes in each hour, by operation.")
def hourly() -> DataFrame:
    """Count the changes of each hour by their operation.

    Returns:
        A row for each hour and operation: `hour`, `operation`, `changes`.
    """
    hour = sql.date_trunc("hour", "timestamp").alias("hour")
    return spark.read.table("changes").groupBy(hour, "operation").agg(sql.count("*").alias("changes"))
