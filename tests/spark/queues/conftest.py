"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark.interpreted import interpreted


@pytest.fixture(scope="package", autouse=True)
def _interpreted(spark: SparkSession) -> Iterator[None]:
    with interpreted(spark):
        yield
