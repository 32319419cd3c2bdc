"""Who is compared, and a server of theirs that runs. All serve 127.0.0.1 only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

from bench.client.dialect import Dialect
from bench.client.load import Load
from bench.lib.process import Address, ServerProcess

REPOSITORY: Final = Path(__file__).resolve().parents[2]
_Member = TypeVar("_Member")


class Contender(Protocol):
    """Somebody who can be compared.

    Attributes:
        name: as in the tables.
        dialect: what it speaks.
        has_snapshots: whether it can write all that it has into one file.
        has_delays: whether its tasks can have any.
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
        """Start it, and wait for nothing.

        Parameters:
            directory: of its files.
            wal_mode: "none", "write" or "fsync", or what comes to the same.
            has_queue: whether it serves the queue, or only the database, where these are two things.
        """

    def await_service(self, process: ServerProcess) -> Address:
        """Wait until it serves.

        Returns:
            Where.
        """

    def snapshot(self, address: Address) -> None:
        """Have it write all that it has into one file, and wait until that is done.

        Raises:
            NotImplementedError: It has no snapshots.
        """


class Server:
    """A contender that serves.

    Parameters:
        contender: who.
        directory: of its files; made where there is none.
        wal_mode: "none", "write" or "fsync".
        has_queue: whether it serves the queue, or only the database.

    Attributes:
        contender: who.
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
        """The contender's."""
        return self.contender.name

    def load(self, connections: int, in_flight: int) -> Load:
        """A load on it.

        Parameters:
            connections: how many.
            in_flight: the most requests that each has in flight.
        """
        return Load(self.address, self.contender.dialect, connections, in_flight)

    def stop(self) -> None:
        """End it, in good order."""
        self.process.stop()

    def _begin(self) -> Address:
        """What is waited for before it is used.

        Returns:
            Where it serves.
        """
        return self.contender.await_service(self.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def alternating(members: Sequence[_Member], round_number: int) -> Sequence[_Member]:
    """Who is measured when: in every other round the last is first."""
    return members if round_number % 2 == 0 else members[::-1]
