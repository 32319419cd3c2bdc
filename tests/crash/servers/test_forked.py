"""Forked servers: they are like new processes, and the campaign finds in short lives what it must find."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iproto_server.storage.directory import list_files
from iproto_server.storage.xlog import FileType
from iproto_server.testing.logged_process import LoggedProcess
from tests.crash.campaign import Campaign
from tests.crash.checks.audit import Audit
from tests.crash.checks.checker import Books
from tests.crash.checks.finding import Kind
from tests.crash.checks.test_forged import (
    Transaction,
    double_the_task,
    forge,
    lose_half_of_the_last,
    lose_the_last,
    nothing,
    work,
)
from tests.crash.moment import EVENTS
from tests.crash.scale import SHORT
from tests.crash.servers.subject import ForkedServer, OurServer, Settings, Subject
from tests.iproto_client import IprotoClient

SEED = 2026
PLANTED = "tests.crash.servers.planted_loss:app"
LIVES = 40


@pytest.fixture(scope="module")
def forked() -> Iterator[ForkedServer]:
    subject = ForkedServer()
    yield subject
    subject.close()


def start(subject: Subject, directory: Path) -> tuple[LoggedProcess, str]:
    """Start a server.

    Returns:
        The process and its address.
    """
    process = subject.launch(directory, Settings())
    ready = process.wait_for(subject.ready)
    return process, f"{ready[1]}:{ready[2]}"


def audit(address: str) -> Audit:
    host, port = address.split(":")
    return Audit.of(host, int(port))


class TestProcess:
    def test_it_is_another_process_that_ends_as_asked(self, forked: ForkedServer, tmp_path: Path) -> None:
        process, address = start(forked, tmp_path)
        assert process.running
        assert f"pid={process.pid}" in process.wait_for("started").string
        assert process.terminate() == 0
        assert not process.running
        assert "stopped" in process.output
        with pytest.raises(ConnectionRefusedError), IprotoClient.at(address):
            pass

    def test_a_signal_is_its_status(self, forked: ForkedServer, tmp_path: Path) -> None:
        process, _ = start(forked, tmp_path)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        process.signal(signal.SIGTERM)  # nobody gets it

    def test_it_runs_where_it_is_told(self, forked: ForkedServer, tmp_path: Path) -> None:
        process, _ = start(forked, tmp_path)
        assert Path(f"/proc/{process.pid}/cwd").resolve() == tmp_path.resolve()
        process.kill()

    def test_it_has_the_threads_of_a_new_process(self, forked: ForkedServer, tmp_path: Path) -> None:
        threads = []
        for number, subject in enumerate((forked, OurServer())):
            directory = tmp_path / str(number)
            directory.mkdir()
            process, _ = start(subject, directory)
            process.wait_for("ready to accept")
            threads.append(len(list(Path(f"/proc/{process.pid}/task").iterdir())))
            process.kill()
        assert threads[0] == threads[1]

    def test_waiting_for_one_that_runs(self, forked: ForkedServer, tmp_path: Path) -> None:
        process, _ = start(forked, tmp_path)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0)
        process.kill()

    def test_files_that_prevent_a_start(self, forked: ForkedServer, tmp_path: Path) -> None:
        process, _ = start(forked, tmp_path)
        process.kill()
        assert forked.verify(tmp_path) == ""
        for path in list_files(tmp_path, FileType.SNAPSHOT):
            path.write_bytes(b"nonsense")
        assert "nonsense" not in forked.verify(tmp_path) != ""
        process = forked.launch(tmp_path, Settings())
        assert process.wait() == 1
        assert "iproto-server: " in process.output

    def test_none_outlives_the_process_that_forks(self, tmp_path: Path) -> None:
        subject = ForkedServer()
        process, _ = start(subject, tmp_path)
        subject.close()
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (nothing, set()),
        (lose_the_last, {Kind.LOST}),
        (lose_half_of_the_last, {Kind.LOST, Kind.HALF}),
        (double_the_task, {Kind.TASK}),
    ],
)
def test_a_forged_log(
    forked: ForkedServer,
    tmp_path: Path,
    change: Callable[[list[Transaction]], object],
    kinds: set[Kind],
) -> None:
    books = Books()
    process, address = start(forked, tmp_path)
    work(address, books, "transfer" if change is lose_half_of_the_last else "insert")
    process.kill()

    forge(list_files(tmp_path, FileType.LOG)[-1], change)

    process, address = start(forked, tmp_path)
    findings = books.check(audit(address))
    process.kill()
    assert {finding.kind for finding in findings} == kinds, findings


@pytest.mark.slow
@pytest.mark.timeout(300)
class TestCampaign:
    def test_nothing_is_lost(self, forked: ForkedServer, tmp_path: Path) -> None:
        report = Campaign(forked, tmp_path, SEED, scale=SHORT).run(lives=LIVES)
        assert not report.findings, str(report)
        assert set(EVENTS) <= report.kills.keys(), str(report)
        assert report.killed >= LIVES, str(report)
        assert report.kills["recovery"], str(report)
        assert report.half_snapshots, str(report)
        assert report.torn, str(report)

    def test_a_loss_is_found(self, tmp_path: Path) -> None:
        subject = ForkedServer(PLANTED)
        report = Campaign(subject, tmp_path, SEED, scale=SHORT).run(lives=LIVES)
        subject.close()
        seen = {Kind.LOST, Kind.HALF, Kind.COUNTER, Kind.TASK}
        assert seen & {finding.kind for finding in report.findings}, str(report)
