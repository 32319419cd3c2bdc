"""beanstalkd, with its binlog. It has delays, in whole seconds, and no snapshots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.client.requests import Requests
from bench.lib.process import LOOPBACK, Address, ServerProcess, free_port

_LINE_END: Final = b"\r\n"
_HAS_TASK: Final = b"RESERVED "
_RESERVED: Final = re.compile(rb"^RESERVED (\d+) ", re.MULTILINE)
_DONE: Final = re.compile(rb"^(?:INSERTED \d+|DELETED)\r$", re.MULTILINE)
_PRIORITY: Final = 0
_TIME_TO_RUN: Final = 3600

_BINLOG: Final = {"none": (), "write": ("-b", ".", "-F"), "fsync": ("-b", ".", "-f", "0")}
"""`-F` never calls fsync, as `wal_mode = write` does not; without it there is one every 50 ms."""


@dataclass(frozen=True, slots=True)
class BeanstalkdDialect:
    """Lines of text, and a task's data behind its line. Tasks are known by their ids."""

    greeting = 0

    def pings(self, count: int) -> Requests:
        """What tells the name of the tube that is used."""
        return Requests.alike(b"list-tube-used\r\n", count)

    def puts(self, payloads: Sequence[bytes], delay: int = 0) -> Requests:
        """`put`."""
        if not payloads:
            return Requests.of(())
        line = f"put {_PRIORITY} {delay} {_TIME_TO_RUN} {len(payloads[0])}\r\n".encode()
        return Requests.between(line, payloads, _LINE_END)

    def takes(self, count: int, timeout: int = 0) -> Requests:
        """`reserve-with-timeout`."""
        return Requests.alike(b"reserve-with-timeout %d\r\n" % timeout, count)

    def acks(self, tasks: Sequence[bytes]) -> Requests:
        """`delete`."""
        return Requests.between(b"delete ", tasks, _LINE_END)

    def complete(self, data: bytes) -> tuple[int, int]:
        """Count lines, but those that tell that another follows. Tasks' data has no line ends here."""
        end = data.rfind(_LINE_END) + len(_LINE_END)
        if end < len(_LINE_END):
            return 0, 0
        return data.count(_LINE_END) - data.count(_HAS_TASK, 0, end), end

    def tasks_in(self, answers: bytes) -> list[bytes]:
        """Ids."""
        return _RESERVED.findall(answers)

    def done_in(self, answers: bytes) -> int:
        """Puts and deletes that were carried out."""
        return len(_DONE.findall(answers))


@dataclass(frozen=True)
class Beanstalkd:
    """Debian's beanstalkd.

    Attributes:
        program: its path.
    """

    program: str

    name = "beanstalkd"
    dialect = BeanstalkdDialect()
    has_snapshots = False
    has_delays = True

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start it."""
        port = free_port()
        command = [self.program, "-l", LOOPBACK, "-p", str(port), *_BINLOG[wal_mode]]
        return ServerProcess(command, directory, port=port)

    def await_service(self, process: ServerProcess) -> Address:
        """Wait until it accepts connections: it says nothing."""
        return process.wait_to_accept()

    def snapshot(self, address: Address) -> None:
        """There is no such thing.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("beanstalkd has no snapshots")
