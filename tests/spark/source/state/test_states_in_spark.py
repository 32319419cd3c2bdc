"""States as Spark asks for them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.source.chronicle import START, STEP, Chronicle


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where rows were written, then a snapshot, then more."""
    chronicle = Chronicle(tmp_path, types=("unsigned", "string", "unsigned"))
    for key in range(6):
        chronicle.commit(chronicle.replace(key, "old", key))
    chronicle.snapshot()
    chronicle.rotate()
    chronicle.commit(chronicle.update([1], ["=", 1, "updated"]))
    chronicle.commit(chronicle.upsert([7, "upserted", 7], ["=", 1, "no"]), chronicle.delete(2))
    chronicle.commit(chronicle.replace(3, "replaced", 3))
    return tmp_path


def read(spark: SparkSession, directory: Path, **options: object) -> DataFrame:
    reader = spark.read.format("tarantool").option("space", "t").option("extra_fields", "drop")
    return reader.options(**{name: str(value) for name, value in options.items()}).load(str(directory))


def texts(frame: DataFrame) -> dict[int, str]:
    return {int(row["id"]): row["text"] for row in frame.collect()}


def test_each_mode(spark: SparkSession, directory: Path) -> None:
    now = {0: "old", 1: "updated", 3: "replaced", 4: "old", 5: "old", 7: "upserted"}
    assert texts(read(spark, directory)) == now
    then = {0: "old", 1: "updated", 2: "old", 3: "old", 4: "old", 5: "old"}
    assert texts(read(spark, directory, mode="at_lsn", lsn=7)) == then
    moment = datetime.fromtimestamp(START + 7 * STEP, UTC).isoformat()
    assert texts(read(spark, directory, mode="at_time", time=moment)) == then


def test_filters_of_the_key(spark: SparkSession, directory: Path) -> None:
    found = read(spark, directory, unsigned="bigint").where("id in (1, 2, 3) and id > 1")
    assert [row.asDict() for row in found.collect()] == [{"id": 3, "text": "replaced", "number": 3}]


def test_what_cannot_be_had(spark: SparkSession, directory: Path) -> None:
    min(directory.glob("*.xlog")).unlink()
    with pytest.raises(PySparkException, match=r"the earliest available state is \{1: 6\}"):
        read(spark, directory, mode="at_lsn", lsn=5).collect()
