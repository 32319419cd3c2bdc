"""The log in a file: written, rotated, and made anew."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iproto_server.errors import ErrorCode
from tests.command_line import refused
from tests.iproto_client import IprotoClient
from tests.programs import REPOSITORY

pytestmark = pytest.mark.process

PATIENCE = 30.0
"""Seconds for something that happens soon."""

SERVE = ["-m", "iproto_server", "serve", "--listen", "unix:socket", "--log", "logs/server.log"]


def wait_for_text(path: Path, text: str) -> None:
    """Wait until a file has a text."""
    deadline = time.monotonic() + PATIENCE
    while not (path.exists() and text in path.read_text()):
        assert time.monotonic() < deadline, f"{path} has no {text!r}"
        time.sleep(0.01)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """The log of a server that runs in the test's directory."""
    with subprocess.Popen(
        [sys.executable, *SERVE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        path = tmp_path / "logs" / "server.log"
        wait_for_text(path, "ready to accept requests")
        yield path
        process.terminate()
        assert process.communicate() == ("", "")
        assert process.returncode == 0


@pytest.fixture
def client(log: Path) -> Iterator[IprotoClient]:
    with IprotoClient.at(f"unix:{log.parent.parent / 'socket'}") as client:
        yield client


def test_a_file_that_was_moved_away_is_made_anew_by_the_next_event(log: Path, client: IprotoClient) -> None:
    log.rename(log.with_suffix(".old"))
    assert client.call("box.schema.user.create", "somebody").ok
    assert client.call("box.snapshot").data == ["ok"]
    assert "snapshot done" in log.read_text()
    assert "snapshot done" not in log.with_suffix(".old").read_text()


def test_the_call_makes_it_anew_at_once(log: Path, client: IprotoClient) -> None:
    log.rename(log.with_suffix(".old"))
    assert client.call("log.rotate").data == []
    assert log.read_text() == ""
    assert client.call("log.rotate").data == []


def test_a_file_that_cannot_be_made_anew(log: Path, client: IprotoClient) -> None:
    moved = log.parent.with_name("moved")
    log.parent.rename(moved)
    log.parent.write_text("no directory")
    code, message = client.call("log.rotate").failure
    assert (code, message) == (ErrorCode.SYSTEM, f"cannot open the log {log}: Not a directory")
    log.parent.unlink()
    moved.rename(log.parent)
    assert client.call("log.rotate").ok


def test_a_log_that_cannot_be_opened_refuses_the_start(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    assert refused(tmp_path, "--log", "log") == f"cannot open the log {tmp_path / 'log'}: Is a directory"


def test_the_place_of_a_new_database_is_told_in_full(log: Path) -> None:
    assert f"creating a new database in {log.parent.parent}\n" in log.read_text()
