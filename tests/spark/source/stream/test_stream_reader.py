"""Streams of a live directory, as Spark asks for them: what they have, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes
from pyspark.sql.types import LongType, StructField, StructType

from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ReadOptions
from pyspark_tarantool.source.stream.stream_reader import ChangesStreamReader
from tests.spark.source.live_writer import LiveWriter
from tests.spark.source.stream.followed import follower, logs_of, lsns
from tests.spark.source.stream_follower import Follower
from tests.storage.databases import insert, write_log


@pytest.fixture
def writer(tmp_path: Path) -> LiveWriter:
    """Somebody who writes logs in a directory `live`."""
    (tmp_path / "live").mkdir()
    return LiveWriter(tmp_path / "live")


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
