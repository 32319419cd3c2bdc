"""A space as procedures see it: Tarantool's own words, on Python values.

Access is checked here as for requests from the wire: a procedure has the rights of the user that calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from iproto_server import codec
from iproto_server.box.access import Privilege
from iproto_server.box.index import Index as IndexTree
from iproto_server.box.iterator import IteratorType
from iproto_server.box.memtx import MemtxSpace
from iproto_server.box.pagination import select_page, tuple_position
from iproto_server.box.trigger import Trigger
from iproto_server.box.tuple import Tuple
from iproto_server.errors import BoxError, ErrorCode

if TYPE_CHECKING:
    from iproto_server.box.box import Box

# A plain integer: the operators of an IntFlag cost more than the rest of the check.
_READ_WRITE_USAGE = int(Privilege.READ | Privilege.WRITE | Privilege.USAGE)
_NO_LIMIT = 2**32 - 1
_PLAIN_TYPES = frozenset({int, str, float, bool, type(None), bytes})


def as_key(key: object) -> list[Any]:
    """A key as a list of parts: one part may be given bare, None is the empty key."""
    if key is None:
        return []
    if isinstance(key, list):
        return key
    if isinstance(key, tuple | Tuple):
        return list(key)
    return [key]


def iterator_number(iterator: str | int | None, key: Sequence[Any]) -> int:
    """The number of an iterator type given by name or number; the default is EQ, or ALL for an empty key.

    Raises:
        BoxError: ITERATOR_TYPE (72) for a name there is not, or something that is no name and no number.
    """
    if iterator is None:
        return IteratorType.EQ if key else IteratorType.ALL
    if isinstance(iterator, str):
        try:
            return IteratorType[iterator.upper()]
        except KeyError:
            raise BoxError(ErrorCode.ITERATOR_TYPE, iterator) from None
    if not isinstance(iterator, int):
        raise BoxError(ErrorCode.ITERATOR_TYPE, iterator)
    return iterator


class Index:
    """`space.index.NAME`: reading through one index, and changing rows by its key.

    Parameters:
        space: the space it belongs to.
        index_id: its number.
    """

    def __init__(self, space: Space, index_id: int) -> None:
        self.space = space
        self.id = index_id

    @property
    def tree(self) -> IndexTree:
        """The inner side of the index."""
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
        """The row with a whole key of a unique index, or None.

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
        limit: int = _NO_LIMIT,
        after: str | Tuple | Sequence[Any] | None = None,
    ) -> list[Tuple]:
        """The rows an iterator finds.

        Parameters:
            key: the key, whole, partial or empty.
            iterator: ALL, EQ, REQ, GT, GE, LT or LE; EQ unless the key is empty.
            offset: how many rows to pass over.
            limit: how many rows to answer at the most.
            after: the row, or the position (see `tuple_pos`), behind which to begin.

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
        limit: int = _NO_LIMIT,
        after: str | Tuple | Sequence[Any] | None = None,
    ) -> tuple[list[Tuple], str | None]:
        """What `select` answers, and the position of the last row, as with Lua's option `fetch_pos`.

        Returns: the rows, and the position, None without rows.

        Raises:
            BoxError: as `select` does, or UNSUPPORTED_INDEX_FEATURE (112), the index has no positions.
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
                after_row=None if after is None or isinstance(after, str) else _row(after, core).raw,
                fetch_position=fetch_position,
            )
        return [Tuple(row, core.format) for row in rows], position

    def tuple_pos(self, row: Tuple | Sequence[Any]) -> str:
        """The position of a row in the index, for `after`.

        Source: Tarantool reference, "index_object:tuple_pos()".

        Raises:
            BoxError: ITERATOR_POSITION (247), the row cannot be in the index.
        """
        core = self.space.readable()
        return tuple_position(core, self.id, _row(row, core).raw)

    def pairs(self, key: object = None, *, iterator: str | int | None = None) -> Iterator[Tuple]:
        """The rows an iterator finds, one by one. The space may be changed on the way."""
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
        """How many rows an iterator finds."""
        core = self.space.readable()
        parts = as_key(key)
        if not parts and iterator is None:
            return self.len()
        return sum(1 for _ in core.iterate(core.index(self.id), iterator_number(iterator, parts), parts))

    def len(self) -> int:
        """How many rows the index holds; a multikey index holds a row as often as it has keys."""
        core = self.space.readable()
        rows = core.count()
        index = core.indexes.get(self.id)
        return rows if index is None or not index.is_multikey else len(index)

    def delete(self, key: object) -> Tuple | None:
        """Remove the row with a whole key and answer it, or None where there is none."""
        core = self.space.writable()
        return core.delete(self.id, as_key(key))

    def update(self, key: object, operations: Sequence[Sequence[Any]]) -> Tuple | None:
        """Change the row with a whole key and answer the new row, or None where there is none.

        Parameters:
            key: the key.
            operations: such as `("=", "status", "T")` or `("+", 2, 1)`; field numbers are 0-based.
        """
        core = self.space.writable()
        return core.update(self.id, as_key(key), core.parse_operations(operations))

    def drop(self) -> None:
        """Remove the index; dropping the primary index throws the rows away."""
        self.space.box.schema.drop_index(self.space.id, self.id)

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
        """Change what the index is; see `Schema.alter_index`."""
        given = {} if unique is None else {"unique": unique}
        self.space.box.schema.alter_index(
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
        """Give the index another name."""
        self.space.box.schema.rename_index(self.space.id, self.id, name)

    def _check_ordered(self, what: str) -> None:
        if self.type != "TREE":
            raise BoxError(
                ErrorCode.UNSUPPORTED_INDEX_FEATURE, self.name, self.type, self.space.name, "memtx", what
            )

    def __repr__(self) -> str:
        return f"<index {self.id} of space {self.space.name}>"


class Indexes:
    """`space.index`: the indexes by name (`space.index.primary`) or number (`space.index[0]`)."""

    def __init__(self, space: Space) -> None:
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


class Space:
    """`box.space.NAME`.

    Source: Tarantool reference, "Submodule box.space".

    Parameters:
        box: the box it is in.
        core: the inner side of the space.
    """

    def __init__(self, box: Box, core: MemtxSpace) -> None:
        self.box = box
        self._core = core
        self._transactions = box.transactions
        self.index = Indexes(self)
        self.primary = Index(self, 0)

    def core(self) -> MemtxSpace:
        """The inner side. Raises BoxError NO_SUCH_SPACE when the space was dropped."""
        if self._transactions.take_out is not None:
            # Code that runs outside of a transaction, as a timer's does, must not see what is not committed.
            self._transactions.take_out()
        if self._core.is_dropped:
            raise BoxError(ErrorCode.NO_SUCH_SPACE, self._core.name)
        return self._core

    def is_stale(self, core: MemtxSpace) -> bool:
        """Whether the space was dropped and `core` is another one with its number."""
        return self._core is not core

    def readable(self) -> MemtxSpace:
        """The inner side, for a caller that may read it. Raises BoxError ACCESS_DENIED."""
        user = self.box.session.current.credentials
        if user.universe & _READ_WRITE_USAGE != _READ_WRITE_USAGE:
            self.box.access.check_space(user, Privilege.READ, self._core)
        return self.core()

    def writable(self) -> MemtxSpace:
        """The inner side, for a caller that may change it. Raises BoxError ACCESS_DENIED."""
        user = self.box.session.current.credentials
        if user.universe & _READ_WRITE_USAGE != _READ_WRITE_USAGE:
            self.box.access.check_space(user, Privilege.WRITE, self._core)
        return self.core()

    # -- what it is --

    @property
    def id(self) -> int:
        """The number in `_space`."""
        return self._core.id

    @property
    def name(self) -> str:
        """The name in `_space`."""
        return self._core.name

    @property
    def engine(self) -> str:
        """The storage engine's name."""
        return self._core.engine

    @property
    def field_count(self) -> int:
        """How many fields every row must have; 0: any number."""
        return self._core.field_count

    @property
    def temporary(self) -> bool:
        """Whether the rows are not logged and are gone after a restart."""
        return self._core.is_temporary

    def bsize(self) -> int:
        """Bytes of all rows together."""
        return self.core().bsize

    def format(self, new_format: Sequence[Any] | None = None) -> list[Any]:
        """The format as in `_space`; with an argument, set it first.

        Raises:
            BoxError: the format is wrong, or a stored row does not fit it.
        """
        if new_format is not None:
            self.box.schema.set_format(self.id, new_format)
        return self.core().format_row

    # -- reading, by the primary index --

    def get(self, key: object) -> Tuple | None:
        """The row with that primary key, or None."""
        return self.primary.get(key)

    def select(
        self,
        key: object = None,
        *,
        iterator: str | int | None = None,
        offset: int = 0,
        limit: int = _NO_LIMIT,
        after: str | Tuple | Sequence[Any] | None = None,
    ) -> list[Tuple]:
        """The rows an iterator over the primary index finds; see `Index.select`."""
        return self.primary.select(key, iterator=iterator, offset=offset, limit=limit, after=after)

    def pairs(self, key: object = None, *, iterator: str | int | None = None) -> Iterator[Tuple]:
        """The rows an iterator over the primary index finds, one by one."""
        return self.primary.pairs(key, iterator=iterator)

    def count(self, key: object = None, *, iterator: str | int | None = None) -> int:
        """How many rows an iterator over the primary index finds."""
        return self.primary.count(key, iterator=iterator)

    def len(self) -> int:
        """How many rows there are."""
        return self.readable().count()

    __len__ = len

    # -- changing --

    def insert(self, values: Sequence[Any]) -> Tuple:
        """Store a new row.

        Raises:
            BoxError: TUPLE_FOUND (3) when a unique index has its key, or the row does not fit the format.
        """
        core = self.writable()
        return core.insert(_row(values, core))

    def replace(self, values: Sequence[Any]) -> Tuple:
        """Store a row in the place of the one with the same primary key, if there is one."""
        core = self.writable()
        return core.replace(_row(values, core))

    put = replace

    def update(self, key: object, operations: Sequence[Sequence[Any]]) -> Tuple | None:
        """Change the row with that primary key; see `Index.update`."""
        return self.primary.update(key, operations)

    def upsert(self, values: Sequence[Any], operations: Sequence[Sequence[Any]]) -> None:
        """Store the row, or apply the operations to the row that has its primary key."""
        core = self.writable()
        core.upsert(_row(values, core), core.parse_operations(operations))

    def delete(self, key: object) -> Tuple | None:
        """Remove the row with that primary key and answer it, or None where there is none."""
        return self.primary.delete(key)

    def truncate(self) -> None:
        """Remove every row."""
        self.box.schema.truncate(self.id)

    # -- definition --

    def create_index(
        self,
        name: str,
        *,
        parts: Sequence[Any] | None = None,
        type: str = "tree",
        unique: bool | None = None,
        if_not_exists: bool = False,
        id: int | None = None,
        one_based: bool = False,
        sequence: object = None,
        options: Mapping[str, object] | None = None,
    ) -> Index:
        """Add an index; see `Schema.create_index`."""
        index_id = self.box.schema.create_index(
            self.id,
            name,
            parts=parts,
            type=type,
            unique=unique,
            if_not_exists=if_not_exists,
            index_id=id,
            one_based=one_based,
            sequence=sequence,
            options=options,
        )
        return Index(self, index_id)

    def drop(self) -> None:
        """Remove the space, its indexes and its rows."""
        self.box.schema.drop_space(self.id)

    def rename(self, name: str) -> None:
        """Give the space another name."""
        self.box.schema.rename_space(self.id, name)

    # -- triggers --

    def on_replace(
        self, new: Trigger | None = None, old: Trigger | None = None, *, undo: Trigger | None = None
    ) -> object:
        """Set a function (old tuple or None, new tuple or None) that runs after every change of a row.

        What it raises undoes the change. See `TriggerList.set` for replacing and deleting triggers.

        Parameters:
            new: the function.
            old: the function it replaces.
            undo: called with the same tuples when a change that the function was told of is rolled back, so
                that what it keeps beside the space stays true.
        """
        return self.core().on_replace.set(new, old, undo)

    def before_replace(self, new: Trigger | None = None, old: Trigger | None = None) -> object:
        """Set a function (old tuple or None, new tuple or None) that decides what a change stores.

        It returns the tuple to store instead (with the same primary key), `NIL` to store nothing (an old row
        is then deleted), or None to let the change pass as it is.
        """
        return self.core().before_replace.set(new, old)

    def __repr__(self) -> str:
        return f"<space {self.name}>"


def _row(values: Sequence[Any], core: MemtxSpace) -> Tuple:
    """A row as the space stores it, with its fields where they are known without decoding them."""
    if isinstance(values, Tuple):
        return Tuple(values.raw, core.format)
    if not isinstance(values, list | tuple):
        raise BoxError(ErrorCode.TUPLE_NOT_ARRAY)
    fields = list(values)
    raw = codec.pack(fields)
    # A value of some other class (an enumeration) is known only by what it was packed as; a list or a dict
    # is the caller's, who may change it.
    return Tuple(raw, core.format, fields if _PLAIN_TYPES.issuperset(map(type, fields)) else None)
