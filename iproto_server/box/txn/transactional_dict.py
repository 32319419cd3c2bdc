"""A dict beside the spaces whose changes belong to transactions, as the changes of rows do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from iproto_server.box.txn.transaction import TransactionScope

Key = TypeVar("Key")
Value = TypeVar("Value")

ABSENT: Final[Any] = object()
"""What stands for the value of a key that is not in the dict."""


class TransactionalDict(Generic[Key, Value]):
    """Values by key, changed as a part of the running transaction and undone with it.

    What a client's transaction of several requests (a stream's) has changed is in the dict only while the
    rows that it has changed are in the spaces, so nobody else sees it before the commit. There are no
    conflicts about keys: whoever changes a value by what it was has to read or change a row as well.

    Parameters:
        box: the box.
        values: where the values are kept, such as what `Box.keep` has kept; None: a dict of its own.

    Attributes:
        values: the values, to be read only.
    """

    def __init__(self, box: TransactionScope, values: dict[Key, Value] | None = None) -> None:
        self._box = box
        self._transactions = box.transactions
        self.values: dict[Key, Value] = {} if values is None else values

    def put(self, key: Key, value: Value) -> None:
        """Store a value."""
        self._change(key, value)

    def remove(self, key: Key) -> None:
        """Remove a key, which need not be there."""
        self._change(key, ABSENT)

    def _change(self, key: Key, value: Value) -> None:
        before = self.values.get(key, ABSENT)
        interactive = self._transactions.interactive
        changes: _Changes | None = None
        if interactive is not None:
            found = interactive.side_state.get(self)
            if found is None:
                found = interactive.side_state[self] = _Changes(self.values, self._store)
            assert isinstance(found, _Changes)
            changes = found
            changes.before.setdefault(key, before)
        self._store(key, value)
        self._box.on_rollback(partial(self._undo, changes, key, before))

    def _store(self, key: Key, value: Value) -> None:
        """Let a key have a value, or `ABSENT`; whether by a change, by its undoing, or by a turn."""
        if value is ABSENT:
            self.values.pop(key, None)
        else:
            self.values[key] = value

    def _restore(self, key: Key, value: Value) -> None:
        """Let a key have the value that it had before a change that is undone."""
        self._store(key, value)

    def _undo(self, changes: _Changes | None, key: Key, before: Value) -> None:
        # What a stream's transaction has changed is out already when something else ends the transaction.
        if changes is None or changes.is_in:
            self._restore(key, before)


class _Changes:
    """What one interactive transaction has changed.

    Attributes:
        before: what was there before, by key, of all that the transaction has changed.
        is_in: whether the dict has what the transaction has changed; it keeps that for good by committing.
    """

    __slots__ = ("_changed", "_store", "_values", "before", "is_in")

    def __init__(self, values: dict[Any, Any], store: Callable[[Any, Any], None]) -> None:
        self._values = values
        self._store = store
        self._changed: dict[Any, Any] = {}
        self.before: dict[Any, Any] = {}
        self.is_in = True

    def put_in(self) -> None:
        """Let the dict hold what the transaction sees."""
        self.before = {}
        for key, value in self._changed.items():
            self.before[key] = self._values.get(key, ABSENT)
            self._store(key, value)
        self.is_in = True

    def take_out(self) -> None:
        """Let the dict hold what everybody sees."""
        self.is_in = False
        self._changed = {}
        for key, before in self.before.items():
            value = self._values.get(key, ABSENT)
            # What was changed and changed back is no change: others may have changed it since.
            if value != before:
                self._changed[key] = value
                self._store(key, before)
