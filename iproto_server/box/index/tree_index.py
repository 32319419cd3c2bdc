"""TREE indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import lt
from typing import Any, ClassVar, Final

from iproto_server.box.index.index import NO_LIMIT, Index, Interval, quick_index
from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.index.iterator_type import DESCENDING, IteratorType
from iproto_server.box.key.key_def import KeyDef, key_layout
from iproto_server.box.key.key_encoding import prefix_end
from iproto_server.native._native import Tree, TreeView

_EQ: Final = int(IteratorType.EQ)
_ITERATORS: Final = frozenset(map(int, IteratorType)) - frozenset(range(7, 12))
_STEP: Final = 1024
"""How many entries a walk over all of them takes at a time."""


class TreeIndex(Index):
    """A TREE index: every iterator, whole and partial keys.

    Attributes:
        holds_rows: whether it is a primary index to whose rows the entries of secondary indexes may refer.
        is_ordered: whether clients may ask for more than a whole key, or all rows.
    """

    __slots__ = ("_tree", "holds_rows")

    is_ordered: ClassVar[bool] = True

    def __init__(
        self,
        definition: IndexDef,
        space_name: str,
        primary: KeyDef | None = None,
        rows: Index | None = None,
    ) -> None:
        """Make an empty index."""
        super().__init__(definition, space_name, primary)
        layout = key_layout(self.key_def, self.unique, primary)
        self.holds_rows: bool = primary is None and layout is not None
        if primary is None:
            self._use(Tree(layout))
        elif layout is not None and isinstance(rows, TreeIndex) and rows.holds_rows:
            self._use(Tree(layout, rows._tree))
        else:
            self._use(Tree())

    def _use(self, tree: Any) -> None:
        """Bind the tree's own methods: a method around each would double the cost of the short ones."""
        self._tree = tree
        self.get = tree.get
        self.insert = tree.insert
        self.set = tree.__setitem__
        self.remove = tree.__delitem__
        self.range_first = tree.first_value
        self.quick = (
            None
            if self.is_multikey
            else quick_index(tree, self.key_of, self.encode_key, self.unique, self._is_exact, self.is_ordered)
        )

    def __len__(self) -> int:
        return len(self._tree)

    def clear(self) -> None:
        self._tree.clear()

    def shares_entries(self, other: Index) -> bool:
        return isinstance(other, TreeIndex) and other._tree is self._tree

    def _share(self, other: Index) -> None:
        assert isinstance(other, TreeIndex)
        self._use(other._tree)

    def build(self, keys: list[bytes], values: list[bytes]) -> list[int]:
        if self._tree:
            return super().build(keys, values)
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

    def append(self, keys: list[bytes], values: list[bytes]) -> bool:
        was_appended: bool = self._tree.append(keys, values)
        return was_appended

    def build_from(self, primary: Index) -> bool:
        if not isinstance(primary, TreeIndex) or self.is_multikey:
            return False
        was_built: bool = self._tree.build_from(primary._tree)
        return was_built

    def keeps(self, key: bytes, row: bytes) -> bool:
        is_kept: bool = self._tree.keeps(key, row)
        return is_kept

    def all_fit(self, check: Callable[[Sequence[Any]], None]) -> bool:
        are_fit: bool = self._tree.rows_fit(check)
        return are_fit

    def rows_tree(self) -> object:
        return self._tree if self.holds_rows else None

    def bsize(self) -> int:
        size: int = self._tree.__sizeof__()
        return size

    def values_size(self) -> int:
        size: int = self._tree.values_size()
        return size

    def keys(self) -> Iterator[bytes]:
        for keys, _ in self._steps():
            yield from keys

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        for keys, values in self._steps():
            yield from zip(keys, values, strict=True)

    def _steps(self) -> Iterator[tuple[list[bytes], list[bytes]]]:
        # No key is empty, so this is before all of them.
        position = b""
        while (step := self._tree.after(position, _STEP))[0]:
            yield step
            position = step[0][-1]

    def view(self) -> TreeView:
        """Open a view of the rows of a primary index."""
        return TreeView(self._tree)

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
        is_descending = iterator in DESCENDING
        if limit == 1 and not offset and not is_descending:
            entry = self._tree.first(low)
            return [] if entry is None or (high is not None and entry[0] >= high) else [entry[1]]
        found: list[bytes] = self._tree.range_values(low, high, offset, limit, is_descending)
        return found

    def count(self, iterator: int, key: Sequence[Any]) -> int:
        low, high = self.interval(iterator, key)
        found: int = self._tree.count(low, high)
        return found

    def min(self, key: Sequence[Any]) -> bytes | None:
        return self.range_first(self.encode_key(key))

    def max(self, key: Sequence[Any]) -> bytes | None:
        return next(self.iterate(IteratorType.REQ, key), None)

    def random(self, seed: int) -> bytes | None:
        count = len(self._tree)
        return self._tree.range_values(None, None, seed % count, 1, False)[0] if count else None

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
        first = self._tree.first
        while (entry := first(low)) is not None:
            key, value = entry
            if high is not None and key >= high:
                return
            yield value
            low = key + b"\x00"

    def _descend(self, low: bytes, high: bytes | None) -> Iterator[bytes]:
        """Walk downwards, looking up the next key at every step."""
        last = self._tree.last
        while (entry := last(high)) is not None:
            high, value = entry
            if high < low:
                return
            yield value
