"""A transactional dict that is searched by value, too."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, TypeVar

from iproto_server.box.txn.incremental_dict import IncrementalDict
from iproto_server.box.txn.transaction import TransactionScope
from iproto_server.box.txn.transactional_dict import ABSENT, TransactionalDict
from iproto_server.native import twin_methods

Key = TypeVar("Key")
Value = TypeVar("Value")


@twin_methods("put", "remove")
class TransactionalTwoWayDict(TransactionalDict[Key, Value]):
    """A `TransactionalDict` that also has the keys of each value; a value is hashable and never None.

    The state of a key is a pair of its value and its moment. Subclasses may override `_restore` alone.

    Parameters:
        box: the box.
        values, keys: the dicts to use, such as those of `Box.keep`; None: new ones.

    Attributes:
        values: the values by key; do not change them directly.
        keys: the keys of each value that any key has, and when each was put if `put` was told, else None; do
            not change them directly.
    """

    __slots__ = ("keys",)

    def __init__(
        self,
        box: TransactionScope,
        values: MutableMapping[Key, Value] | None = None,
        keys: dict[Value, MutableMapping[Key, int | None]] | None = None,
    ) -> None:
        super().__init__(box, IncrementalDict() if values is None else values)
        self.keys: dict[Value, MutableMapping[Key, int | None]] = {} if keys is None else keys

    # Outside of streams, both of these are compiled, for an `IncrementalDict` and such dicts of the keys.

    def put(self, key: Key, value: Value, moment: int | None = None) -> None:
        """Store a value, and when that was; None keeps the moment of a key that is there."""
        self._change(key, (value, self.moment(key) if moment is None else moment))

    def remove(self, key: Key) -> int | None:  # type: ignore[override]  # that of others returns nothing
        """Remove a key, which may be missing.

        Returns: when it was put; None if it is missing, or that is unknown.
        """
        moment = self.moment(key)
        if key in self.values:
            self._change(key, ABSENT)
        return moment

    def moment(self, key: Key) -> int | None:
        """Return when a key was put; None if it is missing, or that is unknown."""
        value = self.values.get(key)
        return None if value is None else self.keys[value][key]

    def _load(self, key: Key) -> Any:
        value = self.values.get(key)
        return ABSENT if value is None else (value, self.keys[value][key])

    def _store(self, key: Key, state: Any) -> None:
        before = self.values.pop(key, None)
        if before is not None:
            keys = self.keys[before]
            del keys[key]
            if not keys:
                del self.keys[before]
        if state is not ABSENT:
            value, moment = state
            self.values[key] = value
            keys_of_value = self.keys.get(value)
            if keys_of_value is None:
                keys_of_value = self.keys[value] = IncrementalDict()
            keys_of_value[key] = moment
