"""TREE indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import lt
from typing import Any, Final

from iproto_server.box.index import NO_LIMIT, Index, Interval
from iproto_server.box.index_def import IndexDef
from iproto_server.box.iterator import DESCENDING, IteratorType
from iproto_server.box.key_def import KeyDef
from iproto_server.box.key_encoding import just_below, prefix_end
from iproto_server.box.tree import Tree

_EQ: Final = int(IteratorType.EQ)
_ITERATORS: Final = frozenset(map(int, IteratorType)) - frozenset(range(7, 12))
_DESCEND_LIMIT: Final = 256
"""How many values are found faster by stepping down than by counting those of the whole interval first."""
_SKIP_LIMIT: Final = 10_000
"""How many values are passed over faster one by one than by asking the leaves how many they hold."""


class TreeIndex(Index):
    """A TREE index: every iterator, whole and partial keys."""

    def __init__(self, definition: IndexDef, space_name: str, primary: KeyDef | None = None) -> None:
        """Make an empty index."""
        super().__init__(definition, space_name, primary)
        self._use(Tree())

    def _use(self, tree: Any) -> None:
        """Bind the tree's own methods: a method around each would double the cost of the short ones."""
        self._tree = tree
        self.get = tree.get
        self.insert = tree.insert
        self.set = tree.__setitem__
        self.remove = tree.__delitem__
        self._items_from: Callable[[bytes], Iterator[tuple[bytes, bytes]]] = tree.iteritems

    def __len__(self) -> int:
        return len(self._tree)

    def clear(self) -> None:
        self._tree.clear()

    def _share(self, other: Index) -> None:
        assert isinstance(other, TreeIndex)
        self._use(other._tree)

    def build(self, keys: list[bytes], values: list[bytes]) -> list[int]:
        assert not self._tree
        if all(map(lt, keys, islice(keys, 1, None))):
            self._tree.load(keys, values)
            return []
        order = sorted(range(len(keys)), key=keys.__getitem__)
        keys = [keys[position] for position in order]
        if all(map(lt, keys, islice(keys, 1, None))):
            self._tree.load(keys, [values[position] for position in order])
            return []
        # The order is stable, so of those with one key the first is the one that came first.
        kept = [number for number, key in enumerate(keys) if not number or key != keys[number - 1]]
        self._tree.load([keys[number] for number in kept], [values[order[number]] for number in kept])
        return sorted(set(order).difference(order[number] for number in kept))

    def keys(self) -> Iterator[bytes]:
        return iter(self._tree.keys())

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        return iter(self._tree.items())

    def entries_after(self, key: bytes, count: int) -> tuple[list[bytes], list[bytes]]:
        """Return the keys and the values of the first `count` entries behind a key."""
        # No pairs: a thousand tuples that live at once are work for the garbage collector.
        keys = list(islice(self._tree.iterkeys(key, None, True), count))
        return keys, list(self._tree.itervalues(key, keys[-1], True)) if keys else []

    def iterate(self, iterator: int, key: Sequence[Any]) -> Iterator[bytes]:
        interval = self.interval(iterator, key)
        if iterator in DESCENDING:
            return self._descend(*interval)
        return self._ascend(*interval)

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
        if iterator not in DESCENDING:
            if limit == 1 and not offset:
                entry = next(self._items_from(low), None)
                return [] if entry is None or (high is not None and entry[0] >= high) else [entry[1]]
            values = self._tree.values(low, high, False, high is not None)
            if offset > _SKIP_LIMIT:
                return list(islice(values[offset:], limit))
            return list(islice(values, offset, offset + limit))
        if offset + limit <= _DESCEND_LIMIT:
            return list(islice(self._descend(low, high), offset, offset + limit))
        values = self._tree.values(low, high, False, high is not None)
        end = len(values) - offset
        found: list[bytes] = list(values[max(end - limit, 0) : end]) if end > 0 else []
        found.reverse()
        return found

    def count(self, iterator: int, key: Sequence[Any]) -> int:
        low, high = self.interval(iterator, key)
        # Without an upper bound, "without the bound" would mean "without the last one" to the tree.
        return len(self._tree.keys(low, high, False, high is not None))

    def range_first(self, prefix: bytes) -> bytes | None:
        # Starting a walk and leaving it is one descent; minKey() and then get() are two.
        entry = next(self._items_from(prefix), None)
        return entry[1] if entry is not None and entry[0].startswith(prefix) else None

    def min(self, key: Sequence[Any]) -> bytes | None:
        return self.range_first(self.encode_key(key))

    def max(self, key: Sequence[Any]) -> bytes | None:
        return next(self.iterate(IteratorType.REQ, key), None)

    def random(self, seed: int) -> bytes | None:
        values = self._tree.values()
        count = len(values)
        found: bytes | None = values[seed % count] if count else None
        return found

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
        items_from = self._items_from
        while (entry := next(items_from(low), None)) is not None:
            key, value = entry
            if high is not None and key >= high:
                return
            yield value
            low = key + b"\x00"

    def _descend(self, low: bytes, high: bytes | None) -> Iterator[bytes]:
        """Walk downwards, looking up the next key at every step."""
        tree = self._tree
        try:
            if high is None:
                key = tree.maxKey()
            else:
                key = tree.maxKey(high)
                if key == high:
                    key = tree.maxKey(just_below(key))
            while key >= low:
                yield tree[key]
                key = tree.maxKey(just_below(key))
        except ValueError:
            # How the tree says that there is no such key.
            return
