"""The example with Spark, examples/spark_report.py, counts tasks by status."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from examples.spark_report import tasks_by_status
from tests.storage.databases import jobs_box, save


def test_the_report_counts_tasks(spark: SparkSession, tmp_path: Path) -> None:
    save(jobs_box([1, "taken"], [2, "ready"], [3, "ready"]), tmp_path, {})
    assert tasks_by_status(spark, str(tmp_path), "jobs") == {"ready": 2, "taken": 1}
