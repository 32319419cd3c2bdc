"""Directories: which files belong to the database, and whether any is missing."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from iproto_server.storage.directory import (
    DirectoryLock,
    check_reached,
    file_name,
    find_logs,
    find_snapshots,
    list_files,
)
from iproto_server.storage.errors import DirectoryLockedError, LogGapError, XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType
from iproto_server.storage.xlog.block import END_MARKER
from tests.storage.files import INSTANCE, header


def put(
    directory: Path,
    file_type: FileType,
    clock: dict[int, int],
    previous: dict[int, int] | None = None,
    *,
    end: bool = True,
) -> Path:
    """Make an empty file of a database."""
    path = directory / file_name(file_type, sum(clock.values()))
    text = header(file_type, clock, previous_vclock=None if previous is None else VClock(previous)).encode()
    path.write_bytes(text + END_MARKER * end)
    return path


def put_log(directory: Path, lsn: int, previous: int | None = None) -> Path:
    """Make an empty log of one member's rows."""
    return put(directory, FileType.LOG, {1: lsn}, None if previous is None else {1: previous})


def test_files_are_named_by_the_sum_of_their_clocks() -> None:
    assert file_name(FileType.LOG, 433) == "00000000000000000433.xlog"
    assert file_name(FileType.SNAPSHOT, 0) == "00000000000000000000.snap"


def test_files_are_listed_by_number_and_others_are_not(tmp_path: Path) -> None:
    for name in ("5.snap", "00000000000000000010.snap", "010.xlog", "x.snap", "7.snap.inprogress", "-1.snap"):
        (tmp_path / name).touch()
    assert [path.name for path in list_files(tmp_path, FileType.SNAPSHOT)] == [
        "5.snap",
        "00000000000000000010.snap",
    ]


class TestSnapshots:
    def test_there_may_be_none(self, tmp_path: Path) -> None:
        assert find_snapshots(tmp_path) == (None, [])

    def test_the_newest_complete_one_is_found_and_the_incomplete_ones_are_told(self, tmp_path: Path) -> None:
        put(tmp_path, FileType.SNAPSHOT, {1: 1})
        right = put(tmp_path, FileType.SNAPSHOT, {1: 8, 2: 1})
        torn = [put(tmp_path, FileType.SNAPSHOT, {1: lsn}, end=False) for lsn in (10, 20)]
        torn[1].write_bytes(b"")
        newest, incomplete = find_snapshots(tmp_path)
        assert newest is not None
        assert (newest.path, newest.header.vclock) == (right, {1: 8, 2: 1})
        assert incomplete == torn[::-1]

    def test_a_name_that_does_not_fit_the_clock_is_an_error(self, tmp_path: Path) -> None:
        put(tmp_path, FileType.SNAPSHOT, {1: 1}).rename(tmp_path / "2.snap")
        with pytest.raises(XlogError, match=r"2\.snap: the name does not fit the clock \{1: 1\}"):
            find_snapshots(tmp_path)

    def test_a_log_that_is_named_as_a_snapshot_is_an_error(self, tmp_path: Path) -> None:
        put_log(tmp_path, 1).rename(tmp_path / "1.snap")
        with pytest.raises(XlogError, match="of type XLOG, not SNAP"):
            find_snapshots(tmp_path)


class TestLogs:
    def test_there_may_be_none(self, tmp_path: Path) -> None:
        assert find_logs(tmp_path, VClock({1: 5})) == ([], None)

    def test_they_start_with_the_one_that_the_snapshot_falls_into(self, tmp_path: Path) -> None:
        paths = [put_log(tmp_path, 0), put_log(tmp_path, 10, 0), put_log(tmp_path, 20, 10)]
        for lsn, first in ((0, 0), (9, 0), (10, 1), (15, 1), (20, 2), (100, 2)):
            chain = find_logs(tmp_path, VClock({1: lsn}), INSTANCE)
            assert [log.path for log in chain.logs] == paths[first:]

    def test_rows_missing_after_the_snapshot_are_an_error(self, tmp_path: Path) -> None:
        put_log(tmp_path, 10)
        with pytest.raises(LogGapError, match=r"rows are missing between \{1: 9\} and \{1: 10\}"):
            find_logs(tmp_path, VClock({1: 9}))

    def test_a_missing_log_is_an_error(self, tmp_path: Path) -> None:
        put_log(tmp_path, 0)
        put_log(tmp_path, 20, 10)
        with pytest.raises(LogGapError, match=r"the log before it has the clock \{1: 0\}, not \{1: 10\}"):
            find_logs(tmp_path, VClock())
        assert len(find_logs(tmp_path, VClock({1: 20})).logs) == 1

    def test_clocks_that_do_not_follow_each_other_are_an_error(self, tmp_path: Path) -> None:
        put(tmp_path, FileType.LOG, {1: 5})
        put(tmp_path, FileType.LOG, {2: 6})
        with pytest.raises(LogGapError, match=r"the clock \{2: 6\} does not follow \{1: 5\}"):
            find_logs(tmp_path, VClock())

    def test_another_instances_log_is_an_error(self, tmp_path: Path) -> None:
        put_log(tmp_path, 0)
        with pytest.raises(XlogError, match=f"the log belongs to the instance {INSTANCE}"):
            find_logs(tmp_path, VClock(), uuid.uuid4())

    def test_a_last_log_without_whole_header_has_no_rows(self, tmp_path: Path) -> None:
        first, last = put_log(tmp_path, 0), put_log(tmp_path, 10, 0)
        last.write_bytes(last.read_bytes()[:30])
        chain = find_logs(tmp_path, VClock())
        assert ([log.path for log in chain.logs], chain.truncated) == ([first], last)
        put_log(tmp_path, 20, 10)
        with pytest.raises(XlogError, match=last.name):
            find_logs(tmp_path, VClock())

    def test_rows_missing_at_a_logs_end_are_an_error_when_the_next_begins(self, tmp_path: Path) -> None:
        put_log(tmp_path, 0)
        put_log(tmp_path, 10, 0)
        _, second = find_logs(tmp_path, VClock()).logs
        check_reached(VClock({1: 10}), second)
        with pytest.raises(LogGapError, match=r"rows are missing between \{1: 9\} and \{1: 10\}"):
            check_reached(VClock({1: 9}), second)


class TestClocks:
    def test_a_member_without_entry_has_done_nothing(self) -> None:
        assert VClock().same_as({1: 0})
        assert VClock({1: 0}).same_as({})
        assert not VClock({1: 1}).same_as({})
        assert VClock({1: 5, 2: 3}).covers({1: 5})
        assert not VClock({1: 5}).covers({2: 1})

    def test_a_copy_is_its_own(self) -> None:
        clock = VClock({1: 5})
        clock.copy()[1] = 6
        assert clock == {1: 5}


class TestLock:
    def test_one_process_at_a_time(self, tmp_path: Path) -> None:
        with (
            DirectoryLock(tmp_path),
            pytest.raises(DirectoryLockedError, match=f"the process {os.getpid()} works"),
        ):
            DirectoryLock(tmp_path)
        DirectoryLock(tmp_path).release()

    def test_it_ends_with_the_process(self, tmp_path: Path) -> None:
        script = (
            "import os, pathlib\nfrom iproto_server.storage.directory import DirectoryLock\n"
            f"lock = DirectoryLock(pathlib.Path({str(tmp_path)!r}))\nos.kill(os.getpid(), 9)"
        )
        assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
        DirectoryLock(tmp_path).release()

    def test_a_directory_must_exist(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            DirectoryLock(tmp_path / "none")
