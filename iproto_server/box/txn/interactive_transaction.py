"""One interactive transaction: its changes and reads, while it runs and while others run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from iproto_server.box.clock import Timer
from iproto_server.box.index.index import Index
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.txn.read_set import ReadSet
from iproto_server.box.txn.read_tracker import SideState
from iproto_server.box.txn.statement import Statement, Transaction
from iproto_server.box.txn.transactional_space import ReadableSpace, TransactionalSpace
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import DESCENDING
from iproto_server.native._native import HeldRecord

_VIEW_MAX: Final = 10_000
"""Rows that others may change before a transaction that sees older versions fails."""


class Isolation(IntEnum):
    """The isolation level of a transaction; the numbers are those of the protocol.

    All levels are serializable. With READ_CONFIRMED and LINEARIZABLE, answers also wait for the log write of
    the rows that they depend on.
    """

    DEFAULT = 0
    READ_COMMITTED = 1
    READ_CONFIRMED = 2
    BEST_EFFORT = 3
    LINEARIZABLE = 4


NoteReader = Callable[["InteractiveTransaction", ReadableSpace], None]


class _HiddenRow(NamedTuple):
    """A row of which a transaction sees an old version: none, or the packed row."""

    space: TransactionalSpace
    key: bytes
    old: bytes | None
    present: HeldRecord | None


class InteractiveTransaction:
    """One transaction that outlives its requests.

    Parameters:
        note_reader: called with the transaction and each space that it reads; changes there are then checked
            for conflicts with its reads.
        isolation: its level.
        statements: an empty list of them.

    Attributes:
        side_state: its changes of state outside the spaces, by owner; they are applied and taken out together
            with its rows.
        statements: its changes, with its callbacks.
        isolation: its level.
        failure: the reason for which it cannot continue, or None. A failed transaction keeps nothing.
        view: old versions of rows that others have changed and whose changes it must not see; None while it
            sees the newest rows.
    """

    __slots__ = (
        "_checked",
        "_hidden",
        "_note_reader",
        "failure",
        "isolation",
        "reads",
        "side_state",
        "statements",
        "timer",
        "view",
    )

    def __init__(self, note_reader: NoteReader, isolation: Isolation, statements: Transaction) -> None:
        self._note_reader = note_reader
        self.statements = statements
        self.isolation = isolation
        self.side_state: dict[object, SideState] = {}
        self.reads = ReadSet()
        self.failure: ErrorCode | None = None
        self.timer: Timer | None = None
        self.view: dict[tuple[TransactionalSpace, bytes], bytes | None] | None = None
        self._hidden: list[_HiddenRow] = []
        self._checked = 0

    @property
    def is_confirmed(self) -> bool:
        """Whether its answers may depend on written rows only."""
        return self.isolation in (Isolation.READ_CONFIRMED, Isolation.LINEARIZABLE)

    # -- called by the spaces while one of its requests runs --

    def read_key(self, space: ReadableSpace, index_id: int, key: bytes) -> None:
        """Record a look-up by a whole key of an index."""
        self._note_reader(self, space)
        self.reads.add_key(space, index_id, key)

    def read_interval(
        self,
        space: ReadableSpace,
        index: Index,
        iterator: int,
        key: list[Any],
        last: bytes | None = None,
    ) -> None:
        """Record a walk through an index.

        Parameters:
            space, index: the index and its space.
            iterator, key: the arguments of the walk.
            last: the row at which it stopped; None if it reached the end.
        """
        self._note_reader(self, space)
        low, high = index.interval(iterator, key)
        if last is not None:
            # In a multikey index a row has several keys, and it is unknown at which of them the walk stopped.
            ends = space.keys_of(index, last)
            if iterator in DESCENDING:
                low = max(low, min(ends))
            else:
                end = max(ends) + b"\x00"
                high = end if high is None else min(high, end)
        self.reads.add_interval(space, index.id, low, high)

    def read_all(self, space: ReadableSpace) -> None:
        """Record a read or a count of all rows."""
        self._note_reader(self, space)
        self.reads.add_interval(space, 0, b"", None)

    def change(self, space: TransactionalSpace, key: bytes, new: Tuple | None, operation: str) -> None:
        """Record that a row is about to change.

        A REPLACE in a space without secondary indexes and triggers does not depend on the old row, so it
        counts as no read.

        Parameters:
            space, key: the space and the encoded primary key.
            new: the new row; None for a deletion.
            operation: the request's name.

        Raises:
            BoxError: TRANSACTION_CONFLICT: it sees older rows than the newest, so its changes cannot be
                committed.
        """
        if self.view is not None:
            raise BoxError(ErrorCode.TRANSACTION_CONFLICT)
        is_alone = len(space.indexes) == 1 and not space.on_replace and not space.before_replace
        if operation == "REPLACE" and is_alone:
            return
        self.read_key(space, 0, key)
        if new is None:
            return
        for index in space.secondaries:
            if index.unique:
                for each in space.keys_of(index, new.raw):
                    self.read_key(space, index.id, each)

    # -- putting its rows into the spaces and taking them out --

    def put_in(self) -> None:
        """Make the spaces show the state that the transaction sees."""
        for each in self.side_state.values():
            each.put_in()
        if self.view is not None:
            self._hide_present(self.view)
            return
        self.statements.put_in()

    def take_out(self) -> None:
        """Make the spaces show the committed state again."""
        for each in reversed(self.side_state.values()):
            each.take_out()
        self.show_present()
        self.statements.take_out()

    def _hide_present(self, view: dict[tuple[TransactionalSpace, bytes], bytes | None]) -> None:
        """Replace present rows by the old versions of a view."""
        # All present rows are removed before old ones are added: a unique key may have moved between rows.
        for (space, key), old in view.items():
            assert space.primary is not None
            if space.primary.get(key) != old:
                self._hidden.append(_HiddenRow(space, key, old, space.exchange(key, None)))
        for hidden in self._hidden:
            if hidden.old is not None:
                hidden.space.exchange(hidden.key, hidden.old)

    def show_present(self) -> None:
        """Replace the old versions by the present rows again."""
        rows, self._hidden = self._hidden, []
        for hidden in rows:
            if hidden.old is not None:
                hidden.space.exchange(hidden.key, None)
        for hidden in rows:
            if hidden.present is not None:
                hidden.space.exchange(hidden.key, hidden.present)

    @property
    def is_visible(self) -> bool:
        """Whether it changes the spaces, or state outside them, while it is put in."""
        return bool(self.statements or self.view or self.side_state)

    def hide(self, statements: Sequence[Statement]) -> bool:
        """Keep seeing the rows as they were before these changes. Return False if these are too many rows."""
        if self.view is None:
            self.view = {}
        for statement in statements:
            place: tuple[TransactionalSpace, bytes] = (statement.space, statement.key)
            self.view.setdefault(place, statement.old)
        return len(self.view) <= _VIEW_MAX

    def rolled_back_to(self, position: int) -> None:
        """Note that the statements after the first `position` ones are undone."""
        self._checked = min(self._checked, position)

    def has_changed_schema(self) -> bool:
        """Whether a statement since the last call has changed the schema."""
        start, self._checked = self._checked, len(self.statements)
        return self.statements.has_effect(start)
