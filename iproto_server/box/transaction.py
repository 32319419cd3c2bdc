"""Transactions: what was changed, in order, so that it can be logged as one or undone as one.

The box is owned by one thread and no transaction outlives a stretch of code that does not wait, so there is
at most one at a time and it needs no isolation: undo is a walk back through its statements.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.memtx import MemtxSpace

logger = logging.getLogger("iproto_server.transaction")


class Savepoint(NamedTuple):
    """A moment of a transaction that it can be taken back to: how much had happened until then."""

    statements: list[Statement]
    position: int
    on_commit: int
    on_rollback: int


class Statement(NamedTuple):
    """One change of one row.

    `old` None is an insertion, `new` None a deletion. `undo` reverses what a row of a system space brought
    about beside itself (a space created, an index built).
    """

    space: MemtxSpace
    key: bytes
    old: bytes | None
    new: bytes | None
    undo: Callable[[], None] | None


class Journal(Protocol):
    """Where committed rows go. The box does not know that files exist."""

    def append(self, statements: list[Statement]) -> None:
        """Take the rows of one transaction. Raises BoxError WAL_IO when they cannot be taken."""

    def flush(self) -> None:
        """Make every row taken so far as safe as the mode promises."""

    def position(self) -> int:
        """The log sequence number (LSN) of the last row taken."""


class MemoryJournal:
    """The journal of `wal_mode = none`: it numbers the rows and keeps nothing."""

    def __init__(self) -> None:
        self._lsn = 0

    def append(self, statements: list[Statement]) -> None:
        """Count the rows."""
        self._lsn += len(statements)

    def flush(self) -> None:
        """Nothing to write."""

    def position(self) -> int:
        """The number of rows so far."""
        return self._lsn


class TransactionManager:
    """The one running transaction, and what happens when it ends.

    Parameters:
        journal: where the rows of committed transactions go.
    """

    __slots__ = ("_on_commit", "_on_rollback", "journal", "statements")

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.statements: list[Statement] | None = None
        self._on_commit: list[Callable[[], object]] = []
        self._on_rollback: list[Callable[[], object]] = []

    def begin(self) -> None:
        """Start a transaction. Raises BoxError ACTIVE_TRANSACTION when one is running."""
        if self.statements is not None:
            raise BoxError(ErrorCode.ACTIVE_TRANSACTION)
        self.statements = []

    def commit(self) -> None:
        """Hand the rows to the journal, then run what waited for the commit.

        Raises:
            BoxError: the journal refused the rows; everything was undone.
        """
        statements = self.statements
        if statements:
            try:
                self.journal.append(statements)
            except BaseException:
                # Whatever it is: a transaction that stayed open would stand in the way of all others.
                self.rollback()
                raise
        self.statements = None
        if self._on_rollback:
            self._on_rollback = []
        if self._on_commit:
            callbacks, self._on_commit = self._on_commit, []
            _call_all(callbacks)

    def rollback(self) -> None:
        """Undo the whole transaction; without one, do nothing."""
        if self.statements is None:
            return
        self.rollback_to(0)
        self.statements = None
        self._on_commit = []
        if self._on_rollback:
            callbacks, self._on_rollback = self._on_rollback, []
            _call_all(reversed(callbacks))

    def savepoint(self) -> Savepoint:
        """Where the running transaction is now."""
        statements = self.statements
        assert statements is not None
        return Savepoint(statements, len(statements), len(self._on_commit), len(self._on_rollback))

    def rollback_to_savepoint(self, savepoint: Savepoint) -> None:
        """Undo what happened since: statements, and what was to be called for them.

        Parameters:
            savepoint: of the running transaction.
        """
        self.rollback_to(savepoint.position)
        del self._on_commit[savepoint.on_commit :]
        undone = self._on_rollback[savepoint.on_rollback :]
        del self._on_rollback[savepoint.on_rollback :]
        _call_all(reversed(undone))

    def rollback_to(self, position: int) -> None:
        """Undo, newest first, the statements after the first `position` ones."""
        statements = self.statements
        assert statements is not None
        while len(statements) > position:
            space, key, old, new, undo = statements.pop()
            space.undone(old, new)
            # The row of a system space had its effect after it was stored, so the effect goes first.
            if undo is not None:
                undo()
            space.put_back(key, old, new)

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call `callback` right after the running transaction has committed; at once where there is none."""
        if self.statements is None:
            callback()
        else:
            self._on_commit.append(callback)

    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the running transaction has been undone."""
        if self.statements is not None:
            self._on_rollback.append(callback)


def _call_all(callbacks: Iterable[Callable[[], object]]) -> None:
    """Call back, each whatever the others do: what they follow has happened and cannot be refused."""
    for callback in callbacks:
        try:
            callback()
        except Exception:
            logger.exception("what was to be done after a transaction failed")
