"""The facade of a space for procedures: Tarantool's functions on Python values.

Access is checked as for requests of clients: a procedure has the rights of the user that calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.space_schema import SpaceSchema
from iproto_server.box.api.row_arguments import NO_LIMIT, as_row
from iproto_server.box.api.space_index import Index, Indexes
from iproto_server.box.memtx.memory_budget import budget
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.txn.trigger import Trigger
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin_methods

# A plain integer: the operators of an IntFlag cost more than the rest of the check.
_READ_WRITE_USAGE = int(Privilege.READ | Privilege.WRITE | Privilege.USAGE)


@twin_methods("insert", "replace", "get", "update", "upsert", "delete")
class Space:
    """`box.space.NAME`.

    Source: Tarantool reference, "Submodule box.space".

    Parameters:
        box: the box it is in.
        schema: changes its definition.
        core: the engine space.

    Attributes:
        exempts_updates, exempts_new_rows: whether changes through this facade may exceed the memory limit.
    """

    __slots__ = (
        "_core",
        "_session",
        "_transactions",
        "box",
        "exempts_new_rows",
        "exempts_updates",
        "index",
        "primary",
        "schema",
    )

    def __init__(self, box: BoxCore, schema: SpaceSchema, core: MemtxSpace) -> None:
        self.exempts_updates = self.exempts_new_rows = False
        self.box = box
        self.schema = schema
        self._core = core
        self._session = box.session
        self._transactions = box.transactions
        self.index = Indexes(self)
        self.primary = Index(self, 0)

    def core(self) -> MemtxSpace:
        """The engine space. Raises BoxError NO_SUCH_SPACE if the space was dropped."""
        if self._transactions.take_out is not None:
            # Code outside of transactions, such as a timer's callback, must not see uncommitted rows.
            self._transactions.take_out()
        if self._core.is_dropped:
            raise BoxError(ErrorCode.NO_SUCH_SPACE, self._core.name)
        return self._core

    def is_stale(self, core: MemtxSpace) -> bool:
        """Whether the space was dropped and its number belongs to `core`, another space."""
        return self._core is not core

    def readable(self) -> MemtxSpace:
        """The engine space, if the caller may read it. Raises BoxError ACCESS_DENIED."""
        user = self._session.current.credentials
        if user.universe & _READ_WRITE_USAGE != _READ_WRITE_USAGE:
            self.box.access.check_space(user, Privilege.READ, self._core)
        return self.core()

    def writable(self) -> MemtxSpace:
        """The engine space, if the caller may change it. Raises BoxError ACCESS_DENIED."""
        user = self._session.current.credentials
        if user.universe & _READ_WRITE_USAGE != _READ_WRITE_USAGE:
            self.box.access.check_space(user, Privilege.WRITE, self._core)
        return self.core()

    def beyond_memory_limit(self, *, new_rows: bool = False) -> Space:
        """Another facade of the space, whose updates succeed even if they exceed `memtx_memory`.

        It is for changes that lead to memory being given back, such as those of a task's state. The rows that
        are updated have to bound what such changes add: no update should store what a client sends.

        Parameters:
            new_rows: whether `insert` and `replace` succeed as well.
        """
        facade = Space(self.box, self.schema, self._core)
        facade.exempts_updates, facade.exempts_new_rows = True, new_rows
        return facade

    # -- properties --

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
        """The number of fields of every row; 0: any number."""
        return self._core.field_count

    @property
    def temporary(self) -> bool:
        """Whether rows are not logged and are lost at a restart."""
        return self._core.is_temporary

    def bsize(self) -> int:
        """The size of all rows in bytes."""
        return self.core().bsize

    def format(self, new_format: Sequence[Any] | None = None) -> list[Any]:
        """The format as in `_space`; with an argument, set it first.

        Raises:
            BoxError: the format is invalid, or a stored row does not fit it.
        """
        if new_format is not None:
            self.schema.set_format(self.id, new_format)
        return self.core().format_row

    # -- reading through the primary index --

    def get(self, key: object) -> Tuple | None:
        """The row with that primary key, or None."""
        return self.primary.get(key)

    def select(
        self,
        key: object = None,
        *,
        iterator: str | int | None = None,
        offset: int = 0,
        limit: int = NO_LIMIT,
        after: str | Tuple | Sequence[Any] | None = None,
    ) -> list[Tuple]:
        """The rows an iterator over the primary index finds; see `Index.select`."""
        return self.primary.select(key, iterator=iterator, offset=offset, limit=limit, after=after)

    def pairs(self, key: object = None, *, iterator: str | int | None = None) -> Iterator[Tuple]:
        """The rows an iterator over the primary index finds, one by one."""
        return self.primary.pairs(key, iterator=iterator)

    def count(self, key: object = None, *, iterator: str | int | None = None) -> int:
        """The number of rows that an iterator over the primary index finds."""
        return self.primary.count(key, iterator=iterator)

    def len(self) -> int:
        """The number of rows."""
        return self.readable().count()

    __len__ = len

    # -- changing --

    def insert(self, values: Sequence[Any]) -> Tuple:
        """Store a new row.

        Raises:
            BoxError: TUPLE_FOUND (3) if a unique index has its key; or an error of the format.
        """
        core = self.writable()
        row = as_row(values, core)
        if not self.exempts_new_rows:
            return core.insert(row)
        with budget.exempt(core):
            return core.insert(row)

    def replace(self, values: Sequence[Any]) -> Tuple:
        """Store a row, replacing the one with the same primary key."""
        core = self.writable()
        row = as_row(values, core)
        if not self.exempts_new_rows:
            return core.replace(row)
        with budget.exempt(core):
            return core.replace(row)

    put = replace

    def update(self, key: object, operations: Sequence[Sequence[Any]]) -> Tuple | None:
        """Change the row with that primary key; see `Index.update`."""
        return self.primary.update(key, operations)

    def upsert(self, values: Sequence[Any], operations: Sequence[Sequence[Any]]) -> None:
        """Store the row, or apply the operations to the row that has its primary key."""
        core = self.writable()
        core.upsert(as_row(values, core), core.parse_operations(operations))

    def delete(self, key: object) -> Tuple | None:
        """Remove the row with that primary key. Return it; None if there is none."""
        return self.primary.delete(key)

    def truncate(self) -> None:
        """Remove every row."""
        self.schema.truncate(self.id)

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
        index_id = self.schema.create_index(
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
        self.schema.drop_space(self.id)

    def rename(self, name: str) -> None:
        """Rename the space."""
        self.schema.rename_space(self.id, name)

    # -- triggers --

    def on_replace(
        self, new: Trigger | None = None, old: Trigger | None = None, *, undo: Trigger | None = None
    ) -> object:
        """Set a function (old tuple or None, new tuple or None) that runs after every change of a row.

        If it raises, the change is undone. See `TriggerList.set` for replacing and deleting triggers.

        Parameters:
            new: the function.
            old: the function that it replaces.
            undo: called with the same tuples if a change for which the function ran is rolled back, so that
                it can revert its own state.
        """
        return self.core().on_replace.set(new, old, undo)

    def before_replace(self, new: Trigger | None = None, old: Trigger | None = None) -> object:
        """Set a function (old tuple or None, new tuple or None) that may replace the row to be stored.

        It returns the tuple to store instead (with the same primary key), `NIL` to store nothing and delete
        the old row, or None to leave the change as it is.
        """
        return self.core().before_replace.set(new, old)

    def __repr__(self) -> str:
        return f"<space {self.name}>"


@twin_methods("__getitem__", "__getattr__")
class Spaces:
    """`box.space`: the spaces by name (`box.space.queue`, `box.space["queue"]`) or number
    (`box.space[512]`).

    Parameters:
        box: the box.
        schema: changes their definitions.
    """

    __slots__ = ("_box", "_catalog", "_ddl", "_facades", "_found", "_schema_version")

    def __init__(self, box: BoxCore, schema: SpaceSchema) -> None:
        self._box = box
        self._catalog = box.catalog
        self._ddl = schema  # not `_schema`, which is the name of a space
        self._facades: dict[int, Space] = {}
        self._found: dict[str | int, Space] = {}
        self._schema_version = 0

    def __getitem__(self, which: str | int) -> Space:
        catalog = self._catalog
        if catalog.schema_version != self._schema_version:
            # A facade keeps its engine space and rows in memory, so those of dropped spaces are removed.
            self._facades.clear()
            self._found.clear()
            self._schema_version = catalog.schema_version
        core = catalog.space_by_name(which) if isinstance(which, str) else catalog.space(which)
        facade = self._facades.get(core.id)
        if facade is None or facade.is_stale(core):
            facade = self._facades[core.id] = Space(self._box, self._ddl, core)
        self._found[which] = facade
        return facade

    def __getattr__(self, name: str) -> Space:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._box.catalog.find(name) is not None

    def __iter__(self) -> Iterator[Space]:
        return (self[core.id] for core in self._box.catalog)
