"""The service manager's end of the socket for messages, and a process that it starts."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from iproto_server.testing.logged_process import LoggedProcess, start_child
from tests.programs import REPOSITORY

PATIENCE = 60.0
"""Seconds to wait for a message. Only a failing test ever waits so long."""

_START = """\
import fcntl, os, sys
count = int(sys.argv[1])
copies = []
for text in sys.argv[2 : 2 + count]:
    copies.append(fcntl.fcntl(int(text), fcntl.F_DUPFD_CLOEXEC, 3 + count))
    os.set_inheritable(int(text), False)
for place, copy in enumerate(copies):
    os.dup2(copy, 3 + place)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, *sys.argv[2 + count :]])
"""
"""Passes descriptors on from 3 on, as systemd does."""

Message = dict[str, str]


class NotifySocket:
    """A socket that receives messages. Use as a context manager.

    Parameters:
        path: its path, or "@" and an abstract name.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(PATIENCE)
        self._socket.bind(path.replace("@", "\0", 1) if path.startswith("@") else path)

    def receive(self) -> Message:
        """Wait for the next message; return its assignments."""
        lines = self._socket.recv(65536).decode().split("\n")
        pairs = [line.partition("=") for line in lines]
        assert all(equals for _, equals, _ in pairs), lines
        assert len({name for name, _, _ in pairs}) == len(pairs), lines
        return {name: value for name, _, value in pairs}

    def change(self) -> Message:
        """Wait for the next message that is more than a status, which comes from time to time."""
        while set(message := self.receive()) == {"STATUS"}:
            pass
        return message

    def waiting(self) -> list[Message]:
        """Return the messages that have arrived."""
        messages = []
        self._socket.setblocking(False)
        try:
            while True:
                messages.append(self.receive())
        except BlockingIOError:
            return messages
        finally:
            self._socket.settimeout(PATIENCE)

    def until(self, name: str) -> list[Message]:
        """Wait for a message that assigns a variable; return it behind those before it."""
        messages = [self.receive()]
        while name not in messages[-1]:
            messages.append(self.receive())
        return messages

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()


def start_service(
    arguments: Sequence[str | Path],
    *,
    directory: Path = REPOSITORY,
    environment: Mapping[str, str] | None = None,
    sockets: Sequence[socket.socket] = (),
) -> LoggedProcess:
    """Start `iproto-server serve` as systemd does.

    Parameters:
        arguments: those of `serve`.
        directory: where it runs.
        environment: variables beside the test's own; LISTEN_PID is the process's id.
        sockets: the passed sockets.
    """
    descriptors = [passed.fileno() for passed in sockets]
    return LoggedProcess(
        [
            *(sys.executable, "-c", _START, str(len(descriptors)), *map(str, descriptors)),
            *("-m", "iproto_server", "serve", *arguments),
        ],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(environment or {})},
        start=partial(start_child, pass_fds=descriptors),
    )
