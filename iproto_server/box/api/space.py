"""The facade of a space for procedures: Tarantool's functions on Python values.

Access is checked as for requests of clients: a procedure has the rights of the user that calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.space_schema import SpaceSchema
from iproto_server.box.api.space_index import Index, Indexes
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.txn.trigger import Trigger
from iproto_server.native._native import SpaceFacade, SpacesFacade


class Space(SpaceFacade):
    """`box.space.NAME`.

    Source: Tarantool reference, "Submodule box.space".

    The base class finds and changes rows, in compiled code.

    Parameters:
        box: the box it is in.
        schema: changes its definition.
        core: the engine space.

    Attributes:
        exempts_updates, exempts_new_rows: whether changes through this facade may exceed the memory limit.
    """

    __slots__ = ("box", "index", "schema")

    put = SpaceFacade.replace

    def __init__(self, box: BoxCore, schema: SpaceSchema, core: MemtxSpace) -> None:
        super().__init__(core, box.session)
        self.box = box
        self.schema = schema
        self.index = Indexes(self)
        self.primary = Index(self, 0)

    def is_stale(self, core: MemtxSpace) -> bool:
        """Whether the space was dropped and its number belongs to `core`, another space."""
        return self._core is not core

    def _check_access(self, privilege: int) -> None:
        """Raise BoxError ACCESS_DENIED unless the caller, who lacks rights on all spaces, has this one."""
        self.box.access.check_space(self._session.current.credentials, Privilege(privilege), self._core)

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

    def run_triggers(self, is_on: bool) -> None:
        """Let the triggers of the space run from now on, or none of them."""
        core = self.core()
        core.on_replace.is_off = core.before_replace.is_off = not is_on

    def __repr__(self) -> str:
        return f"<space {self.name}>"


class Spaces(SpacesFacade):
    """`box.space`: the spaces by name (`box.space.queue`, `box.space["queue"]`) or number
    (`box.space[512]`).

    The base class keeps what was found until the schema changes: a facade keeps its engine space and rows in
    memory, so those of dropped spaces are removed.

    Parameters:
        box: the box.
        schema: changes their definitions.
    """

    __slots__ = ("_box", "_ddl")

    def __init__(self, box: BoxCore, schema: SpaceSchema) -> None:
        super().__init__(box.catalog)
        self._box = box
        self._ddl = schema  # not `_schema`, which is the name of a space

    def __missing__(self, which: str | int) -> Space:
        """Find a space that was not asked for in this way since the schema changed."""
        catalog = self._catalog
        core = catalog.space_by_name(which) if isinstance(which, str) else catalog.space(which)
        facade = self._found.get(core.id)
        if facade is None or facade.is_stale(core):
            facade = self._found[core.id] = Space(self._box, self._ddl, core)
        return facade

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._box.catalog.find(name) is not None

    def __iter__(self) -> Iterator[Space]:
        return (self[core.id] for core in self._box.catalog)
