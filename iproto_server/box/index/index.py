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
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, Self

from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.key.key_def import (
    KeyDef,
    distinct_entry_keys_of,
    distinct_key_of,
    key_layout,
)
from iproto_server.box.key.key_part import follow
from iproto_server.box.key.multikey import no_single_key
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType
from iproto_server.native._native import Tree

NO_LIMIT: Final[int] = sys.maxsize

Interval = tuple[bytes, bytes | None]
"""The least key and the exclusive upper bound; None for no bound."""

_Key = Callable[[Sequence[Any], bytes], bytes]
_Keys = Callable[[Sequence[Any], bytes], list[bytes]]


def _single(key_of: _Key) -> _Keys:
    return lambda fields, primary_key: [key_of(fields, primary_key)]


class Index(Tree, ABC):
    """The common part of both index types. Keys are byte strings from `key_of` or `encode_key`.

    The entries are those of the tree; its methods find and change single ones, and `change` all of a row.

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
        encode_key: checks and encodes a client's full or partial key; errors 31 and 18.
    """

    __slots__ = (
        "_entry_keys_of",
        "_is_exact",
        "_primary",
        "definition",
        "encode_key",
        "field_numbers",
        "id",
        "is_multikey",
        "key_def",
        "key_of",
        "name",
        "part_count",
        "space_id",
        "space_name",
        "type",
        "unique",
    )

    is_ordered: ClassVar[bool]
    """Whether clients may ask for more than a whole key, or all rows."""

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
        self._primary = primary
        self._is_exact = definition.is_unique and not definition.key_def.is_nullable
        self.key_of: Callable[[Sequence[Any], bytes], bytes] = no_single_key
        if self.is_multikey:
            assert primary is not None
            self._entry_keys_of = distinct_entry_keys_of(definition.key_def, definition.is_unique, primary)
        else:
            self.key_of = distinct_key_of(definition.key_def, definition.is_unique, primary)
            self._entry_keys_of = _single(self.key_of)
        layout = key_layout(self.key_def, self.unique, primary)
        refers = primary is not None and layout is not None and rows is not None and rows.holds_rows
        super().__init__(
            layout if primary is None or refers else None,
            rows if refers else None,
            is_unique=self.unique,
            is_multikey=self.is_multikey,
            is_ordered=self.is_ordered,
            is_exact=self._is_exact,
            keys_of=self._entry_keys_of,
            key_of=self.key_of,
            encode_key=self.encode_key,
        )

    def all_keys_of(self, fields: Sequence[Any], primary_key: bytes) -> list[bytes]:
        """All keys of a tuple in this index, each once.

        Parameters:
            fields: its decoded fields.
            primary_key: its encoded primary key.
        """
        return self._entry_keys_of(fields, primary_key)

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

    @abstractmethod
    def keys(self) -> Iterator[bytes]:
        """Iterate over the keys. The index must not change meanwhile."""

    @abstractmethod
    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the entries. The index must not change meanwhile."""

    @abstractmethod
    def range_first(self, prefix: bytes) -> bytes | None:
        """Return the value of the first key that starts with an encoded key, or None."""

    @abstractmethod
    def iterate(self, iterator: int, key: Sequence[Any], after: bytes | None = None) -> Iterator[bytes]:
        """Iterate over the values that an iterator finds; the index may change between two steps.

        Parameters:
            iterator: an `IteratorType`.
            key: the client's key, full, partial or empty.
            after: the key to start after, in the iterator's direction; only in a tree.

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
