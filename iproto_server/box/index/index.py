"""Indexes: maps from encoded keys to values.

The primary index maps a tuple's key to the tuple's bytes. A secondary index maps its key to the tuple's
*primary key*, the same bytes object as in the primary index, so a change that does not affect the fields of a
secondary index does not touch the index.

All keys in a tree differ. If the parts of an index do not ensure that (the index is not unique, or a nullable
part is nil), the parts of the primary key that it lacks are appended. Keys are prefix-free, so each request
of a client selects one half-open interval of byte strings.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Self

from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.index.iterator_type import IteratorType
from iproto_server.box.key.key_def import KeyDef, distinct_entry_keys_of, distinct_key_of, distinct_keys_of
from iproto_server.box.key.key_part import follow
from iproto_server.box.key.multikey import no_single_key
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin

NO_LIMIT: Final = sys.maxsize

Interval = tuple[bytes, bytes | None]
"""The least key and the exclusive upper bound; None for no bound."""


class Index(ABC):
    """The common part of both index types. Keys are byte strings from `key_of` or `encode_key`.

    Attributes:
        definition: the definition.
        id, name, space_id, type, unique: from the definition.
        space_name: the name of the space, for messages.
        key_def: the declared parts.
        part_count: their number.
        field_numbers: the fields of the parts; empty if some parts are inside fields.
        is_multikey: whether a tuple has a key for each element of an array; `key_of` raises TypeError then.
        key_of: (decoded fields, encoded primary key) -> the tuple's key in this index. A primary index
            ignores the second argument.
        keys_of: the same for many tuples at once: (their fields, their primary keys) -> list of keys.
        encode_key: checks and encodes a client's full or partial key; errors 31 and 18.
        get: (key) -> value or None.
        insert: (key, value): add an entry with a new key.
        set: (key, value): add or overwrite an entry.
        remove: (key): remove an existing entry.
        range_first: (encoded key) -> the value of the first key that starts with it, or None.
        quick: data for compiled code to bypass these functions; None if it must not.
    """

    __slots__ = (
        "_entry_keys_of",
        "_is_exact",
        "_primary",
        "definition",
        "encode_key",
        "field_numbers",
        "get",
        "id",
        "insert",
        "is_multikey",
        "key_def",
        "key_of",
        "keys_of",
        "name",
        "part_count",
        "quick",
        "range_first",
        "remove",
        "set",
        "space_id",
        "space_name",
        "type",
        "unique",
    )

    get: Callable[[bytes], bytes | None]
    insert: Callable[[bytes, bytes], object]
    set: Callable[[bytes, bytes], object]
    remove: Callable[[bytes], object]
    range_first: Callable[[bytes], bytes | None]

    def __init__(
        self, definition: IndexDef, space_name: str, primary: KeyDef | None, rows: Index | None = None
    ) -> None:
        """Make an empty index.

        Parameters:
            definition: what it is.
            space_name: for the messages.
            primary: the primary index's key; None for the primary index itself.
            rows: the primary index, to whose rows entries may refer; None for entries with their own keys.
        """
        self.definition = definition
        self.id = definition.id
        self.name = definition.name
        self.space_id = definition.space_id
        self.space_name = space_name
        self.type = definition.type
        self.unique = definition.is_unique
        self.key_def = definition.key_def
        self.part_count = definition.key_def.part_count
        has_paths = any(part.path is not None for part in definition.key_def.parts)
        self.field_numbers = () if has_paths else tuple(part.field_no for part in definition.key_def.parts)
        self.is_multikey = definition.key_def.is_multikey
        self.encode_key = definition.key_def.encode_key
        self.quick: object = None
        self._primary = primary
        self._is_exact = definition.is_unique and not definition.key_def.is_nullable
        self.key_of: Callable[[Sequence[Any], bytes], bytes] = no_single_key
        self.keys_of: Callable[[Sequence[Sequence[Any]], Sequence[bytes]], list[bytes]] = no_single_key
        if self.is_multikey:
            assert primary is not None
            self._entry_keys_of = distinct_entry_keys_of(definition.key_def, definition.is_unique, primary)
        else:
            self.key_of = distinct_key_of(definition.key_def, definition.is_unique, primary)
            self.keys_of = distinct_keys_of(definition.key_def, definition.is_unique, primary)

    def all_keys_of(self, fields: Sequence[Any], primary_key: bytes) -> list[bytes]:
        """All keys of a tuple in this index, each once.

        Parameters:
            fields: its decoded fields.
            primary_key: its encoded primary key.
        """
        if self.is_multikey:
            return self._entry_keys_of(fields, primary_key)
        return [self.key_of(fields, primary_key)]

    def values_of(self, fields: Sequence[Any]) -> list[Any]:
        """The values of a tuple's key parts; for a part with `[*]`, the whole array."""
        places = (part.multikey_place or part.place for part in self.key_def.parts)
        return [follow(fields[number], steps) if number < len(fields) else None for number, steps in places]

    def packed_key(self, row: bytes) -> bytes:
        """Return the primary key of a row as DELETE takes it: a packed array.

        Parameters:
            row: The packed row.
        """
        return codec.pack(self.values_of(codec.unpack(row)))

    def encode_unique_key(self, key: Sequence[Any]) -> bytes:
        """Encode the key of a single tuple.

        Raises:
            BoxError: MORE_THAN_ONE_TUPLE (41) if the index is not unique, EXACT_MATCH (19) for a partial key,
                KEY_PART_TYPE (18) for a value of the wrong type or nil.
        """
        if not self.unique:
            raise BoxError(ErrorCode.MORE_THAN_ONE_TUPLE)
        return self.key_def.encode_exact_key(key)

    def kind_equals(self, other: Index) -> bool:
        """Tell whether both indexes have the same keys and constraints for all tuples."""
        return (self.type, self.unique, self.key_def, self._primary) == (
            other.type,
            other.unique,
            other.key_def,
            other._primary,
        )

    def empty_copy(self, rows: Index | None = None) -> Self:
        """Make an empty index with the same definition.

        Parameters:
            rows: the primary index of the copies, if this is a secondary one.
        """
        return type(self)(self.definition, self.space_name, self._primary, rows)

    @abstractmethod
    def __len__(self) -> int:
        """Count the entries. In a tree this visits the leaves: 0.2 ms for a million entries."""

    @abstractmethod
    def clear(self) -> None:
        """Remove every entry."""

    def keeps(self, key: bytes, row: bytes) -> bool:
        """Tell whether an entry stays as it is if its row becomes another one with the same key.

        An entry that refers to its row does not, if the engine cannot make the key of the new row: a decimal
        equals an integer, and is packed differently.

        Parameters:
            key: the key of the entry, which is there.
            row: the new row, packed.
        """
        return True

    def adopt(self, other: Index) -> None:
        """Share the entries of an index of the same kind from now on."""
        self._share(other)

    @abstractmethod
    def shares_entries(self, other: Index) -> bool:
        """Tell whether both share their entries after `adopt`."""

    @abstractmethod
    def _share(self, other: Index) -> None:
        """Use the entries of an index of the same kind."""

    def build(self, keys: list[bytes], values: list[bytes]) -> list[int]:
        """Add entries; an empty tree is filled fastest, and with ascending keys.

        Parameters:
            keys: the keys, in any order.
            values: their values.

        Returns: the positions of skipped entries, whose key occurred before.
        """
        get, insert = self.get, self.insert
        repeated = []
        for position, (key, value) in enumerate(zip(keys, values, strict=True)):
            if get(key) is None:
                insert(key, value)
            else:
                repeated.append(position)
        return repeated

    def append(self, keys: list[bytes], values: list[bytes]) -> bool:
        """Add entries behind all others, if the index can do that at once.

        Parameters:
            keys: the keys.
            values: their values.

        Returns: whether they were added; if not, nothing has changed.
        """
        return False

    def build_from(self, primary: Index) -> bool:
        """Fill an empty secondary index from the rows of the primary index, if that is possible at once.

        Parameters:
            primary: the primary index.

        Returns: whether that was done; if not, nothing has changed, and `build` has to do it.
        """
        return False

    def all_fit(self, check: Callable[[Sequence[Any]], None]) -> bool:
        """Tell whether all rows of a primary index are known to fit; if not, a closer look is needed.

        Parameters:
            check: a format's check of a row.
        """
        return False

    def rows_tree(self) -> object:
        """The tree of a primary index if compiled code can make the keys from the rows; otherwise None."""
        return None

    def bsize(self) -> int:
        """Return the bytes of memory of the entries, without the rows."""
        return 0

    def values_size(self) -> int:
        """The bytes of all values of a primary index."""
        return sum(len(value) for _, value in self.items())

    @abstractmethod
    def keys(self) -> Iterator[bytes]:
        """Iterate over the keys. The index must not change meanwhile."""

    @abstractmethod
    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the entries. The index must not change meanwhile."""

    @abstractmethod
    def iterate(self, iterator: int, key: Sequence[Any]) -> Iterator[bytes]:
        """Iterate over the values that an iterator finds; the index may change between two steps.

        Parameters:
            iterator: an `IteratorType`.
            key: the client's key, full, partial or empty.

        Raises:
            BoxError: at once, not at the first step: 31 and 18 for the key, 112 for an iterator that the
                index does not support, 1 for an unknown one, 136 for a partial key on HASH.
        """

    @abstractmethod
    def select(
        self,
        iterator: int,
        key: Sequence[Any],
        offset: int = 0,
        limit: int = NO_LIMIT,
        after: bytes | None = None,
    ) -> list[bytes]:
        """Return the values that an iterator finds; faster than `iterate`.

        Parameters:
            iterator, key: as for `iterate`.
            offset: the number of values to skip.
            limit: the greatest number of values.
            after: the key to start after, in the iterator's direction; only in a tree.
        """

    @abstractmethod
    def interval(self, iterator: int, key: Sequence[Any]) -> Interval:
        """Return the interval of keys of an iterator; see `iterate`."""

    @abstractmethod
    def count(self, iterator: int, key: Sequence[Any]) -> int:
        """Count the values that an iterator finds; see `iterate`."""

    @abstractmethod
    def min(self, key: Sequence[Any]) -> bytes | None:
        """Return the value of the least key that starts with `key`, or None. Raises BoxError 112 on HASH."""

    @abstractmethod
    def max(self, key: Sequence[Any]) -> bytes | None:
        """Return the value of the last key that starts with `key`, or None. Raises BoxError 112 on HASH."""

    @abstractmethod
    def random(self, seed: int) -> bytes | None:
        """Return a value selected by a seed; None if the index is empty."""

    def _lacks(self, feature: str) -> BoxError:
        return BoxError(
            ErrorCode.UNSUPPORTED_INDEX_FEATURE, self.name, self.type, self.space_name, "memtx", feature
        )

    def _encode_for(self, iterator: int, key: Sequence[Any], supported: frozenset[int]) -> bytes:
        """Check an iterator and its key in Tarantool's order, and encode the key."""
        if not 0 <= iterator <= IteratorType.NEIGHBOR:
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "Invalid iterator type")
        encoded = self.encode_key(key)
        if iterator not in supported:
            raise self._lacks("requested iterator type")
        return encoded

    def __repr__(self) -> str:
        """Name the index and its space."""
        return f"<{type(self).__name__} {self.name!r} of space {self.space_name!r}>"


Move = tuple[Index, bytes | None, bytes | None]
"""A change of one entry of a secondary index: old and new key; None for none."""


@twin
def change_entries(
    primary: Index,
    secondaries: tuple[Index, ...],
    key: bytes,
    old: list[Any] | None,
    new: list[Any] | None,
    new_row: bytes | None,
    more: Callable[[], Iterable[Move]] | None,
) -> Index | None:
    """Change the entries of a row in all indexes, or in none.

    Parameters:
        primary: the primary index.
        secondaries: the other indexes that may change, without multikey ones.
        key: the row's encoded primary key.
        old, new: the old and new decoded fields; None for no row.
        new_row: the new value in the primary index; None: remove the row.
        more: returns further changes, or raises.

    Returns:
        The first unique index that already has the new key; None on success.
    """
    moves: list[Move] = []
    for index in secondaries:
        old_key = None if old is None else index.key_of(old, key)
        new_key = None if new is None else index.key_of(new, key)
        if new_key == old_key:
            if new_key is None or new_row is None or index.keeps(new_key, new_row):
                continue
        elif new_key is not None and index.unique and index.get(new_key) is not None:
            return index
        moves.append((index, old_key, new_key))
    if more is not None:
        moves += more()
    # Old entries go first: an index that refers to rows finds an entry by the row that is there.
    for index, old_key, _ in moves:
        if old_key is not None:
            index.remove(old_key)
    if new_row is None:
        primary.remove(key)
    else:
        primary.set(key, new_row)
    for index, _, new_key in moves:
        if new_key is not None:
            index.insert(new_key, key)
    return None


@twin
def quick_index(
    tree: Any,
    key_of: Callable[[Sequence[Any], bytes], bytes],
    encode_key: Callable[[Sequence[Any]], bytes],
    is_unique: bool,
    is_exact: bool,
    is_ordered: bool,
) -> object:
    """The data of an index for compiled code.

    Parameters:
        tree: its entries.
        key_of, encode_key: as of the index.
        is_unique: whether keys are unique.
        is_exact: whether keys are unique and no part is nullable.
        is_ordered: whether clients may ask for more than a whole key.

    Returns:
        The data, or None if compiled code does not support the index.
    """
    return None
