"""Filters that are evaluated while files are read: what they mean, and what is not read because of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
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
    StringStartsWith,
)

from iproto_server.storage.directory import file_name
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, FileType, RowEncoder, XlogWriter
from pyspark_tarantool.source.arrow.columns import RowColumns
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch import changes_reader, snapshot_reader
from pyspark_tarantool.source.decode.row_scanner import read_rows
from pyspark_tarantool.source.io import byte_ranges
from tests.spark.source.reading import Read
from tests.storage.databases import jobs_box, save
from tests.storage.files import TIMESTAMP, Request, deletion, header, insertion, replacement

COLUMN: Final = ("c",)
VALUES: Final = (1, 2, 3, None)


class TestMeaning:
    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            (EqualTo(COLUMN, 2), [2]),
            (EqualTo(COLUMN, None), []),
            (EqualNullSafe(COLUMN, 2), [2]),
            (EqualNullSafe(COLUMN, None), [None]),
            (GreaterThan(COLUMN, 1), [2, 3]),
            (GreaterThanOrEqual(COLUMN, 2), [2, 3]),
            (LessThan(COLUMN, 2), [1]),
            (LessThanOrEqual(COLUMN, 2), [1, 2]),
            (LessThan(COLUMN, None), []),
            (In(COLUMN, (1, 3, 5)), [1, 3]),
            (In(COLUMN, (1, None)), [1]),
            (In(COLUMN, ()), []),
            (IsNull(COLUMN), [None]),
            (IsNotNull(COLUMN), [1, 2, 3]),
            (Not(EqualTo(COLUMN, 2)), [1, 3]),
            (Not(EqualNullSafe(COLUMN, 2)), [1, 3, None]),
            (Not(GreaterThan(COLUMN, 1)), [1]),
            (Not(In(COLUMN, (1, 3))), [2]),
            (Not(In(COLUMN, (1, None))), []),
            (Not(IsNull(COLUMN)), [1, 2, 3]),
        ],
        ids=str,
    )
    def test_is_that_of_sql(self, condition: Filter, expected: list[int | None]) -> None:
        """What is compared with null is unknown, and so is its negation."""
        filters = Filters()
        assert list(filters.accept([condition], {"c": pa.int64()})) == []
        mask = filters.mask({"c": pa.array(VALUES, pa.int64())})
        assert [value for value, wanted in zip(VALUES, mask.tolist(), strict=True) if wanted] == expected
        # An interval is never left out that has one of them.
        there = [value for value in expected if value is not None]
        assert all(filters.overlaps("c", value, value) for value in there)
        assert not there or (filters.overlaps("c", 0, None) and filters.overlaps("c", 0, 9))

    @pytest.mark.parametrize(
        "condition",
        [
            StringStartsWith(COLUMN, "x"),
            EqualTo(("c", "inner"), 1),
            EqualTo(("other",), 1),
            EqualTo(COLUMN, 1.5),
            EqualTo(COLUMN, "text"),
            EqualTo(COLUMN, 2**70),
            Not(Not(EqualTo(COLUMN, 1))),
        ],
        ids=str,
    )
    def test_of_others_is_left_to_spark(self, condition: Filter) -> None:
        filters = Filters()
        assert list(filters.accept([condition], {"c": pa.int64()})) == [condition]
        assert not filters.conditions

    def test_of_floats_is_left_to_spark(self) -> None:
        """Spark has an order for NaN that Arrow has not."""
        condition = EqualTo(COLUMN, 1)
        assert list(Filters().accept([condition], {"c": pa.float64()})) == [condition]


class Counted:
    """How much is read.

    Attributes:
        blocks: The blocks that were read.
        rows: How many rows became columns.
        files: The files that were read.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.rows = 0
        self.files: set[str] = set()


@pytest.fixture
def counted() -> Iterator[Counted]:
    """Counts what readers read."""
    found = Counted()
    arrays = RowColumns.arrays

    def read_blocks(part: byte_ranges.FileRange, damages: Any) -> Iterator[Block]:
        found.files.add(Path(part.uri).name)
        for block in byte_ranges.read_blocks(part, damages):
            found.blocks.append(block)
            yield block

    def counting(self: RowColumns, item: Any, count: int, *more: Any) -> Any:
        found.rows += count
        return arrays(self, item, count, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes_reader, "read_blocks", read_blocks)
        patch.setattr(snapshot_reader, "read_blocks", read_blocks)
        patch.setattr(RowColumns, "arrays", counting)
        yield found


class TestStates:
    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        save(jobs_box(*([number, f"s{number % 3}"] for number in range(100))), tmp_path, {})
        return tmp_path

    def test_make_only_wanted_rows(self, directory: Path, counted: Counted) -> None:
        """A filter on the primary key is evaluated before other fields are looked at."""
        read = Read(
            directory,
            filters=(GreaterThan(("id",), Decimal(10)), LessThan(("id",), Decimal(13))),
            mode="snapshot",
            space="jobs",
        )
        assert read.unhandled == []
        assert read.column("status") == ["s2", "s0"]
        assert counted.rows == 2

    def test_leave_filters_on_other_fields_to_spark(self, directory: Path) -> None:
        condition = EqualTo(("status",), "s0")
        read = Read(directory, filters=(condition,), mode="snapshot", space="jobs")
        assert read.unhandled == [condition]
        assert len(read.rows) == 100


def _write_log(directory: Path, first: int, requests: list[Request], *, member: int = 1) -> None:
    """A log of transactions of one row, one block each; a second passes with each of them."""
    clock = {member: first - 1} if first > 1 else {}
    encoder = RowEncoder(member)
    path = directory / file_name(FileType.LOG, first - 1)
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header(FileType.LOG, VClock(clock)))
        for lsn, request in enumerate(requests, first):
            writer.write([encoder.transaction(lsn, TIMESTAMP + lsn, (request,))])
        writer.end()


LOGS: Final = tuple(file_name(FileType.LOG, number) for number in (0, 10, 20))


class TestChanges:
    """Three logs with ten rows each; the rows' numbers are their keys, too."""

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        save(jobs_box(), tmp_path, {})
        kinds = (insertion, replacement)
        for first in (1, 11, 21):
            requests = [
                deletion(512, number) if number % 5 == 0 else kinds[number % 2](512 + number % 2, number)
                for number in range(first, first + 10)
            ]
            _write_log(tmp_path, first, requests)
        return tmp_path

    @pytest.mark.parametrize(
        ("conditions", "lsns", "logs"),
        [
            ((GreaterThan(("lsn",), 19),), range(20, 31), LOGS[1:]),
            ((GreaterThan(("lsn",), 20),), range(21, 31), LOGS[2:]),
            ((LessThanOrEqual(("lsn",), 10), GreaterThan(("lsn",), 8)), (9, 10), LOGS[:1]),
            ((EqualTo(("lsn",), 11),), (11,), LOGS[1:2]),
            ((In(("lsn",), (3, 25)),), (3, 25), (LOGS[0], LOGS[2])),
            ((LessThan(("lsn",), 5),), range(1, 5), LOGS[:1]),
            ((GreaterThan(("lsn",), 2**40),), (), LOGS[2:]),
            ((LessThan(("lsn",), 1),), (), ()),
            ((EqualTo(("replica_id",), 1), LessThan(("lsn",), 3)), (1, 2), LOGS[:1]),
            ((EqualTo(("replica_id",), 2),), (), LOGS[2:]),
            ((IsNull(("lsn",)),), (), ()),
        ],
        ids=str,
    )
    def test_of_logs_whose_clocks_show_that_nothing_is_wanted_are_not_read(
        self,
        directory: Path,
        counted: Counted,
        conditions: tuple[Filter, ...],
        lsns: Any,
        logs: tuple[str, ...],
    ) -> None:
        """Of the last log nobody knows where it ends, or who has written it: others than before may have."""
        read = Read(directory, filters=conditions, mode="changes")
        assert read.unhandled == []
        assert read.column("lsn") == list(lsns)
        expected = set(logs) | ({LOGS[2]} if _may_be_anybody(conditions) else set())
        if conditions == (IsNull(("lsn",)),):
            expected = counted.files
        assert counted.files == expected

    def test_of_other_columns_are_left_out_before_tuples_are_unpacked(
        self, directory: Path, counted: Counted
    ) -> None:
        moment = datetime.fromtimestamp(TIMESTAMP + 12, UTC)
        conditions = (
            EqualTo(("operation",), "REPLACE"),
            GreaterThanOrEqual(("timestamp",), moment),
            Not(EqualTo(("space",), "jobs")),
        )
        read = Read(directory, filters=conditions, mode="changes")
        assert read.unhandled == []
        assert read.rows == []
        only = Read(directory, filters=conditions[:2], mode="changes", space=513, tuples="json")
        assert only.column("lsn") == [13, 17, 19, 21, 23, 27, 29]
        assert counted.rows == 0

    def test_of_spaces_are_found_without_decoding_other_blocks(
        self, directory: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decoded: list[Block] = []

        def counting(blocks: list[Block], *more: Any) -> Any:
            decoded.extend(blocks)
            return read_rows(blocks, *more)

        monkeypatch.setattr(changes_reader, "read_rows", counting)
        read = Read(directory, filters=(EqualTo(("space_id",), 513),), mode="changes")
        assert read.column("lsn") == [number for number in range(1, 31) if number % 2 and number % 5]
        assert len(decoded) == len(read.rows)
        assert Read(directory, filters=(EqualTo(("space",), "none"),), mode="changes").partitions == 0


def test_on_keys_of_changes_are_evaluated_before_tuples_are_unpacked(
    tmp_path: Path, counted: Counted
) -> None:
    save(jobs_box(), tmp_path, {})
    _write_log(tmp_path, 1, [insertion(512, number, "x") for number in range(20)] + [deletion(512, 7)])
    condition = EqualTo(("key", "id"), Decimal(7))
    read = Read(tmp_path, filters=(condition,), mode="changes", space="jobs")
    assert read.unhandled == []
    assert read.column("operation") == ["INSERT", "DELETE"]
    assert [row and row["status"] for row in read.column("after")] == ["x", None]
    assert counted.rows == 21 + 2
    assert Read(tmp_path, filters=(condition,), mode="changes").unhandled == [condition]


def _may_be_anybody(conditions: tuple[Filter, ...]) -> bool:
    """Whether rows of a member whose clock nobody knows yet may be wanted: its numbers begin with 1."""
    if any(isinstance(condition, EqualTo) and condition.value == 1 for condition in conditions):
        return False
    return not any(isinstance(condition, LessThan) and condition.value == 1 for condition in conditions)


@pytest.mark.slow
def test_spark_and_the_reader_agree(spark: SparkSession, tmp_path: Path) -> None:
    """The option `where` selects the rows that Spark's own filter selects."""
    save(jobs_box(*([number, f"s{number % 3}"] for number in range(50))), tmp_path, {})
    condition = "id >= 5 and id in (4, 5, 6, 49) and not id = 6"
    reader = spark.read.format("tarantool").options(mode="snapshot", space="jobs")
    evaluated = reader.load(str(tmp_path)).where(condition).collect()
    selected = reader.option("where", condition).load(str(tmp_path)).collect()
    assert [tuple(row) for row in selected] == [(Decimal(5), "s2", None), (Decimal(49), "s1", None)]
    assert selected == evaluated


def test_queries_on_one_loaded_table_do_not_miss_rows_for_each_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark uses pushed filters of one scan for all scans of the table, so none is accepted from it."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    save(jobs_box(*([number, "s"] for number in range(9))), tmp_path, {})
    table = spark.read.format("tarantool").options(mode="snapshot", space="jobs").load(str(tmp_path))
    assert table.where("id < 3").count() == 3
    assert table.count() == 9
    both = table.where("id < 2").union(table.where("id > 6"))
    assert sorted(row.id for row in both.collect()) == [0, 1, 7, 8]
