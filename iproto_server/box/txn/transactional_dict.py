"""A dict outside the spaces whose changes are transactional, as those of rows are."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any, TypeVar

from iproto_server.box.txn.transaction import TransactionScope
from iproto_server.native._native import ABSENT, DictState

__all__ = ["ABSENT", "TransactionalDict"]

Key = TypeVar("Key")
Value = TypeVar("Value")


class TransactionalDict(DictState[Key, Value]):
    """Values by key, changed in the running transaction and undone with it.

    Changes of an interactive transaction (in a stream) are in the dict only while its rows are in the spaces,
    so others do not see them before the commit. Keys do not conflict: code that derives a value from the old
    one has to read or change a row as well.

    Parameters:
        box: the box.
        values: the dict to use, such as one of `Box.keep`, or an `IncrementalDict` for many entries; None: a
            new dict.

    Attributes:
        values: the values; do not change them directly.
    """

    __slots__ = ()

    def __init__(self, box: TransactionScope, values: MutableMapping[Key, Value] | None = None) -> None:
        super().__init__(box, box.transactions, {} if values is None else values)

    def put(self, key: Key, value: Value) -> None:
        """Store a value."""
        self._change(key, value)

    def remove(self, key: Key) -> None:
        """Remove a key, which may be missing."""
        self._change(key, ABSENT)

    def _change(self, key: Key, state: Any) -> None:
        before = self._load(key)
        interactive = self._transactions.interactive
        changes: _Changes | None = None
        if interactive is not None:
            found = interactive.side_state.get(self)
            if found is None:
                found = interactive.side_state[self] = _Changes(self._load, self._store)
            assert isinstance(found, _Changes)
            changes = found
            changes.before.setdefault(key, before)
        self._store(key, state)
        self._box.on_rollback(partial(self._undo, changes, key, before))

    # The state of a key is its value, unless a subclass stores more than that, or `ABSENT`.

    def _load(self, key: Key) -> Any:
        """Return the state of a key."""
        return self.values.get(key, ABSENT)

    def _store(self, key: Key, state: Any) -> None:
        """Set the state of a key."""
        if state is ABSENT:
            self.values.pop(key, None)
        else:
            self.values[key] = state

    def _restore(self, key: Key, state: Any) -> None:
        """Restore the state of a key from before an undone change."""
        self._store(key, state)

    def _undo(self, changes: _Changes | None, key: Key, before: Any) -> None:
        # The changes of an interactive transaction are out already if it fails between its requests.
        if changes is None or changes.is_in:
            self._restore(key, before)


class _Changes:
    """The changes of one interactive transaction.

    Attributes:
        before: the old states of changed keys.
        is_in: whether the changes are in the dict; a commit leaves them there.
    """

    __slots__ = ("_changed", "_load", "_store", "before", "is_in")

    def __init__(self, load: Callable[[Any], Any], store: Callable[[Any, Any], None]) -> None:
        self._load = load
        self._store = store
        self._changed: dict[Any, Any] = {}
        self.before: dict[Any, Any] = {}
        self.is_in = True

    def put_in(self) -> None:
        """Apply the changes."""
        self.before = {}
        for key, state in self._changed.items():
            self.before[key] = self._load(key)
            self._store(key, state)
        self.is_in = True

    def take_out(self) -> None:
        """Revert to the committed states, and remember the changes."""
        self.is_in = False
        self._changed = {}
        for key, before in self.before.items():
            state = self._load(key)
            # A state that was changed and changed back counts as unchanged: others may change it later.
            if state != before:
                self._changed[key] = state
                self._store(key, before)
