"""The beginning of tasks' data, of each kind of queue: from states, and from logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_tarantool.queues import queue_kind
from tests.spark.interpreted import interpreted
from tests.spark.queues.scripted import LegacyActions, ScriptedServer, TubeActions, TutorialActions

QUEUES = {
    "tutorial": (TutorialActions, '"data"'),
    "legacy": (LegacyActions, '"data"'),
    "tubes": (TubeActions, '"data"'),
}


@pytest.fixture(scope="module", autouse=True)
def _interpreted(spark: SparkSession) -> Iterator[None]:
    with interpreted(spark):
        yield


@pytest.mark.parametrize("kind", QUEUES)
def test_of_present_and_of_logged_tasks(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    make, payload = QUEUES[kind]
    server = ScriptedServer(tmp_path, kind)
    actions = make(server)
    gone, present = actions.put(0, 60), actions.put(0, 60)
    taken = actions.take()
    assert taken == gone
    actions.ack(gone)
    server.close()
    queue = queue_kind(kind)
    stored = queue.payloads(spark, str(tmp_path), {"mode": "current"}).collect()
    assert [(row.queue, row.id, row.payload) for row in stored] == [(actions.queue, present, payload)]
    logged = queue.logged_payloads(spark, str(tmp_path), {}).collect()
    assert {(row.queue, row.id, row.payload) for row in logged} == {
        (actions.queue, gone, payload),
        (actions.queue, present, payload),
    }


def test_long_ones_are_cut(spark: SparkSession, tmp_path: Path) -> None:
    server = ScriptedServer(tmp_path, "tutorial")
    server.call("put", "x" * 1000)
    server.close()
    (row,) = queue_kind("tutorial").payloads(spark, str(tmp_path), {"mode": "current"}).collect()
    assert row.payload == '"' + "x" * 199 + "…"
