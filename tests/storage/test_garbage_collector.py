"""Which files a newer snapshot makes superfluous, and their removal."""

from __future__ import annotations

import logging
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.storage.directory import file_name, find_logs, find_snapshots
from iproto_server.storage.garbage_collector import Pin, collect_garbage, obsolete_files
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, XlogWriter
from tests.storage.files import TIMESTAMP, header


def snapshot(directory: Path, signature: int, *, complete: bool = True) -> Path:
    """A snapshot of so many rows' effect."""
    with SnapshotWriter(directory, header(FileType.SNAPSHOT, {1: signature}), TIMESTAMP) as writer:
        writer.write(512, [b"\x91\x01"])
    if not complete:
        writer.path.write_bytes(writer.path.read_bytes()[:-4])
    return writer.path


def log(directory: Path, signature: int) -> Path:
    """A log that begins after so many rows."""
    path = directory / file_name(FileType.LOG, signature)
    with path.open("xb", buffering=0) as file:
        XlogWriter.create(file, header(FileType.LOG, {1: signature})).end()
    return path


def signatures(paths: list[Path]) -> list[str]:
    """The names without zeros in front."""
    return [re.sub("^0+(?=[0-9])", "", path.name) for path in paths]


def names(directory: Path) -> list[str]:
    return signatures(sorted(directory.iterdir()))


class TestWhatIsNotNeeded:
    def test_the_newest_snapshots_stay_with_the_logs_that_the_oldest_of_them_needs(
        self, tmp_path: Path
    ) -> None:
        snapshots = [snapshot(tmp_path, number) for number in (10, 20, 30, 40)]
        logs = [log(tmp_path, number) for number in (5, 10, 20, 25, 30, 40)]
        assert signatures(obsolete_files(snapshots, logs, 2)) == [
            "5.xlog",
            "10.snap",
            "10.xlog",
            "20.snap",
            "20.xlog",
            "25.xlog",
        ]
        assert signatures(obsolete_files(snapshots, logs, 4)) == ["5.xlog"]
        assert signatures(obsolete_files(snapshots, logs, 9)) == ["5.xlog"]

    def test_a_log_that_goes_on_behind_the_snapshot_stays(self, tmp_path: Path) -> None:
        logs = [log(tmp_path, number) for number in (0, 15, 35)]
        assert obsolete_files([snapshot(tmp_path, 14)], logs, 1) == []
        assert obsolete_files([snapshot(tmp_path, 15)], logs, 1) == logs[:1]
        assert obsolete_files([snapshot(tmp_path, 34)], logs, 1) == logs[:1]

    def test_the_last_log_stays_whatever_is_in_it(self, tmp_path: Path) -> None:
        assert obsolete_files([snapshot(tmp_path, 50)], [log(tmp_path, 0)], 1) == []

    def test_without_a_snapshot_everything_is_needed(self, tmp_path: Path) -> None:
        assert obsolete_files([], [log(tmp_path, number) for number in (0, 10)], 1) == []

    def test_a_pinned_snapshot_stays_with_the_logs_after_it(self, tmp_path: Path) -> None:
        snapshots = [snapshot(tmp_path, number) for number in (10, 20, 30, 40)]
        logs = [log(tmp_path, number) for number in (5, 15, 25, 35)]
        assert signatures(obsolete_files(snapshots, logs, 1, 20)) == ["5.xlog", "10.snap", "30.snap"]
        assert signatures(obsolete_files(snapshots, logs, 1, 40)) == signatures(
            obsolete_files(snapshots, logs, 1)
        )
        assert obsolete_files(snapshots, logs, 4, 30) == []

    @given(
        st.sets(st.integers(0, 30), min_size=1),
        st.sets(st.integers(0, 30), min_size=1),
        st.integers(1, 4),
    )
    def test_every_snapshot_that_stays_keeps_its_rows(
        self, snapshot_clocks: set[int], log_clocks: set[int], keep: int
    ) -> None:
        snapshots = [Path(file_name(FileType.SNAPSHOT, number)) for number in sorted(snapshot_clocks)]
        logs = [Path(file_name(FileType.LOG, number)) for number in sorted(log_clocks)]
        removed = obsolete_files(snapshots, logs, keep)
        # What is left at any moment of the removal must do.
        for count in range(len(removed) + 1):
            gone = set(removed[:count])
            assert set(snapshots[-keep:]).isdisjoint(gone)
            for path in snapshots[-keep:]:
                clock = int(path.stem)
                for begin, end in pairwise([*sorted(log_clocks), 31]):
                    if end > clock:
                        assert Path(file_name(FileType.LOG, begin)) not in gone
        assert [int(path.stem) for path in removed] == sorted(int(path.stem) for path in removed)


class TestRemoval:
    def test_what_is_not_needed_is_removed_and_the_rest_makes_a_database(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        for number in (0, 10, 20, 30):
            snapshot(tmp_path, number)
            log(tmp_path, number)
        removed = collect_garbage(tmp_path, tmp_path, 2)
        assert signatures(removed) == [
            "0.snap",
            "0.xlog",
            "10.snap",
            "10.xlog",
        ]
        assert names(tmp_path) == ["20.snap", "20.xlog", "30.snap", "30.xlog"]
        assert [record.getMessage() for record in caplog.records] == [f"removed {path}" for path in removed]
        newest = find_snapshots(tmp_path).newest
        assert newest is not None
        assert len(find_logs(tmp_path, newest.header.vclock).logs) == 1
        assert len(find_logs(tmp_path, VClock({1: 20})).logs) == 2
        assert collect_garbage(tmp_path, tmp_path, 2) == []

    def test_a_pin_keeps_files_until_it_is_removed(self, tmp_path: Path) -> None:
        for number in (0, 10, 20):
            snapshot(tmp_path, number)
            log(tmp_path, number)
        pin = Pin()
        pin.signature = 10
        assert signatures(collect_garbage(tmp_path, tmp_path, 1, pin)) == ["0.snap", "0.xlog"]
        pin.signature = None
        assert signatures(collect_garbage(tmp_path, tmp_path, 1, pin)) == ["10.snap", "10.xlog"]

    def test_nothing_more_is_removed_once_a_backup_begins(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in (0, 10, 20):
            snapshot(tmp_path, number)
        pin = Pin()
        unlink = Path.unlink

        def begin_backup(path: Path, missing_ok: bool = False) -> None:
            unlink(path, missing_ok)
            pin.signature = 10

        monkeypatch.setattr(Path, "unlink", begin_backup)
        assert signatures(collect_garbage(tmp_path, tmp_path, 1, pin)) == ["0.snap"]
        assert names(tmp_path) == ["10.snap", "20.snap"]

    def test_logs_may_be_somewhere_else(self, tmp_path: Path) -> None:
        snapshots, logs = tmp_path / "snapshots", tmp_path / "logs"
        for directory in (snapshots, logs):
            directory.mkdir()
        for number in (0, 10):
            snapshot(snapshots, number)
            log(logs, number)
        collect_garbage(snapshots, logs, 1)
        assert (names(snapshots), names(logs)) == (["10.snap"], ["10.xlog"])

    def test_a_snapshot_that_is_not_complete_does_not_count(self, tmp_path: Path) -> None:
        for number in (0, 10):
            snapshot(tmp_path, number)
            log(tmp_path, number)
        snapshot(tmp_path, 20, complete=False)
        assert collect_garbage(tmp_path, tmp_path, 2) == []
        assert signatures(collect_garbage(tmp_path, tmp_path, 1)) == [
            "0.snap",
            "0.xlog",
        ]
        assert names(tmp_path) == ["10.snap", "10.xlog", "20.snap"]

    def test_other_files_are_left_alone(self, tmp_path: Path) -> None:
        for number in (0, 10):
            snapshot(tmp_path, number)
        for name in ("0.snap.backup", "notes.txt", "00000000000000000005.xlog.inprogress"):
            (tmp_path / name).touch()
        collect_garbage(tmp_path, tmp_path, 1)
        assert len(names(tmp_path)) == 4

    def test_what_cannot_be_removed_is_told_and_passed_over(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths = [snapshot(tmp_path, number) for number in (0, 10, 20)]
        unlink = Path.unlink

        def failing(path: Path, missing_ok: bool = False) -> None:
            if path == paths[0]:
                raise PermissionError(1, "Operation not permitted", str(path))
            unlink(path, missing_ok)

        monkeypatch.setattr(Path, "unlink", failing)
        assert collect_garbage(tmp_path, tmp_path, 1) == [paths[1]]
        assert f"cannot remove {paths[0]}" in caplog.text

    def test_a_directory_that_cannot_be_read_is_told(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert collect_garbage(tmp_path / "none", tmp_path, 1) == []
        assert "cannot look for obsolete files" in caplog.text
