"""`iproto-server restore`: the database as of any LSN or time, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from iproto_server.storage.directory import file_name
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, Row, RowType, XlogHeader, XlogWriter, encode_row, insert_body
from tests.command_line import run
from tests.storage.databases import JOBS, jobs, jobs_box, save, start
from tests.storage.files import INSTANCE, TIMESTAMP
from tests.tools.backup.backups import contents, job, jobs_up_to, make_source, write_blocks

REACH = "can be reached: LSN 4 to 12, 2023-11-14T22:13:20.250000Z to 2023-11-14T22:13:32.250000Z"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The directory of a stopped server, which is as good as its backup."""
    return make_source(tmp_path / "data")


@pytest.fixture
def backups(source: Path, tmp_path: Path) -> list[Path]:
    """A backup up to row 9, and two continuations, up to rows 10 and 12."""
    second = source / file_name(FileType.LOG, 9)
    whole = second.read_bytes()
    made = [tmp_path / name for name in ("monday", "noon", "evening")]
    second.unlink()
    assert run("backup", source, made[0]).status == 0
    write_blocks(source, 9, [[job(10)]], previous=2, is_ended=False)
    assert run("backup", source, made[1], "--since", made[0]).status == 0
    second.write_bytes(whole)
    assert run("backup", source, made[2], "--since", made[1]).status == 0
    return made


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The directory that is to be made."""
    return tmp_path / "restored"


def refused(*arguments: object, status: int = 1) -> str:
    """Run a command that prints nothing but the one line that says why."""
    outcome = run(*arguments)
    assert (outcome.status, outcome.output) == (status, "")
    (line,) = outcome.errors
    return line


class TestAll:
    def test_files_of_one_backup(self, source: Path, target: Path) -> None:
        outcome = run("restore", source, target)
        assert outcome.errors == []
        size = sum(map(len, contents(target).values()))
        assert outcome.output.splitlines() == [
            f"{target}: 1 snapshot and 2 logs, {size} bytes",
            "LSN 4 to 12",
            "2023-11-14T22:13:20.250000Z to 2023-11-14T22:13:32.250000Z",
            REACH,
        ]
        before = contents(source)
        assert contents(target) == {name: before[name] for name in contents(target)}

    def test_identity_and_position_stay(self, backups: list[Path], source: Path, target: Path) -> None:
        assert run("restore", *backups, target).status == 0
        (_, expected), (_, found) = start(source), start(target)
        assert (found.instance_uuid, found.cluster_uuid, found.vclock) == (
            expected.instance_uuid,
            expected.cluster_uuid,
            expected.vclock,
        )
        assert jobs(target) == jobs_up_to(12)

    def test_an_empty_directory_will_do(self, backups: list[Path], target: Path) -> None:
        target.mkdir()
        assert run("restore", *backups, target).status == 0
        assert jobs(target) == jobs_up_to(12)


# The rows 7 and 8 are one transaction.
REACHED = [(lsn, 6 if lsn == 7 else lsn) for lsn in range(4, 13)]


class TestPointInTime:
    @pytest.mark.parametrize(("lsn", "reached"), REACHED)
    def test_an_lsn(self, backups: list[Path], source: Path, target: Path, lsn: int, reached: int) -> None:
        for number, parts in enumerate((backups, [source])):
            restored = target.with_name(f"restored {number}")
            outcome = run("restore", *parts, restored, "--to-lsn", lsn)
            assert outcome.errors == []
            assert outcome.output.splitlines()[1] == f"LSN 4 to {reached}"
            assert outcome.output.splitlines()[3] == REACH
            assert jobs(restored) == jobs_up_to(reached)
            assert start(restored)[1].vclock == {1: reached}
            assert run("check", restored).output.endswith(": consistent\n")

    @pytest.mark.parametrize(("lsn", "reached"), REACHED)
    def test_a_time(self, backups: list[Path], target: Path, lsn: int, reached: int) -> None:
        """A row's own time is reached, and a moment before it is not."""
        time = TIMESTAMP + lsn
        # The two rows of the transaction have the time of the first one.
        expected = {7: 8}.get(lsn, reached)
        assert run("restore", *backups, target, "--to-time", time).errors == []
        assert jobs(target) == jobs_up_to(expected)
        if lsn > 4:
            before = target.with_name("before")
            assert run("restore", *backups, before, "--to-time", time - 0.001).errors == []
            assert jobs(before) == jobs_up_to({8: 8}.get(lsn, 6 if lsn == 7 else lsn - 1))

    def test_the_times_that_are_shown_can_be_given(self, backups: list[Path], target: Path) -> None:
        for number, time in enumerate(("2023-11-14T22:13:20.250000Z", "2023-11-14T22:13:32.250000Z")):
            assert run("restore", *backups, f"{target}{number}", "--to-time", time).errors == []
        assert jobs(Path(f"{target}0")) == jobs_up_to(4)
        assert jobs(Path(f"{target}1")) == jobs_up_to(12)

    def test_rows_that_are_not_replicated_go_with_those_before_them(
        self, tmp_path: Path, target: Path
    ) -> None:
        source = tmp_path / "data"
        source.mkdir()
        save(jobs_box(), source, {})
        self._write(source, [(1, 1), (0, 1), (1, 2), (0, 2), (1, 3)])
        assert run("restore", source, target, "--to-lsn", 2).errors == []
        assert start(target)[1].vclock == {0: 2, 1: 2}

    def test_rows_of_several_members_need_a_time(self, tmp_path: Path, target: Path) -> None:
        source = tmp_path / "data"
        source.mkdir()
        save(jobs_box(), source, {})
        self._write(source, [(1, 1), (2, 1), (1, 2)])
        line = refused("restore", source, target, "--to-lsn", 1)
        assert line == "the backup has rows of several members, from {} to {1: 2, 2: 1}: use --to-time"
        assert run("restore", source, target, "--to-time", TIMESTAMP + 2).errors == []
        assert start(target)[1].vclock == {1: 1, 2: 1}

    @staticmethod
    def _write(directory: Path, members: list[tuple[int, int]]) -> None:
        """Write a log of rows of members with LSNs, a second apart, all in one block."""
        with (directory / file_name(FileType.LOG, 0)).open("wb", buffering=0) as file:
            writer = XlogWriter.create(file, XlogHeader(FileType.LOG, INSTANCE, VClock()))
            rows = [
                encode_row(
                    Row(
                        RowType.INSERT,
                        lsn,
                        body=insert_body(JOBS, b"\x92" + bytes((number,)) + b"\xa1x"),
                        timestamp=TIMESTAMP + number,
                        replica_id=member,
                        group_id=int(not member),
                        tsn=lsn,
                    )
                )
                for number, (member, lsn) in enumerate(members, 1)
            ]
            writer.write([b"".join(rows)])
            writer.end()

    @pytest.mark.parametrize("lsn", [0, 3, 13, 2**63 - 1])
    def test_an_lsn_outside_of_the_range(self, backups: list[Path], target: Path, lsn: int) -> None:
        line = refused("restore", *backups, target, "--to-lsn", lsn)
        assert line == f"LSN {lsn} cannot be reached: the backup has LSN 4 to 12"
        assert not target.exists()

    @pytest.mark.parametrize("time", [0, TIMESTAMP - 1, TIMESTAMP + 12.001])
    def test_a_time_outside_of_the_range(self, backups: list[Path], target: Path, time: float) -> None:
        line = refused("restore", *backups, target, "--to-time", time)
        assert line.endswith(
            "cannot be reached: the backup has 2023-11-14T22:13:20.250000Z to 2023-11-14T22:13:32.250000Z"
        )
        assert not target.exists()

    def test_the_rest_of_a_failed_write_counts_as_nothing(self, source: Path, target: Path) -> None:
        """A log whose last rows were given up, because the next log begins before them."""
        write_blocks(source, 2, [[job(n)] for n in (3, 4, 5, 6, 7, 8, 9, 10)], previous=0)
        write_blocks(source, 9, [[job(10)], [job(11)]], previous=2)
        assert run("restore", source, target, "--to-lsn", 10).errors == []
        assert jobs(target) == jobs_up_to(10)


class TestRefusals:
    def test_continuations_in_the_wrong_order(self, backups: list[Path], target: Path) -> None:
        monday, noon, evening = backups
        line = refused("restore", monday, evening, noon, target)
        assert line == f"{evening} begins after LSN 10, but what is named before it ends at 9"
        line = refused("restore", monday, noon, noon, target)
        assert line == f"{noon} begins after LSN 9, but what is named before it ends at 10"
        assert "there is no complete snapshot" in refused("restore", noon, evening, target)
        line = refused("restore", monday, monday, target)
        assert line == f"{monday}: this is a backup of its own, no continuation: it has a snapshot"

    def test_directories_without_a_backup(self, backups: list[Path], target: Path, tmp_path: Path) -> None:
        empty = tmp_path / "empty"
        empty.mkdir()
        assert "there is no complete snapshot" in refused("restore", empty, target)
        line = refused("restore", backups[0], empty, target)
        assert line == f"{empty}: there is no backup in this directory"
        missing = tmp_path / "missing"
        assert refused("restore", missing, target) == f"{missing}: No such file or directory"

    def test_a_directory_that_is_not_empty(self, backups: list[Path], source: Path) -> None:
        assert refused("restore", *backups, source) == f"{source} is not empty: choose a new directory"

    def test_a_directory_inside_a_backup(self, backups: list[Path]) -> None:
        assert "which is to be read" in refused("restore", *backups, backups[1] / "data")

    @pytest.mark.parametrize("number", [0, 1, 2])
    def test_a_damaged_backup(self, backups: list[Path], target: Path, number: int) -> None:
        path = max(backups[number].glob("*.xlog"))
        data = bytearray(path.read_bytes())
        data[-8] ^= 1
        path.write_bytes(data)
        assert str(path) in refused("restore", *backups, target)
        assert not target.exists()

    def test_a_missing_log(self, source: Path, target: Path) -> None:
        (source / file_name(FileType.LOG, 2)).unlink()
        (source / file_name(FileType.LOG, 0)).unlink()
        assert "rows are missing between" in refused("restore", source, target)

    def test_a_continuation_of_another_instance(self, backups: list[Path], target: Path) -> None:
        for path in backups[1].iterdir():
            path.write_bytes(
                path.read_bytes().replace(str(INSTANCE).encode(), b"f" * 8 + str(INSTANCE)[8:].encode())
            )
        assert "the log belongs to the instance ffffffff" in refused("restore", *backups, target)

    def test_a_wrong_command_line(self, backups: list[Path], target: Path) -> None:
        wrong = ["--to-lsn", 5, "--to-time", TIMESTAMP]
        line = refused("restore", backups[0], target, *wrong, status=2)
        assert line == "--to-lsn and --to-time exclude each other"
        assert "time zone" in refused("restore", backups[0], target, "--to-time", "2023-11-14", status=2)
        assert "--to-lsn" in refused("restore", backups[0], target, "--to-lsn", -1, status=2)
        assert run("restore", backups[0]).status == 2


def test_a_backup_is_a_directory_that_servers_start_from(backups: list[Path]) -> None:
    outcome = run("check", backups[0])
    assert (outcome.status, outcome.errors) == (0, [])
    assert jobs(backups[0]) == jobs_up_to(9)
