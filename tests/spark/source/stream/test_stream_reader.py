"""Streams of a live directory, as Spark asks for them: where they begin, what is refused, what they have."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes
from pyspark.sql.types import LongType, StructField, StructType

from iproto_server.storage.directory import list_files
from iproto_server.storage.errors import LogGapError, XlogError
from iproto_server.storage.xlog import FileType
from pyspark_tarantool.source.batch.changes_reader import changes_schema
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.stream.stream_reader import ChangesStreamReader
from tests.spark.source.change_follower import ChangeFollower
from tests.spark.source.changing_spaces import INDEX, SPACE, Database, primary, space
from tests.spark.source.live_writer import LiveWriter
from tests.spark.source.stream_follower import Follower
from tests.storage.databases import insert, write_log
from tests.storage.files import deletion, insertion


@pytest.fixture
def writer(tmp_path: Path) -> LiveWriter:
    """Somebody who writes logs in a directory `live`."""
    (tmp_path / "live").mkdir()
    return LiveWriter(tmp_path / "live")


def follower(writer: LiveWriter, **options: str) -> Follower:
    """A query that follows a writer, in the writer's time."""
    return Follower(writer.directory, lambda: writer.now, **options)


def logs_of(directory: Path) -> list[Path]:
    """The logs of a directory, oldest first."""
    return list_files(directory, FileType.LOG)


def lsns(query: Follower) -> list[int]:
    """The numbers of the rows that a query has read."""
    return [lsn for _, lsn, _ in query.rows]


# -- the end of the newest log --


def test_what_was_written_last_counts_when_something_follows_or_time_has_passed(writer: LiveWriter) -> None:
    """A server may still take it back, if it cannot sync it."""
    query = follower(writer)
    writer.write([1])
    query.follow()
    assert lsns(query) == []
    writer.write([1])
    query.follow()
    assert lsns(query) == [1]
    writer.now += 1.5
    query.follow()
    assert lsns(query) == [1, 2]


def test_blocks_that_were_written_at_once_count_together(writer: LiveWriter) -> None:
    """Of three blocks of a write the first two say nothing of whether it has succeeded."""
    query = follower(writer)
    writer.look = query.follow
    writer.write([1])
    writer.fail_to_sync([140_000, 140_000, 140_000])
    assert lsns(query) == [1]
    writer.write([140_000, 140_000, 1])
    query.follow()
    assert lsns(query) == [1]
    writer.write([1])
    query.follow()
    assert lsns(query) == [1, 2, 3, 4]


@pytest.mark.parametrize("max_bytes", ["1", "100", "150", "200", "250", "1g"])
def test_rows_behind_the_beginning_of_the_next_log_are_left_out(writer: LiveWriter, max_bytes: str) -> None:
    """They are left over from a write that failed and could not be cut off; their numbers are used again."""
    query = follower(writer, max_bytes_per_trigger=max_bytes)
    writer.write([1, 1])
    writer.fail_to_write([140_000, 140_000, 1], 0.9, may_cut=False)
    writer.write([2, 2, 2])
    writer.rotate()
    query.follow()
    assert query.rows == writer.rows


def test_rows_that_are_taken_back_after_they_were_shown_are_an_error(writer: LiveWriter) -> None:
    """It takes a disk that fails to sync only after more than a second, or a machine that has lost power."""
    query = follower(writer)
    writer.write([1])

    def look_late() -> None:
        writer.now += 5
        query.follow()

    writer.look = look_late
    writer.fail_to_sync([1])
    assert lsns(query) == [1, 2]
    with pytest.raises(SourceError, match=r"end at \{1: 1\}, before \{1: 2\}.*has lost rows"):
        query.follow()
    writer.write([1, 1])
    with pytest.raises(SourceError, match="row 2 of member 1 is not the one that the stream has read"):
        query.follow()
    query.restart()
    with pytest.raises(SourceError, match="checkpointLocation"):
        query.follow()


def test_a_block_that_is_not_whole_is_not_read(writer: LiveWriter) -> None:
    """However much of it there is, and whatever it looks like inside."""
    writer.write([1, 1])
    (log,) = logs_of(writer.directory)
    whole = log.read_bytes()
    writer.write([9000])
    block = log.read_bytes()[len(whole) :]
    query = follower(writer)
    for cut in range(1, len(block)):
        log.write_bytes(whole + block[:cut])
        os.utime(log, (1, 1))
        query.follow()
        assert lsns(query) == [1, 2]
    log.write_bytes(whole + block)
    os.utime(log, (1, 1))
    query.follow()
    assert lsns(query) == [1, 2, 3]


def test_a_log_without_rows_may_be_written_anew_with_another_header(writer: LiveWriter) -> None:
    """As a server of a newer version does."""
    query = follower(writer)
    writer.write([1])
    writer.rotate()
    query.follow()
    _, empty = logs_of(writer.directory)
    empty.unlink()
    writer.restart()
    for version in ("2.11.0", "2.11.0 and a longer name of it"):
        writer._files._server_version = version
        writer._files.rotate(writer.vclock)
        query.follow()
        logs_of(writer.directory)[-1].unlink()
        writer.restart()
    writer.write([1, 1])
    writer.rotate()
    query.follow()
    assert query.rows == writer.rows


# -- where a stream begins --


def test_a_directory_without_logs_has_an_empty_stream(tmp_path: Path) -> None:
    """The stream waits for the first one."""
    query = Follower(tmp_path)
    query.follow()
    assert query.batches == [0]
    write_log(tmp_path, {1: 5}, [[insert(1)], [insert(2)]])
    query.restart()
    query.follow()
    assert lsns(query) == [6, 7]


@pytest.mark.parametrize("path", ["nowhere", "nowhere/*.xlog"])
def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path, path: str) -> None:
    """It is not taken for a directory without logs."""
    with pytest.raises(SourceError, match="nowhere"):
        Follower(tmp_path / path).follow()


@pytest.mark.parametrize(
    ("starting", "first"), [("earliest", 4), ("latest", 9), ("{1: 3}", 4), ("{1: 6}", 7), ("{1: 8, 2: 0}", 9)]
)
def test_a_stream_begins_where_the_option_says(tmp_path: Path, starting: str, first: int) -> None:
    """At the oldest log there is, at the end of the newest, or behind a clock."""
    write_log(tmp_path, {1: 3}, [[insert(1)], [insert(2)]])
    write_log(tmp_path, {1: 5}, [[insert(3)], [insert(4), insert(5)]], previous={1: 3}, is_ended=False)
    for log in logs_of(tmp_path):
        os.utime(log, (1, 1))
    query = Follower(tmp_path, starting=starting)
    query.follow()
    write_log(tmp_path, {1: 8}, [[insert(6)]], previous={1: 5})
    query.restart()
    query.follow()
    assert lsns(query) == list(range(first, 10))


def test_the_first_batch_is_the_same_when_it_is_tried_again(writer: LiveWriter) -> None:
    """Though the newest, or the oldest, row is another one by then."""
    writer.write([1, 1])
    writer.now += 10
    query = follower(writer, starting="latest")
    assert query.plan()
    writer.write([1, 1])
    writer.now += 10
    query.restart()
    query.follow()
    assert lsns(query) == [3, 4]


def test_logs_before_a_latest_that_is_none_are_those_that_follow(writer: LiveWriter) -> None:
    """In an empty directory everything is later, even if the query is restarted meanwhile."""
    query = follower(writer, starting="latest")
    query.follow()
    writer.write([1])
    writer.now += 10
    query.restart()
    query.follow()
    assert lsns(query) == [1]


def test_a_beginning_behind_the_end_is_an_error(tmp_path: Path) -> None:
    """Rows before it would be left out without a word."""
    write_log(tmp_path, {}, [[insert(1)]])
    with pytest.raises(SourceError, match=r"end at \{1: 1\}, before \{1: 100\}"):
        Follower(tmp_path, starting="{1: 100}").follow()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starting": "yesterday"}, '"starting"'),
        ({"max_bytes_per_trigger": "0"}, "must be positive"),
        ({"mode": "current"}, "a stream has changes"),
        ({"tuples": "struct"}, '"space" is missing'),
        ({"settling": "1"}, 'there is no option "settling"'),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    """With a sentence that names them."""
    with pytest.raises(SourceError, match=message):
        Follower(tmp_path, None, **options)


def test_columns_of_a_state_are_refused(tmp_path: Path) -> None:
    """Spark asks for the columns before it announces a stream, so `mode` is required."""
    options = ReadOptions.parse({"path": str(tmp_path), "space": "jobs"}, streaming=True)
    with pytest.raises(SourceError, match=r"no column 'id'.*\.option\(\"mode\", \"changes\"\)"):
        ChangesStreamReader(options, StructType([StructField("id", LongType())]))


def test_checkpoints_of_others_are_refused(writer: LiveWriter) -> None:
    """A checkpoint has to have a clock."""
    writer.write([1])
    query = follower(writer)
    for offset in ({}, {"vclock": 7}, {"vclock": {"1": "x"}}, {"vclock": {"99": 1}}, {"vclock": {"1": -1}}):
        query.start = offset
        with pytest.raises(SourceError, match="not one of this source"):
            query.follow()


# -- where a stream goes on --


def test_a_checkpoint_is_good_for_logs_that_were_written_anew(tmp_path: Path) -> None:
    """Only the clock counts: logs may be merged into one, whose blocks are others."""
    write_log(tmp_path, {}, [[insert(1)], [insert(2)]])
    write_log(tmp_path, {1: 2}, [[insert(3)], [insert(4)]], previous={}, is_ended=False)
    query = Follower(tmp_path, starting="earliest")
    os.utime(logs_of(tmp_path)[-1], (1, 1))
    query.follow()
    for log in logs_of(tmp_path):
        log.unlink()
    write_log(tmp_path, {}, [[insert(number) for number in range(1, 8)], [insert(8)]])
    os.utime(logs_of(tmp_path)[-1], (1, 1))
    query.restart()
    query.follow()
    assert lsns(query) == list(range(1, 9))


def test_rows_that_checkpoints_of_the_server_have_removed_are_an_error(writer: LiveWriter) -> None:
    """A stream that was stopped for too long is told which rows it has missed, and how to start over."""
    query = follower(writer)
    for _ in range(4):
        writer.write([1, 1])
        writer.rotate()
        if not query.batches:
            query.follow()
    writer.collect(keep=2)
    query.restart()
    with pytest.raises(SourceError, match=r"rows 3 to 6 of member 1 are gone.*checkpointLocation"):
        query.follow()


def test_a_log_that_is_missing_between_others_is_an_error(writer: LiveWriter) -> None:
    """The headers of those around it tell."""
    for _ in range(3):
        writer.write([1])
        writer.rotate()
    logs_of(writer.directory)[1].unlink()
    with pytest.raises(LogGapError, match="a log is missing"):
        follower(writer).follow()


def test_a_log_that_ends_too_early_is_an_error(writer: LiveWriter) -> None:
    """The next one begins behind what is in it. Where damage is skipped, the stream goes on."""
    writer.write([1])
    writer.write([1])
    writer.rotate()
    writer.write([1])
    log = logs_of(writer.directory)[0]
    log.write_bytes(log.read_bytes()[:-30])
    writer.now += 10
    with pytest.raises(XlogError, match=r"\.xlog: .* at offset [0-9]+"):
        follower(writer).follow()
    reports = writer.directory.with_name("reports")
    query = follower(writer, damaged="skip", bad_records_path=str(reports))
    query.follow()
    assert lsns(query) == [1, 3]
    (report,) = reports.iterdir()
    assert json.loads(report.read_text())["file"] == str(log)


def test_damage_in_the_middle_is_an_error_or_skipped(writer: LiveWriter) -> None:
    """As the option `damaged` says."""
    for _ in range(3):
        writer.write([50])
    (log,) = logs_of(writer.directory)
    data = log.read_bytes()
    place = data.index(b"x" * 50, data.index(b"x" * 50) + 50)
    log.write_bytes(data[:place] + b"!" + data[place + 1 :])
    with pytest.raises(XlogError, match="wrong checksum of a block at offset"):
        follower(writer).follow()
    query = follower(writer, damaged="skip")
    writer.now += 10
    os.utime(log, (1, 1))
    query.follow()
    assert lsns(query) == [1, 3]


def test_logs_of_another_instance_are_an_error(writer: LiveWriter, tmp_path: Path) -> None:
    """The directory was given to another database."""
    query = follower(writer)
    writer.write([1])
    writer.now += 10
    query.follow()
    (log,) = logs_of(writer.directory)
    data = log.read_bytes()
    begin = data.index(b"Instance: ") + len(b"Instance: ")
    log.write_bytes(data[:begin] + b"00000000-0000-4000-8000-000000000001" + data[begin + 36 :])
    query.restart()
    with pytest.raises(SourceError, match="belong to the instance 00000000-0000-4000-8000-000000000001"):
        query.follow()


def test_a_log_that_goes_before_a_task_reads_it_is_an_error(writer: LiveWriter) -> None:
    """And so is one that has become shorter."""
    writer.write([1])
    writer.now += 10
    query = follower(writer)
    query.plan()
    (part,) = query.parts()
    (log,) = logs_of(writer.directory)
    data = log.read_bytes()
    log.write_bytes(data[:-50])
    with pytest.raises(XlogError, match="at offset"):
        list(query.reader.read(part))
    log.write_bytes(data[: data.index(b"\n\n") + 2])
    with pytest.raises(SourceError, match="was truncated at offset"):
        list(query.reader.read(part))
    log.unlink()
    with pytest.raises(SourceError, match="was removed before the stream has read"):
        list(query.reader.read(part))
    query.restart()
    with pytest.raises(SourceError, match="the logs are gone"):
        query.follow()


# -- what a batch has --


def test_batches_have_as_much_as_the_option_says(writer: LiveWriter) -> None:
    """Whole blocks, and one in any case; without the option all there is."""
    for _ in range(6):
        writer.write([500])
    writer.now += 10
    whole, some, one = (
        follower(writer),
        follower(writer, max_bytes_per_trigger="1200"),
        follower(writer, max_bytes_per_trigger="1"),
    )
    for query in (whole, some, one):
        query.follow()
        assert query.rows == writer.rows
    assert (whole.batches, some.batches, one.batches) == ([6], [2, 2, 2], [1] * 6)
    assert isinstance(whole.reader.getDefaultReadLimit(), ReadAllAvailable)
    assert some.reader.getDefaultReadLimit() == ReadMaxBytes(1200)
    # Trigger.Once wants everything at once.
    start = some.reader.initialOffset()
    everything = some.reader.latestOffset(start, ReadAllAvailable())
    assert everything["vclock"] == {"1": 6}


def test_available_now_ends_with_what_was_there_then(writer: LiveWriter) -> None:
    """What was written last is waited for; what is written later is left for the next query."""
    query = Follower(writer.directory, max_bytes_per_trigger="1")
    writer.now = 4e9  # a filesystem whose time is another one
    writer.write([1])
    writer.write([1])
    query.reader.prepareForTriggerAvailableNow()
    writer.write([1])
    query.follow()
    assert lsns(query) == [1, 2]
    query.restart()
    query.reader.prepareForTriggerAvailableNow()
    writer.rotate()
    writer.write([1])
    query.follow()
    assert lsns(query) == [1, 2, 3]


def test_available_now_waits_for_what_does_not_count_yet(writer: LiveWriter) -> None:
    """Else the query would end without it."""
    query = Follower(writer.directory)
    writer.now = 4e9
    writer.write([1])
    query.reader.prepareForTriggerAvailableNow()
    query.follow()
    assert lsns(query) == [1]


@pytest.mark.parametrize("starting", ["earliest", "latest", "{1: 0}"])
def test_available_now_ends_where_there_are_no_logs(tmp_path: Path, starting: str) -> None:
    """The next query has those that came meanwhile."""
    query = Follower(tmp_path, starting=starting)
    query.reader.prepareForTriggerAvailableNow()
    query.follow()
    write_log(tmp_path, {}, [[insert(1)]])
    query.restart()
    query.reader.prepareForTriggerAvailableNow()
    query.follow()
    assert lsns(query) == [1]


def test_a_look_reads_only_what_is_new(writer: LiveWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of logs that were read nothing is opened, and of the newest one nothing before the last block."""
    query = follower(writer)
    for _ in range(5):
        writer.write([200_000])
        writer.rotate()
    writer.write([1])
    query.follow()
    opened: list[str] = []
    from pyspark_tarantool.source.io import data_files
    from pyspark_tarantool.source.stream import log_blocks

    for module in (data_files, log_blocks):
        original = module.open_file

        def noting(uri: str, original: Any = original) -> Any:
            opened.append(uri)
            return original(uri)

        monkeypatch.setattr(module, "open_file", noting)
    writer.write([1])
    query.plan()
    assert {Path(uri).name for uri in opened} == {logs_of(writer.directory)[-1].name}


# -- spaces --


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
