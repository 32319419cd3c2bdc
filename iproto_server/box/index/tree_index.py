"""TREE indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import lt
from typing import Any, Final

from iproto_server.box.index.index import NO_LIMIT, Index, Interval
from iproto_server.box.key.key_encoding import prefix_end
from iproto_server.iterator_type import DESCENDING, IteratorType

_EQ: Final = int(IteratorType.EQ)
_ITERATORS: Final = frozenset(map(int, IteratorType)) - frozenset(range(7, 12))
_STEP: Final = 1024
"""How many entries a walk over all of them takes at a time."""


class TreeIndex(Index):
    """A TREE index: every iterator, whole and partial keys."""

    __slots__ = ()

    is_ordered = True

    def range_first(self, prefix: bytes) -> bytes | None:
        """Return the value of the first key that starts with an encoded key, or None."""
        return self.first_value(prefix)

    def build(self, keys: list[bytes], values: list[bytes]) -> list[int]:
        if len(self):
            return super().build(keys, values)
        if all(map(lt, keys, islice(keys, 1, None))):
            self.load(keys, values)
            return []
        order = sorted(range(len(keys)), key=keys.__getitem__)
        keys = [keys[position] for position in order]
        if all(map(lt, keys, islice(keys, 1, None))):
            self.load(keys, [values[position] for position in order])
            return []
        # The order is stable, so of those with one key the first is the one that came first.
        kept = [number for number, key in enumerate(keys) if not number or key != keys[number - 1]]
        self.load([keys[number] for number in kept], [values[order[number]] for number in kept])
        return sorted(set(order).difference(order[number] for number in kept))

    def keys(self) -> Iterator[bytes]:
        for keys, _ in self._steps():
            yield from keys

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        for keys, values in self._steps():
            yield from zip(keys, values, strict=True)

    def _steps(self) -> Iterator[tuple[list[bytes], list[bytes]]]:
        # No key is empty, so this is before all of them.
        position = b""
        while (step := self.after(position, _STEP))[0]:
            yield step
            position = step[0][-1]

    def iterate(self, iterator: int, key: Sequence[Any], after: bytes | None = None) -> Iterator[bytes]:
        low, high = self.interval(iterator, key)
        if iterator in DESCENDING:
            return self._descend(low, high if after is None else after)
        return self._ascend(low if after is None else after + b"\x00", high)

    def select(
        self,
        iterator: int,
        key: Sequence[Any],
        offset: int = 0,
        limit: int = NO_LIMIT,
        after: bytes | None = None,
    ) -> list[bytes]:
        if iterator == _EQ and self._is_exact and len(key) == self.part_count and after is None:
            value = self.get(self.encode_key(key))
            return [] if value is None or offset or not limit else [value]
        low, high = self.interval(iterator, key)
        if after is not None:
            low, high = (low, after) if iterator in DESCENDING else (after + b"\x00", high)
        limit = min(limit, NO_LIMIT - offset)
        is_descending = iterator in DESCENDING
        if limit == 1 and not offset and not is_descending:
            entry = self.first(low)
            return [] if entry is None or (high is not None and entry[0] >= high) else [entry[1]]
        return self.range_values(low, high, offset, limit, is_descending)

    def count(self, iterator: int, key: Sequence[Any]) -> int:
        low, high = self.interval(iterator, key)
        return self.count_between(low, high)

    def min(self, key: Sequence[Any]) -> bytes | None:
        return self.range_first(self.encode_key(key))

    def max(self, key: Sequence[Any]) -> bytes | None:
        return next(self.iterate(IteratorType.REQ, key), None)

    def random(self, seed: int) -> bytes | None:
        count = len(self)
        return self.range_values(None, None, seed % count, 1, False)[0] if count else None

    def interval(self, iterator: int, key: Sequence[Any]) -> Interval:
        if iterator == _EQ:
            prefix = self.encode_key(key)
            return prefix, prefix_end(prefix)
        prefix = self._encode_for(iterator, key, _ITERATORS)
        if not prefix:
            return b"", None
        if iterator in (IteratorType.GE, IteratorType.ALL):
            return prefix, None
        if iterator == IteratorType.LT:
            return b"", prefix
        end = prefix_end(prefix)
        if iterator == IteratorType.LE:
            return b"", end
        if iterator == IteratorType.REQ:
            return prefix, end
        return (b"", b"") if end is None else (end, None)

    def _ascend(self, low: bytes, high: bytes | None) -> Iterator[bytes]:
        """Walk upwards, looking up the next key at every step."""
        first = self.first
        while (entry := first(low)) is not None:
            key, value = entry
            if high is not None and key >= high:
                return
            yield value
            low = key + b"\x00"

    def _descend(self, low: bytes, high: bytes | None) -> Iterator[bytes]:
        """Walk downwards, looking up the next key at every step."""
        last = self.last
        while (entry := last(high)) is not None:
            high, value = entry
            if high < low:
                return
            yield value
