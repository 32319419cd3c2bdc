"""The Spark session that the tests share: to start one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool import session
from tests.programs import require_program

_PATIENCE = 400
"""Seconds that a test may take which needs Spark. One or ten are enough, but not on a busy machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests that need Spark their time: one that is cut off breaks the session of the others."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_PATIENCE))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two threads and the data source; it writes nothing into the working directory."""
    require_program("java", "default-jre-headless")
    directory = tmp_path_factory.mktemp("spark")
    started = session.start(
        "tests",
        "local[2]",
        {
            "spark.local.dir": str(directory / "local"),
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.stateStore.maintenanceInterval": "1h",
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        },
    )
    try:
        yield started
    finally:
        started.stop()
