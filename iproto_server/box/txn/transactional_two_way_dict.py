"""A transactional dict that is searched by value, too."""

from __future__ import annotations

from typing import TypeVar

from iproto_server.box.txn.incremental_dict import IncrementalDict
from iproto_server.box.txn.transaction import TransactionScope
from iproto_server.box.txn.transactional_dict import ABSENT, TransactionalDict
from iproto_server.native._native import TwoWayDict

Key = TypeVar("Key")
Value = TypeVar("Value")


class TransactionalTwoWayDict(  # type: ignore[misc]  # `remove` of others returns nothing
    TwoWayDict[Key, Value], TransactionalDict[Key, Value]
):
    """A `TransactionalDict` that also has the keys of each value; a value is hashable and never None.

    The state of a key is a pair of its value and its moment. Subclasses may override `_restore` alone.

    Parameters:
        box: The box.
        values, keys: The dicts to use, such as some of `Box.keep`; None: new ones.

    Attributes:
        values: The values by key; do not change them directly.
        keys: The keys of each value that any key has, and when each was put if `put` was told, else None; do
            not change them directly.
    """

    __slots__ = ()

    def __init__(
        self,
        box: TransactionScope,
        values: IncrementalDict[Key, Value] | None = None,
        keys: dict[Value, IncrementalDict[Key, int | None]] | None = None,
    ) -> None:
        values = IncrementalDict() if values is None else values
        TwoWayDict.__init__(self, box, box.transactions, values, {} if keys is None else keys)

    # `put` and `remove` call these in streams.

    def _put_in_stream(self, key: Key, value: Value, moment: int | None) -> None:
        self._change(key, (value, self.moment(key) if moment is None else moment))

    def _remove_in_stream(self, key: Key) -> int | None:
        moment = self.moment(key)
        if key in self.values:
            self._change(key, ABSENT)
        return moment
