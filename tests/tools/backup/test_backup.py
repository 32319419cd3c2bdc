"""`iproto-server backup`: a database's files are copied, or nothing is left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pytest

from iproto_server.storage.backup_set import open_file
from iproto_server.storage.directory import file_name
from iproto_server.storage.xlog import FileType
from iproto_server.storage.xlog.block import END_MARKER
from tests.command_line import Outcome, run, run_with_permissions
from tests.storage.databases import insert, jobs, jobs_box, save
from tests.tools.backup.backups import contents, job, jobs_up_to, make_source, write_blocks
from tests.tools.backup.copied import FIRST, SECOND, SNAPSHOT, refused


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The directory of a stopped server."""
    return make_source(tmp_path / "data")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The backup that is to be made."""
    return tmp_path / "backups" / "monday"


class TestWholeBackup:
    def test_it_has_the_newest_snapshot_and_the_logs_after_it(self, source: Path, target: Path) -> None:
        before = contents(source)
        outcome = run("backup", source, target)
        assert contents(source) == before
        assert contents(target) == {name: before[name] for name in (SNAPSHOT, FIRST, SECOND)}
        size = sum(map(len, contents(target).values()))
        assert outcome == Outcome(
            0,
            f"{target}: 1 snapshot and 2 logs, {size} bytes\n"
            "LSN 4 to 12\n"
            "2023-11-14T22:13:20.250000Z to 2023-11-14T22:13:32.250000Z\n",
            [],
        )
        assert jobs(target) == jobs_up_to(12)

    def test_only_its_owner_may_read_it(self, source: Path, target: Path) -> None:
        assert run("backup", source, target).status == 0
        assert target.stat().st_mode & 0o777 == 0o700

    def test_an_empty_directory_keeps_its_mode(self, source: Path, target: Path) -> None:
        target.mkdir(parents=True)
        target.chmod(0o750)
        assert run("backup", source, target).status == 0
        assert target.stat().st_mode & 0o777 == 0o750
        assert jobs(target) == jobs_up_to(12)

    def test_logs_and_snapshots_may_be_in_directories_of_their_own(
        self, source: Path, target: Path, tmp_path: Path
    ) -> None:
        for kind, directory in (("xlog", tmp_path / "logs"), ("snap", source / "snapshots")):
            directory.mkdir()
            for path in source.glob(f"*.{kind}"):
                path.rename(directory / path.name)
        options = ("--wal-dir", tmp_path / "logs", "--memtx-dir", "snapshots")
        assert run("backup", source, target, *options).status == 0
        assert jobs(target) == jobs_up_to(12)

    def test_a_snapshot_may_be_all_there_is(self, tmp_path: Path, target: Path) -> None:
        save(jobs_box(), tmp_path, {1: 3})
        outcome = run("backup", tmp_path, target)
        # The target's parent is inside the source.
        assert outcome.status == 1
        (tmp_path / "data").mkdir()
        save(jobs_box(), tmp_path / "data", {1: 3})
        outcome = run("backup", tmp_path / "data", target)
        assert outcome.output.splitlines()[0].startswith(f"{target}: 1 snapshot, ")
        assert outcome.output.splitlines()[1] == "LSN 3 to 3"
        assert jobs(target) == {}

    @pytest.mark.parametrize("torn", [b"\xd5\xba\x0b\xab\xce", bytes(100)])
    def test_the_torn_end_of_the_last_log_is_left_out(self, source: Path, target: Path, torn: bytes) -> None:
        log = source / SECOND
        log.write_bytes(log.read_bytes().removesuffix(END_MARKER))
        whole = log.read_bytes()
        with log.open("ab") as file:
            file.write(torn)
        assert run("backup", source, target).status == 0
        assert (target / SECOND).read_bytes() == whole + END_MARKER
        assert jobs(target) == jobs_up_to(12)

    def test_what_is_appended_meanwhile_is_not_seen(self, tmp_path: Path) -> None:
        path = tmp_path / "growing"
        path.write_bytes(b"before")
        with open_file(path) as file, path.open("ab", buffering=0) as growing:
            growing.write(b", after")
            assert file.seek(0, os.SEEK_END) == 6
            file.seek(0)
            assert file.read(100) == b"before"

    def test_the_rest_of_a_failed_write_does_not_count(self, source: Path, target: Path) -> None:
        """A log whose last rows were given up: the next one begins before them."""
        write_blocks(source, 2, [[job(number)] for number in range(3, 13)], previous=0)
        write_blocks(source, 9, [], previous=2)
        outcome = run("backup", source, target)
        assert outcome.errors == []
        assert outcome.output.splitlines()[1] == "LSN 4 to 9"
        assert jobs(target) == jobs_up_to(9)

    def test_a_server_that_writes_no_log_any_more(self, source: Path, target: Path) -> None:
        save(jobs_box(), source, {1: 20})
        assert run("backup", source, target).output.splitlines()[1] == "LSN 20 to 20"
        assert jobs(target) == {}

    @pytest.mark.parametrize("failures", [1, 2, 3])
    def test_files_that_the_server_removes_meanwhile(
        self, source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, failures: int
    ) -> None:
        """The files are looked for again, three times at most."""
        left = failures

        def vanishing(path: Path) -> BinaryIO:
            nonlocal left
            if path.name == SECOND and left:
                left -= 1
                raise FileNotFoundError(2, "No such file or directory", str(path))
            return open_file(path)

        monkeypatch.setattr("iproto_server.storage.backup_set.open_file", vanishing)
        outcome = run("backup", source, target)
        if failures == 3:
            assert outcome == Outcome(1, "", [f"{source / SECOND}: No such file or directory"])
            assert list(target.parent.iterdir()) == []
        else:
            assert outcome.errors == []
            assert jobs(target) == jobs_up_to(12)

    def test_several_members_are_shown_as_a_clock(self, tmp_path: Path, target: Path) -> None:
        (tmp_path / "data").mkdir()
        save(jobs_box(), tmp_path / "data", {1: 3, 2: 5})
        assert run("backup", tmp_path / "data", target).output.splitlines()[1] == (
            "LSN {1: 3, 2: 5} to {1: 3, 2: 5}"
        )


class TestContinuation:
    def test_it_has_what_came_later(self, source: Path, target: Path, tmp_path: Path) -> None:
        second = (source / SECOND).read_bytes()
        write_blocks(source, 9, [[job(10)]], previous=2, is_ended=False)
        assert run("backup", source, target).output.splitlines()[1] == "LSN 4 to 10"
        (source / SECOND).write_bytes(second)
        write_blocks(source, 12, [[job(13)]], previous=9, is_ended=False)
        later = tmp_path / "later"
        outcome = run("backup", source, later, "--since", target)
        assert outcome.status == 0
        assert outcome.output.splitlines()[1:] == [
            "LSN 10 to 13",
            "2023-11-14T22:13:30.250000Z to 2023-11-14T22:13:33.250000Z",
        ]
        assert sorted(contents(later)) == [file_name(FileType.LOG, 10), file_name(FileType.LOG, 12)]
        assert run("restore", target, later, tmp_path / "restored").status == 0
        assert jobs(tmp_path / "restored") == jobs_up_to(13)

    def test_one_after_the_other(self, source: Path, target: Path, tmp_path: Path) -> None:
        (source / SECOND).unlink()
        assert run("backup", source, target).status == 0
        parts = [target]
        for last in range(9, 15):
            blocks = [[job(number)] for number in range(10, last + 1)]
            write_blocks(source, 9, blocks, previous=2, is_ended=False)
            part = tmp_path / f"part {last}"
            outcome = run("backup", source, part, "--since", parts[-1])
            assert outcome.errors == []
            assert outcome.output.splitlines()[1] == f"LSN {max(9, last - 1)} to {last}"
            parts.append(part)
        assert run("restore", *parts, tmp_path / "restored").status == 0
        assert jobs(tmp_path / "restored") == jobs_up_to(14)

    def test_there_may_be_nothing_new(self, source: Path, target: Path, tmp_path: Path) -> None:
        assert run("backup", source, target).status == 0
        outcome = run("backup", source, tmp_path / "later", "--since", target)
        assert outcome.output.splitlines()[1] == "LSN 12 to 12"
        assert run("restore", target, tmp_path / "later", tmp_path / "restored").status == 0
        assert jobs(tmp_path / "restored") == jobs_up_to(12)

    def test_a_backup_without_logs_is_continued(self, tmp_path: Path, target: Path) -> None:
        source = tmp_path / "data"
        source.mkdir()
        save(jobs_box(*([n, text] for n, text in jobs_up_to(2).items())), source, {1: 2})
        assert run("backup", source, target).status == 0
        write_blocks(source, 2, [[job(3)]])
        assert run("backup", source, tmp_path / "later", "--since", target).status == 0
        assert run("restore", target, tmp_path / "later", tmp_path / "restored").status == 0
        assert jobs(tmp_path / "restored") == jobs_up_to(3)

    def test_logs_that_do_not_reach_back_are_refused(
        self, source: Path, target: Path, tmp_path: Path
    ) -> None:
        (source / SECOND).unlink()
        assert run("backup", source, target).status == 0
        for path in source.iterdir():
            path.unlink()
        save(jobs_box(), source, {1: 12})
        for write in (lambda: None, lambda: write_blocks(source, 12, [[job(13)]])):
            write()
            assert refused("backup", source, tmp_path / "later", "--since", target) == (
                f"the logs in {source} do not reach back to LSN 9, where {target} ends: make a backup "
                "without --since"
            )
        assert not (tmp_path / "later").exists()

    def test_a_log_that_is_missing_between_others_is_named(
        self, source: Path, target: Path, tmp_path: Path
    ) -> None:
        (source / SECOND).unlink()
        assert run("backup", source, target).status == 0
        write_blocks(source, 9, [[job(10)]], previous=2)
        write_blocks(source, 11, [[job(12)]], previous=10)
        line = refused("backup", source, tmp_path / "later", "--since", target)
        assert line.endswith("the log before it has the clock {1: 9}, not {1: 10}: a log is missing")

    def test_other_rows_under_the_same_numbers_are_refused(
        self, source: Path, target: Path, tmp_path: Path
    ) -> None:
        assert run("backup", source, target).status == 0
        write_blocks(source, 9, [[job(10)], [job(11), [insert(12, "another")]], [job(13)]], previous=2)
        assert "its rows are others" in refused("backup", source, tmp_path / "later", "--since", target)
        # A block that begins before the backup's end and ends after it.
        write_blocks(source, 9, [[job(10)], [job(11), job(12), job(13)]], previous=2)
        assert "its rows are others" in refused("backup", source, tmp_path / "later", "--since", target)
        # A database that was restored up to an earlier row.
        write_blocks(source, 9, [[job(10)]], previous=2)
        line = refused("backup", source, tmp_path / "later", "--since", target)
        assert "which ends at LSN 10, does not continue" in line

    def test_another_instance_is_refused(self, source: Path, target: Path, tmp_path: Path) -> None:
        assert run("backup", source, target).status == 0
        for path in target.glob("*.xlog"):
            data = path.read_bytes().replace(b"3dbe0a5e", b"3dbe0a5f")
            path.write_bytes(data)
        line = refused("backup", source, tmp_path / "later", "--since", target)
        assert "the log belongs to the instance 3dbe0a5e" in line

    def test_only_a_backup_can_be_continued(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        line = refused("backup", source, tmp_path / "later", "--since", tmp_path / "empty")
        assert line == f"{tmp_path / 'empty'}: there is no backup in this directory"
        line = refused("backup", source, tmp_path / "later", "--since", tmp_path / "none")
        assert line == f"{tmp_path / 'none'}: No such file or directory"


class TestRefusals:
    def test_a_directory_that_is_not_empty(self, source: Path, target: Path) -> None:
        target.mkdir(parents=True)
        (target / "notes.txt").touch()
        assert refused("backup", source, target) == f"{target} is not empty: choose a new directory"
        assert list(contents(target)) == ["notes.txt"]

    def test_a_file(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert refused("backup", source, tmp_path / "file") == f"{tmp_path / 'file'} is not a directory"

    def test_a_directory_inside_the_source(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(source)
        for inside in (source / "backup", source, tmp_path / "link" / "x" / ".." / "backup"):
            line = refused("backup", source, inside)
            assert line.endswith(f"is inside {source}, which is to be read: choose another directory")
        assert not (source / "backup").exists()

    def test_a_source_without_a_database(self, tmp_path: Path, target: Path) -> None:
        source = tmp_path / "data"
        line = refused("backup", source, target)
        assert line == f"{source}: No such file or directory"
        source.mkdir()
        assert refused("backup", source, target, status=2) == f"there is no snapshot in {source}"
        assert list(target.parent.iterdir()) == []

    def test_a_snapshot_that_is_not_complete(self, tmp_path: Path, target: Path) -> None:
        source = tmp_path / "data"
        source.mkdir()
        path = save(jobs_box(), source, {})
        path.write_bytes(path.read_bytes()[:-4])
        assert refused("backup", source, target) == f"{source}: no snapshot is complete"

    def test_a_missing_log(self, source: Path, target: Path) -> None:
        (source / FIRST).unlink()
        (source / "00000000000000000000.xlog").unlink()
        assert "rows are missing between" in refused("backup", source, target)
        assert not target.exists()

    @pytest.mark.parametrize("name", [SNAPSHOT, FIRST, SECOND])
    def test_a_damaged_file(self, source: Path, target: Path, name: str) -> None:
        data = bytearray((source / name).read_bytes())
        data[-20] ^= 1
        (source / name).write_bytes(data)
        line = refused("backup", source, target)
        assert name in line
        assert "wrong checksum of a block at offset" in line
        assert list(target.parent.iterdir()) == []

    def test_files_of_vinyl(self, source: Path, target: Path) -> None:
        (source / "00000000000000000000.vylog").touch()
        assert "the database uses the engine vinyl" in refused("backup", source, target)

    def test_a_source_that_may_not_be_read(self, source: Path, target: Path) -> None:
        (source / SECOND).chmod(0)
        outcome = run_with_permissions("backup", source, target)
        assert outcome == Outcome(1, "", [f"{source / SECOND}: Permission denied"])
        assert list(target.parent.iterdir()) == []

    def test_a_wrong_command_line(self, source: Path) -> None:
        assert run("backup", source).status == 2
        assert run("backup", source, "a", "b").status == 2
        assert run("backup", source, "a", "--since").status == 2
