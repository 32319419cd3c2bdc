"""An echo server in C that appends requests to a file: the limit of what a server with a log can do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.lib.process import Address, ServerProcess, free_port
from bench.native import program
from bench.native.load import count_answers
from bench.peers.iproto import Iproto


@dataclass(frozen=True, slots=True)
class EchoDialect(Iproto):
    """Frames of IPROTO, which come back as they were sent."""

    greeting = 0

    def done_in(self, answers: bytes) -> int:
        """Count the frames."""
        return count_answers(self.framing, answers)[0]


@dataclass(frozen=True)
class Echo:
    """The echo server, `bench/native/echo.c`."""

    name = "echo"
    dialect = EchoDialect()
    has_snapshots = False
    has_delays = False

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start the server.

        Raises:
            ValueError: Another `wal_mode` than "write" is wanted.
        """
        if wal_mode != "write":
            raise ValueError(f"the echo server has no wal_mode {wal_mode!r}")
        port = free_port()
        return ServerProcess([str(program("echo")), str(port), "log"], directory, port=port)

    def await_service(self, process: ServerProcess) -> Address:
        """Wait until it accepts connections."""
        return process.wait_to_accept()

    def snapshot(self, address: Address) -> None:
        """The echo server has no snapshots.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("the echo server has no snapshots")
