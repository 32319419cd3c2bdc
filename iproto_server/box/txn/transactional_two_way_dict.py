"""A transactional dict that is searched by value, too."""

from __future__ import annotations

from typing import Final, TypeVar

from iproto_server.box.txn.transaction import TransactionScope
from iproto_server.box.txn.transactional_dict import ABSENT, TransactionalDict
from iproto_server.native import twin_methods

Key = TypeVar("Key")
Value = TypeVar("Value")

_MOMENTS_MAX: Final = 1000
"""The number of moments, besides two for each key, from which on those of missing keys are removed."""


@twin_methods("put", "remove")
class TransactionalTwoWayDict(TransactionalDict[Key, Value]):
    """A `TransactionalDict` that also has the keys of each value; a value is hashable and never None.

    Subclasses may override `_restore` alone.

    Parameters:
        box: the box.
        values, keys, moments: the dicts to use, such as some of `Box.keep`; None: new ones.

    Attributes:
        values: the values by key; do not change them directly.
        keys: the keys of each value that any key has; do not change them directly.
        moments: when keys were put, if `put` was told. Those of removed keys stay for a while, as a rollback
            may give a key back.
    """

    __slots__ = ("keys", "moments")

    def __init__(
        self,
        box: TransactionScope,
        values: dict[Key, Value] | None = None,
        keys: dict[Value, set[Key]] | None = None,
        moments: dict[Key, int] | None = None,
    ) -> None:
        super().__init__(box, values)
        self.keys: dict[Value, set[Key]] = {} if keys is None else keys
        self.moments: dict[Key, int] = {} if moments is None else moments

    # Outside of streams, both of these are compiled.

    def put(self, key: Key, value: Value, moment: int | None = None) -> None:
        """Store a value, and when that was."""
        self._change(key, value)
        if moment is not None:
            if len(self.moments) >= 2 * len(self.values) + _MOMENTS_MAX:
                self._forget_moments()
            self.moments[key] = moment

    def remove(self, key: Key) -> None:
        """Remove a key, which may be missing."""
        if key in self.values:
            self._change(key, ABSENT)

    def _forget_moments(self) -> None:
        """Remove the moments of missing keys."""
        moments = self.moments
        present = {key: moments[key] for key in self.values if key in moments}
        moments.clear()
        moments.update(present)

    def _store(self, key: Key, value: Value) -> None:
        before = self.values.pop(key, None)
        if before is not None:
            keys = self.keys[before]
            keys.remove(key)
            if not keys:
                del self.keys[before]
        if value is not ABSENT:
            self.values[key] = value
            keys_of_value = self.keys.get(value)
            if keys_of_value is None:
                self.keys[value] = {key}
            else:
                keys_of_value.add(key)
