"""HASH indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from iproto_server.box.index.hash_table import HashTable
from iproto_server.box.index.index import NO_LIMIT, Index, Interval
from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.index.iterator_type import IteratorType
from iproto_server.box.key.key_def import KeyDef
from iproto_server.errors import BoxError, ErrorCode

_EQ: Final = int(IteratorType.EQ)
_ITERATORS: Final = frozenset(map(int, (IteratorType.EQ, IteratorType.ALL, IteratorType.GT)))


class HashIndex(Index):
    """A HASH index: whole keys, and everything in no useful order."""

    __slots__ = ("table",)

    def __init__(
        self,
        definition: IndexDef,
        space_name: str,
        primary: KeyDef | None = None,
        rows: Index | None = None,
    ) -> None:
        """Make an empty index."""
        super().__init__(definition, space_name, primary)
        self._use(HashTable())

    def _use(self, table: HashTable) -> None:
        self.table = table
        self.get = table.get
        self.insert = table.set
        self.set = table.set
        self.remove = table.remove

    def __len__(self) -> int:
        return len(self.table)

    def clear(self) -> None:
        self.table.clear()

    def shares_entries(self, other: Index) -> bool:
        return isinstance(other, HashIndex) and other.table is self.table

    def _share(self, other: Index) -> None:
        assert isinstance(other, HashIndex)
        self._use(other.table)

    def keys(self) -> Iterator[bytes]:
        return self.table.keys_after(b"")

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        return self.table.items()

    def iterate(self, iterator: int, key: Sequence[Any]) -> Iterator[bytes]:
        encoded = self._checked_key(iterator, key)
        if iterator == _EQ:
            return iter(self.select(iterator, key))
        return self._walk(iterator, encoded)

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
        return list(islice(self._walk(iterator, encoded), offset, min(offset + limit, NO_LIMIT)))

    def count(self, iterator: int, key: Sequence[Any]) -> int:
        encoded = self._checked_key(iterator, key)
        if iterator == _EQ:
            return int(encoded in self.table)
        if iterator == IteratorType.ALL or not encoded:
            return len(self.table)
        return sum(1 for _ in self.table.keys_after(encoded))

    def range_first(self, prefix: bytes) -> bytes | None:
        if not prefix:
            return next(self._walk(IteratorType.ALL, b""), None)
        return self.get(prefix)

    def min(self, key: Sequence[Any]) -> bytes | None:
        raise self._lacks("min()")

    def max(self, key: Sequence[Any]) -> bytes | None:
        raise self._lacks("max()")

    def random(self, seed: int) -> bytes | None:
        count = len(self.table)
        return next(islice(self._walk(IteratorType.ALL, b""), seed % count, None)) if count else None

    def interval(self, iterator: int, key: Sequence[Any]) -> Interval:
        if iterator != _EQ:
            return b"", None
        encoded = self.encode_key(key)
        return encoded, encoded + b"\x00"

    def _checked_key(self, iterator: int, key: Sequence[Any]) -> bytes:
        """Encode a key that is whole, or empty where the iterator lets it."""
        count = len(key)
        is_whole_walk = count == 0 and iterator in (IteratorType.ALL, IteratorType.GT)
        if count < self.part_count and not is_whole_walk and 0 <= iterator <= IteratorType.NEIGHBOR:
            raise BoxError(ErrorCode.PARTIAL_KEY, self.type, self.part_count, count)
        return self._encode_for(iterator, key, _ITERATORS)

    def _walk(self, iterator: int, key: bytes) -> Iterator[bytes]:
        """Walk through all values, or with GT through those behind `key`; none when it is not there."""
        get = self.get
        for each in self.table.keys_after(key if iterator == IteratorType.GT else b""):
            value = get(each)
            if value is not None:
                yield value
