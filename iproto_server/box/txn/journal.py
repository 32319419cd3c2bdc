"""Where the rows of committed transactions go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from iproto_server.box.txn.statement import Statement


class Journal(Protocol):
    """Where committed rows go. The box does not know that files exist."""

    def append(self, statements: list[Statement]) -> bool:
        """Take the rows of one transaction.

        Returns: whether they have yet to be written, which may fail.

        Raises:
            BoxError: WAL_IO, they cannot be taken.
        """

    def position(self) -> int:
        """The log sequence number (LSN) of the last row taken."""

    @property
    def vclock(self) -> Mapping[int, int]:
        """That number for every member of the replica set, by its id; 0 stands for rows of local spaces."""


class MemoryJournal:
    """A journal that numbers the rows and keeps nothing."""

    def __init__(self) -> None:
        self._lsn = 0

    def append(self, statements: list[Statement]) -> bool:
        """Count the rows."""
        self._lsn += len(statements)
        return False

    def position(self) -> int:
        """The number of rows so far."""
        return self._lsn

    @property
    def vclock(self) -> Mapping[int, int]:
        """The number of rows so far, as that of the only member."""
        return {1: self._lsn} if self._lsn else {}
