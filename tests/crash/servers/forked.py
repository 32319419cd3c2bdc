"""Servers that are forked from a process that has imported all they need."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from iproto_server.testing.logged_process import LoggedProcess
from tests.crash.servers.fork_server import REQUEST_MAX

START_TIMEOUT: Final = 60.0
"""Seconds that the process may take for its imports, and any answer."""

STOP_TIMEOUT: Final = 15.0
"""Seconds that it may take to end."""


class ForkedChild:
    """A process that another one has forked, with what `LoggedProcess` needs of a `Popen`.

    Parameters:
        forks: The client of the process that forks.
        pid: The process id, which remains taken until `wait` returns.
        stdout: The reading end of the pipe that its output goes to.
    """

    def __init__(self, forks: Forks, pid: int, stdout: int) -> None:
        self._forks = forks
        self.pid = pid
        self.stdout = io.FileIO(stdout)  # LoggedProcess closes it
        self._descriptor = os.pidfd_open(pid)
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""
        if self._status is None and self._has_ended(0):
            os.close(self._descriptor)
            self._status = self._forks.reap(self.pid)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status.

        Raises:
            subprocess.TimeoutExpired: It still runs.
        """
        if self._status is None and not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        status = self.poll()
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has been waited for."""
        if self._status is None:
            signal.pidfd_send_signal(self._descriptor, number)

    def _has_ended(self, timeout: float | None) -> bool:
        ended = select.poll()
        ended.register(self._descriptor, select.POLLIN)
        return bool(ended.poll(None if timeout is None else timeout * 1000))


class Forks:
    """The client of a process that forks `iproto-server` commands.

    Parameters:
        modules: The modules that it imports first.
        environment: Its environment and that of its children.
    """

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(START_TIMEOUT)
        with theirs:
            command = [
                sys.executable,
                "-m",
                "tests.crash.servers.fork_server",
                str(theirs.fileno()),
                *modules,
            ]
            self._process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )

    def launch(self, arguments: Sequence[str], directory: Path) -> LoggedProcess:
        """Start a command, without waiting.

        Parameters:
            arguments: Its command line, without the program.
            directory: Its current directory.
        """

        def fork(command: Sequence[str], cwd: Path, env: Mapping[str, str] | None) -> ForkedChild:
            ours, theirs = os.pipe()
            try:
                request = {"arguments": command[1:], "directory": str(cwd)}
                return ForkedChild(self, self._ask(request, [theirs]), ours)
            except BaseException:
                os.close(ours)
                raise
            finally:
                os.close(theirs)

        return LoggedProcess(["iproto-server", *arguments], cwd=directory, start=fork)

    def reap(self, pid: int) -> int:
        """Return the exit status of a child that has ended; a negative signal number if a signal ended it."""
        return self._ask({"reap": pid}, [])

    def close(self) -> None:
        """End the process, and kill children that still run."""
        self._channel.close()
        self._process.wait(timeout=STOP_TIMEOUT)

    def _ask(self, request: Mapping[str, Any], descriptors: list[int]) -> int:
        socket.send_fds(self._channel, [json.dumps(request).encode()], descriptors)
        answer = self._channel.recv(REQUEST_MAX)
        if not answer:
            raise ConnectionError(f"the fork server ended with {self._process.wait(timeout=STOP_TIMEOUT)}")
        number: int = json.loads(answer)
        return number
