"""`iproto-server cat`: which rows of which files are shown, and what it says of damaged ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iproto_server.storage.xlog import FileType, Row, RowType, encode_row, insert_body
from iproto_server.storage.xlog.block import encode_block
from tests.command_line import run, run_with_permissions
from tests.programs import REPOSITORY
from tests.storage.files import TIMESTAMP, header, insertion
from tests.tools.files.sample_files import write_log, write_rows, write_snapshot
from tests.tools.files.shown_log import write_raw


def lsns(*arguments: object) -> list[int]:
    """The LSNs that are shown."""
    outcome = run("cat", "--format", "json", *arguments)
    assert (outcome.status, outcome.errors) == (0, [])
    return [json.loads(line)["HEADER"]["lsn"] for line in outcome.output.splitlines()]


class TestSelection:
    def test_all_rows_but_those_of_system_spaces(self, log: Path) -> None:
        assert lsns(log) == [2, 3, 4, 5, 6]

    def test_system_spaces_too(self, log: Path) -> None:
        assert lsns("--show-system", log) == [1, 2, 3, 4, 5, 6]

    def test_from_an_lsn_on_and_up_to_but_without_another(self, log: Path) -> None:
        assert lsns("--from", 3, log) == [3, 4, 5, 6]
        assert lsns("--to", 5, log) == [2, 3, 4]
        assert lsns("--from-lsn", 3, "--to-lsn", 5, log) == [3, 4]

    def test_a_space(self, log: Path) -> None:
        assert lsns("--space", 513, log) == [5]
        assert lsns("--space", 512, "--space", 513, log) == [2, 3, 4, 5, 6]

    def test_a_system_space_that_is_asked_for(self, log: Path) -> None:
        assert lsns("--space", 280, log) == [1]

    def test_a_space_by_its_name(self, log: Path) -> None:
        assert lsns("--space", "tasks", log) == [2, 3, 4, 6]

    def test_a_name_may_come_from_an_earlier_file(self, log: Path, tmp_path: Path) -> None:
        snapshot = write_snapshot(tmp_path, {280: [[513, 1, "jobs", "memtx", 0, {}, []]]}, {})
        assert lsns("--space", "jobs", snapshot, log) == [5]

    def test_a_name_that_no_space_has(self, log: Path) -> None:
        outcome = run("cat", "--space", "jobs", log)
        assert outcome == (1, "", ['no space is called "jobs" in these files: try its id'])

    def test_up_to_a_moment(self, log: Path) -> None:
        assert lsns("--timestamp", TIMESTAMP + 2, log) == [2]
        assert lsns("--timestamp", "2023-11-14T22:13:23Z", log) == [2, 3, 4, 5]
        assert lsns("--timestamp", "2023-11-15T01:13:23+03:00", log) == [2, 3, 4, 5]

    def test_a_member(self, tmp_path: Path) -> None:
        rows = [
            Row(RowType.INSERT, lsn, body=insert_body(512, b"\x91\x01"), replica_id=member, tsn=lsn)
            for member, lsn in [(1, 1), (2, 1), (1, 2), (2, 2)]
        ]
        path = write_raw(tmp_path, *rows)
        assert lsns("--replica", 2, path) == [1, 2]
        assert lsns("--replica", 2, "--replica", 1, "--from", 2, path) == [2, 2]
        assert lsns("--replica", 2, "--to", 2, path) == [1]
        assert lsns("--replica", 3, path) == []

    def test_nothing_is_read_behind_the_last_row_of_the_only_member(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 3)
        damaged = bytearray(path.read_bytes())
        damaged[-10] ^= 1
        path.write_bytes(damaged)
        assert lsns("--replica", 1, "--to", 2, path) == [1]

    def test_several_files_one_after_the_other(self, log: Path, tmp_path: Path) -> None:
        other = write_log(tmp_path / "2.xlog", [[insertion(600, 1)]], first=7)
        assert lsns(log, other) == [2, 3, 4, 5, 6, 7]
        assert run("cat", "--space", 600, log, other).output.count("...\n\n") == 1
        assert run("cat", log, other).output.count("...\n\n") == 2


class TestFiles:
    def test_a_log_that_is_being_written(self, tmp_path: Path) -> None:
        path = write_log(tmp_path / "1.xlog", [[insertion(512, 1)]], end=False)
        assert lsns(path) == [1]

    def test_compressed_blocks(self, tmp_path: Path) -> None:
        path = write_log(tmp_path / "1.xlog", [[insertion(512, 1, "x" * 5000)]])
        assert path.stat().st_size < 1000
        assert lsns(path) == [1]

    def test_a_log_of_tarantool_1_7(self, tmp_path: Path) -> None:
        row = encode_row(Row(RowType.INSERT, 1, body=insert_body(512, b"\x91\x01"), replica_id=1, tsn=1))
        head = b"XLOG\n0.12\nServer: 3dbe0a5e-5f0d-4f5c-9d5a-0e9f9a3f7f31\nVClock: {}\n\n"
        path = tmp_path / "1.xlog"
        path.write_bytes(head + encode_block(row, None))
        assert lsns(path) == [1]

    def test_what_is_behind_damage_is_shown_and_the_damage_named(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 3)
        content = path.read_bytes()
        place = content.index(b"row 2")
        path.write_bytes(content.replace(b"row 2", b"row X"))
        start = content.rindex(b"\xd5\xba\x0b\xab", 0, place)
        outcome = run("cat", "--format", "lua", path)
        assert outcome.status == 1
        assert outcome.errors == [f"{path}: wrong checksum of a block at offset {start}"]
        assert [line[:32] for line in outcome.output.splitlines()] == [
            "box.space[512]:insert({[1] = 1, ",
            "box.space[512]:insert({[1] = 3, ",
        ]

    def test_a_torn_end(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 3)
        path.write_bytes(path.read_bytes()[:-20])
        outcome = run("cat", "--format", "json", path)
        assert (outcome.status, outcome.output.count("\n")) == (1, 2)
        [error] = outcome.errors
        assert error.startswith(f"{path}: the file ends after ")

    def test_whatever_is_damaged_is_told_in_words(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 2)
        good = path.read_bytes()
        for place in range(len(good)):
            path.write_bytes(good[:place] + bytes((good[place] ^ 0x81,)) + good[place + 1 :])
            outcome = run("cat", "--format", "json", path)
            assert (outcome.status == 1) == bool(outcome.errors)
            path.write_bytes(good[:place])
            outcome = run("cat", "--format", "json", path)
            assert (outcome.status == 1) == bool(outcome.errors)

    def test_a_snapshot_that_is_not_complete(self, tmp_path: Path) -> None:
        path = write_snapshot(tmp_path, {512: [[1], [2]]}, {1: 2})
        path.write_bytes(path.read_bytes()[:-4])
        outcome = run("cat", "--format", "json", path)
        assert (outcome.status, outcome.output.count("\n")) == (1, 2)
        assert outcome.errors == [
            f"{path}: the snapshot ends without end marker at offset {path.stat().st_size}"
        ]

    def test_a_bad_file_does_not_hide_the_next(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 1)
        outcome = run("cat", "--format", "json", tmp_path / "nowhere.xlog", path)
        assert outcome.errors == [f"cannot read {tmp_path / 'nowhere.xlog'}: No such file or directory"]
        assert (outcome.status, outcome.output.count("\n")) == (1, 1)

    def test_a_directory_by_lsn_snapshots_first(self, tmp_path: Path) -> None:
        write_log(tmp_path / "00000000000000000003.xlog", [[insertion(512, 4)]], first=4)
        write_log(tmp_path / "00000000000000000000.xlog", [[insertion(512, 1)], [insertion(512, 2)]])
        write_snapshot(tmp_path, {512: [[1], [2], [3]]}, {1: 3})
        (tmp_path / "notes.txt").write_text("hello")
        outcome = run("cat", "--format", "json", tmp_path)
        assert (outcome.status, outcome.errors) == (0, [])
        rows = [json.loads(line)["BODY"]["tuple"] for line in outcome.output.splitlines()]
        assert rows == [[1], [2], [1], [2], [3], [4]]

    def test_a_directory_without_files(self, tmp_path: Path) -> None:
        complaint = f"{tmp_path}: there are no logs or snapshots in this directory"
        assert run("cat", tmp_path) == (1, "", [complaint])

    def test_a_directory_that_must_not_be_read(self, tmp_path: Path) -> None:
        directory = tmp_path / "data"
        directory.mkdir(0o300)
        outcome = run_with_permissions("cat", directory)
        directory.chmod(0o700)
        assert outcome == (1, "", [f"cannot read {directory}: Permission denied"])

    def test_a_file_that_must_not_be_read(self, tmp_path: Path) -> None:
        path = write_rows(tmp_path / "1.xlog", 1)
        path.chmod(0)
        readable = write_rows(tmp_path / "2.xlog", 1)
        outcome = run_with_permissions("cat", "--format", "json", path, readable)
        assert outcome.errors == [f"cannot read {path}: Permission denied"]
        assert (outcome.status, outcome.output.count("\n")) == (1, 1)

    @pytest.mark.parametrize("content", [b"", b"hello\n", b"XLOG\n9.9\n\n" + bytes(5000), bytes(10000)])
    def test_what_is_no_log(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "1.xlog"
        path.write_bytes(content)
        outcome = run("cat", path)
        assert (outcome.status, outcome.output, len(outcome.errors)) == (1, "", 1)
        assert outcome.errors[0].startswith(f"{path}: ")
        assert outcome.errors[0].endswith(" at offset 0")

    def test_a_text(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("hello\n")
        assert run("cat", tmp_path / "notes.txt").errors == [
            f"{tmp_path / 'notes.txt'}: no header at offset 0"
        ]

    def test_a_vinyl_file_is_none_either(self, tmp_path: Path) -> None:
        path = tmp_path / "1.vylog"
        path.write_bytes(header().encode().replace(b"XLOG", b"VYLOG"))
        assert run("cat", path).errors == [f"{path}: unknown file type 'VYLOG' at offset 0"]


class TestCommandLine:
    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            ([], "Missing argument 'FILE...'"),
            (["--format", "xml", "x"], 'unknown format "xml": choose yaml, json or lua'),
            (["--from", "-1", "x"], "-1 is not in the range"),
            (["--to", "many", "x"], "'many' is not a valid integer"),
            (["--replica", "32", "x"], "32 is not in the range"),
            (["--space", "", "x"], "the name is empty"),
            (["--timestamp", "yesterday", "x"], '"yesterday" is neither seconds since 1970 nor a moment'),
            (["--timestamp", "2026-01-31", "x"], '"2026-01-31" does not say of which time zone'),
            (["--lsn", "5", "x"], "No such option"),
        ],
    )
    def test_mistakes_are_named(self, arguments: list[str], reason: str) -> None:
        outcome = run("cat", *arguments)
        assert (outcome.status, outcome.output, len(outcome.errors)) == (2, "", 1)
        assert reason in outcome.errors[0]

    def test_help_has_examples(self) -> None:
        outcome = run("cat", "--help")
        assert outcome.status == 0
        assert "\nExamples:\n  iproto-server cat " in outcome.output

    def test_a_reader_that_has_seen_enough_is_no_error(self, tmp_path: Path) -> None:
        path = write_log(
            tmp_path / "1.xlog", [[insertion(512, number, "x" * 100) for number in range(20_000)]]
        )
        command: Any = [sys.executable, "-m", "iproto_server", "cat", path]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == b"---\n"
            process.stdout.close()
            assert process.wait(timeout=60) == 0
            assert process.stderr.read() == b""


def test_the_suffix_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "copy"
    path.write_bytes(write_rows(tmp_path / f"1{FileType.LOG.suffix}", 2).read_bytes())
    assert lsns(path) == [1, 2]
