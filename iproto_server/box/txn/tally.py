"""Transactional counters outside the spaces: a rollback reverts additions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from iproto_server.box.txn.transaction import TransactionScope

Key = TypeVar("Key")


class Tally(Generic[Key]):
    """Adds to counters in the running transaction.

    Others see the additions of an interactive transaction (in a stream) after its commit.

    Parameters:
        box: the box.
        add: adds an amount, which may be negative, to the counter of a key.
    """

    def __init__(self, box: TransactionScope, add: Callable[[Key, int], object]) -> None:
        self._box = box
        self._transactions = box.transactions
        self._add = add

    def count(self, key: Key, amount: int = 1) -> None:
        """Add to a counter."""
        interactive = self._transactions.interactive
        if interactive is None:
            self._add(key, amount)
            self._box.on_rollback(partial(self._add, key, -amount))
            return
        found = interactive.side_state.get(self)
        if found is None:
            found = interactive.side_state[self] = _Additions(self._add)
        assert isinstance(found, _Additions)
        found.note(key, amount)
        self._add(key, amount)
        self._box.on_rollback(partial(self._undo, found, key, amount))

    def _undo(self, additions: _Additions, key: Key, amount: int) -> None:
        # The additions of an interactive transaction are out already if it fails between its requests.
        if additions.is_in:
            additions.note(key, -amount)
            self._add(key, -amount)


class _Additions:
    """The additions of one interactive transaction.

    Attributes:
        is_in: whether they are in the counters; a commit leaves them there.
    """

    __slots__ = ("_add", "_amounts", "is_in")

    def __init__(self, add: Callable[[Any, int], object]) -> None:
        self._add = add
        self._amounts: dict[Any, int] = {}
        self.is_in = True

    def note(self, key: Any, amount: int) -> None:
        """Record an addition."""
        self._amounts[key] = self._amounts.get(key, 0) + amount

    def put_in(self) -> None:
        """Apply the additions."""
        self.is_in = True
        for key, amount in self._amounts.items():
            self._add(key, amount)

    def take_out(self) -> None:
        """Revert to the committed counters."""
        self.is_in = False
        for key, amount in self._amounts.items():
            self._add(key, -amount)
