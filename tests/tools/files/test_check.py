"""`iproto-server check`: good databases, and problems of their files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from iproto_server.storage.directory import DirectoryLock
from iproto_server.storage.xlog import XlogReader
from tests.command_line import Outcome, run
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.programs import require_program
from tests.running_server import QUEUE_APPLICATION
from tests.storage.files import INSTANCE, deletion, insertion, replacement
from tests.tools.files.checked import INDEXES, SYSTEM_ROWS, Database

GOOD = f"2 snapshots, 3 logs, {SYSTEM_ROWS + 3} rows: consistent\n"


def blocks_of(path: Path) -> list[tuple[int, int]]:
    """Where the blocks of a file begin and end."""
    with XlogReader.open(path) as reader:
        return [(block.start, block.end) for block in reader.blocks()]


def problems_of(outcome: Outcome, directory: Path) -> list[str]:
    """The lines of an unsuccessful check but the last, file names without their directory."""
    assert outcome.status == 1
    *lines, summary = outcome.output.replace(f"{directory}/", "").splitlines()
    count = len([line for line in lines if not line.startswith("note: ")])
    assert summary.endswith(f": {count} problem{'' if count == 1 else 's'}")
    return lines


def flip(path: Path, offset: int) -> None:
    """Request a byte."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x55
    path.write_bytes(content)


class TestConsistent:
    def test_a_database(self, database: Database) -> None:
        assert database.check() == (0, GOOD, [])

    def test_the_torn_end_of_the_last_log_is_said_and_no_error(self, database: Database) -> None:
        log = database.directory / "00000000000000000004.xlog"
        start, end = blocks_of(log)[-1]
        whole = log.read_bytes()
        for size in (start + 5, end - 1):
            log.write_bytes(whole[:size])
            note, summary = database.check().output.splitlines()
            assert re.fullmatch(
                rf"note: {log}: the file ends .* at offset {start}: a write was interrupted, "
                "a server that starts cuts it off",
                note,
            )
            assert summary == f"2 snapshots, 3 logs, {SYSTEM_ROWS + 2} rows: consistent"

    def test_a_last_log_without_rows(self, database: Database) -> None:
        log = database.directory / "00000000000000000006.xlog"
        log.write_bytes(b"XLOG\n0.13\nVers")
        note, summary = database.check().output.splitlines()
        assert note == (
            f"note: {log}: the file ends within its header at offset 0: it has no rows, "
            "and a server that starts does without it"
        )
        assert summary == GOOD.rstrip()

    def test_what_was_never_completed_is_said(self, database: Database) -> None:
        left = database.directory / "00000000000000000006.snap.inprogress"
        left.write_bytes(b"SNAP")
        outcome = database.check()
        assert outcome.status == 0
        assert outcome.output.startswith(f"note: {left}: it was never completed")

    def test_other_files_do_not_matter(self, database: Database) -> None:
        (database.directory / "jobs.log").write_text("hello")
        (database.directory / "notes.xlog").write_text("hello")
        assert database.check().status == 0

    def test_directories_of_their_own(self, database: Database, tmp_path: Path) -> None:
        logs, snapshots = tmp_path / "logs", tmp_path / "snapshots"
        logs.mkdir()
        snapshots.mkdir()
        for path in tmp_path.glob("*.xlog"):
            path.rename(logs / path.name)
        for path in tmp_path.glob("*.snap"):
            path.rename(snapshots / path.name)
        outcome = run("check", tmp_path, "--wal-dir", "logs", "--memtx-dir", snapshots)
        assert outcome == (0, GOOD, [])

    def test_a_directory_in_use(self, database: Database) -> None:
        with DirectoryLock(database.directory):
            note, summary = database.check().output.splitlines()
        assert note.startswith(f"note: {database.directory}: a server works with this directory")
        assert summary.endswith("consistent")

    def test_the_rest_of_a_failed_write_in_a_log_before_the_last(self, database: Database) -> None:
        """Nobody was told that these rows were written, and their numbers were given to others."""
        database.log(3, [replacement(512, 1, "alice")], [insertion(512, 9, "nobody")])
        assert database.check() == (0, GOOD, [])

    def test_our_own_server_leaves_a_consistent_database(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        server = start_server([QUEUE_APPLICATION], work_dir=tmp_path)
        with IprotoClient.at(server.address) as client:
            for number in range(100):
                assert client.call("queue.put", {"number": number}).ok
        note, in_use = run("check", tmp_path).output.splitlines()
        assert note.startswith(f"note: {tmp_path}: a server works with this directory")
        server.stop()
        assert run("check", tmp_path) == (0, f"{in_use}\n", [])
        assert in_use.endswith(": consistent")

    @pytest.mark.real_tarantool
    def test_so_does_a_tarantool(self, tmp_path: Path) -> None:
        program = require_program("tarantool", "tarantool")
        (tmp_path / "write.lua").write_text(
            "box.cfg{checkpoint_interval = 0} local s = box.schema.space.create('s') s:create_index('pk')"
            " s:create_index('by', {parts = {{2, 'string'}}, unique = false})"
            " for i = 1, 1000 do s:insert{i, 'x' .. i % 7} end box.snapshot()"
            " box.begin() for i = 1, 500 do s:delete{i} end box.commit() os.exit(0)"
        )
        subprocess.run([program, "write.lua"], cwd=tmp_path, capture_output=True, timeout=60, check=True)
        outcome = run("check", tmp_path)
        assert (outcome.status, outcome.errors) == (0, [])
        assert re.fullmatch(r"2 snapshots, \d logs, \d+ rows: consistent\n", outcome.output)


class TestProblems:
    def test_a_damaged_block_in_a_log(self, database: Database) -> None:
        log = database.directory / "00000000000000000004.xlog"
        start, end = blocks_of(log)[0]
        flip(log, end - 1)
        assert problems_of(database.check(), database.directory) == [
            f"{log.name}: wrong checksum of a block at offset {start}",
            f"note: a server does not start from these files: "
            f"{log.name}: wrong checksum of a block at offset {start}",
        ]

    def test_a_last_log_with_rows_is_none_without(self, database: Database) -> None:
        """Its header does not end where it should, but is no header that somebody was about to write."""
        log = database.directory / "00000000000000000004.xlog"
        start, _ = blocks_of(log)[0]
        flip(log, start - 1)
        lines = problems_of(database.check(), database.directory)
        assert lines[0] == f"{log.name}: no header at offset 0"

    def test_every_damage_is_named(self, database: Database) -> None:
        log = database.directory / "00000000000000000000.xlog"
        blocks = blocks_of(log)
        for _, end in blocks[::2]:
            flip(log, end - 1)
        assert problems_of(database.check(), database.directory) == [
            f"{log.name}: wrong checksum of a block at offset {start}" for start, _ in blocks[::2]
        ]

    def test_a_damaged_snapshot(self, database: Database) -> None:
        snapshot = database.directory / "00000000000000000004.snap"
        start, _ = blocks_of(snapshot)[0]
        flip(snapshot, start + 100)
        lines = problems_of(database.check(), database.directory)
        assert lines[0] == f"{snapshot.name}: wrong checksum of a block at offset {start}"
        assert lines[1].startswith("note: a server does not start from these files: ")

    def test_an_old_snapshot_is_verified_too(self, database: Database) -> None:
        snapshot = database.directory / "00000000000000000000.snap"
        start, _ = blocks_of(snapshot)[0]
        flip(snapshot, start + 100)
        assert problems_of(database.check(), database.directory) == [
            f"{snapshot.name}: wrong checksum of a block at offset {start}"
        ]

    def test_a_snapshot_that_is_not_complete(self, database: Database) -> None:
        snapshot = database.directory / "00000000000000000004.snap"
        snapshot.write_bytes(snapshot.read_bytes()[:-4])
        size = snapshot.stat().st_size
        assert problems_of(database.check(), database.directory)[0] == (
            f"{snapshot.name}: the snapshot ends without end marker at offset {size}"
        )

    @pytest.mark.parametrize("name", ["00000000000000000000.xlog", "00000000000000000004.snap"])
    def test_what_is_no_log_or_snapshot(self, database: Database, name: str) -> None:
        (database.directory / name).write_bytes(b"hello\n\n" + bytes(5000))
        assert problems_of(database.check(), database.directory)[0] == f"{name}: no header at offset 0"

    def test_a_file_under_another_ones_name(self, database: Database) -> None:
        log = database.directory / "00000000000000000003.xlog"
        log.rename(database.directory / "00000000000000000002.xlog")
        lines = problems_of(database.check(), database.directory)
        assert lines == ["00000000000000000002.xlog: the name does not fit the clock {1: 3} at offset 0"]

    def test_a_log_of_another_instance(self, database: Database) -> None:
        log = database.directory / "00000000000000000000.xlog"
        other = "11111111-1111-1111-1111-111111111111"
        log.write_bytes(log.read_bytes().replace(str(INSTANCE).encode(), other.encode()))
        assert problems_of(database.check(), database.directory) == [
            f"{log.name}: the instance is {other}, but {INSTANCE} in 00000000000000000000.snap, at offset 0"
        ]

    def test_a_log_that_is_missing(self, database: Database) -> None:
        (database.directory / "00000000000000000003.xlog").unlink()
        assert problems_of(database.check(), database.directory) == [
            "00000000000000000004.xlog: rows are missing between {1: 3}, where the log before it ends, "
            "and {1: 4} at offset 0"
        ]

    def test_rows_that_are_missing_within_a_log(self, database: Database) -> None:
        log = database.log(4, [deletion(512, 2)], first=7, end=False)
        [(start, _)] = blocks_of(log)
        lines = problems_of(database.check(), database.directory)
        assert lines[0] == f"{log.name}: LSN 7 of member 1 comes behind 4 at offset {start}"

    def test_logs_without_a_snapshot(self, database: Database) -> None:
        for path in database.directory.glob("*.snap"):
            path.unlink()
        [line] = problems_of(database.check(), database.directory)
        assert "there are logs but no snapshot" in line

    def test_a_row_that_does_not_fit_its_space(self, database: Database) -> None:
        database.log(4, [insertion(512, 5)], end=False)
        [line] = problems_of(database.check(), database.directory)
        assert line.startswith("a server does not start from these files: ")
        assert "jobs" in line

    def test_an_index_that_the_log_alters_and_its_rows_do_not_fit(self, database: Database) -> None:
        database.log(4, [replacement(288, *INDEXES[1][:5], [[1, "unsigned"]])], end=False)
        [line] = problems_of(database.check(), database.directory)
        assert line.startswith("a server does not start from these files: ")
        assert "to" in line

    def test_a_key_that_is_there_twice(self, database: Database) -> None:
        database.log(4, [insertion(512, 5, "c")], end=False)
        [line] = problems_of(database.check(), database.directory)
        assert "Duplicate key exists in unique index 'to' in space 'jobs'" in line
