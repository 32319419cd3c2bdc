"""Streams of directories whose logs are missing, damaged, or of another instance."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from iproto_server.storage.errors import LogGapError, XlogError
from pyspark_tarantool.source.errors import SourceError
from tests.spark.source.live_writer import LiveWriter
from tests.spark.source.stream.followed import follower, logs_of, lsns


@pytest.fixture
def writer(tmp_path: Path) -> LiveWriter:
    """Somebody who writes logs in a directory `live`."""
    (tmp_path / "live").mkdir()
    return LiveWriter(tmp_path / "live")


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
