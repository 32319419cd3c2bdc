"""What is done in the processes in which Spark runs tasks."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark.source.worker import settle
from tests.storage.databases import jobs_box, save

_ONCE = """
import gc, sys
from importlib.machinery import ModuleSpec
from spark.source.worker import settle

sys.modules["__main__"].__spec__ = ModuleSpec("pyspark.daemon", None)
settle()
frozen = gc.get_freeze_count()
more = [[] for _ in range(1000)]
settle()
assert frozen > 1000, frozen
assert gc.get_freeze_count() <= frozen
"""


def _frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many objects are out of garbage collection where a task runs."""
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"frozen": [gc.get_freeze_count()]})


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_what_is_loaded_is_no_garbage_where_tasks_have_read(spark: SparkSession, tmp_path: Path) -> None:
    """The same processes do what comes next."""
    save(jobs_box([1, "ready"], [2, "ready"]), tmp_path, {})
    read = spark.read.format("tarantool").option("space", "jobs").load(str(tmp_path))
    assert read.count() == 2
    tasks = spark.range(8).repartition(8).mapInArrow(_frozen, "frozen long").collect()
    assert max(task.frozen for task in tasks) > 1000


def test_what_comes_later_may_be_garbage() -> None:
    """So it is done once in a process."""
    subprocess.run([sys.executable, "-c", _ONCE], check=True)


def test_other_processes_are_left_alone() -> None:
    before = gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() <= before
