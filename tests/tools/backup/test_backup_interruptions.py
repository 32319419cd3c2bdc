"""`iproto-server backup` that is interrupted, or of a server that works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from iproto_server.storage.directory import DirectoryLock
from tests.command_line import run
from tests.conftest import StartServer
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY
from tests.storage.databases import jobs
from tests.tools.backup.backups import jobs_up_to, make_source
from tests.tools.backup.copied import SNAPSHOT, refused


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The directory of a stopped server."""
    return make_source(tmp_path / "data")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The backup that is to be made."""
    return tmp_path / "backups" / "monday"


PRELUDE = "import os, resource, signal, sys\nfrom iproto_server.cli import main\n"


def run_with(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process whose disk some code has prepared."""
    script = f"{PRELUDE}{code}\nsys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


class TestInterruptions:
    @pytest.mark.parametrize("step", ["fsync", "rename"])
    def test_a_killed_backup_leaves_nothing_that_looks_complete(
        self, source: Path, target: Path, step: str
    ) -> None:
        target.parent.mkdir()
        code = f"os.{step} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)"
        assert run_with(code, "backup", source, target).returncode == -9
        assert [path.name for path in target.parent.iterdir()] == ["monday.inprogress"]
        # The next one removes the rest.
        assert run("backup", source, target).status == 0
        assert [path.name for path in target.parent.iterdir()] == ["monday"]
        assert jobs(target) == jobs_up_to(12)

    def test_a_full_disk(self, source: Path, target: Path) -> None:
        limit = (source / SNAPSHOT).stat().st_size - 1
        done = run_with(
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))", "backup", source, target
        )
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "iproto-server: File too large\n"
        assert list(target.parent.iterdir()) == []

    def test_a_disk_that_fails_to_sync(
        self, source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", failing)
        target.parent.mkdir()
        assert refused("backup", source, target) == "No space left on device"
        assert list(target.parent.iterdir()) == []

    def test_two_backups_at_the_same_time(self, source: Path, target: Path) -> None:
        temporary = target.with_name("monday.inprogress")
        temporary.mkdir(parents=True)
        with DirectoryLock(temporary):
            line = refused("backup", source, target)
        assert line == f"{temporary}: another process is writing to this directory"

    def test_files_that_no_backup_has_left_stay(self, source: Path, target: Path) -> None:
        temporary = target.with_name("monday.inprogress")
        (temporary / "thesis").mkdir(parents=True)
        line = refused("backup", source, target)
        assert line == f"{temporary} has files that no backup leaves there: remove it"
        assert (temporary / "thesis").is_dir()


class TestRunningServer:
    def test_under_load_it_is_the_database_at_its_last_row(
        self, start_server: StartServer, tmp_path: Path
    ) -> None:
        """A client inserts jobs without pause, the server takes snapshots, and backups are made."""
        source = tmp_path / "data"
        source.mkdir()
        server = start_server([], ["--checkpoint-count", "1"], work_dir=source)
        with IprotoClient.at(server.address) as client:
            assert client.call("box.schema.space.create", "jobs", {"format": [["id"], ["status"]]}).ok
            assert client.call("box.space.jobs:create_index", "pk").ok
            assert client.call(
                "box.space.jobs:create_index", "status", {"parts": [2, "string", 1, "unsigned"]}
            ).ok
            (info,) = client.call("box.info").data
            empty = info["lsn"]
            is_over = threading.Event()
            failures: list[object] = []
            loader = threading.Thread(target=self._load, args=(server.address, is_over, failures))
            loader.start()
            try:
                backups = []
                since: Path | None = None
                for number in range(4):
                    backup = tmp_path / f"backup {number}"
                    outcome = run("backup", source, backup, *(() if since is None else ("--since", since)))
                    assert outcome.errors == []
                    match = re.search(r"^LSN \d+ to (\d+)$", outcome.output, re.MULTILINE)
                    assert match is not None
                    backups.append((backup, int(match[1])))
                    since = backup
                    if number == 1:
                        assert client.call("box.snapshot").data == ["ok"]
                        since = None
            finally:
                is_over.set()
                loader.join()
            assert failures == []
        assert [lsn for _, lsn in backups] == sorted(lsn for _, lsn in backups)
        for number, parts in enumerate((backups[:1], backups[:2], backups[2:3], backups[2:])):
            restored = tmp_path / f"restored {number}"
            assert run("restore", *(path for path, _ in parts), restored).errors == []
            assert jobs(restored) == jobs_up_to(parts[-1][1] - empty)
            assert run("check", restored).output.endswith(": consistent\n")

    @staticmethod
    def _load(address: str, is_over: threading.Event, failures: list[object]) -> None:
        with IprotoClient.at(address) as client:
            number = 0
            while not is_over.is_set() and not failures:
                number += 1
                answer = client.call("box.space.jobs:insert", [number, f"job {number}"])
                if not answer.ok:
                    failures.append(answer.failure)


def test_help_has_examples() -> None:
    for command in ("backup", "restore"):
        outcome = run(command, "--help")
        assert outcome.status == 0
        assert f"\nExamples:\n  iproto-server {command} " in outcome.output
