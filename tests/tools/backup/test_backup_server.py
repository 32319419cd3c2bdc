"""`iproto-server backup HOST:PORT DIR`: a running server's files come over the wire, or nothing is left."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from iproto_server.tools.operators.operator_client import NotAnOperatorsServerError
from tests.command_line import Outcome, run
from tests.conftest import StartServer, StartTarantool
from tests.iproto_client import IprotoClient
from tests.memory_peak import memory_peak
from tests.real_tarantool import GUEST_IS_SUPER
from tests.storage.databases import jobs
from tests.tools.backup.backups import contents, jobs_up_to
from tests.tools.backup.copied import refused
from tests.tools.backup.served import Source, answering

MEMORY = 10 * 2**20
"""Bytes that a backup may take, for a few pieces of 1 MiB."""


class TestBackup:
    def test_it_is_the_one_that_the_directory_gives(
        self, source: Source, target: Path, tmp_path: Path
    ) -> None:
        source.add(3)
        source.snapshot()
        source.add(2)
        local = run("backup", source.directory, tmp_path / "local")
        remote = run("backup", source.address, target)
        assert remote.errors == []
        assert remote.output == local.output.replace(str(tmp_path / "local"), str(target))
        assert contents(target) == contents(tmp_path / "local")
        assert jobs(target) == jobs_up_to(5)
        assert target.stat().st_mode & 0o777 == 0o700

    def test_it_is_continued(self, source: Source, target: Path, tmp_path: Path) -> None:
        source.add(2)
        parts = [target]
        assert run("backup", source.address, target).errors == []
        for number in range(3):
            source.add()
            part = tmp_path / f"part {number}"
            assert run("backup", source.address, part, "--since", parts[-1]).errors == []
            parts.append(part)
        # Of the directory as well, and there may be nothing new.
        assert run("backup", source.directory, tmp_path / "local", "--since", parts[-1]).errors == []
        assert run("backup", source.address, tmp_path / "last", "--since", tmp_path / "local").errors == []
        restored = tmp_path / "restored"
        assert run("restore", *parts, tmp_path / "local", tmp_path / "last", restored).errors == []
        assert jobs(restored) == jobs_up_to(5)

    def test_logs_that_do_not_reach_back_are_refused(
        self, source: Source, target: Path, tmp_path: Path
    ) -> None:
        assert run("backup", source.address, target).errors == []
        for _ in range(2):
            source.add()
            source.snapshot()
        line = refused("backup", source.address, tmp_path / "later", "--since", target)
        reaches = f"the logs of {source.address} do not reach back to LSN …, where {target} ends"
        assert re.sub(r"LSN \d+", "LSN …", line) == f"{reaches}: make a backup without --since"
        assert not (tmp_path / "later").exists()

    def test_another_instance_is_refused(
        self, source: Source, target: Path, tmp_path: Path, start_server: StartServer
    ) -> None:
        assert run("backup", source.address, target).errors == []
        other = start_server([])
        line = refused("backup", other.address, tmp_path / "later", "--since", target)
        assert (
            "does not continue" in line or "the log belongs to the instance" in line or "reach back" in line
        )
        assert not (tmp_path / "later").exists()

    def test_under_load_it_is_the_database_at_its_last_row(
        self, source: Source, target: Path, tmp_path: Path
    ) -> None:
        """A client inserts jobs without pause, the server takes snapshots, and backups are made."""
        (info,) = source.client.call("box.info").data
        is_over = threading.Event()

        def load() -> None:
            while not is_over.is_set():
                source.add()

        loader = threading.Thread(target=load)
        loader.start()
        backups: list[tuple[Path, int]] = []
        try:
            with IprotoClient.at(source.address) as client:
                for number in range(4):
                    backup = tmp_path / f"backup {number}"
                    since = ["--since", backups[-1][0]] if number % 2 else []
                    outcome = run("backup", source.address, backup, *since)
                    assert outcome.errors == []
                    match = re.search(r"^LSN \d+ to (\d+)$", outcome.output, re.MULTILINE)
                    assert match is not None
                    backups.append((backup, int(match[1])))
                    if number == 1:
                        assert client.call("box.snapshot").data == ["ok"]
        finally:
            is_over.set()
            loader.join()
        for number, parts in enumerate((backups[:1], backups[:2], backups[2:3], backups[2:])):
            restored = tmp_path / f"restored {number}"
            assert run("restore", *(path for path, _ in parts), restored).errors == []
            assert jobs(restored) == jobs_up_to(parts[-1][1] - info["lsn"])

    def test_memory_does_not_grow_with_the_files(self, source: Source, target: Path) -> None:
        assert run("backup", source.address, target).errors == []  # imports what is needed
        for is_later in (False, True):
            if is_later:
                source.snapshot()
            for _ in range(110):
                source.add(padding=os.urandom(100_000).hex())
        with memory_peak() as peak:
            assert run("backup", source.address, target.with_name("tuesday")).errors == []
        assert sum(map(len, contents(target.with_name("tuesday")).values())) > 2 * MEMORY
        assert peak.size < MEMORY

    def test_a_directory_of_that_name_is_taken(
        self, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        directory = Path(source.address)
        directory.mkdir()
        assert refused("backup", source.address, "target", status=2) == f"there is no snapshot in {directory}"


class TestRights:
    def test_a_user_with_all_rights(self, source: Source, target: Path) -> None:
        assert run("backup", f"ann:secret@{source.address}", target).errors == []
        assert jobs(target) == {}

    @pytest.mark.parametrize("since", [False, True])
    @pytest.mark.parametrize(
        ("user", "reason"),
        [
            ("bob:secret", "Create access to universe '' is denied for user 'bob'"),
            ("eve:secret", "Execute access to function 'operator.backup_start' is denied for user 'eve'"),
        ],
    )
    def test_a_user_without(
        self, source: Source, target: Path, tmp_path: Path, user: str, reason: str, since: bool
    ) -> None:
        options: list[object] = []
        if since:
            assert run("backup", source.address, target).errors == []
            options = ["--since", target]
        assert refused("backup", f"{user}@{source.address}", tmp_path / "new", *options) == reason
        assert not (tmp_path / "new").exists()
        assert not (tmp_path / "new.inprogress").exists()

    def test_a_wrong_password(self, source: Source, target: Path) -> None:
        line = refused("backup", f"ann:wrong@{source.address}", target)
        assert line.startswith(f"{source.address} refuses the login of user ann: ")
        assert "wrong" not in line
        assert not target.parent.exists()

    def test_the_environment_may_have_it(
        self, source: Source, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TT_CLI_USERNAME", "ann")
        monkeypatch.setenv("TT_CLI_PASSWORD", "secret")
        assert run("backup", source.address, target).errors == []


class TestRefusals:
    @pytest.mark.process
    def test_nothing_listens(self, target: Path) -> None:
        line = refused("backup", "127.0.0.1:1", target)
        assert line == "cannot connect to 127.0.0.1:1: Connection refused"
        assert not target.parent.exists()

    @pytest.mark.parametrize("option", ["--wal-dir", "--memtx-dir"])
    def test_directories_of_a_server_are_not_given(self, source: Source, target: Path, option: str) -> None:
        outcome = run("backup", source.address, target, option, "logs")
        assert (outcome.status, outcome.output) == (2, "")
        assert "are for a directory, and this is none" in outcome.errors[-1]

    def test_a_target_that_is_not_empty(self, source: Source, target: Path) -> None:
        target.mkdir(parents=True)
        (target / "notes.txt").touch()
        assert refused("backup", source.address, target) == f"{target} is not empty: choose a new directory"

    @pytest.mark.real_tarantool
    def test_a_real_tarantool(self, target: Path, real_tarantool: StartTarantool) -> None:
        real = real_tarantool(GUEST_IS_SUPER)
        line = refused("backup", real.address, target)
        assert line == f"{real.address} has no procedures for operators: it is an older server, or Tarantool"
        assert list(target.parent.iterdir()) == []

    def test_a_server_without_these_procedures(
        self, target: Path, source: Source, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answering(monkeypatch, lambda name, arguments: no_such_procedure())
        assert refused("backup", source.address, target) == "an older server"
        assert list(target.parent.iterdir()) == []

    def test_a_damaged_log(self, source: Source, target: Path) -> None:
        source.add(3)
        source.snapshot()
        source.add(3)
        [log] = source.directory.glob("*.xlog")
        data = bytearray(log.read_bytes())
        data[-20] ^= 1
        log.write_bytes(data)
        assert "wrong checksum of a block at offset" in refused("backup", source.address, target)
        assert list(target.parent.iterdir()) == []


def no_such_procedure() -> list[Any]:
    raise NotAnOperatorsServerError("an older server")


def test_help_names_addresses() -> None:
    outcome: Outcome = run("backup", "--help")
    assert "iproto-server backup admin@db.example.com:3301 /backups/monday" in outcome.output
