"""beanstalkd with its binlog. Delays are whole seconds; there are no snapshots."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.client.requests import Requests
from bench.lib.process import LOOPBACK, Address, ServerProcess, free_port
from bench.native.load import Framing

_LINE_END: Final = b"\r\n"
_RESERVED: Final = re.compile(rb"^RESERVED (\d+) ", re.MULTILINE)
_DONE: Final = re.compile(rb"^(?:INSERTED \d+|DELETED)\r$", re.MULTILINE)
_PRIORITY: Final = 0
_TIME_TO_RUN: Final = 3600

_BINLOG: Final = {"none": (), "write": ("-b", ".", "-F"), "fsync": ("-b", ".", "-f", "0")}
"""`-F` never calls fsync, like `wal_mode = write`; by default beanstalkd calls it every 50 ms."""


@dataclass(frozen=True, slots=True)
class BeanstalkdDialect:
    """Lines of text, each followed by a task's data if there is any. Tasks are identified by their ids."""

    greeting = 0
    framing = Framing.BEANSTALKD

    def pings(self, count: int) -> Requests:
        """`list-tube-used`."""
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

    def tasks_in(self, answers: bytes) -> list[bytes]:
        """Return the ids of the tasks."""
        return _RESERVED.findall(answers)

    def done_in(self, answers: bytes) -> int:
        """Count successful puts and deletes."""
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
        """Start beanstalkd."""
        port = free_port()
        command = [self.program, "-l", LOOPBACK, "-p", str(port), *_BINLOG[wal_mode]]
        return ServerProcess(command, directory, port=port)

    def await_service(self, process: ServerProcess) -> Address:
        """Wait until beanstalkd accepts connections; it logs nothing."""
        return process.wait_to_accept()

    def snapshot(self, address: Address) -> None:
        """beanstalkd has no snapshots.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("beanstalkd has no snapshots")
