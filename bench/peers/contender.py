"""Contenders of a comparison, and running servers of theirs, which listen on 127.0.0.1 only."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

from bench.client.dialect import Dialect
from bench.client.load import Load
from bench.lib.process import Address, ServerProcess

REPOSITORY: Final = Path(__file__).resolve().parents[2]
_Member = TypeVar("_Member")


def server_environment() -> dict[str, str]:
    """Return the environment of our server: this repository's code, and stored bytecode.

    Without stored bytecode, each start would compile all modules.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(REPOSITORY)}


class Contender(Protocol):
    """A server program that can be compared.

    Attributes:
        name: the name in the tables.
        dialect: its protocol.
        has_snapshots: whether it can write all its data to one file.
        has_delays: whether its tasks can be delayed.
    """

    @property
    def name(self) -> str: ...
    @property
    def dialect(self) -> Dialect: ...
    @property
    def has_snapshots(self) -> bool: ...
    @property
    def has_delays(self) -> bool: ...

    def launch(self, directory: Path, wal_mode: str, *, has_queue: bool) -> ServerProcess:
        """Start a server, without waiting for it.

        Parameters:
            directory: the directory for its files.
            wal_mode: "none", "write" or "fsync", or the program's equivalent.
            has_queue: whether to serve the queue, or only the database, if these differ.
        """

    def await_service(self, process: ServerProcess) -> Address:
        """Wait until it accepts requests.

        Returns:
            Its host and port.
        """

    def snapshot(self, address: Address) -> None:
        """Write all data to one file, and wait until that is done.

        Raises:
            NotImplementedError: The program has no snapshots.
        """


class Server:
    """A running server of a contender.

    Parameters:
        contender: the contender.
        directory: the directory for its files; created if it does not exist.
        wal_mode: "none", "write" or "fsync".
        has_queue: whether to serve the queue, or only the database.

    Attributes:
        contender: the contender.
        wal_mode: as above.
        process: its process.
        address: its host and port.
    """

    def __init__(
        self, contender: Contender, directory: Path, wal_mode: str = "write", *, has_queue: bool = True
    ) -> None:
        directory.mkdir(exist_ok=True)
        self.contender = contender
        self.wal_mode = wal_mode
        self.process = contender.launch(directory, wal_mode, has_queue=has_queue)
        try:
            self.address = self._begin()
        except BaseException:
            self.process.kill()
            raise

    @property
    def name(self) -> str:
        """The contender's name."""
        return self.contender.name

    def load(self, connections: int, in_flight: int) -> Load:
        """Open connections that put load on the server.

        Parameters:
            connections: the number of connections.
            in_flight: the maximum number of requests in flight of each.
        """
        return Load(self.address, self.contender.dialect, connections, in_flight)

    def stop(self) -> None:
        """Stop the server with SIGTERM."""
        self.process.stop()

    def _begin(self) -> Address:
        """Wait until the server is ready for use.

        Returns:
            Its host and port.
        """
        return self.contender.await_service(self.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def alternating(members: Sequence[_Member], round_number: int) -> Sequence[_Member]:
    """Return the members in the order of a round: reversed in every other round."""
    return members if round_number % 2 == 0 else members[::-1]
