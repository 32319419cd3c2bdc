"""A state is looked for once, and again when there is more to it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from iproto_server.codec import msgpack as codec
from pyspark_tarantool.data_source import TarantoolDataSource
from pyspark_tarantool.source.arrow.columns import RAW
from pyspark_tarantool.source.state.state_files import StateFiles
from tests.spark.source.chronicle import Chronicle


@pytest.fixture
def chronicle(tmp_path: Path) -> Chronicle:
    made = Chronicle(tmp_path, clock={1: 1000})
    made.snapshot()
    made.commit(made.replace(1, "a", 0))
    return made


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The searches for states."""
    found: list[Any] = []
    find = StateFiles.find

    def count(*arguments: Any) -> StateFiles:
        found.append(arguments)
        return find(*arguments)

    monkeypatch.setattr(StateFiles, "find", count)
    return found


class Query:
    """A query whose columns are known, as Spark keeps it: to be read once or more, each time by a copy."""

    def __init__(self, directory: Path) -> None:
        options = {"path": str(directory), "space": "t", "mode": "current", "raw": "true"}
        source = TarantoolDataSource(options)
        self._schema = source.schema()
        self._shipped = pickle.dumps(source)

    def rows(self) -> list[Any]:
        """The tuples that it reads."""
        reader = pickle.loads(self._shipped).reader(self._schema)
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        return sorted(codec.unpack(raw) for batch in batches for raw in batch.column(RAW).to_pylist())


def test_a_reader_takes_the_state_that_the_columns_were_made_for(
    chronicle: Chronicle, searches: list[Any]
) -> None:
    query = Query(chronicle.directory)
    assert query.rows() == query.rows() == [[1, "a", 0]]
    assert len(searches) == 1


def test_rows_that_were_logged_meanwhile_are_read(chronicle: Chronicle, searches: list[Any]) -> None:
    query = Query(chronicle.directory)
    chronicle.commit(chronicle.replace(2, "b", 0))
    assert query.rows() == [[1, "a", 0], [2, "b", 0]]
    chronicle.commit(chronicle.truncate())
    assert query.rows() == []
    assert len(searches) == 3


def test_new_files_are_read(chronicle: Chronicle, searches: list[Any]) -> None:
    query = Query(chronicle.directory)
    chronicle.snapshot()
    chronicle.rotate()
    chronicle.commit(chronicle.replace(2, "b", 0))
    for old in sorted(chronicle.directory.iterdir())[:2]:
        old.unlink()
    assert query.rows() == [[1, "a", 0], [2, "b", 0]]
    assert len(searches) == 2
