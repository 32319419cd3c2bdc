"""The session that jobs and tests start."""

from __future__ import annotations

import subprocess
import sys

from pyspark.sql import SparkSession


def test_a_session_counts_time_in_utc_and_knows_the_data_source(spark: SparkSession) -> None:
    """Times are read as the server means them, and `format("tarantool")` is there, with filters pushed down."""
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"
    assert spark.range(3).count() == 3


def test_importing_the_package_needs_no_pyspark() -> None:
    """Whoever only looks at the package does not pay for Spark."""
    script = "import sys, spark; assert 'pyspark' not in sys.modules; spark.register; assert 'pyspark' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
