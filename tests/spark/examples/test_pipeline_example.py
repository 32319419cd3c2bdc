"""The example examples/spark_pipeline.py beside a server under load: each change is counted once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import tarantool
from pyspark.sql import SparkSession

from examples.spark_pipeline import run
from tests.running_server import QUEUE_APPLICATION, RunningServer


class Load:
    """A client that puts, takes and acknowledges tasks until it is told to stop."""

    def __init__(self, server: RunningServer) -> None:
        self.acked = 0
        self._stop = threading.Event()
        self._client = tarantool.Connection(server.host, server.port)
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._stop.is_set():
            self._client.call("queue.put", {"number": self.acked})
            self._client.call("queue.ack", self._client.call("queue.take")[0]["id"])
            self.acked += 1

    def stop(self) -> int:
        """Stop, and return the number of tasks that went through the queue."""
        self._stop.set()
        self._thread.join()
        self._client.close()
        return self.acked


def counts(session: SparkSession, data: Path, warehouse: Path) -> dict[str, int]:
    """Run the pipeline; return the number of changes by operation."""
    rows = run(session, str(data), str(warehouse), "queue").groupBy("operation").sum("changes").collect()
    return {row.operation: row[1] for row in rows}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_each_change_is_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    data, warehouse = tmp_path / "data", tmp_path / "warehouse"
    data.mkdir()
    with RunningServer(data, [QUEUE_APPLICATION]) as server:
        load = Load(server)
        try:
            during = counts(spark, data, warehouse)
        finally:
            tasks = load.stop()
    # Each task is inserted, taken by an update that is logged as the whole tuple, and deleted.
    after = counts(spark, data, warehouse)
    assert after == {"INSERT": tasks, "REPLACE": tasks, "DELETE": tasks}
    assert 0 < during["INSERT"] <= tasks
    assert counts(spark, data, warehouse) == after, "nothing new was logged"
    page = (warehouse / "report.html").read_text()
    assert page.count("<svg") == 1
    assert "The busiest hour began at" in page


def test_a_queue_without_changes_has_no_page(spark: SparkSession, tmp_path: Path) -> None:
    data, warehouse = tmp_path / "data", tmp_path / "warehouse"
    data.mkdir()
    with RunningServer(data, [QUEUE_APPLICATION]):
        pass
    assert counts(spark, data, warehouse) == {}
    assert not (warehouse / "report.html").exists()
