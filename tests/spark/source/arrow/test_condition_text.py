"""The option `where`, read as SQL is."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from pyspark_tarantool.source.arrow.arrays import TIMESTAMP
from pyspark_tarantool.source.arrow.condition_text import parse_condition
from pyspark_tarantool.source.errors import SourceError
from tests.spark.source.reading import Read
from tests.storage.databases import jobs_box, save

TYPES = {
    "id": pa.int64(),
    "amount": pa.decimal128(20, 0),
    "name": pa.string(),
    "key.a b": pa.string(),
    "key.id": pa.int64(),
    "data": pa.binary(),
    "done": pa.bool_(),
    "timestamp": TIMESTAMP,
    "and": pa.int64(),
}


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("id = 1", [EqualTo(("id",), 1)]),
        ("id == -1", [EqualTo(("id",), -1)]),
        ("id<=>null", [EqualNullSafe(("id",), None)]),
        ("id<1 AND id>-5", [LessThan(("id",), 1), GreaterThan(("id",), -5)]),
        ("id <= 1 And id >= 0", [LessThanOrEqual(("id",), 1), GreaterThanOrEqual(("id",), 0)]),
        ("id != 1", [Not(EqualTo(("id",), 1))]),
        ("id <> 1", [Not(EqualTo(("id",), 1))]),
        ("not id = 1", [Not(EqualTo(("id",), 1))]),
        ("id in (1,2 , 3)", [In(("id",), (1, 2, 3))]),
        ("id not in (1, null)", [Not(In(("id",), (1, None)))]),
        ("name is null", [IsNull(("name",))]),
        ("name IS NOT NULL", [IsNotNull(("name",))]),
        ("name = 'it''s and = 1'", [EqualTo(("name",), "it's and = 1")]),
        ("name = ''", [EqualTo(("name",), "")]),
        ("amount > 18446744073709551615", [GreaterThan(("amount",), Decimal(2**64 - 1))]),
        ("`key.a b` = 'x' and key.id = 2", [EqualTo(("key.a b",), "x"), EqualTo(("key.id",), 2)]),
        ("data = x'00fF'", [EqualTo(("data",), b"\x00\xff")]),
        ("done = true and `and` = 1", [EqualTo(("done",), True), EqualTo(("and",), 1)]),
        (
            "timestamp >= '2026-01-31T12:00:00Z'",
            [GreaterThanOrEqual(("timestamp",), datetime(2026, 1, 31, 12, tzinfo=UTC))],
        ),
    ],
)
def test_conditions(text: str, filters: list[Filter]) -> None:
    assert parse_condition(text, TYPES) == filters


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id = 1 or id = 2", "'or' is not expected: join comparisons by and"),
        ("id = 1 id = 2", "'id' is not expected"),
        ("id =", "it ends too early"),
        ("id", "it ends too early"),
        ("id in (1", "it ends too early"),
        ("id in 1", "a list in parentheses is expected after in"),
        ("id in (1 2)", r"a list ends with \)"),
        ("id is 1", "null is expected after is"),
        ("id not = 1", "a comparison is expected after 'id'"),
        ("1 = id", "the name of a column is expected instead of '1'"),
        ("(id = 1)", "the name of a column is expected instead of '\\('"),
        ("other = 1", "the column 'other' cannot be filtered while reading: these can: id, amount, name"),
        ("id = 1.5", "the column 'id' of the type int64 cannot be compared with 1.5"),
        ("id = '1'", "the column 'id' of the type int64 cannot be compared with '1'"),
        ("name = 1", "cannot be compared with 1"),
        ("name = true", "cannot be compared with true"),
        ("id = 1e5", "'1e5' is not understood"),
        ("name = 'open", '"\'open" is not understood'),
        ("id = 1; drop", "'; drop' is not understood"),
        ("timestamp > '2026-01-31T12:00:00'", "has no time zone"),
        ("timestamp > 'soon'", "'soon' is not a time such as"),
    ],
)
def test_wrong_conditions(text: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason) as error:
        parse_condition(text, TYPES)
    assert "an example: id >= 10" in str(error.value)


class TestQueries:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        save(jobs_box(*([number, "s"] for number in range(9))), tmp_path, {})
        return tmp_path

    @pytest.mark.parametrize("mode", ["snapshot", "current"])
    def test_states(self, directory: Path, mode: str) -> None:
        read = Read(directory, mode=mode, space="jobs", where="id >= 2 and id != 3 and id < 6")
        assert read.column("id") == [2, 4, 5]
        with pytest.raises(SourceError, match="the column 'status' cannot be filtered while reading"):
            Read(directory, mode=mode, space="jobs", where="status = 's'")

    def test_the_option_before(self, directory: Path) -> None:
        with pytest.raises(SourceError, match=r'"pushdown" was removed.*with the option "where"'):
            Read(directory, mode="snapshot", space="jobs", pushdown="true")
        assert len(Read(directory, mode="snapshot", space="jobs", pushdown="false").rows) == 9

    def test_an_empty_condition(self, directory: Path) -> None:
        with pytest.raises(SourceError, match='the option "where" is empty'):
            Read(directory, mode="snapshot", space="jobs", where=" ")

    def test_other_tables(self, directory: Path) -> None:
        with pytest.raises(SourceError, match='"where" is for the rows of spaces, not for mode=spaces'):
            Read(directory, mode="spaces", where="id = 1")
