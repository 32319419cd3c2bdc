"""A process on a terminal of its own, driven as by a user."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

TIMEOUT: Final = 60.0
"""Seconds to wait for an output. Only a failing test waits so long."""

WINDOW: Final = 24, 500
"""Lines and columns: no line of a test is wider."""


class TerminalProcess:
    """A process whose input and output are a terminal without cursor movement.

    Args:
        command: Its program and arguments.
        home: Its home and current directory.
        environment: Variables beside the test's own.
    """

    def __init__(
        self, command: Sequence[str | Path], home: Path, environment: Mapping[str, str] = {}
    ) -> None:
        variables = {
            **os.environ,
            "HOME": str(home),
            "TERM": "dumb",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            **environment,
        }
        self.output = ""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            termios.tcsetwinsize(0, WINDOW)
            os.chdir(home)
            os.execvpe(command[0], [str(each) for each in command], variables)

    def enter(self, text: str) -> None:
        """Type a line, as `type`."""
        self.type(f"{text}\n")

    def type(self, text: str) -> None:
        """Type characters when the process edits a line; earlier, the terminal itself would echo them."""
        end = time.monotonic() + TIMEOUT
        while termios.tcgetattr(self._terminal)[3] & termios.ICANON:
            if time.monotonic() > end or not self._read(min(end, time.monotonic() + 0.01)):
                raise AssertionError(f"no line is edited; it wrote {self.output[-1000:]!r}")
        os.write(self._terminal, text.encode())

    def type_until(self, keys: str, text: str) -> None:
        """Type keys again and again until an output comes."""
        end = time.monotonic() + TIMEOUT
        while text not in self.output:
            self.type(keys)
            if time.monotonic() > end or not self._read(min(end, time.monotonic() + 0.1)):
                raise AssertionError(f"{text!r} was not written, but {self.output[-1000:]!r}")
        self.wait_for(text)

    def interrupt(self) -> None:
        """Type Ctrl-C while the process does not read."""
        os.write(self._terminal, b"\x03")

    def wait_for(self, text: str) -> str:
        """Wait for an output, and return what came before it since the last wait, with line breaks as \\n."""
        end = time.monotonic() + TIMEOUT
        while text not in self.output:
            if time.monotonic() > end or not self._read(end):
                raise AssertionError(f"{text!r} was not written, but {self.output[-1000:]!r}")
        before, _, self.output = self.output.partition(text)
        return before

    def ask(self, line: str, prompt: str) -> str:
        """Type a line, and return what is shown before the next prompt."""
        self.enter(line)
        return self.wait_for(prompt).removeprefix(line).lstrip("\n")

    def wait(self) -> int:
        """Wait for its end, and return its exit status."""
        end = time.monotonic() + TIMEOUT
        while self._read(end):
            assert time.monotonic() < end, f"it does not end; it wrote {self.output!r}"
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def _read(self, end: float) -> bool:
        """Read some output. Returns False at its end."""
        ready, _, _ = select.select([self._terminal], [], [], max(end - time.monotonic(), 0))
        if not ready:
            return True
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:  # the process has left the terminal
            return False
        self.output += data.decode("utf-8", "replace").replace("\r", "")
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._terminal)
