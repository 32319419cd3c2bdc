"""Transactions: ordered lists of changes that are logged as a whole or undone as a whole.

One thread owns the box, so at most one transaction runs at a time and needs no isolation; undo walks back
through its statements. Interactive transactions, which span several requests, alternate (`interactive.py`).

The rows of a committed transaction are written at the end of the event loop's iteration. Its statements are
kept until then: if the write fails, all unwritten transactions are undone, the newest first.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import Final, NoReturn, Protocol

from iproto_server.box.stack import more_stack
from iproto_server.box.txn.journal import Journal
from iproto_server.box.txn.read_tracker import ReadTracker
from iproto_server.box.txn.statement import Committed, Savepoint, Statement, new_committed, new_savepoint
from iproto_server.box.txn.trigger import Trigger
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import ensure_stack

logger = logging.getLogger("iproto_server.transaction")

NESTING_MAX: Final = 4
"""The greatest depth of nested statements: a change, and those made by its triggers.

Source: Tarantool 2.6, `TXN_SUB_STMT_MAX`, three levels below the first.
"""

EXIT_UNDOABLE: Final = 70
"""The exit status of a process that cannot undo a transaction: `EX_SOFTWARE` of sysexits.h."""


class TransactionManager:
    """The running transaction with its callbacks, and committed transactions that are not written yet.

    Parameters:
        journal: receives the rows of committed transactions.

    Attributes:
        unwritten: committed transactions that the journal has not written yet, the oldest first.
        is_writing: whether transactions taken from `unwritten` are being written and may still be undone.
        is_write_due: whether a transaction was added to `unwritten` since this was last set to False.
        has_logged: whether an unwritten transaction was committed since this was last set to False. It tells
            whether the response to a request depends on the request's own rows.
        write_soon: called when a write becomes due.
        is_read_only: whether changes are refused, except in temporary and local spaces.
        interactive: the interactive transaction whose request is running; it tracks reads.
        take_out: takes the rows of a suspended interactive transaction out of the spaces; None if there are
            none. Code that reads outside of a transaction calls it first.
        on_change: called with the statements of each committed transaction, and of each one undone after its
            commit; returns callbacks to run afterwards. None without interactive transactions.
        nesting: the number of nested statements whose triggers are running.
    """

    __slots__ = (
        "_on_commit",
        "_on_rollback",
        "_told",
        "has_logged",
        "interactive",
        "is_read_only",
        "is_write_due",
        "is_writing",
        "journal",
        "nesting",
        "on_change",
        "statements",
        "take_out",
        "unwritten",
        "write_soon",
    )

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.statements: list[Statement] | None = None
        self._on_commit: list[Callable[[], object]] = []
        self._on_rollback: list[Callable[[], object]] = []
        self.unwritten: list[Committed] = []
        self.is_writing = False
        self.is_write_due = False
        self.has_logged = False
        self.write_soon: Callable[[], object] = lambda: None
        self.is_read_only = False
        self.interactive: ReadTracker | None = None
        self.take_out: Callable[[], object] | None = None
        self.on_change: Callable[[list[Statement], bool], list[Callable[[], object]]] | None = None
        self.nesting = 0
        self._told: Statement | None = (
            None  # the statement being undone, once its triggers have been notified
        )

    def check_nesting(self) -> None:
        """Raise BoxError SUB_STMT_MAX (121) if no further nested statement is allowed."""
        if self.nesting >= NESTING_MAX:
            raise BoxError(ErrorCode.SUB_STMT_MAX)

    def begin(self) -> None:
        """Start a transaction.

        Raises:
            BoxError: ACTIVE_TRANSACTION if one is running.
            RecursionError: there is not enough stack to undo it.
        """
        if self.statements is not None:
            raise BoxError(ErrorCode.ACTIVE_TRANSACTION)
        ensure_stack()
        if self.take_out is not None:
            self.take_out()
        self.statements = []

    def attach(
        self,
        transaction: ReadTracker,
        statements: list[Statement],
        on_commit: list[Callable[[], object]],
        on_rollback: list[Callable[[], object]],
    ) -> None:
        """Continue an interactive transaction, whose rows are in the spaces."""
        assert self.statements is None
        self.interactive = transaction
        self.statements, self._on_commit, self._on_rollback = statements, on_commit, on_rollback

    def detach(
        self,
    ) -> tuple[list[Statement], list[Callable[[], object]], list[Callable[[], object]]] | None:
        """Interrupt the running interactive transaction.

        Returns: the arguments of `attach` to continue it; None if it has ended meanwhile.
        """
        self.interactive = None
        if self.statements is None:
            return None
        detached = self.statements, self._on_commit, self._on_rollback
        self.statements, self._on_commit, self._on_rollback = None, [], []
        return detached

    def commit(self) -> None:
        """Pass the rows to the journal, then run the commit callbacks.

        Raises:
            BoxError: the journal has refused the rows; the transaction is undone.
        """
        statements = self.statements
        if statements:
            try:
                is_unwritten = self.journal.append(statements)
            except BaseException:
                # On any error: an open transaction would block all others.
                self.rollback()
                raise
            # An unlogged transaction may depend on a logged one.
            if is_unwritten or self.unwritten or self.is_writing:
                self.unwritten.append(new_committed((statements, self._on_rollback)))
                self.has_logged = True
                if not self.is_write_due:
                    self.is_write_due = True
                    self.write_soon()
        self.statements = None
        if self._on_rollback:
            self._on_rollback = []
        callbacks = self._on_commit
        if callbacks:
            self._on_commit = []
        if self.on_change is not None and statements:
            with more_stack:
                callbacks = callbacks + self.on_change(statements, False)
        if callbacks:
            # Changes made by the callbacks do not belong to this transaction.
            has_logged = self.has_logged
            call_all(callbacks)
            self.has_logged = has_logged

    def rollback(self) -> None:
        """Undo the whole transaction; without one, do nothing."""
        if self.statements is None:
            return
        try:
            self.rollback_to(0)
        except BaseException:  # noqa: BLE001
            _end_process()
        self.statements = None
        self._on_commit = []
        if self._on_rollback:
            callbacks, self._on_rollback = self._on_rollback, []
            call_all(reversed(callbacks))

    def take_unwritten(self) -> list[Committed]:
        """Remove and return the unwritten transactions; the caller writes or undoes them."""
        unwritten, self.unwritten = self.unwritten, []
        return unwritten

    def undo(self, transactions: list[Committed]) -> None:
        """Undo committed transactions that could not be written, and run their rollback callbacks.

        Parameters:
            transactions: all transactions since the first failed one, the oldest first.
        """
        assert self.statements is None
        if self.take_out is not None:
            self.take_out()
        callbacks: list[Callable[[], object]] = []
        for statements, _ in reversed(transactions):
            if self.on_change is not None:
                callbacks += self.on_change(statements, True)
            try:
                self._undo(statements, 0)
            except BaseException:  # noqa: BLE001
                _end_process()
        # Only after everything is undone, because callbacks may begin transactions.
        call_all(callbacks)
        for _, on_rollback in reversed(transactions):
            call_all(reversed(on_rollback))

    def savepoint(self) -> Savepoint:
        """A savepoint at the present state of the running transaction."""
        statements = self.statements
        assert statements is not None
        return new_savepoint(
            (statements, len(statements), len(self._on_commit), len(self._on_rollback), self.nesting)
        )

    def rollback_to_savepoint(self, savepoint: Savepoint) -> None:
        """Undo the statements since a savepoint, and drop or run their callbacks.

        Parameters:
            savepoint: one of the running transaction.
        """
        self.rollback_to(savepoint.position)
        del self._on_commit[savepoint.on_commit :]
        undone = self._on_rollback[savepoint.on_rollback :]
        del self._on_rollback[savepoint.on_rollback :]
        call_all(reversed(undone))

    def rollback_to(self, position: int) -> None:
        """Undo, newest first, the statements after the first `position` ones."""
        assert self.statements is not None
        if self.interactive is not None:
            self.interactive.rolled_back_to(position)
        if len(self.statements) > position:
            self._undo(self.statements, position)

    def take_back(self, savepoint: Savepoint, ran: tuple[Trigger, ...]) -> None:
        """Undo a statement that a trigger has refused, and the changes made by its triggers.

        Parameters:
            savepoint: the savepoint before the first trigger; the statement is the last one before it.
            ran: the triggers that have run, which are notified.
        """
        self.rollback_to_savepoint(savepoint)
        self._undo(savepoint.statements, savepoint.position - 1, ran)

    def notify_undone(self, statements: list[Statement]) -> None:
        """Notify triggers of statements that are undone already, the newest first."""
        with _Undoing(self):
            for statement in reversed(statements):
                statement.space.undone(statement.old, statement.new)

    def _undo(
        self, statements: list[Statement], position: int, ran: tuple[Trigger, ...] | None = None
    ) -> None:
        """Undo, newest first, the statements after the first `position` ones.

        Parameters:
            ran: the triggers that have run; None: all of them.
        """
        with _Undoing(self):
            while len(statements) > position:
                statement = statements[-1]
                space, key, old, new, _, undo = statement
                if self._told is not statement:
                    space.undone(old, new, ran)
                    self._told = statement
                # The effect of a system row came after the row, so it is undone first.
                if undo is not None:
                    undo()
                    self._told = statements[-1] = statement._replace(undo=None)
                space.put_back(key, old, new)
                # Removed last: if memory runs out above, the undo can be repeated.
                statements.pop()
            self._told = None

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call `callback` right after the commit of the running transaction; at once if there is none."""
        if self.statements is None:
            callback()
        else:
            self._on_commit.append(callback)

    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` if the running transaction is undone, also after a failed write."""
        if self.statements is not None:
            self._on_rollback.append(callback)


class TransactionScope(Protocol):
    """An object in which transactions run, such as a `Box`."""

    @property
    def transactions(self) -> TransactionManager:
        """The transaction manager."""

    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` if the running transaction is undone."""


class _Undoing:
    """A block that undoes statements: it has more stack, and no statement may begin in it."""

    __slots__ = ("_nesting", "_transactions")

    def __init__(self, transactions: TransactionManager) -> None:
        self._transactions = transactions
        self._nesting = transactions.nesting

    def __enter__(self) -> None:
        more_stack.__enter__()
        self._transactions.nesting = NESTING_MAX

    def __exit__(self, *error: object) -> None:
        self._transactions.nesting = self._nesting
        more_stack.__exit__()


def _end_process() -> NoReturn:
    """End the process: a transaction cannot be undone, so rows in memory differ from the log.

    A restart recovers from the log. Tarantool panics in this case, too.
    """
    logger.critical(
        "cannot undo a transaction; the rows in memory are wrong, the process ends", exc_info=True
    )
    logging.shutdown()
    os._exit(EXIT_UNDOABLE)


def call_all(callbacks: Iterable[Callable[[], object]]) -> None:
    """Run callbacks; an error in one is logged and does not stop the others."""
    for callback in callbacks:
        try:
            callback()
        except BaseException:
            logger.exception("transaction callback failed")
