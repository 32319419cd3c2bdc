"""Numbers beside the spaces that transactions add to: what is undone was not counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from iproto_server.box.txn.transaction import TransactionScope

Key = TypeVar("Key")


class Tally(Generic[Key]):
    """Counts as a part of the running transaction.

    What a client's transaction of several requests (a stream's) counts, others see from its commit on.

    Parameters:
        box: the box.
        add: adds an amount, which may be below zero, to the number of a key.
    """

    def __init__(self, box: TransactionScope, add: Callable[[Key, int], object]) -> None:
        self._box = box
        self._transactions = box.transactions
        self._add = add

    def count(self, key: Key, amount: int = 1) -> None:
        """Add to a number."""
        interactive = self._transactions.interactive
        additions: _Additions | None = None
        if interactive is not None:
            found = interactive.side_state.get(self)
            if found is None:
                found = interactive.side_state[self] = _Additions(self._add)
            assert isinstance(found, _Additions)
            additions = found
            additions.note(key, amount)
        self._add(key, amount)
        self._box.on_rollback(partial(self._undo, additions, key, amount))

    def _undo(self, additions: _Additions | None, key: Key, amount: int) -> None:
        # What a stream's transaction has counted is out already when something else ends the transaction.
        if additions is None:
            self._add(key, -amount)
        elif additions.is_in:
            additions.note(key, -amount)
            self._add(key, -amount)


class _Additions:
    """What one interactive transaction has counted.

    Attributes:
        is_in: whether it is in the numbers; it is for good after the commit.
    """

    __slots__ = ("_add", "_amounts", "is_in")

    def __init__(self, add: Callable[[Any, int], object]) -> None:
        self._add = add
        self._amounts: dict[Any, int] = {}
        self.is_in = True

    def note(self, key: Any, amount: int) -> None:
        """The transaction has added an amount."""
        self._amounts[key] = self._amounts.get(key, 0) + amount

    def put_in(self) -> None:
        """Let the numbers be those that the transaction sees."""
        self.is_in = True
        for key, amount in self._amounts.items():
            self._add(key, amount)

    def take_out(self) -> None:
        """Let the numbers be those that everybody sees."""
        self.is_in = False
        for key, amount in self._amounts.items():
            self._add(key, -amount)
