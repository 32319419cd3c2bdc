"""The journal: receives the rows of committed transactions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from iproto_server.native._native import Transaction


class Journal(Protocol):
    """Receives committed rows; the box does not know about files."""

    def append(self, transaction: Transaction, /) -> bool:
        """Accept the rows of one transaction.

        Returns: whether they are still to be written, which may fail.

        Raises:
            BoxError: WAL_IO: they cannot be accepted.
        """

    def position(self) -> int:
        """The log sequence number (LSN) of the last accepted row."""

    @property
    def vclock(self) -> Mapping[int, int]:
        """The LSN of each member of the replica set by id; id 0 means rows of local spaces."""


class MemoryJournal:
    """A journal that numbers rows without storing them."""

    def __init__(self) -> None:
        self._lsn = 0

    def append(self, transaction: Transaction, /) -> bool:
        """Count the rows."""
        self._lsn += len(transaction)
        return False

    def position(self) -> int:
        """The number of rows so far."""
        return self._lsn

    @property
    def vclock(self) -> Mapping[int, int]:
        """The number of rows so far, as LSN of the only member."""
        return {1: self._lsn} if self._lsn else {}
