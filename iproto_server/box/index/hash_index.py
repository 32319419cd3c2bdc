"""HASH indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from iproto_server.box.index.index import NO_LIMIT, Interval
from iproto_server.box.index.tree_index import TreeIndex
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType

_EQ: Final = int(IteratorType.EQ)
_ITERATORS: Final = frozenset(map(int, (IteratorType.EQ, IteratorType.ALL, IteratorType.GT)))


class HashIndex(TreeIndex):
    """A HASH index: whole keys, and all rows in an order that clients may not rely on.

    Its entries are in a tree, in the order of their keys.
    """

    __slots__ = ()

    is_ordered = False

    def iterate(self, iterator: int, key: Sequence[Any], after: bytes | None = None) -> Iterator[bytes]:
        encoded = self._checked_key(iterator, key)
        if iterator == _EQ:
            return iter(self.select(iterator, key))
        low = self._begin(iterator, encoded)
        return iter(()) if low is None else self._ascend(low, None)

    def select(
        self,
        iterator: int,
        key: Sequence[Any],
        offset: int = 0,
        limit: int = NO_LIMIT,
        after: bytes | None = None,
    ) -> list[bytes]:
        encoded = self._checked_key(iterator, key)
        if iterator == _EQ:
            value = self.get(encoded)
            return [] if value is None or offset or not limit else [value]
        low = self._begin(iterator, encoded)
        if low is None:
            return []
        return self.range_values(low, None, offset, min(limit, NO_LIMIT - offset), False)

    def count(self, iterator: int, key: Sequence[Any]) -> int:
        encoded = self._checked_key(iterator, key)
        if iterator == _EQ:
            return int(self.get(encoded) is not None)
        low = self._begin(iterator, encoded)
        return 0 if low is None else self.count_between(low, None)

    def min(self, key: Sequence[Any]) -> bytes | None:
        raise self._lacks("min()")

    def max(self, key: Sequence[Any]) -> bytes | None:
        raise self._lacks("max()")

    def interval(self, iterator: int, key: Sequence[Any]) -> Interval:
        if iterator != _EQ:
            return b"", None
        encoded = self.encode_key(key)
        return encoded, encoded + b"\x00"

    def range_first(self, prefix: bytes) -> bytes | None:
        """Return the value of a whole key, or the first value if the key is empty; None if there is none."""
        return self.get(prefix) if prefix else self.first_value(b"")

    def _begin(self, iterator: int, key: bytes) -> bytes | None:
        """Return the least key of a walk; None if it finds nothing, as GT with a key that is not there."""
        if iterator != IteratorType.GT or not key:
            return b""
        return None if self.get(key) is None else key + b"\x00"

    def _checked_key(self, iterator: int, key: Sequence[Any]) -> bytes:
        """Encode a key that is whole, or empty where the iterator lets it."""
        count = len(key)
        is_whole_walk = count == 0 and iterator in (IteratorType.ALL, IteratorType.GT)
        if count < self.part_count and not is_whole_walk and 0 <= iterator <= IteratorType.NEIGHBOR:
            raise BoxError(ErrorCode.PARTIAL_KEY, self.type, self.part_count, count)
        return self._encode_for(iterator, key, _ITERATORS)
