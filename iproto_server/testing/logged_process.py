"""A child process whose output is read as it comes, so that a test can wait for a line of it."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

START_TIMEOUT = 30.0
"""Seconds that a process has to say what a test waits for. Only a failing test ever waits so long."""

STOP_TIMEOUT = 15.0
"""Seconds that a process has to end after SIGTERM."""


class LoggedProcess:
    """A running program with its standard output and error in one list of lines.

    Args:
        command: The program and its arguments.
        cwd: The directory it runs in.
        env: Its whole environment; None for the test's own.
    """

    def __init__(
        self, command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.command = [str(word) for word in command]
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self._process = subprocess.Popen(
            self.command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, name=f"output of {self.command[0]}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def output(self) -> str:
        """Everything it has written so far."""
        with self._changed:
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
                for line in self.lines[seen:]:
                    if match := compiled.search(line):
                        return match
                seen = len(self.lines)
                if self._ended or not self._changed.wait(timeout=deadline - monotonic()):
                    break
            what = "ended" if self._ended else f"ran for {timeout:g} s"
            raise AssertionError(
                f"{self.command} {what} without {pattern!r}; it wrote:\n" + "\n".join(self.lines)
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

    def terminate(self) -> int:
        """Ask it to end with SIGTERM; when it does not, kill it.

        Returns:
            Its exit status.

        Raises:
            AssertionError: If it had to be killed.
        """
        self._process.terminate()
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.command} did not end on SIGTERM; it wrote:\n{self.output}") from None

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self._process.kill()
        self.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
