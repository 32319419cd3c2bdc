"""Redis with an append-only file, as a reliable queue of two lists.

Producers push tasks to one end of a list. A consumer moves the task at the other end to a list of tasks in
progress and removes it from there when it is done. A task is identified by its data; Redis does not record
which consumer has it, and has no delays.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.client.connection import Connection
from bench.client.requests import Requests
from bench.lib.process import LOOPBACK, Address, ServerProcess, free_port
from bench.native.load import Framing

_ITEM: Final = re.compile(rb"^\$\d+\r\n([^\r]*)\r$", re.MULTILINE)
_DONE: Final = re.compile(rb"^:[1-9]\d*\r$", re.MULTILINE)
_READY, _TAKEN = b"ready", b"taken"
_LOOK_EVERY: Final = 0.01
_IS_WRITING: Final = b"return redis.call('INFO', 'persistence'):match('aof_rewrite_in_progress:(%d)')"

_PERSISTENCE: Final = {
    "none": ("--appendonly", "no"),
    "write": ("--appendonly", "yes", "--appendfsync", "no"),
    "fsync": ("--appendonly", "yes", "--appendfsync", "always"),
}


@dataclass(frozen=True, slots=True)
class RedisDialect:
    """RESP 2."""

    greeting = 0
    framing = Framing.REDIS

    def pings(self, count: int) -> Requests:
        """PING."""
        return Requests.alike(_command(b"PING"), count)

    def puts(self, payloads: Sequence[bytes], delay: int = 0) -> Requests:
        """LPUSH.

        Raises:
            ValueError: A delay was requested.
        """
        if delay:
            raise ValueError("lists have no delays")
        return Requests.of(_command(b"LPUSH", _READY, payload) for payload in payloads)

    def takes(self, count: int, timeout: int = 0) -> Requests:
        """LMOVE, or BLMOVE to wait."""
        move = [_READY, _TAKEN, b"RIGHT", b"LEFT"]
        frame = _command(b"BLMOVE", *move, b"%d" % timeout) if timeout else _command(b"LMOVE", *move)
        return Requests.alike(frame, count)

    def acks(self, tasks: Sequence[bytes]) -> Requests:
        """LREM from the end where the oldest tasks are."""
        return Requests.of(_command(b"LREM", _TAKEN, b"-1", task) for task in tasks)

    def tasks_in(self, answers: bytes) -> list[bytes]:
        """The tasks' data."""
        return _ITEM.findall(answers)

    def done_in(self, answers: bytes) -> int:
        """Count integers other than 0: the length of the list after a push, or of removed tasks."""
        return len(_DONE.findall(answers))


@dataclass(frozen=True)
class Redis:
    """Debian's Redis.

    Attributes:
        program: its path.
    """

    program: str

    name = "Redis"
    dialect = RedisDialect()
    has_snapshots = True
    has_delays = False

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start Redis, which rewrites its file on request only, as the others take snapshots."""
        port = free_port()
        command = [self.program, "--bind", LOOPBACK, "--port", str(port), "--save", ""]
        command += [*_PERSISTENCE[wal_mode], "--auto-aof-rewrite-percentage", "0"]
        return ServerProcess(command, directory, port=port)

    def await_service(self, process: ServerProcess) -> Address:
        """Wait until Redis accepts connections."""
        return process.wait_to_accept()

    def snapshot(self, address: Address) -> None:
        """BGREWRITEAOF: a child process rewrites the file."""
        with Connection(address, self.dialect) as connection:
            connection.ask(Requests.alike(_command(b"BGREWRITEAOF"), 1))
            is_writing = Requests.alike(_command(b"EVAL", _IS_WRITING, b"0"), 1)
            while self.dialect.tasks_in(connection.ask(is_writing)) != [b"0"]:
                time.sleep(_LOOK_EVERY)


def _command(*words: bytes) -> bytes:
    strings = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"*%d\r\n%b" % (len(words), strings)
