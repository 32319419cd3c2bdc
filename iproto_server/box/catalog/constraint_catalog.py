"""Constraints and SQL triggers: rows of a Tarantool's directory that are kept here and do nothing.

Nobody can add such a row: it would promise what this server does not keep. Who drops a space or an index has
to mind them all the same, or a Tarantool could not start from the directory again.
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
"""The system spaces that have rows about a space: the index to find them by, and the fields of their keys."""
_PARENT: Final = 2
_PARENT_FIELDS: Final = 8


class ConstraintCatalog:
    """The rows of `_trigger`, `_fk_constraint`, `_ck_constraint` and `_func_index`.

    Parameters:
        registry: where the spaces are.
    """

    def __init__(self, registry: SpaceRegistry) -> None:
        self._registry = registry

    def hooks(self) -> dict[int, SystemHook]:
        """What refuses new rows, by the system space's id; rows that are loaded pass."""

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
        """Look whether an index that is made or altered may have its name, whatever indexes `_index` has.

        The unique indexes of a space, its foreign keys and its checks are its constraints, and all of them
        have different names.

        Parameters:
            space: the space, as yet without the index or with the index as it was.
            index: what the index is to be.

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
        """What kind of constraint of a space has a name; None if none has it."""
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
        """The index that a foreign key on these fields refers to."""
        for index in space.indexes.values():
            if index.unique and {part.field_no for part in index.key_def.parts} == fields:
                return index
        return None

    def drop_of(self, space_id: int) -> None:
        """Remove every such row about a space. Raises BoxError ACCESS_DENIED (42)."""
        registry = self._registry
        for source, index_id, key_fields in _OF_SPACE:
            registry.access.check_space(registry.current_user(), Privilege.READ, registry.spaces[source])
            for row in registry.rows(source, index_id, [space_id]):
                registry.writable(source).delete(0, [row[number] for number in key_fields])
