"""The session that jobs and tests start."""

from __future__ import annotations

import subprocess
import sys

from pyspark.sql import SparkSession

_IMPORT = """
import sys, spark
assert "pyspark" not in sys.modules
assert spark.register is not None
assert "pyspark" in sys.modules
"""


def test_a_session_counts_time_in_utc_and_pushes_filters_down(spark: SparkSession) -> None:
    """Times are read as the server means them, and the data source may push filters down."""
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"


def test_importing_the_package_needs_no_pyspark() -> None:
    """Whoever only looks at the package does not pay for Spark."""
    subprocess.run([sys.executable, "-c", _IMPORT], check=True)
