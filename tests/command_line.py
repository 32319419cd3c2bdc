"""The command line, run to its end: in this process, or in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from iproto_server.cli import main
from tests.programs import REPOSITORY, require_program

TIMEOUT = 60.0
"""Seconds that a command has to end. Only a failing test ever waits so long."""

_PREFIX = "iproto-server: "


class Outcome(NamedTuple):
    """What a command did.

    Attributes:
        status: The exit status.
        output: What it wrote to stdout.
        errors: The lines that it wrote to stderr, without the program's name.
    """

    status: int
    output: str
    errors: list[str]


def run(*arguments: object) -> Outcome:
    """Run `iproto-server`, in this process; every line of its errors must begin with the program's name."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    errors = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = main([str(argument) for argument in arguments])
    output.flush()
    return _outcome(status, output.buffer.getvalue().decode("utf-8"), errors.getvalue())


def run_with_permissions(*arguments: object) -> Outcome:
    """The same in a process for which the permissions of files count, also when this one is root's."""
    done = run_process(*arguments, permissions_count=True)
    return _outcome(done.returncode, done.stdout, done.stderr)


def _outcome(status: int, output: str, errors: str) -> Outcome:
    lines = errors.splitlines()
    assert all(line.startswith(_PREFIX) for line in lines), lines
    return Outcome(status, output, [line.removeprefix(_PREFIX) for line in lines])


def run_process(
    *arguments: object, directory: Path = REPOSITORY, permissions_count: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run `iproto-server` in a process of its own.

    Args:
        arguments: Those of its command line.
        directory: Where it runs.
        permissions_count: Whether it may use files only as their permissions say, also when this process is
            root's.
    """
    command = [sys.executable, "-m", "iproto_server", *map(str, arguments)]
    if permissions_count and os.geteuid() == 0:
        command = [*_without_privileges(), *command]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def _without_privileges() -> list[str]:
    """What a command of root's begins with that shall not read and write everything."""
    words = [require_program("setpriv", "util-linux"), "--bounding-set=-dac_override,-dac_read_search"]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("root may not give up the right to read everything here")
    return words


def refused(
    work_dir: Path,
    *arguments: object,
    status: int = 1,
    listen: str = "127.0.0.1:0",
    permissions_count: bool = False,
) -> str:
    """Run a server that does not start.

    Args:
        work_dir: Its `--work-dir`.
        arguments: More of its command line.
        status: The exit status that it must end with.
        listen: Its `--listen`.
        permissions_count: As for `run_process`.

    Returns:
        The one line, its last, that says why, without the program's name.
    """
    options = ["--listen", listen, "--work-dir", work_dir]
    done = run_process("serve", *arguments, *options, permissions_count=permissions_count)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count(_PREFIX) == 1
    *_, last = done.stderr.splitlines()
    assert last.startswith(_PREFIX)
    return last.removeprefix(_PREFIX)
