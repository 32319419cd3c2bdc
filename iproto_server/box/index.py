"""Indexes: from the bytes of a key to a value.

The primary index maps a tuple's key to the tuple's bytes. A secondary index maps its own key to the tuple's
*primary key*, the same bytes object that the primary index holds, so that a change that does not touch the
fields of a secondary index does not touch the index.

In a tree every key must differ from every other. Where the parts of the index alone do not see to that (the
index is not unique, or a nullable part is nil), the key is followed by the parts of the primary key that it
lacks. Keys are prefix-free, hence everything a client may ask for is one half-open interval of byte
strings.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import lt
from typing import TYPE_CHECKING, Any, Final, Self

from iproto_server.box.hash_table import HashTable
from iproto_server.box.index_def import IndexDef
from iproto_server.box.iterator import IteratorType
from iproto_server.box.key_def import KeyDef, distinct_key_of, distinct_keys_of
from iproto_server.box.key_encoding import just_below, prefix_end
from iproto_server.box.tree import Tree
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.read_view import IndexWatch

__all__ = ["HashIndex", "Index", "IteratorType", "TreeIndex"]

_EQ: Final = int(IteratorType.EQ)
_DESCENDING: Final = frozenset(map(int, (IteratorType.REQ, IteratorType.LT, IteratorType.LE)))
_TREE_ITERATORS: Final = frozenset(map(int, IteratorType)) - frozenset(range(7, 12))
_HASH_ITERATORS: Final = frozenset(map(int, (IteratorType.EQ, IteratorType.ALL, IteratorType.GT)))
_NO_LIMIT: Final = sys.maxsize
_DESCEND_LIMIT: Final = 256
"""How many values are found faster by stepping down than by counting those of the whole interval first."""
_SKIP_LIMIT: Final = 10_000
"""How many values are passed over faster one by one than by asking the leaves how many they hold."""

Interval = tuple[bytes, bytes | None]
"""The least key and the first one beyond; None for no bound."""


class Index(ABC):
    """What the two kinds of index share. Keys are byte strings that `key_of` or `encode_key` made.

    Attributes:
        definition: what the index is.
        id, name, space_id, type, unique: from the definition.
        space_name: for the messages.
        key_def: the declared parts.
        part_count: how many.
        field_numbers: the numbers of the fields that they are in.
        key_of: the key of a tuple in this index: (decoded fields, its encoded primary key) -> bytes. A
            primary index ignores the second argument.
        keys_of: the same for many tuples at once: (their fields, their primary keys) -> list of bytes.
        encode_key: a client's key, whole or partial, encoded and checked; errors 31 and 18.
        get: (key) -> value or None.
        insert: (key, value): add an entry; the key must not be there.
        set: (key, value): add or overwrite an entry.
        remove: (key): remove an entry that is there.
        watch: what looks after the entries while read views are open; it stands before the three functions
            above.
    """

    get: Callable[[bytes], bytes | None]
    insert: Callable[[bytes, bytes], object]
    set: Callable[[bytes, bytes], object]
    remove: Callable[[bytes], object]

    def __init__(self, definition: IndexDef, space_name: str, primary: KeyDef | None) -> None:
        """Make an empty index; `primary` is the primary index's key, None for the primary index itself."""
        self.definition = definition
        self.id = definition.id
        self.name = definition.name
        self.space_id = definition.space_id
        self.space_name = space_name
        self.type = definition.type
        self.unique = definition.is_unique
        self.key_def = definition.key_def
        self.part_count = definition.key_def.part_count
        self.field_numbers = tuple(part.field_no for part in definition.key_def.parts)
        self.encode_key = definition.key_def.encode_key
        self.watch: IndexWatch | None = None
        self._primary = primary
        self._is_exact = definition.is_unique and not definition.key_def.is_nullable
        self.key_of = distinct_key_of(definition.key_def, definition.is_unique, primary)
        self.keys_of = distinct_keys_of(definition.key_def, definition.is_unique, primary)

    @staticmethod
    def create(definition: IndexDef, space_name: str, primary: KeyDef | None = None) -> Index:
        """Make an empty index of the type that the definition asks for."""
        return (TreeIndex if definition.type == "TREE" else HashIndex)(definition, space_name, primary)

    @staticmethod
    def parse(row: Sequence[Any], space_name: str, primary: KeyDef | None) -> Index:
        """Make an empty index as a row of `_index` describes it.

        Parameters:
            row: the decoded row.
            space_name: for the messages.
            primary: the key of the space's primary index; None for the primary index itself.

        Raises:
            BoxError: see `IndexDef.parse`.
        """
        return Index.create(IndexDef.parse(row, space_name), space_name, primary)

    def encode_unique_key(self, key: Sequence[Any]) -> bytes:
        """Encode a key that is to find one tuple.

        Raises:
            BoxError: MORE_THAN_ONE_TUPLE (41) when the index is not unique, EXACT_MATCH (19) when the key
                is not whole, KEY_PART_TYPE (18) when a value does not fit, nil included.
        """
        if not self.unique:
            raise BoxError(ErrorCode.MORE_THAN_ONE_TUPLE)
        return self.key_def.encode_exact_key(key)

    def kind_equals(self, other: Index) -> bool:
        """Tell whether every tuple has the same key in both indexes, and may be in both."""
        return (self.type, self.unique, self.key_def, self._primary) == (
            other.type,
            other.unique,
            other.key_def,
            other._primary,
        )

    def empty_copy(self) -> Self:
        """Make an empty index with the same definition."""
        return type(self)(self.definition, self.space_name, self._primary)

    @abstractmethod
    def __len__(self) -> int:
        """Count the entries. A tree asks its leaves: 0.2 ms for a million entries."""

    @abstractmethod
    def clear(self) -> None:
        """Remove every entry."""

    def adopt(self, other: Index) -> None:
        """Take over the entries of an index of the same kind. Both hold the same ones from then on."""
        self._share(other)
        if other.watch is not None:
            other.watch.join(self)

    @abstractmethod
    def _share(self, other: Index) -> None:
        """Use the entries of an index of the same kind."""

    def build(self, keys: list[bytes], values: list[bytes]) -> list[int]:
        """Fill an empty index; a tree is filled fastest when the keys come in ascending order.

        Parameters:
            keys: the keys, in any order.
            values: their values.

        Returns: the positions of the entries that were left out, because their key has come before.
        """
        get, insert = self.get, self.insert
        repeated = []
        for position, (key, value) in enumerate(zip(keys, values, strict=True)):
            if get(key) is None:
                insert(key, value)
            else:
                repeated.append(position)
        return repeated

    @abstractmethod
    def keys(self) -> Iterator[bytes]:
        """Walk through the keys. The index must not change meanwhile."""

    @abstractmethod
    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Walk through the entries. The index must not change meanwhile."""

    @abstractmethod
    def iterate(self, iterator: int, key: Sequence[Any]) -> Iterator[bytes]:
        """Walk through the values that an iterator finds, one by one; the index may change between two steps.

        Parameters:
            iterator: an `IteratorType`.
            key: the client's key, whole, partial or empty.

        Raises:
            BoxError: at once, not with the first step: 31 and 18 for the key, 112 for an iterator that the
                index has not, 1 for one that nobody has, 136 for a partial key on HASH.
        """

    @abstractmethod
    def select(
        self, iterator: int, key: Sequence[Any], offset: int = 0, limit: int = _NO_LIMIT
    ) -> list[bytes]:
        """Return the values that an iterator finds: faster than `iterate`, because nothing can change
        meanwhile.

        Parameters:
            iterator, key: as for `iterate`.
            offset: how many values to pass over.
            limit: how many to return at the most.
        """

    @abstractmethod
    def count(self, iterator: int, key: Sequence[Any]) -> int:
        """Count what an iterator finds; see `iterate`."""

    @abstractmethod
    def range_first(self, prefix: bytes) -> bytes | None:
        """Return the value of the first key that starts with the encoded key `prefix`, or None."""

    @abstractmethod
    def min(self, key: Sequence[Any]) -> bytes | None:
        """Return the value of the least key that starts with `key`, or None. Raises BoxError 112 on HASH."""

    @abstractmethod
    def max(self, key: Sequence[Any]) -> bytes | None:
        """Return the value of the last key that starts with `key`, or None. Raises BoxError 112 on HASH."""

    @abstractmethod
    def random(self, seed: int) -> bytes | None:
        """Return some value, chosen by a number of the caller's, or None where there is none."""

    def _lacks(self, feature: str) -> BoxError:
        return BoxError(
            ErrorCode.UNSUPPORTED_INDEX_FEATURE, self.name, self.type, self.space_name, "memtx", feature
        )

    def _encode_for(self, iterator: int, key: Sequence[Any], supported: frozenset[int]) -> bytes:
        """Check and encode a key, and the iterator it is for; in Tarantool's order."""
        if not 0 <= iterator <= IteratorType.NEIGHBOR:
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Invalid iterator type")
        encoded = self.encode_key(key)
        if iterator not in supported:
            raise self._lacks("requested iterator type")
        return encoded

    def __repr__(self) -> str:
        """Name the index and its space."""
        return f"<{type(self).__name__} {self.name!r} of space {self.space_name!r}>"


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
        interval = self._interval(iterator, key)
        if iterator in _DESCENDING:
            return self._descend(*interval)
        return self._ascend(*interval)

    def select(
        self, iterator: int, key: Sequence[Any], offset: int = 0, limit: int = _NO_LIMIT
    ) -> list[bytes]:
        if iterator == _EQ and self._is_exact and len(key) == self.part_count:
            value = self.get(self.encode_key(key))
            return [] if value is None or offset or not limit else [value]
        low, high = self._interval(iterator, key)
        limit = min(limit, _NO_LIMIT - offset)
        if iterator not in _DESCENDING:
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
        low, high = self._interval(iterator, key)
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

    def _interval(self, iterator: int, key: Sequence[Any]) -> Interval:
        """Find the interval of keys that an iterator walks through."""
        if iterator == _EQ:
            prefix = self.encode_key(key)
            return prefix, prefix_end(prefix)
        prefix = self._encode_for(iterator, key, _TREE_ITERATORS)
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


class HashIndex(Index):
    """A HASH index: whole keys, and everything in no useful order."""

    def __init__(self, definition: IndexDef, space_name: str, primary: KeyDef | None = None) -> None:
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
        self, iterator: int, key: Sequence[Any], offset: int = 0, limit: int = _NO_LIMIT
    ) -> list[bytes]:
        encoded = self._checked_key(iterator, key)
        if iterator == _EQ:
            value = self.get(encoded)
            return [] if value is None or offset or not limit else [value]
        return list(islice(self._walk(iterator, encoded), offset, min(offset + limit, _NO_LIMIT)))

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

    def _checked_key(self, iterator: int, key: Sequence[Any]) -> bytes:
        """Encode a key that is whole, or empty where the iterator lets it."""
        count = len(key)
        is_whole_walk = count == 0 and iterator in (IteratorType.ALL, IteratorType.GT)
        if count < self.part_count and not is_whole_walk and 0 <= iterator <= IteratorType.NEIGHBOR:
            raise BoxError(ErrorCode.PARTIAL_KEY, self.type, self.part_count, count)
        return self._encode_for(iterator, key, _HASH_ITERATORS)

    def _walk(self, iterator: int, key: bytes) -> Iterator[bytes]:
        """Walk through all values, or with GT through those behind `key`; none when it is not there."""
        get = self.get
        for each in self.table.keys_after(key if iterator == IteratorType.GT else b""):
            value = get(each)
            if value is not None:
                yield value
