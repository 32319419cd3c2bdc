"""Interactive transactions: begun by one request, ended by another; other requests run in between.

Goals: they are serializable, other requests pay nothing for them, and the spaces do not know versions.

Spaces therefore hold one version of each row. While a request of an interactive transaction runs, its changed
rows are in the spaces. Before other code accesses the spaces, they are taken out, and its next request puts
them back; without other accesses they stay, so a single client pays nothing. Reads are recorded as intervals
of keys, and every other commit is checked against them. A commit that changes what was read makes the
transaction fail with ER_TRANSACTION_CONFLICT, as in Tarantool; a transaction that has only read keeps seeing
the old rows.

Source: Tarantool manual, "Transaction model" and "Streams and interactive transactions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from iproto_server.box.clock import Clock
from iproto_server.box.stack import more_stack
from iproto_server.box.txn.interactive_transaction import InteractiveTransaction, Isolation
from iproto_server.box.txn.read_set import ReadSet
from iproto_server.box.txn.statement import Statement, Transaction
from iproto_server.box.txn.transaction import TransactionManager, call_all
from iproto_server.box.txn.transactional_space import ReadableSpace
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import ensure_stack

_TIMER_MAX: Final = 1e9
"""Timeouts from this number of seconds on count as none."""


class InteractiveTransactions:
    """The open interactive transactions.

    Parameters:
        transactions: the transaction manager.
        clock: the clock for timeouts.
    """

    def __init__(self, transactions: TransactionManager, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock
        self._open: dict[InteractiveTransaction, None] = {}
        self._viewing: dict[InteractiveTransaction, None] = {}  # those that see older versions of rows
        self._readers: dict[ReadableSpace, dict[InteractiveTransaction, None]] = {}
        self._left_in: InteractiveTransaction | None = None

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, timeout: float = 0, isolation: int = Isolation.DEFAULT) -> InteractiveTransaction:
        """Begin a transaction, without making it the running one.

        Parameters:
            timeout: seconds after which it fails; 0: no timeout.
            isolation: one of `Isolation`.

        Raises:
            BoxError: ILLEGAL_PARAMS for an invalid timeout or an unknown level.
        """
        if not timeout >= 0:
            raise _illegal("timeout must be a number greater than 0")
        if isolation not in Isolation.__members__.values():
            raise _illegal("unknown isolation level")
        empty = Transaction(self._transactions)
        transaction = InteractiveTransaction(self._note_reader, Isolation(isolation), empty)
        if 0 < timeout < _TIMER_MAX:
            transaction.timer = self._clock.call_later(timeout, lambda: self._time_out(transaction))
        self._open[transaction] = None
        self._transactions.on_change = self._changed
        return transaction

    def resume(self, transaction: InteractiveTransaction) -> None:
        """Make it the running transaction, for one of its requests.

        Raises:
            BoxError: it has failed (TRANSACTION_CONFLICT, TRANSACTION_TIMEOUT, TRANSACTION_YIELD).
        """
        if transaction.failure is not None:
            raise BoxError(transaction.failure)
        if self._left_in is transaction:
            self._left_in = self._transactions.take_out = None
        else:
            self._take_out()
            with more_stack:
                transaction.put_in()
        self._transactions.attach(transaction, transaction.statements)

    def suspend(self) -> InteractiveTransaction | None:
        """End a request of the running transaction.

        Returns: the transaction; None if the request has ended it.
        """
        transactions = self._transactions
        transaction = transactions.interactive
        assert isinstance(transaction, InteractiveTransaction)
        detached = transactions.detach()
        if detached is None:
            transaction.show_present()
            self._close(transaction)
            return None
        transaction.statements = detached
        if transaction.is_visible:
            self._left_in = transaction
            transactions.take_out = self._take_out
        if transaction.has_changed_schema():
            # As in Tarantool: DDL affects everybody, so such a transaction cannot be suspended.
            self._resume_and_roll_back(transaction)
            transaction.failure = ErrorCode.TRANSACTION_YIELD
            self._close(transaction)
        return transaction

    def commit(self, transaction: InteractiveTransaction) -> None:
        """Commit a transaction.

        Raises:
            BoxError: it has failed, or the journal has refused its rows; it is rolled back.
        """
        try:
            self.resume(transaction)
        finally:
            self._close(transaction)
        if transaction.view is not None:
            # It has only read, as of an earlier moment. Its changes of state outside the spaces stay.
            self._transactions.detach()
            transaction.show_present()
            call_all(transaction.statements.on_commit)
            return
        self._transactions.untrack()
        self._transactions.commit()

    def roll_back(self, transaction: InteractiveTransaction) -> None:
        """Roll a transaction back."""
        self._close(transaction)
        if transaction.failure is None:
            self._resume_and_roll_back(transaction)

    # -- effects of other transactions --

    def _note_reader(self, transaction: InteractiveTransaction, space: ReadableSpace) -> None:
        """Check commits that change the space for conflicts with the transaction's reads from now on."""
        readers = self._readers.get(space)
        if readers is None:
            self._readers[space] = {transaction: None}
        else:
            readers[transaction] = None

    def _changed(self, statements: Sequence[Statement], is_undone: bool) -> list[Callable[[], object]]:
        """Handle a commit, or the undo of a commit that could not be written.

        Returns: the rollback callbacks of transactions that fail because of it.
        """
        failed: list[InteractiveTransaction] = []
        if any(statement.undo is not None for statement in statements):
            failed.extend(self._open)
        else:
            failed.extend(
                each
                for each in self._concerned(statements, is_undone)
                if is_undone or each.statements or not self._hide(each, statements)
            )
        return [each for one in failed for each in self._fail(one, ErrorCode.TRANSACTION_CONFLICT)]

    def _concerned(
        self, statements: Sequence[Statement], is_undone: bool
    ) -> dict[InteractiveTransaction, None]:
        """The transactions that have read changed rows, or see older versions of rows."""
        concerned: dict[InteractiveTransaction, None] = {}
        if not is_undone:
            concerned.update(self._viewing)
        for statement in statements:
            for transaction in self._readers.get(statement.space, ()):
                if transaction not in concerned and transaction.reads.has_seen(statement):
                    concerned[transaction] = None
        return concerned

    def _hide(self, transaction: InteractiveTransaction, statements: Sequence[Statement]) -> bool:
        """Keep the rows before these changes visible to it. Return False if that is impossible."""
        self._viewing[transaction] = None
        return transaction.hide(statements)

    def _time_out(self, transaction: InteractiveTransaction) -> None:
        call_all(self._fail(transaction, ErrorCode.TRANSACTION_TIMEOUT))

    def _fail(self, transaction: InteractiveTransaction, code: ErrorCode) -> list[Callable[[], object]]:
        """Undo it now; its next request raises the error.

        Returns: its rollback callbacks in the order to run them. They may begin transactions.
        """
        if transaction.failure is not None or self._transactions.interactive is transaction:
            return []
        if self._left_in is transaction:
            self._take_out()
        transaction.failure = code
        # Its rows are out of the spaces already; only triggers and callbacks have something to undo.
        self._transactions.notify_undone(transaction.statements)
        callbacks = transaction.statements.on_rollback[::-1]
        transaction.statements = Transaction(self._transactions)
        transaction.view = None
        self._close(transaction)
        return callbacks

    def _resume_and_roll_back(self, transaction: InteractiveTransaction) -> None:
        self.resume(transaction)
        if transaction.view is not None:
            self._transactions.detach()
            transaction.take_out()
            call_all(reversed(transaction.statements.on_rollback))
            return
        self._transactions.untrack()
        self._transactions.rollback()
        transaction.statements = Transaction(self._transactions)

    def _take_out(self) -> None:
        if self._left_in is not None:
            # Code outside of transactions may access a space at any depth of the stack.
            ensure_stack()
            with more_stack:
                self._left_in.take_out()
            self._left_in = None
        self._transactions.take_out = None

    def _close(self, transaction: InteractiveTransaction) -> None:
        """Remove it from the open transactions, with its reads."""
        if transaction.timer is not None:
            transaction.timer.cancel()
            transaction.timer = None
        self._open.pop(transaction, None)
        self._viewing.pop(transaction, None)
        for space in transaction.reads:
            readers = self._readers.get(space)
            if readers is not None:
                readers.pop(transaction, None)
                if not readers:
                    del self._readers[space]
        transaction.reads = ReadSet()
        if not self._open:
            self._transactions.on_change = None


def _illegal(text: str) -> BoxError:
    return BoxError.with_message(ErrorCode.ILLEGAL_PARAMS, text, type="IllegalParams")
