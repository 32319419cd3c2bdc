"""Constraints and SQL triggers from directories of Tarantool, which are stored without effect.

New rows are refused, because this server would not enforce them. Drops of spaces and indexes still check
them, because otherwise Tarantool could not start from the directory again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import CK_CONSTRAINT, FK_CONSTRAINT, FUNC_INDEX, TRIGGER
from iproto_server.box.index.index import Index
from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.memtx.memtx_space import MemtxSpace, SystemHook
from iproto_server.errors import BoxError, ErrorCode

_UNSERVED: Final = {
    TRIGGER: "SQL triggers",
    FK_CONSTRAINT: "foreign key constraints",
    CK_CONSTRAINT: "check constraints",
    FUNC_INDEX: "functional indexes",
}
_OF_SPACE: Final = (
    (TRIGGER, 1, (0,)),
    (FK_CONSTRAINT, 1, (0, 1)),
    (CK_CONSTRAINT, 0, (0, 1)),
    (FUNC_INDEX, 0, (0, 1)),
)
"""System spaces with rows about a space: the index for the look-up, and the fields of the primary key."""
_PARENT: Final = 2
_PARENT_FIELDS: Final = 8


class ConstraintCatalog:
    """The rows of `_trigger`, `_fk_constraint`, `_ck_constraint` and `_func_index`.

    Parameters:
        registry: all spaces.
    """

    def __init__(self, registry: SpaceRegistry) -> None:
        self._registry = registry

    def hooks(self) -> dict[int, SystemHook]:
        """Hooks that refuse new rows, by system space id; loaded rows pass."""

        def refusing(what: str) -> SystemHook:
            def changed(
                old: list[Any] | None, new: list[Any] | None, operation: str
            ) -> Callable[[], None] | None:
                if new is not None and not self._registry.is_loading:
                    raise BoxError(ErrorCode.UNSUPPORTED, "This server", what)
                return None

            return changed

        return {space_id: refusing(what) for space_id, what in _UNSERVED.items()}

    def check_name(self, space: MemtxSpace, index: IndexDef) -> None:
        """Check that a new or altered index has a unique name among the constraints of its space.

        Constraints are unique indexes, foreign keys and checks.

        Parameters:
            space: the space before the change.
            index: the new definition.

        Raises:
            BoxError: CONSTRAINT_EXISTS (170).
        """
        before = space.indexes.get(index.id)
        if not index.is_unique or (before is not None and before.unique and before.name == index.name):
            return
        kind = self._kind_of(space, index.name)
        if kind is not None:
            raise BoxError(ErrorCode.CONSTRAINT_EXISTS, kind, index.name, space.name)

    def _kind_of(self, space: MemtxSpace, name: str) -> str | None:
        """The kind of the constraint with that name, or None."""
        for each in space.indexes.values():
            if each.unique and each.name == name:
                return "UNIQUE" if each.id else "PRIMARY KEY"
        for source, start, kind in (
            (FK_CONSTRAINT, [name, space.id], "FOREIGN KEY"),
            (CK_CONSTRAINT, [space.id, name], "CHECK"),
        ):
            if any(row[:2] == start for row in self._registry.rows(source, 0, [])):
                return kind
        return None

    def check_drop(self, space: MemtxSpace) -> None:
        """Raise BoxError DROP_SPACE (11) while the space has constraints."""
        for source, field_no, reason in (
            (FK_CONSTRAINT, 1, "the space has foreign key constraints"),
            (CK_CONSTRAINT, 0, "the space has check constraints"),
        ):
            if any(row[field_no] == space.id for row in self._registry.rows(source, 0, [])):
                raise BoxError(ErrorCode.DROP_SPACE, space.name, reason)

    def check_index_drop(self, space: MemtxSpace, index: Index) -> None:
        """Raise BoxError ALTER_SPACE (12) while foreign keys of other spaces refer to the index."""
        for row in self._registry.rows(FK_CONSTRAINT, 0, []):
            if row[_PARENT] == space.id and index is self._referenced(space, set(row[_PARENT_FIELDS])):
                raise BoxError(ErrorCode.ALTER_SPACE, space.name, "can not drop a referenced index")

    @staticmethod
    def _referenced(space: MemtxSpace, fields: set[int]) -> Index | None:
        """The index that a foreign key to these fields refers to."""
        for index in space.indexes.values():
            if index.unique and {part.field_no for part in index.key_def.parts} == fields:
                return index
        return None

    def drop_of(self, space_id: int) -> None:
        """Remove all constraints of a space. Raises BoxError ACCESS_DENIED (42)."""
        registry = self._registry
        for source, index_id, key_fields in _OF_SPACE:
            if source not in registry.spaces:
                continue
            registry.access.check_space(registry.current_user(), Privilege.READ, registry.spaces[source])
            for row in registry.rows(source, index_id, [space_id]):
                registry.writable(source).delete(0, [row[number] for number in key_fields])
