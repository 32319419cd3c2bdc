"""The columns of a query: which of the two kinds of queries wrong options are explained for."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_tarantool import TarantoolDataSource
from pyspark_tarantool.data_source import parse_either
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import Mode


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"mode": "at_time", "space": "queue", "time": "noon"},
            "the option \"time\" is 'noon', neither seconds since 1970 "
            "nor a time such as 2026-01-31T12:00:00Z",
        ),
        ({"mode": "AT_LSN", "space": "queue"}, 'the option "lsn" is missing'),
        ({}, 'the option "space" is missing: the name or the id of a space'),
        ({"space": "queue", "raw": "maybe"}, "the option \"raw\" is 'maybe', not true or false"),
        (
            {"mode": "changes", "starting": "now"},
            "the option \"starting\" is 'now', neither earliest, latest, snapshot "
            "nor a vector clock such as {1: 10, 2: 7}",
        ),
        (
            {"mode": "current", "space": "queue", "starting": "latest"},
            'the option "starting" is for streams only',
        ),
    ],
)
def test_an_error_is_about_the_query_that_the_options_describe(
    tmp_path: Path, given: dict[str, str], sentence: str
) -> None:
    source = TarantoolDataSource({"path": str(tmp_path), **given})
    with pytest.raises(SourceError) as caught:
        source.schema() if given else source.reader(None)  # type: ignore[arg-type]
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "given", [{"mode": "changes", "starting": "latest"}, {"max_bytes_per_trigger": "64m"}, {}]
)
def test_the_columns_of_a_stream_are_those_of_changes(given: dict[str, str]) -> None:
    assert parse_either({"path": ".", **given}).mode is Mode.CHANGES
