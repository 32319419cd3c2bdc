"""Findings about inconsistent logs and snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import file_name
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.xlog import FileType, RowEncoder, RowType, XlogWriter, delete_body, insert_body
from tests.crash.checks.data_files import check_files
from tests.storage.files import TIMESTAMP, header

SPACE = 512
DEFINITION = [288, [SPACE, 0, "primary", "tree", {"unique": True}, [[0, "unsigned"]]]]


def write_snapshot(directory: Path, lsn: int, numbers: Sequence[int]) -> None:
    clock = {1: lsn} if lsn else {}
    with SnapshotWriter(directory, header(FileType.SNAPSHOT, clock), TIMESTAMP) as writer:
        writer.write(288, [codec.pack(DEFINITION[1])])
        writer.write(SPACE, [codec.pack([number, "text"]) for number in numbers])


def write_log(directory: Path, lsn: int, numbers: Sequence[int], *, first: int | None = None) -> Path:
    """Write a log that begins after a row: a positive number is inserted, a negative one deleted."""
    path = directory / file_name(FileType.LOG, lsn)
    with path.open("wb", buffering=0) as file:
        writer = XlogWriter.create(file, header(FileType.LOG, {1: lsn} if lsn else {}))
        encoder = RowEncoder()
        for row_lsn, number in enumerate(numbers, lsn + 1 if first is None else first):
            if number > 0:
                request = (int(RowType.INSERT), insert_body(SPACE, codec.pack([number, "text"])))
            else:
                request = (int(RowType.DELETE), delete_body(SPACE, codec.pack([-number])))
            writer.write([encoder.transaction(row_lsn, TIMESTAMP, [request])])
    return path


def texts(directory: Path) -> str:
    return " ".join(finding.text for finding in check_files(directory))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Write two snapshots, each followed by a log."""
    write_snapshot(tmp_path, 0, [])
    write_log(tmp_path, 0, [1, 2, 3, -2])
    write_snapshot(tmp_path, 4, [1, 3])
    write_log(tmp_path, 4, [2, 4, -1])
    return tmp_path


def test_files_that_fit(directory: Path) -> None:
    assert texts(directory) == ""


def test_an_empty_directory(tmp_path: Path) -> None:
    assert texts(tmp_path) == ""


def test_the_rest_of_a_block_at_the_end(directory: Path) -> None:
    path = directory / file_name(FileType.LOG, 4)
    path.write_bytes(path.read_bytes()[:-3])
    assert texts(directory) == ""


def test_a_snapshot_without_a_row_that_is_older(directory: Path) -> None:
    write_snapshot(directory, 4, [1])
    assert "space 512 has 1 rows that are different" in texts(directory)


def test_a_snapshot_with_a_row_that_is_younger(directory: Path) -> None:
    write_snapshot(directory, 4, [1, 3, 7])
    assert "space 512 has 1 rows that are different" in texts(directory)


def test_a_log_from_which_a_row_is_missing(directory: Path) -> None:
    write_log(directory, 4, [2, 4], first=6)
    assert "row 6 follows row 4" in texts(directory)


def test_a_log_that_is_missing(directory: Path) -> None:
    (directory / file_name(FileType.LOG, 4)).unlink()
    write_log(directory, 6, [7])
    assert "begins behind row 6, the log before ends with 4" in texts(directory)


def test_a_snapshot_that_is_not_complete(directory: Path) -> None:
    path = directory / file_name(FileType.SNAPSHOT, 4)
    path.write_bytes(path.read_bytes()[:-4])
    assert f"{path.name} has its name, but no end" in texts(directory)


def test_logs_without_a_snapshot(tmp_path: Path) -> None:
    write_log(tmp_path, 0, [1])
    assert "no snapshot" in texts(tmp_path)
