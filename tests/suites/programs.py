"""The executables that suites are run with, and their processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_WRAPPER: Final = """\
#!{python}
import sys

sys.path.insert(0, {repository!r})
from iproto_server.tarantool_cli.main import main

sys.exit(main())
"""

REPOSITORY: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Output:
    """What a process wrote.

    Attributes:
        output: its standard output.
        errors: its standard error.
        status: its exit status, negative for a signal; None: it was killed because it took too long.
    """

    output: str
    errors: str
    status: int | None

    def how_ended(self) -> str:
        """Describe the end of the process, with the last line that it wrote to its standard error."""
        lines = [line for line in self.errors.splitlines() if line.strip()]
        last = f": {lines[-1].strip()}" if lines else ""
        if self.status is None:
            return f"took too long{last}"
        if self.status < 0:
            return f"killed by {signal.Signals(-self.status).name}{last}"
        return f"exit status {self.status}{last}"


def our_tarantool(folder: Path) -> None:
    """Write an executable `tarantool` that is this checkout's `iproto-tarantool`."""
    program = folder / "tarantool"
    program.write_text(_WRAPPER.format(python=sys.executable, repository=str(REPOSITORY)))
    program.chmod(0o755)


def real_tarantool(folder: Path, program: str) -> None:
    """Make `tarantool` in a folder mean a real one."""
    (folder / "tarantool").symlink_to(program)


def environment(folder: Path, additions: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return environment variables with which `tarantool` is the one in a folder."""
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **(additions or {})}


def run(command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str], timeout: float) -> Output:
    """Run a process, and end all that it started.

    Parameters:
        command: the program and its arguments.
        cwd: the working directory.
        environment: the environment variables.
        timeout: the time after which it is killed, seconds.

    Returns:
        What it wrote, and how it ended.
    """
    with session(command, cwd, environment, subprocess.PIPE) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            _kill_session(process)
            output, errors = process.communicate()
            status = None
    return Output(output.decode(errors="replace"), errors.decode(errors="replace"), status)


@contextmanager
def session(
    command: Sequence[str | Path], cwd: Path, environment: Mapping[str, str], output: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process in a session of its own, whose processes are killed afterwards.

    Parameters:
        command: the program and its arguments.
        cwd: the working directory.
        environment: the environment variables.
        output: where its standard output and error go.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=cwd,
        env=environment,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _kill_session(process)
        process.wait()


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # all have ended
        os.killpg(process.pid, signal.SIGKILL)
