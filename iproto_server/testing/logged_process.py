"""A child process whose output is read as it comes, so that a test can wait for a line of it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import IO, Any, Protocol

START_TIMEOUT = 30.0
"""Seconds that a process has to say what a test waits for. Only a failing test ever waits so long."""

STOP_TIMEOUT = 15.0
"""Seconds that a process has to end after SIGTERM."""

READ_SIZE = 65_536
"""Bytes of output that are read at once: what a pipe holds."""


class ChildProcess(Protocol):
    """The part of `subprocess.Popen` that a `LoggedProcess` needs."""

    @property
    def pid(self) -> int:
        """The process id."""

    @property
    def stdout(self) -> IO[bytes] | Any | None:
        """Its output."""

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status."""

    def send_signal(self, number: int, /) -> None:
        """Send a signal, unless it has ended."""


Start = Callable[[Sequence[str], Path, Mapping[str, str] | None], ChildProcess]
"""Starts a program: command, directory and environment."""


def start_child(
    command: Sequence[str], cwd: Path, env: Mapping[str, str] | None, *, pass_fds: Sequence[int] = ()
) -> ChildProcess:
    """Start a child of this process.

    Args:
        command: The program and its arguments.
        cwd: The directory it runs in.
        env: Its whole environment; None for this process's own.
        pass_fds: Descriptors that it inherits.
    """
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        pass_fds=pass_fds,
    )


class LoggedProcess:
    """A running program with its standard output and error in one list of lines.

    A thread reads what it writes, so that it never waits for a reader; whoever asks for its output reads what
    is there first, so that a line written before a response is there when the response is.

    Args:
        command: The program and its arguments.
        cwd: The directory it runs in.
        env: Its whole environment; None for the test's own.
        start: Starts it, with standard output and error in one pipe.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        start: Start = start_child,
    ) -> None:
        self.command = [str(word) for word in command]
        self._lines: list[str] = []
        self._rest = b""
        self._changed = threading.Condition()
        self._ended = False
        self._process = start(self.command, cwd, env)
        assert self._process.stdout is not None
        self._stream = self._process.stdout
        os.set_blocking(self._stream.fileno(), False)
        self._reader = threading.Thread(target=self._read, name=f"output of {self.command[0]}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def lines(self) -> list[str]:
        """The whole lines it has written so far, and what is behind the last one when it has ended."""
        with self._changed:
            self._drain()
            return [*self._lines]

    @property
    def output(self) -> str:
        """Everything it has written so far, as far as it is whole lines."""
        return "\n".join(self.lines)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    @property
    def ended(self) -> bool:
        """Whether it writes no more: it has ended, or is about to."""
        with self._changed:
            return self._ended

    def wait_for(self, pattern: str, *, timeout: float = START_TIMEOUT) -> re.Match[str]:
        """Wait until it has written a line in which a pattern is found.

        Args:
            pattern: A regular expression, searched in each line.
            timeout: Seconds to wait at most.

        Returns:
            The first match.

        Raises:
            AssertionError: If it ended, or the time ran out, without such a line.
        """
        compiled = re.compile(pattern)
        deadline = monotonic() + timeout
        seen = 0
        with self._changed:
            while True:
                for line in self._lines[seen:]:
                    if match := compiled.search(line):
                        return match
                seen = len(self._lines)
                if self._ended or not self._changed.wait(timeout=deadline - monotonic()):
                    break
            what = "ended" if self._ended else f"ran for {timeout:g} s"
            raise AssertionError(
                f"{self.command} {what} without {pattern!r}; it wrote:\n" + "\n".join(self._lines)
            )

    def signal(self, number: int) -> None:
        """Send it a signal.

        Args:
            number: One of the `signal` module's numbers.
        """
        self._process.send_signal(number)

    def wait(self, *, timeout: float = STOP_TIMEOUT) -> int:
        """Wait until it has ended and its output is read.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Its exit status; a negative signal number when a signal ended it.

        Raises:
            subprocess.TimeoutExpired: If it is still running then.
        """
        status = self._process.wait(timeout=timeout)
        self._reader.join(timeout=timeout)
        return status

    def terminate(self, *, timeout: float = STOP_TIMEOUT) -> int:
        """Ask it to end with SIGTERM; when it does not, kill it.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Its exit status.

        Raises:
            AssertionError: If it had to be killed.
        """
        self._process.send_signal(signal.SIGTERM)
        try:
            return self.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.command} did not end on SIGTERM; it wrote:\n{self.output}") from None

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self._process.send_signal(signal.SIGKILL)
        self.wait()

    def _read(self) -> None:
        readable = select.poll()
        readable.register(self._stream, select.POLLIN)
        while not self.ended:
            readable.poll()
            with self._changed:
                self._drain()
        self._stream.close()

    def _drain(self) -> None:
        """Take over what it has written and nobody has read, with the lock held."""
        while not self._ended:
            written = self._stream.read(READ_SIZE)
            if written is None:
                return
            if written:
                *lines, self._rest = (self._rest + written).split(b"\n")
            else:
                self._ended = True
                lines = [self._rest] if self._rest else []
            self._lines += [line.decode("utf-8", "replace") for line in lines]
            self._changed.notify_all()
