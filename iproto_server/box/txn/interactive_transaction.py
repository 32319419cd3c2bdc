"""One interactive transaction: what it has changed and read, in the spaces and out of them."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from iproto_server.box.clock import Timer
from iproto_server.box.index.index import Index
from iproto_server.box.index.iterator_type import DESCENDING
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.txn.read_set import ReadSet
from iproto_server.box.txn.read_tracker import Beside
from iproto_server.box.txn.statement import Statement
from iproto_server.box.txn.transactional_space import ReadableSpace, TransactionalSpace
from iproto_server.errors import BoxError, ErrorCode

_VIEW_MAX: Final = 10_000
"""Rows that others may change before a transaction that still sees them as they were is given up."""


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


NoteReader = Callable[["InteractiveTransaction", ReadableSpace], None]


class InteractiveTransaction:
    """One transaction that outlives its requests.

    Parameters:
        note_reader: called with it and a space that it reads, so that changes there are checked against it.
        isolation: its level.

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
        "_note_reader",
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

    def __init__(self, note_reader: NoteReader, isolation: Isolation) -> None:
        self._note_reader = note_reader
        self.isolation = isolation
        self.beside: dict[object, Beside] = {}
        self.statements: list[Statement] = []
        self.on_commit: list[Callable[[], object]] = []
        self.on_rollback: list[Callable[[], object]] = []
        self.reads = ReadSet()
        self.failure: ErrorCode | None = None
        self.timer: Timer | None = None
        self.view: dict[tuple[TransactionalSpace, bytes], bytes | None] | None = None
        self._hidden: list[tuple[TransactionalSpace, bytes, bytes | None, bytes | None]] = []
        self._checked = 0

    @property
    def is_confirmed(self) -> bool:
        """Whether its answers must rest on written rows only."""
        return self.isolation in (Isolation.READ_CONFIRMED, Isolation.LINEARIZABLE)

    # -- what the spaces tell while one of its requests runs --

    def read_key(self, space: ReadableSpace, index_id: int, key: bytes) -> None:
        """It has looked for the row with a whole key of an index."""
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
        """It has walked through an index.

        Parameters:
            space, index: where.
            iterator, key: as the walk was asked for.
            last: the row at which it stopped; None when it went to the end.
        """
        self._note_reader(self, space)
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

    def read_all(self, space: ReadableSpace) -> None:
        """It has looked at all rows, or counted them."""
        self._note_reader(self, space)
        self.reads.add_interval(space, 0, b"", None)

    def change(self, space: TransactionalSpace, key: bytes, new: Tuple | None, operation: str) -> None:
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

    def _hide_present(self, view: dict[tuple[TransactionalSpace, bytes], bytes | None]) -> None:
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
