"""Errors about a value of a state name the files that have it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql.types import ByteType, StructField, StructType

from pyspark_tarantool.source.errors import SourceError
from tests.spark.source.reading import Read
from tests.storage.databases import insert, jobs_box, save, update, write_log

SMALL = StructType([StructField("id", ByteType())])


def _error(directory: Path) -> str:
    with pytest.raises(SourceError, match="field 'id': the value 300 does not fit") as error:
        Read(directory, SMALL, space="jobs")
    return str(error.value)


def test_a_row_of_the_snapshot(tmp_path: Path) -> None:
    snapshot = save(jobs_box([300, "x"]), tmp_path, {1: 1})
    write_log(tmp_path, {1: 1}, [[insert(2, "y")]])
    assert _error(tmp_path).startswith(f"{snapshot}: space 'jobs'")


def test_a_row_of_a_log(tmp_path: Path) -> None:
    save(jobs_box([1, "x"]), tmp_path, {1: 1})
    log = write_log(tmp_path, {1: 1}, [[insert(300, "y")]])
    assert _error(tmp_path).startswith(f"{log}: space 'jobs'")


def test_a_row_of_several_logs(tmp_path: Path) -> None:
    save(jobs_box([1, "x"]), tmp_path, {1: 1})
    first = write_log(tmp_path, {1: 1}, [[insert(300, "y")]])
    last = write_log(tmp_path, {1: 2}, [[insert(2, "y")]])
    assert _error(tmp_path).startswith(f"one of the logs {first} to {last}: space 'jobs'")


def test_a_row_of_the_snapshot_that_was_changed_later(tmp_path: Path) -> None:
    snapshot = save(jobs_box([300, "x"]), tmp_path, {1: 1})
    log = write_log(tmp_path, {1: 1}, [[update([300], [["=", 1, "z"]])]])
    assert re.match(re.escape(f"{snapshot} or {log}: "), _error(tmp_path))
