"""The facade of an index for procedures: `space.index.NAME`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iproto_server.box.api.row_arguments import NO_LIMIT, iterator_number
from iproto_server.box.index.index import Index as IndexTree
from iproto_server.box.memtx.pagination import select_page, tuple_position
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import IndexesFacade, IndexFacade, as_key, as_row


class Index(IndexFacade):
    """`space.index.NAME`: reading through one index, and changing rows by its key.

    The base class finds and changes rows, in compiled code.

    Parameters:
        space: its space.
        index_id: its number.
    """

    __slots__ = ()

    _iterator_number = staticmethod(iterator_number)

    @property
    def tree(self) -> IndexTree:
        """The index of the engine space."""
        return self.space.core().index(self.id)

    @property
    def name(self) -> str:
        """The name in `_index`."""
        return self.tree.name

    @property
    def unique(self) -> bool:
        """Whether no two rows may have the same key."""
        return self.tree.unique

    @property
    def type(self) -> str:
        """ "TREE" or "HASH"."""
        return self.tree.type

    def select_page(
        self,
        key: object = None,
        *,
        iterator: str | int | None = None,
        offset: int = 0,
        limit: int = NO_LIMIT,
        after: str | Tuple | Sequence[Any] | None = None,
    ) -> tuple[list[Tuple], str | None]:
        """The rows of `select` and the position of the last one, as with Lua's option `fetch_pos`.

        Returns: the rows, and the position; None without rows.

        Raises:
            BoxError: as `select`; UNSUPPORTED_INDEX_FEATURE (112) if the index has no positions.
        """
        return self._select(key, iterator, offset, limit, after, fetch_position=True)

    def _select_after(
        self,
        key: object,
        *,
        iterator: str | int | None = None,
        offset: int = 0,
        limit: int = NO_LIMIT,
        after: str | Tuple | Sequence[Any],
    ) -> list[Tuple]:
        """The rows of `select` behind one of them."""
        return self._select(key, iterator, offset, limit, after, fetch_position=False)[0]

    def _select(
        self,
        key: object,
        iterator: str | int | None,
        offset: int,
        limit: int,
        after: str | Tuple | Sequence[Any] | None,
        *,
        fetch_position: bool,
    ) -> tuple[list[Tuple], str | None]:
        core = self.space.readable()
        parts = as_key(key)
        if offset < 0 or limit < 0:
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "offset and limit must not be negative")
        rows, position = select_page(
            core,
            self.id,
            iterator_number(iterator, parts),
            offset,
            limit,
            parts,
            after_position=after if isinstance(after, str) else None,
            after_row=None if after is None or isinstance(after, str) else as_row(after, core).raw,
            fetch_position=fetch_position,
        )
        return [Tuple(row, core.format) for row in rows], position

    def tuple_pos(self, row: Tuple | Sequence[Any]) -> str:
        """The position of a row in the index, for `after`.

        Source: Tarantool reference, "index_object:tuple_pos()".

        Raises:
            BoxError: ITERATOR_POSITION (247) if the row cannot be in the index.
        """
        core = self.space.readable()
        return tuple_position(core, self.id, as_row(row, core).raw)

    def pairs(
        self, key: object = None, *, iterator: str | int | None = None, after: Tuple | None = None
    ) -> Iterator[Tuple]:
        """The rows an iterator finds, one by one. The space may change meanwhile.

        Parameters:
            key: as for `select`.
            iterator: as for `select`.
            after: a row behind whose place to begin, in a tree that is not multikey.
        """
        core = self.space.readable()
        parts = as_key(key)
        raw = None if after is None else after.raw
        rows = core.iterate(core.index(self.id), iterator_number(iterator, parts), parts, raw)
        return (Tuple(row, core.format) for row in rows)

    def count(self, key: object = None, *, iterator: str | int | None = None) -> int:
        """The number of rows that an iterator finds."""
        core = self.space.readable()
        parts = as_key(key)
        if not parts and iterator is None:
            return self.len()
        return core.count_found(core.index(self.id), iterator_number(iterator, parts), parts)

    def len(self) -> int:
        """The number of entries; a multikey index has one for each key of a row."""
        core = self.space.readable()
        rows = core.count()
        index = core.indexes.get(self.id)
        return rows if index is None or not index.is_multikey else len(index)

    def drop(self) -> None:
        """Remove the index; dropping the primary index removes all rows."""
        self.space.schema.drop_index(self.space.id, self.id)

    def alter(
        self,
        *,
        name: str | None = None,
        type: str | None = None,
        unique: bool | None = None,
        parts: Sequence[Any] | None = None,
        sequence: object = None,
        id: int | None = None,
        one_based: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> None:
        """Alter the index; see `Schema.alter_index`."""
        given = {} if unique is None else {"unique": unique}
        self.space.schema.alter_index(
            self.space.id,
            self.id,
            new_id=id,
            name=name,
            type=type,
            parts=parts,
            sequence=sequence,
            one_based=one_based,
            options={**given, **(options or {})},
        )

    def rename(self, name: str) -> None:
        """Rename the index."""
        self.space.schema.rename_index(self.space.id, self.id, name)

    def _check_ordered(self, what: str) -> None:
        if self.type != "TREE":
            raise BoxError(
                ErrorCode.UNSUPPORTED_INDEX_FEATURE, self.name, self.type, self.space.name, "memtx", what
            )

    def __repr__(self) -> str:
        return f"<index {self.id} of space {self.space.name}>"


class Indexes(IndexesFacade):
    """`space.index`: the indexes by name (`space.index.primary`) or number (`space.index[0]`).

    The base class keeps what was found until the indexes change.

    Parameters:
        space: the space.
    """

    __slots__ = ()

    def __missing__(self, which: str | int) -> Index:
        """Find an index that was not asked for in this way since the indexes changed."""
        core = self._space.core()
        index = core.index_by_name(which) if isinstance(which, str) else core.index(which)
        return Index(self._space, index.id)

    def __contains__(self, name: object) -> bool:
        return any(index.name == name for index in self._space.core().indexes.values())

    def __iter__(self) -> Iterator[Index]:
        return (Index(self._space, number) for number in self._space.core().indexes)

    def __len__(self) -> int:
        return len(self._space.core().indexes)
