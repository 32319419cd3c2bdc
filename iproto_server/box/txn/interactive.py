"""Interactive transactions: begun by one request, ended by another, while others go on in between.

Goals: they are serializable; whoever uses none pays nothing; and the spaces know nothing of versions.

So the spaces hold one version of every row. While a request of an interactive transaction runs, the rows that
the transaction has changed are in the spaces; before anybody else looks, they are taken out again, and put
back with its next request (they are left in as long as nobody else looks, so a client that is alone pays
nothing for that either). What the transaction has read is noted, as intervals of keys. Every other commit is
held against that: one that changes what was read ends the transaction with ER_TRANSACTION_CONFLICT when it
comes to commit, as Tarantool's transaction manager does; a transaction that has only read goes on seeing what
was there before.

Source: Tarantool manual, "Transaction model" and "Streams and interactive transactions".
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol

from iproto_server.box.index.iterator_type import DESCENDING
from iproto_server.box.stack import ensure_stack, more_stack
from iproto_server.box.txn.read_set import ReadSet
from iproto_server.box.txn.transaction import Statement, TransactionManager, call_all
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.clock import Clock, Timer
    from iproto_server.box.index.index import Index
    from iproto_server.box.memtx.indexed_space import IndexedSpace
    from iproto_server.box.memtx.memtx_space import MemtxSpace
    from iproto_server.box.tuple.tuple import Tuple

_VIEW_MAX: Final = 10_000
"""Rows that others may change before a transaction that still sees them as they were is given up."""
_TIMER_MAX: Final = 1e9
"""Seconds that are as good as no timeout."""


class Isolation(IntEnum):
    """What a transaction sees of others' commits; the numbers are the wire's.

    All levels are serializable. READ_CONFIRMED and LINEARIZABLE also answer nothing that rests on rows whose
    log write may yet fail.
    """

    DEFAULT = 0
    READ_COMMITTED = 1
    READ_CONFIRMED = 2
    BEST_EFFORT = 3
    LINEARIZABLE = 4


class Beside(Protocol):
    """What a transaction has changed of something that is kept beside the spaces."""

    def put_in(self) -> None:
        """Let it be what the transaction sees."""

    def take_out(self) -> None:
        """Let it be what everybody sees."""


class InteractiveTransaction:
    """One transaction that outlives its requests.

    Attributes:
        beside: what it has changed beside the spaces, by what that belongs to; it goes in and out of there as
            the rows go in and out of the spaces.
        statements: what it has changed; the old rows are those that it found when it was last put in.
        isolation: its level.
        failure: why it cannot go on; None while it can. From then on nothing is kept of it.
        view: the rows that others have changed since it must not see such changes any more, as they were;
            None while it sees the newest rows.
    """

    __slots__ = (
        "_checked",
        "_hidden",
        "_manager",
        "beside",
        "failure",
        "isolation",
        "on_commit",
        "on_rollback",
        "reads",
        "statements",
        "timer",
        "view",
    )

    def __init__(self, manager: InteractiveTransactions, isolation: Isolation) -> None:
        self._manager = manager
        self.isolation = isolation
        self.beside: dict[object, Beside] = {}
        self.statements: list[Statement] = []
        self.on_commit: list[Callable[[], object]] = []
        self.on_rollback: list[Callable[[], object]] = []
        self.reads = ReadSet()
        self.failure: ErrorCode | None = None
        self.timer: Timer | None = None
        self.view: dict[tuple[MemtxSpace, bytes], bytes | None] | None = None
        self._hidden: list[tuple[MemtxSpace, bytes, bytes | None, bytes | None]] = []
        self._checked = 0

    @property
    def is_confirmed(self) -> bool:
        """Whether its answers must rest on written rows only."""
        return self.isolation in (Isolation.READ_CONFIRMED, Isolation.LINEARIZABLE)

    # -- what the spaces tell while one of its requests runs --

    def read_key(self, space: IndexedSpace, index_id: int, key: bytes) -> None:
        """It has looked for the row with a whole key of an index."""
        self._manager.note_reader(self, space)
        self.reads.add_key(space, index_id, key)

    def read_interval(
        self,
        space: IndexedSpace,
        index: Index,
        iterator: int,
        key: list[Any],
        last: bytes | None = None,
    ) -> None:
        """It has walked through an index.

        Parameters:
            space, index: where.
            iterator, key: as the walk was asked for.
            last: the row at which it stopped; None when it went to the end.
        """
        self._manager.note_reader(self, space)
        low, high = index.interval(iterator, key)
        if last is not None:
            # In a multikey index a row has several keys; at which of them the walk stopped is not known.
            ends = space.keys_of(index, last)
            if iterator in DESCENDING:
                low = max(low, min(ends))
            else:
                end = max(ends) + b"\x00"
                high = end if high is None else min(high, end)
        self.reads.add_interval(space, index.id, low, high)

    def read_all(self, space: IndexedSpace) -> None:
        """It has looked at all rows, or counted them."""
        self._manager.note_reader(self, space)
        self.reads.add_interval(space, 0, b"", None)

    def change(self, space: MemtxSpace, key: bytes, new: Tuple | None, operation: str) -> None:
        """It is about to change a row.

        A REPLACE in a space that nothing else depends on rests on nothing that it has read: whatever was
        there, it is overwritten.

        Parameters:
            space, key: where, by the encoded primary key.
            new: the row that is to be there, None for none.
            operation: the request's name.

        Raises:
            BoxError: TRANSACTION_CONFLICT, it sees rows that others have changed since; what rests on them
                cannot be committed.
        """
        if self.view is not None:
            raise BoxError(ErrorCode.TRANSACTION_CONFLICT)
        is_alone = len(space.indexes) == 1 and not space.on_replace and not space.before_replace
        if operation == "REPLACE" and is_alone:
            return
        self.read_key(space, 0, key)
        if new is None:
            return
        for index in (*space.secondaries, *space.multikeys):
            if index.unique:
                for each in space.keys_of(index, new.raw):
                    self.read_key(space, index.id, each)

    # -- in the spaces, and out of them --

    def put_in(self) -> None:
        """Let the spaces hold what the transaction sees."""
        for each in self.beside.values():
            each.put_in()
        if self.view is not None:
            self._hide_present(self.view)
            return
        statements = self.statements
        for number, statement in enumerate(statements):
            space, key, new = statement.space, statement.key, statement.new
            assert space.primary is not None
            present = space.primary.get(key)
            if present != statement.old:
                statements[number] = statement._replace(old=present)
            if present != new:
                space.put_back(key, new, present)

    def take_out(self) -> None:
        """Let the spaces hold what everybody sees."""
        for each in reversed(self.beside.values()):
            each.take_out()
        self.show_present()
        for statement in reversed(self.statements):
            if statement.old != statement.new:
                statement.space.put_back(statement.key, statement.old, statement.new)

    def _hide_present(self, view: dict[tuple[MemtxSpace, bytes], bytes | None]) -> None:
        """Put old rows in the places of those that there are."""
        for (space, key), old in view.items():
            assert space.primary is not None
            present = space.primary.get(key)
            if present != old:
                self._hidden.append((space, key, old, present))
        # All of one kind go before any of the other come: a unique key may have passed from row to row.
        for space, key, _, present in self._hidden:
            if present is not None:
                space.put_back(key, None, present)
        for space, key, old, _ in self._hidden:
            if old is not None:
                space.put_back(key, old, None)

    def show_present(self) -> None:
        """Take the old rows out again."""
        hidden, self._hidden = self._hidden, []
        for space, key, old, _ in hidden:
            if old is not None:
                space.put_back(key, None, old)
        for space, key, _, present in hidden:
            if present is not None:
                space.put_back(key, present, None)

    @property
    def is_visible(self) -> bool:
        """Whether the spaces, or what is kept beside them, look different while it is in."""
        return bool(self.statements or self.view or self.beside)

    def hide(self, statements: list[Statement]) -> bool:
        """Go on seeing the rows as they were before these changes; False when that became too many rows."""
        if self.view is None:
            self.view = {}
        for statement in statements:
            self.view.setdefault((statement.space, statement.key), statement.old)
        return len(self.view) <= _VIEW_MAX

    def rolled_back_to(self, position: int) -> None:
        """Its statements after the first `position` ones are undone."""
        self._checked = min(self._checked, position)

    def has_changed_schema(self) -> bool:
        """Whether a statement since the last time this was asked has changed more than rows."""
        statements = self.statements
        start, self._checked = self._checked, len(statements)
        return any(statements[number].undo is not None for number in range(start, len(statements)))


class InteractiveTransactions:
    """The interactive transactions that are open.

    Parameters:
        transactions: the transaction manager whose running transaction one of them becomes.
        clock: for their timeouts.
    """

    def __init__(self, transactions: TransactionManager, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock
        self._open: dict[InteractiveTransaction, None] = {}
        self._viewing: dict[InteractiveTransaction, None] = {}  # those that see older rows than there are
        self._readers: dict[IndexedSpace, dict[InteractiveTransaction, None]] = {}
        self._left_in: InteractiveTransaction | None = None

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, timeout: float = 0, isolation: int = Isolation.DEFAULT) -> InteractiveTransaction:
        """Begin a transaction; none of its requests runs yet.

        Parameters:
            timeout: seconds after which it cannot go on; 0 for no such time.
            isolation: one of `Isolation`.

        Raises:
            BoxError: ILLEGAL_PARAMS for a timeout that is no time, or a level there is not.
        """
        if not timeout >= 0:
            raise _illegal("timeout must be a number greater than 0")
        if isolation not in Isolation.__members__.values():
            raise _illegal("unknown isolation level")
        transaction = InteractiveTransaction(self, Isolation(isolation))
        if 0 < timeout < _TIMER_MAX:
            transaction.timer = self._clock.call_later(timeout, lambda: self._time_out(transaction))
        self._open[transaction] = None
        self._transactions.on_change = self._changed
        return transaction

    def resume(self, transaction: InteractiveTransaction) -> None:
        """Make it the running transaction, for one of its requests.

        Raises:
            BoxError: it cannot go on (TRANSACTION_CONFLICT, TRANSACTION_TIMEOUT, TRANSACTION_YIELD).
        """
        if transaction.failure is not None:
            raise BoxError(transaction.failure)
        if self._left_in is transaction:
            self._left_in = self._transactions.take_out = None
        else:
            self._take_out()
            with more_stack:
                transaction.put_in()
        self._transactions.attach(
            transaction, transaction.statements, transaction.on_commit, transaction.on_rollback
        )

    def suspend(self) -> InteractiveTransaction | None:
        """End a request of the running transaction: what is running no more when its request has ended it.

        Returns: the transaction, None when there is none any more.
        """
        transactions = self._transactions
        transaction = transactions.interactive
        assert isinstance(transaction, InteractiveTransaction)
        detached = transactions.detach()
        if detached is None:
            transaction.show_present()
            self._close(transaction)
            return None
        transaction.statements, transaction.on_commit, transaction.on_rollback = detached
        if transaction.is_visible:
            self._left_in = transaction
            transactions.take_out = self._take_out
        if transaction.has_changed_schema():
            # As in Tarantool: the effects of DDL are everybody's, so such a transaction cannot wait.
            self._resume_and_roll_back(transaction)
            transaction.failure = ErrorCode.TRANSACTION_YIELD
            self._close(transaction)
        return transaction

    def commit(self, transaction: InteractiveTransaction) -> None:
        """End it and keep what it has changed.

        Raises:
            BoxError: it could not go on, or the journal refused its rows; it has ended all the same, and
                changed nothing.
        """
        try:
            self.resume(transaction)
        finally:
            self._close(transaction)
        if transaction.view is not None:
            # It has only read, as of an earlier moment. What it has changed beside the spaces stays.
            self._transactions.detach()
            transaction.show_present()
            call_all(transaction.on_commit)
            return
        self._transactions.interactive = None
        self._transactions.commit()

    def roll_back(self, transaction: InteractiveTransaction) -> None:
        """End it and undo what it has changed."""
        self._close(transaction)
        if transaction.failure is None:
            self._resume_and_roll_back(transaction)

    # -- what others do --

    def note_reader(self, transaction: InteractiveTransaction, space: IndexedSpace) -> None:
        """Hold every commit that changes the space against what the transaction has read."""
        readers = self._readers.get(space)
        if readers is None:
            self._readers[space] = {transaction: None}
        else:
            readers[transaction] = None

    def _changed(self, statements: list[Statement], is_undone: bool) -> list[Callable[[], object]]:
        """Something was committed, or could not be written and is undone: who has read it?

        Returns: what is to be called of those that cannot go on for it.
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

    def _concerned(self, statements: list[Statement], is_undone: bool) -> dict[InteractiveTransaction, None]:
        """Those that have read what was changed, or see older rows than there are."""
        concerned: dict[InteractiveTransaction, None] = {}
        if not is_undone:
            concerned.update(self._viewing)
        for statement in statements:
            for transaction in self._readers.get(statement.space, ()):
                if transaction not in concerned and transaction.reads.has_seen(statement):
                    concerned[transaction] = None
        return concerned

    def _hide(self, transaction: InteractiveTransaction, statements: list[Statement]) -> bool:
        """Let it go on seeing the rows as they were before these changes; False when that cannot be."""
        self._viewing[transaction] = None
        return transaction.hide(statements)

    def _time_out(self, transaction: InteractiveTransaction) -> None:
        call_all(self._fail(transaction, ErrorCode.TRANSACTION_TIMEOUT))

    def _fail(self, transaction: InteractiveTransaction, code: ErrorCode) -> list[Callable[[], object]]:
        """Undo it now and let its next request know.

        Returns: its callbacks that follow that, the first first. They may begin transactions.
        """
        if transaction.failure is not None or self._transactions.interactive is transaction:
            return []
        if self._left_in is transaction:
            self._take_out()
        transaction.failure = code
        # Its rows are out of the spaces; what is left to undo is what triggers and callbacks have noted.
        self._transactions.tell_undone(transaction.statements)
        transaction.statements = []
        transaction.view = None
        transaction.on_commit = []
        callbacks, transaction.on_rollback = transaction.on_rollback, []
        self._close(transaction)
        return callbacks[::-1]

    def _resume_and_roll_back(self, transaction: InteractiveTransaction) -> None:
        self.resume(transaction)
        if transaction.view is not None:
            self._transactions.detach()
            transaction.take_out()
            call_all(reversed(transaction.on_rollback))
            return
        self._transactions.interactive = None
        self._transactions.rollback()
        transaction.statements = []
        transaction.on_commit = []
        transaction.on_rollback = []

    def _take_out(self) -> None:
        if self._left_in is not None:
            # Code that is no transaction's may look at a space from anywhere on the stack.
            ensure_stack()
            with more_stack:
                self._left_in.take_out()
            self._left_in = None
        self._transactions.take_out = None

    def _close(self, transaction: InteractiveTransaction) -> None:
        """Forget what it has read, and that it is open."""
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
