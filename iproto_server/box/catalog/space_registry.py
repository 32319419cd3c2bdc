"""All spaces by id and by name, and the schema version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from iproto_server.box.access.access_control import ADMIN, AccessControl, Credentials, Privilege
from iproto_server.box.catalog.foreign.versions import UNKNOWN, Version
from iproto_server.box.catalog.system_space_ids import COLLATION, SEQUENCE, SPACE, SYSTEM_ID_MAX, VSEQUENCE
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.iterator_type import IteratorType
from iproto_server.native._native import SpaceTable

_EVERYTHING: Final = 0xFFFFFFFF
_SHOWN_WITHOUT_VIEW: Final = {VSEQUENCE: SEQUENCE}
"""Spaces to read where a database of Tarantool 1.9 and earlier has no view."""


class SpaceRegistry(SpaceTable):
    """All spaces; the base of the catalog and its parts.

    Parameters:
        access: users and privileges.

    Attributes:
        spaces: the spaces by number.
        schema_version: a counter of schema changes.
        on_schema_change: called with the new schema version after a change.
        on_space_change: called with the number of a space that is new, changed or gone.
        is_loading: whether a database is being loaded; secondary indexes of users' spaces are empty then.
        written_by: the version of Tarantool that has written the files being loaded.
        current_user: returns the user whose privileges a change needs.
    """

    __slots__ = (
        "_names",
        "access",
        "current_user",
        "is_loading",
        "on_schema_change",
        "on_space_change",
        "written_by",
    )

    def __init__(self, access: AccessControl) -> None:
        self.access = access
        self.spaces: dict[int, MemtxSpace] = {}
        self._names: dict[str, MemtxSpace] = {}
        self.schema_version = 1
        self.on_schema_change: Callable[[int], object] = lambda version: None
        self.on_space_change: Callable[[int], object] = lambda space_id: None
        self.is_loading = False
        self.written_by = UNKNOWN
        starter = Credentials(ADMIN, ADMIN, "admin", False, {})
        starter.universe = int(Privilege.ALL)
        self.current_user: Callable[[], Credentials] = lambda: starter

    @property
    def version_loaded(self) -> Version | None:
        """The version that has written the rows being loaded; None if clients write them."""
        return self.written_by if self.is_loading else None

    # -- look-up --

    def space(self, space_id: int) -> MemtxSpace:
        """The space of that number. Raises BoxError NO_SUCH_SPACE (36)."""
        space = self.spaces.get(space_id)
        if space is None:
            raise BoxError(ErrorCode.NO_SUCH_SPACE, str(space_id))
        return space

    def space_by_name(self, name: str) -> MemtxSpace:
        """The space of that name. Raises BoxError NO_SUCH_SPACE (36)."""
        space = self._names.get(name)
        if space is None:
            raise BoxError(ErrorCode.NO_SUCH_SPACE, name)
        return space

    def find(self, name: str) -> MemtxSpace | None:
        """The space of that name, or None."""
        return self._names.get(name)

    def writable(self, space_id: int) -> MemtxSpace:
        """A system space, if the caller may write to it. Raises BoxError ACCESS_DENIED, NO_SUCH_SPACE."""
        space = self.space(space_id)
        self.access.check_space(self.current_user(), Privilege.WRITE, space)
        return space

    def rows(self, space_id: int, index_id: int, key: list[Any]) -> list[list[Any]]:
        """The decoded rows of a system space, or the visible rows of a view, with a full or partial key.

        A database of an earlier Tarantool lacks some of the spaces; there are no rows then.

        Raises:
            BoxError: the key does not fit.
        """
        space = self.spaces.get(space_id)
        if space is None:
            space = self.spaces.get(_SHOWN_WITHOUT_VIEW.get(space_id, 0))
        if space is None:
            return []
        found = space.select(index_id, IteratorType.EQ, 0, _EVERYTHING, key)
        return [codec.unpack(raw) for raw in found]

    def next_id(self, space_id: int) -> int:
        """The greatest id in a system space plus one."""
        last = self.space(space_id).select(0, IteratorType.REQ, 0, 1, [])
        return int(codec.unpack(last[0])[0]) + 1 if last else 1

    def collation_id(self, name: str) -> int | None:
        """The number of the collation of that name, or None."""
        rows = self.rows(COLLATION, 1, [name])
        return rows[0][0] if rows else None

    def collation_name(self, collation_id: int) -> str:
        """The name of an existing collation."""
        return str(self.rows(COLLATION, 0, [collation_id])[0][1])

    def __iter__(self) -> Iterator[MemtxSpace]:
        return iter(list(self.spaces.values()))

    def check_access(self, privilege: Privilege, space: MemtxSpace) -> None:
        """Raise BoxError ACCESS_DENIED unless the caller has the privilege on the space's definition."""
        self.access.check_definition(
            self.current_user(), privilege, "space", space.id, space.name, space.owner
        )

    # -- changes --

    def register(self, space: MemtxSpace) -> None:
        """Add a new space, or restore a removed one."""
        self.spaces[space.id] = space
        self._names[space.name] = space
        self.schema_changed(space.id)

    def forget(self, space: MemtxSpace) -> None:
        """Remove a space."""
        del self.spaces[space.id]
        self._forget_name(space)
        self.schema_changed(space.id)

    def _forget_name(self, space: MemtxSpace) -> None:
        """Remove a space's name, unless another space has it: names may repeat in a loaded database."""
        if self._names.get(space.name) is space:
            del self._names[space.name]

    def check_name(self, space: MemtxSpace) -> None:
        """Raise BoxError TUPLE_FOUND (3) if another space has the name, even without a unique index."""
        present = self._names.get(space.name)
        if present is not None and present.id != space.id and not self.is_loading:
            raise BoxError(ErrorCode.TUPLE_FOUND, "name", self.spaces[SPACE].name)

    def redefine(self, space: MemtxSpace, change: Callable[[], None]) -> None:
        """Change a space's definition, possibly its name.

        Parameters:
            space: the space.
            change: changes the definition.
        """
        self._forget_name(space)
        change()
        self._names[space.name] = space
        self.schema_changed(space.id)

    def schema_changed(self, space_id: int) -> None:
        """Increment the schema version, because a space has changed."""
        self.schema_version += 1
        self.on_schema_change(self.schema_version)
        self.on_space_change(space_id)

    def has_rows_only(self, space: MemtxSpace) -> bool:
        """Whether the space is being loaded: rows are unchecked, secondary indexes empty until the end."""
        return self.is_loading and space.id > SYSTEM_ID_MAX
