"""A space as it is read: its rows, found through its indexes.

The primary index maps the encoded primary key to the row; every secondary index maps its own encoded key to
that primary key, so a change that leaves a secondary index's fields alone does not touch that index. What is
read in an interactive transaction is noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from iproto_server.box.index.index import Index
from iproto_server.box.memtx.space_def import SpaceDefinition
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType

_EQ = int(IteratorType.EQ)


class IndexedSpace(SpaceDefinition):
    """The reading side of a space. Single rows are found by the engine (`find`, `first`)."""

    __slots__ = ()

    def __len__(self) -> int:
        return 0 if self.primary is None else len(self.primary)

    def count(self) -> int:
        """How many rows there are, for somebody who may be in an interactive transaction."""
        interactive = self._transactions.interactive
        if interactive is not None:
            interactive.read_all(self)
        return len(self)

    def rows(self) -> Iterator[bytes]:
        """Every row, in the order of the primary index."""
        return iter(()) if self.primary is None else self.primary.iterate(IteratorType.ALL, [])

    def select(
        self,
        index_id: int,
        iterator: int,
        offset: int,
        limit: int,
        key: list[Any],
        after: bytes | None = None,
    ) -> list[bytes]:
        """The rows an iterator finds.

        Parameters:
            index_id: number of the index to walk.
            iterator: the iterator type's number.
            offset: how many rows to pass over.
            limit: how many rows to answer at the most.
            key: the decoded key, whole, partial or empty.
            after: the encoded key in a tree behind which to begin; None for the iterator's own beginning.

        Raises:
            BoxError: no such index, no such iterator, or a key that does not fit.
        """
        index = self.indexes.get(index_id)
        if index is None:
            raise BoxError(ErrorCode.NO_SUCH_INDEX_ID, index_id, self.name)
        interactive = self._transactions.interactive
        if (
            iterator == _EQ
            and index_id == 0
            and len(key) == index.part_count
            and not offset
            and limit
            and after is None
        ):
            encoded = index.encode_key(key)
            if interactive is not None:
                interactive.read_key(self, 0, encoded)
            row = index.get(encoded)
            return [] if row is None else [row]
        found = index.select(iterator, key, offset, limit, after)
        if index_id != 0:
            row_of = self.primary_index().get
            found = [row for primary_key in found if (row := row_of(primary_key)) is not None]
        if interactive is not None and limit:
            last = found[-1] if len(found) == limit else None
            interactive.read_interval(self, index, iterator, key, last)
        return found

    def iterate(
        self, index: Index, iterator: int, key: list[Any], after: bytes | None = None
    ) -> Iterator[bytes]:
        """The rows an iterator finds, one by one; the space may change between two of them.

        As in Tarantool, the walk ends when the index is built anew or emptied by DDL.

        Parameters:
            index: the index to walk.
            iterator: the iterator type's number.
            key: the decoded key, whole, partial or empty.
            after: a row behind whose place in a tree, where it has one only, to begin.
        """
        after_key = None if after is None else self.keys_of(index, after)[0]
        found = index.iterate(iterator, key, after_key)
        if self._transactions.interactive is not None:
            self._transactions.interactive.read_interval(self, index, iterator, key)
        return self._rows_of(index, found, self.indexes)

    def count_found(self, index: Index, iterator: int, key: list[Any]) -> int:
        """How many rows an iterator finds; they are not looked at."""
        found = index.count(iterator, key)
        if self._transactions.interactive is not None:
            self._transactions.interactive.read_interval(self, index, iterator, key)
        return found

    def _rows_of(self, index: Index, found: Iterator[bytes], indexes: dict[int, Index]) -> Iterator[bytes]:
        """The rows of the values that a walk finds.

        Parameters:
            index: where the walk is.
            found: its values.
            indexes: the indexes of the space when it began.
        """
        row_of = None if index.id == 0 else indexes[0].get
        for value in found:
            if self.indexes is not indexes:
                indexes = self.indexes
                present = indexes.get(index.id)
                if present is None or not present.shares_entries(index):
                    return
                row_of = None if index.id == 0 else indexes[0].get
            row = value if row_of is None else row_of(value)
            if row is not None:
                yield row

    def keys_of(self, index: Index, row: bytes) -> Sequence[bytes]:
        """The keys that a row has in one of the indexes."""
        fields = codec.unpack(row)
        key = self.primary_index().key_of(fields, b"")
        return (key,) if index.id == 0 else index.all_keys_of(fields, key)

    def _row(self, raw: bytes | None) -> Tuple | None:
        return None if raw is None else Tuple(raw, self.format)
