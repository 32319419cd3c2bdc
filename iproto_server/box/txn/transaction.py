"""Transactions: what was changed, in order, so that it can be logged as one or undone as one.

The box is owned by one thread, so there is at most one running transaction and it needs no isolation: undo is
a walk back through its statements. Those that outlive a stretch of code that does not wait take turns
(`interactive.py`).

A committed transaction is not safe yet: its rows wait in the journal for the end of the loop's iteration.
Until then its statements are kept, for when the write fails: then all that waited are undone, the newest
first.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import Final, NoReturn, Protocol

from iproto_server.box.stack import ensure_stack, more_stack
from iproto_server.box.txn.journal import Journal
from iproto_server.box.txn.read_tracker import ReadTracker
from iproto_server.box.txn.statement import Committed, Savepoint, Statement, new_committed, new_savepoint
from iproto_server.box.txn.trigger import Trigger
from iproto_server.errors import BoxError, ErrorCode

logger = logging.getLogger("iproto_server.transaction")

NESTING_MAX: Final = 4
"""Statements that may go on within each other: a change, and those made by triggers that it sets off.

Source: Tarantool 2.6, `TXN_SUB_STMT_MAX`, three levels below the first.
"""

EXIT_UNDOABLE: Final = 70
"""What a process ends with that cannot undo a transaction: `EX_SOFTWARE` of sysexits.h."""


class TransactionManager:
    """The one running transaction, what happens when it ends, and what ended but is not safe yet.

    Parameters:
        journal: where the rows of committed transactions go.

    Attributes:
        unwritten: the committed transactions that the journal has yet to write, the oldest first.
        is_writing: whether some that were taken from there are being written, and may yet be undone.
        is_write_due: whether there have been such since this was last set to False.
        has_logged: whether a transaction that has yet to be written was committed since this was last set to
            False. Who answers a request learns by it whether the answer rests on the request's own rows.
        write_soon: called when a write becomes due.
        is_read_only: whether spaces refuse changes, except those that are nobody else's business: temporary
            and local ones.
        interactive: the interactive transaction whose request is running; it wants to know what is read.
        take_out: what takes the rows of an interactive transaction out of the spaces that were left there;
            None where there are none. Whoever reads outside of a transaction calls it first.
        on_change: told of the statements of every transaction that was committed, and of those that were
            undone after that; answers what is to be called when that is over. None while nobody wants to
            know.
        nesting: the number of statements whose triggers are running: each was set off by one before it.
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
            None  # the statement that is being undone, when its triggers know of it
        )

    def check_nesting(self) -> None:
        """Raise BoxError SUB_STMT_MAX (121) where no statement may begin within those that are going on."""
        if self.nesting >= NESTING_MAX:
            raise BoxError(ErrorCode.SUB_STMT_MAX)

    def begin(self) -> None:
        """Start a transaction.

        Raises:
            BoxError: ACTIVE_TRANSACTION, one is running.
            RecursionError: there is no room on the stack to undo it.
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
        """Go on with an interactive transaction; its rows are in the spaces."""
        assert self.statements is None
        self.interactive = transaction
        self.statements, self._on_commit, self._on_rollback = statements, on_commit, on_rollback

    def detach(
        self,
    ) -> tuple[list[Statement], list[Callable[[], object]], list[Callable[[], object]]] | None:
        """Interrupt the running interactive transaction.

        Returns: what `attach` needs to go on with it; None when it has ended meanwhile.
        """
        self.interactive = None
        if self.statements is None:
            return None
        detached = self.statements, self._on_commit, self._on_rollback
        self.statements, self._on_commit, self._on_rollback = None, [], []
        return detached

    def commit(self) -> None:
        """Hand the rows to the journal, then run what waited for the commit.

        Raises:
            BoxError: the journal refused the rows; everything was undone.
        """
        statements = self.statements
        if statements:
            try:
                is_unwritten = self.journal.append(statements)
            except BaseException:
                # Whatever it is: a transaction that stayed open would stand in the way of all others.
                self.rollback()
                raise
            # One that is not logged may follow from one that is.
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
            # Whether others' changes are to be written, which these bring about, is not this one's affair.
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
        """The committed transactions that have yet to be written; whoever takes them writes or undoes
        them."""
        unwritten, self.unwritten = self.unwritten, []
        return unwritten

    def undo(self, transactions: list[Committed]) -> None:
        """Undo committed transactions that could not be written, and tell those who asked for it.

        Parameters:
            transactions: all that were committed since some moment, the oldest first.
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
        # Not before everything is undone, because they may begin transactions.
        call_all(callbacks)
        for _, on_rollback in reversed(transactions):
            call_all(reversed(on_rollback))

    def savepoint(self) -> Savepoint:
        """Where the running transaction is now."""
        statements = self.statements
        assert statements is not None
        return new_savepoint(
            (statements, len(statements), len(self._on_commit), len(self._on_rollback), self.nesting)
        )

    def rollback_to_savepoint(self, savepoint: Savepoint) -> None:
        """Undo what happened since: statements, and what was to be called for them.

        Parameters:
            savepoint: of the running transaction.
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
        """Undo a statement that a trigger has refused, and what triggers have done because of it.

        Parameters:
            savepoint: the moment before the first trigger ran; the statement is the last one before it.
            ran: the triggers that have run, which are to be told.
        """
        self.rollback_to_savepoint(savepoint)
        self._undo(savepoint.statements, savepoint.position - 1, ran)

    def notify_undone(self, statements: list[Statement]) -> None:
        """Tell the triggers, the newest first, of statements that are undone already."""
        with _Undoing(self):
            for statement in reversed(statements):
                statement.space.undone(statement.old, statement.new)

    def _undo(
        self, statements: list[Statement], position: int, ran: tuple[Trigger, ...] | None = None
    ) -> None:
        """Undo, newest first, the statements after the first `position` ones.

        Parameters:
            ran: the triggers that were told of them; None: all that there are.
        """
        with _Undoing(self):
            while len(statements) > position:
                statement = statements[-1]
                space, key, old, new, _, undo = statement
                if self._told is not statement:
                    space.undone(old, new, ran)
                    self._told = statement
                # The row of a system space had its effect after it was stored, so the effect goes first.
                if undo is not None:
                    undo()
                    self._told = statements[-1] = statement._replace(undo=None)
                space.put_back(key, old, new)
                # Not before: where it fails for want of memory, whoever undoes more tries again.
                statements.pop()
            self._told = None

    def on_commit(self, callback: Callable[[], object]) -> None:
        """Call `callback` right after the running transaction has committed; at once where there is none."""
        if self.statements is None:
            callback()
        else:
            self._on_commit.append(callback)

    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the running transaction has been undone, be it because it cannot be
        written."""
        if self.statements is not None:
            self._on_rollback.append(callback)


class TransactionScope(Protocol):
    """Where transactions run; a `Box` is."""

    @property
    def transactions(self) -> TransactionManager:
        """The running transaction."""

    def on_rollback(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the running transaction has been undone."""


class _Undoing:
    """A block that undoes statements: it has more stack than other code, and no statement begins in it."""

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
    """End the process: a transaction cannot be undone, so the rows in memory are not those of the log.

    A start from the log has the right ones. Tarantool panics then, too.
    """
    logger.critical(
        "cannot undo a transaction; the rows in memory are wrong, the process ends", exc_info=True
    )
    logging.shutdown()
    os._exit(EXIT_UNDOABLE)


def call_all(callbacks: Iterable[Callable[[], object]]) -> None:
    """Call back, each whatever the others do: what they follow has happened and cannot be refused."""
    for callback in callbacks:
        try:
            callback()
        except BaseException:
            logger.exception("transaction callback failed")
