"""Streams whose space changes its format, and where streams begin."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from pyspark_tarantool.source.batch.changes_reader import changes_schema
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.stream.stream_reader import ChangesStreamReader
from tests.spark.source.change_follower import ChangeFollower
from tests.spark.source.changing_spaces import INDEX, SPACE, Database, primary, space
from tests.spark.source.live_writer import LiveWriter
from tests.spark.source.stream.followed import follower, logs_of, lsns
from tests.spark.source.stream_follower import Follower
from tests.storage.databases import insert, write_log
from tests.storage.files import deletion, insertion


@pytest.fixture
def writer(tmp_path: Path) -> LiveWriter:
    """Somebody who writes logs in a directory `live`."""
    (tmp_path / "live").mkdir()
    return LiveWriter(tmp_path / "live")


class Changes:
    """The columns of changes as a stream gives them, of batches that are read one after the other."""

    def __init__(self, database: Database, **options: str) -> None:
        given = {"path": str(database.directory), **options}
        self._options = ReadOptions.parse(given, streaming=True)
        self._reader = ChangesStreamReader(self._options, changes_schema(self._options))
        self._start = self._reader.initialOffset()

    def next(self) -> list[dict[str, Any]]:
        """The rows of the next batch."""
        self._reader.prepareForTriggerAvailableNow()
        end = self._reader.latestOffset(self._start, ReadAllAvailable())
        parts = self._reader.partitions(self._start, end)
        self._start = end
        return [row for part in parts for batch in self._reader.read(part) for row in batch.to_pylist()]


def test_names_are_those_at_the_end_of_a_batch(tmp_path: Path) -> None:
    """Spaces may be made, renamed and dropped while the stream runs; rows of dropped ones keep their name."""
    database = Database(tmp_path)
    changes = Changes(database, space="jobs", tuples="json")
    assert changes.next() == []
    database.log(space(600, "jobs", "id", "data"), primary(600), insertion(600, 1, "a"))
    database.log(space(601, "others", "id"), primary(601), insertion(601, 1))
    (row,) = changes.next()
    assert (row["space"], row["key"], row["after"]) == ("jobs", "[1]", '[1,"a"]')
    database.log(insertion(600, 2, "b"), deletion(INDEX, 600, 0))
    assert [row["key"] for row in changes.next()] == ["[2]"]
    database.log(deletion(SPACE, 600), space(602, "jobs", "id"), primary(602), insertion(602, 3))
    assert [(row["space_id"], row["key"]) for row in changes.next()] == [(602, "[3]")]
    database.log(insertion(602, 4), deletion(602, 3), deletion(INDEX, 602, 0), deletion(SPACE, 602))
    told = [(row["operation"], row["space"], row["key"]) for row in changes.next()]
    assert told == [("INSERT", "jobs", "[4]"), ("DELETE", "jobs", "[3]")]


def test_columns_stay_what_they_were_when_the_query_began(tmp_path: Path) -> None:
    """A field that the format gets later is among the extra fields until the query is started again."""
    database = Database(tmp_path)
    database.log(space(600, "jobs", "id"), primary(600), insertion(600, 1))
    changes = Changes(database, space="jobs")
    assert [row["after"]["id"] for row in changes.next()] == [1]
    database.log(space(600, "jobs", "number", "data"), insertion(600, 2, "b"))
    assert [row["after"] for row in changes.next()] == [{"id": 2, "_extra": '["b"]'}]
    restarted = Changes(database, space="jobs")
    assert [row["after"]["data"] for row in restarted.next()] == [None, '"b"']


def test_a_space_is_found_by_its_number_without_any_snapshot(tmp_path: Path) -> None:
    """By its name it is not, and the error says what to do."""
    write_log(tmp_path, {1: 10}, [[insertion(600, 1)], [insertion(601, 1)]])
    query = Follower(tmp_path, space="600", tuples="json")
    query.follow()
    assert lsns(query) == [11]
    with pytest.raises(SourceError, match="wal_dir"):
        Follower(tmp_path, space="jobs", tuples="json").follow()


def test_logs_may_be_elsewhere_than_snapshots(tmp_path: Path) -> None:
    """As the option `wal_dir` says."""
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "logs").mkdir()
    database = Database(tmp_path / "snapshots")
    database.log(space(600, "jobs", "id"), primary(600), insertion(600, 1))
    for log in logs_of(database.directory):
        shutil.move(log, tmp_path / "logs")
    changes = Changes(database, space="jobs", wal_dir=str(tmp_path / "logs"))
    assert [row["key"] for row in changes.next()] == [{"id": 1}]


def test_rows_that_change_nothing_are_shown_on_demand(tmp_path: Path) -> None:
    """As in a table of changes."""
    write_log(tmp_path, {}, [[insert(1)], [(12, b"")]])
    for show_nop, expected in (("false", [1]), ("true", [1, 2])):
        query = Follower(tmp_path, show_nop=show_nop)
        query.follow()
        assert lsns(query) == expected


# -- formats that change --


def changing_format(tmp_path: Path) -> Database:
    """A database whose space `jobs` has one field, and a row."""
    database = Database(tmp_path)
    database.log(space(600, "jobs", "id"), primary(600), insertion(600, 1))
    return database


def test_a_query_may_end_where_fields_are_new_and_go_on_with_their_columns(tmp_path: Path) -> None:
    """With `schema_evolution=restart`: nothing is read in between, and nothing is left out."""
    database = changing_format(tmp_path)
    query = ChangeFollower(tmp_path, space="jobs", schema_evolution="restart")
    query.follow()
    database.log(insertion(600, 2), space(600, "jobs", "id", "data"), insertion(600, 3, "b"))
    with pytest.raises(SourceError, match=r"'jobs' has new fields 'data' \(any\): start the query again"):
        query.follow()
    query.restart()
    assert [row["after"]["data"] for row in query.follow()] == [None, '"b"']
    assert [row["lsn"] for row in query.rows] == [3, 4, 6]


def test_a_query_may_fail_where_fields_are_new_until_somebody_decides(tmp_path: Path) -> None:
    """With `schema_evolution=fail` it fails after a restart, too."""
    database = changing_format(tmp_path)
    query = ChangeFollower(tmp_path, space="jobs", schema_evolution="fail")
    query.follow()
    database.log(insertion(600, 2))
    query.restart()
    query.follow()
    database.log(space(600, "jobs", "id", "data"), insertion(600, 3, "b"))
    for _ in range(2):
        with pytest.raises(SourceError, match=r"new fields 'data' \(any\): schema_evolution=restart gives"):
            query.follow()
        query.restart()
    query.restart(schema_evolution="extra")
    assert [row["after"]["data"] for row in query.follow()] == ['"b"']


def test_a_renamed_field_is_a_new_one(tmp_path: Path) -> None:
    database = changing_format(tmp_path)
    query = ChangeFollower(tmp_path, space="jobs", schema_evolution="restart")
    query.follow()
    database.log(space(600, "jobs", "number"), insertion(600, 3))
    with pytest.raises(SourceError, match=r"new fields 'number' \(unsigned\)"):
        query.follow()


# -- where changes begin --


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"starting_lsn": "3"}, 3),
        ({"starting_lsn": "{1: 4}"}, 4),
        ({"starting_lsn": "0"}, 1),
        ({"starting_time": "1700000001"}, 1),
        ({"starting_time": "1700000003"}, 3),
        ({"starting_time": "1700000003.5"}, 4),
        ({"starting_time": "2023-11-14T22:13:24Z"}, 4),
        ({"starting_time": "1750000000"}, 7),
    ],
)
def test_a_stream_begins_at_an_lsn_or_a_time(writer: LiveWriter, options: dict[str, str], first: int) -> None:
    """That row is included; after a time behind the newest row come the rows that are written later."""
    for _ in range(3):
        writer.write([1, 1])
        writer.rotate()
    writer.now += 10
    query = follower(writer, **options)
    query.follow()
    writer.write([1])
    writer.now += 10
    query.restart()
    query.follow()
    assert lsns(query) == list(range(first, 8))


@pytest.mark.parametrize("options", [{"starting_lsn": "9"}, {"starting_time": "9999999999"}])
def test_a_beginning_in_the_future_is_an_error(writer: LiveWriter, options: dict[str, str]) -> None:
    writer.write([1, 1])
    with pytest.raises(SourceError, match="in the future"):
        follower(writer, **options).follow()


def test_a_beginning_whose_changes_are_gone_is_an_error(writer: LiveWriter) -> None:
    """Checkpoints of the server have removed them."""
    for _ in range(3):
        writer.write([1, 1])
        writer.rotate()
    writer.collect(keep=2)
    with pytest.raises(SourceError, match="rows 3 to 4 of member 1 are gone"):
        follower(writer, starting_lsn="3").follow()
    with pytest.raises(SourceError, match=r"since 2023-11-14T22:13:23\+00:00 are not all there"):
        follower(writer, starting_time="1700000003").follow()


def test_a_beginning_in_an_empty_directory_is_the_first_row(writer: LiveWriter) -> None:
    for options in ({"starting_lsn": "1"}, {"starting_time": "5"}):
        empty = Follower(writer.directory.with_name("live"), lambda: writer.now, **options)
        empty.follow()
        assert lsns(empty) == []
