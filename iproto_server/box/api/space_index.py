"""The facade of an index for procedures: `space.index.NAME`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.space_schema import SpaceSchema
from iproto_server.box.api.row_arguments import NO_LIMIT, as_key, as_row, iterator_number
from iproto_server.box.index.index import Index as IndexTree
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.pagination import select_page, tuple_position
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType
from iproto_server.native import twin_methods


class IndexedSpaceFacade(Protocol):
    """The space of an index; see `Space`."""

    @property
    def box(self) -> BoxCore:
        """The box it is in."""

    @property
    def schema(self) -> SpaceSchema:
        """Changes its definition."""

    @property
    def id(self) -> int:
        """The number in `_space`."""

    @property
    def name(self) -> str:
        """The name in `_space`."""

    @property
    def engine(self) -> str:
        """The storage engine's name."""

    @property
    def exempts_updates(self) -> bool:
        """Whether updates may exceed the memory limit."""

    def core(self) -> MemtxSpace:
        """The engine space. Raises BoxError NO_SUCH_SPACE if the space was dropped."""

    def readable(self) -> MemtxSpace:
        """The engine space, if the caller may read it. Raises BoxError ACCESS_DENIED."""

    def writable(self) -> MemtxSpace:
        """The engine space, if the caller may change it. Raises BoxError ACCESS_DENIED."""


@twin_methods("get", "first", "min", "max", "update", "delete")
class Index:
    """`space.index.NAME`: reading through one index, and changing rows by its key.

    Parameters:
        space: its space.
        index_id: its number.
    """

    __slots__ = ("id", "space")

    def __init__(self, space: IndexedSpaceFacade, index_id: int) -> None:
        self.space = space
        self.id = index_id

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

    def get(self, key: object) -> Tuple | None:
        """The row with a full key of a unique index, or None.

        Raises:
            BoxError: MORE_THAN_ONE_TUPLE (41) for a non-unique index, EXACT_MATCH (19) for a partial key.
        """
        core = self.space.readable()
        row = core.find(self.id, as_key(key))
        return None if row is None else Tuple(row, core.format)

    def select(
        self,
        key: object = None,
        *,
        iterator: str | int | None = None,
        offset: int = 0,
        limit: int = NO_LIMIT,
        after: str | Tuple | Sequence[Any] | None = None,
    ) -> list[Tuple]:
        """The rows an iterator finds.

        Parameters:
            key: the key, full, partial or empty.
            iterator: ALL, EQ, REQ, GT, GE, LT or LE; by default EQ, or ALL for an empty key.
            offset: the number of rows to skip.
            limit: the greatest number of rows to return.
            after: the row, or the position (see `tuple_pos`), after which to start.

        Raises:
            BoxError: the key or the iterator does not fit the index, or `after` does not fit them.
        """
        return self._select(key, iterator, offset, limit, after, fetch_position=False)[0]

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
        number = iterator_number(iterator, parts)
        position = None
        if after is None and not fetch_position:
            rows = core.select(self.id, number, offset, limit, parts)
        else:
            rows, position = select_page(
                core,
                self.id,
                number,
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

    def pairs(self, key: object = None, *, iterator: str | int | None = None) -> Iterator[Tuple]:
        """The rows an iterator finds, one by one. The space may change meanwhile."""
        core = self.space.readable()
        parts = as_key(key)
        rows = core.iterate(core.index(self.id), iterator_number(iterator, parts), parts)
        return (Tuple(row, core.format) for row in rows)

    def first(self, key: object = None) -> Tuple | None:
        """The first row in the index's order whose key begins with `key`, or None."""
        core = self.space.readable()
        row = core.first(self.id, as_key(key))
        return None if row is None else Tuple(row, core.format)

    def min(self, key: object = None) -> Tuple | None:
        """The row with the smallest key (that begins with `key`), or None."""
        self._check_ordered("min()")
        return self.first(key)

    def max(self, key: object = None) -> Tuple | None:
        """The row with the greatest key (that begins with `key`), or None."""
        self._check_ordered("max()")
        rows = self.select(key, iterator=IteratorType.REQ, limit=1)
        return rows[0] if rows else None

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

    def delete(self, key: object) -> Tuple | None:
        """Remove the row with a full key. Return it; None if there is none."""
        core = self.space.writable()
        return core.delete(self.id, as_key(key))

    def update(self, key: object, operations: Sequence[Sequence[Any]]) -> Tuple | None:
        """Change the row with a full key. Return the new row; None if there is none.

        Parameters:
            key: the key.
            operations: such as `("=", "status", "T")` or `("+", 2, 1)`; field numbers are 0-based.
        """
        core = self.space.writable()
        parsed = core.parse_operations(operations)
        if not self.space.exempts_updates:
            return core.update(self.id, as_key(key), parsed)
        with budget.exempt(core):
            return core.update(self.id, as_key(key), parsed)

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


@twin_methods("__getitem__", "__getattr__")
class Indexes:
    """`space.index`: the indexes by name (`space.index.primary`) or number (`space.index[0]`)."""

    __slots__ = ("_space",)

    def __init__(self, space: IndexedSpaceFacade) -> None:
        self._space = space

    def __getitem__(self, which: str | int) -> Index:
        core = self._space.core()
        index = core.index_by_name(which) if isinstance(which, str) else core.index(which)
        return Index(self._space, index.id)

    def __getattr__(self, name: str) -> Index:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return any(index.name == name for index in self._space.core().indexes.values())

    def __iter__(self) -> Iterator[Index]:
        return (Index(self._space, number) for number in self._space.core().indexes)

    def __len__(self) -> int:
        return len(self._space.core().indexes)
