"""Indexes, as defined by the rows of `_index`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.catalog.collation_catalog import CollationCatalog
from iproto_server.box.catalog.constraint_catalog import ConstraintCatalog
from iproto_server.box.catalog.foreign.definitions import served_index
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import SYSTEM_ID_MAX
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.box.index.factory import create_index, parse_index
from iproto_server.box.index.index import Index
from iproto_server.box.index.index_def import IndexDef
from iproto_server.box.memtx.index_build import fill_index
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.settings_space import SettingsSpace
from iproto_server.box.memtx.space_format import format_with_indexes, format_with_keys
from iproto_server.box.tuple.format import Format, min_field_count
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

_UINT32_MASK = 0xFFFFFFFF


class IndexCatalog:
    """The effects of rows of `_index`.

    Parameters:
        registry: all spaces.
        collations: the collations, for parts of indexes.
        constraints: checks the names of unique indexes.
    """

    def __init__(
        self, registry: SpaceRegistry, collations: CollationCatalog, constraints: ConstraintCatalog
    ) -> None:
        self._registry = registry
        self._collations = collations
        self._constraints = constraints

    def changed(self, old: list[Any] | None, new: list[Any] | None, operation: str) -> Callable[[], None]:
        """Apply a change of a row of `_index`."""
        fields = new if old is None else old
        assert fields is not None
        space = self._registry.space(fields[0])
        index_id = fields[1] & _UINT32_MASK
        privilege = Privilege.DROP if new is None else Privilege.CREATE if old is None else Privilege.ALTER
        self._registry.check_access(privilege, space)
        if new is None and index_id == 0:
            if space.id <= SYSTEM_ID_MAX:
                raise BoxError(ErrorCode.LAST_DROP, space.name)
            if len(space.indexes) > 1:
                raise BoxError(ErrorCode.DROP_PRIMARY_KEY, space.name)
            if space.attached is not None:
                reason = "can not drop primary key while space sequence exists"
                raise BoxError(ErrorCode.ALTER_SPACE, space.name, reason)
        if index_id and space.primary is None:
            raise BoxError(ErrorCode.ALTER_SPACE, space.name, "can not add a secondary key before primary")
        if new is None:
            self._constraints.check_index_drop(space, space.index(index_id))
            indexes = dict(space.indexes)
            indexes.pop(index_id, None)
            return self._set_indexes(space, indexes, space.bsize if index_id else 0)
        new = served_index(new, old, self._registry.version_loaded, self._registry.written_by)
        if old is not None and old[:2] != new[:2]:
            raise BoxError(ErrorCode.UNSUPPORTED, "This server", "changing the id of an index")
        return self._set_indexes(space, self._indexes_with(space, new), space.bsize)

    def _indexes_with(self, space: MemtxSpace, fields: Sequence[Any]) -> dict[int, Index]:
        """The indexes of a space with an added or changed one, filled with all rows."""
        if isinstance(space, SysviewSpace):
            return self._indexes_of_view(space, fields)
        if space.engine == "blackhole" or (fields[1] and isinstance(space, SettingsSpace)):
            self._refuse_index(space, fields)
        index = self._build_index(space, fields)
        present = space.indexes.get(index.id)
        indexes = _in_tarantools_order(space, index)
        if not self._registry.is_loading:
            format_with_indexes(space, indexes, self._collations)  # errors of its parts come first
            self._constraints.check_name(space, index.definition)
        if present is not None and present.kind_equals(index):
            index.adopt(present)
            return indexes
        new_format = (
            None
            if self._registry.has_rows_only(space)
            else format_with_indexes(space, indexes, self._collations)
        )
        if present is not None and not index.id:
            return self._rekeyed(space, index, new_format)
        if len(space) and new_format is not None:
            fill_index(space, index, new_format)
        return indexes

    def _refuse_index(self, space: MemtxSpace, fields: Sequence[Any]) -> NoReturn:
        """Raise BoxError UNSUPPORTED (5) for an index of a space that has none, or an earlier error.

        The checks of memtx do not apply, so the index may have any type.
        """
        collations = self._collations
        definition = IndexDef.parse(fields, space.name, collations, space.format.fields, is_for_memtx=False)
        if space.primary is None:
            raise BoxError(ErrorCode.UNSUPPORTED, "Blackhole", "indexes")
        is_by_function = bool(definition.options.get("func", 0))
        own = [] if is_by_function else [definition.key_def]
        format_with_keys(space, [space.primary.key_def, *own], self._collations)
        self._constraints.check_name(space, definition)
        raise BoxError(ErrorCode.UNSUPPORTED, "Session_settings space", "create_index()")

    def _indexes_of_view(self, space: SysviewSpace, fields: Sequence[Any]) -> dict[int, Index]:
        """The indexes of a view with an added or changed one, which must equal one of the system space."""
        shown = space.source.indexes.get(fields[1])
        try:
            index = self._build_index(space, fields)
        except BoxError:
            index = None
        if shown is None or index is None or not shown.kind_equals(index):
            raise BoxError(ErrorCode.UNSUPPORTED, "This server", "other indexes of a view than its own")
        if not self._registry.is_loading:
            self._constraints.check_name(space, index.definition)
        return _in_tarantools_order(space, index)

    def _rekeyed(self, space: MemtxSpace, primary: Index, new_format: Format | None) -> dict[int, Index]:
        """The indexes of a space after a change of its primary key.

        Every secondary index is rebuilt: its entries contain primary keys, and keys that are not unique end
        with parts of the primary key.

        Parameters:
            space: the space.
            primary: its new, empty primary index.
            new_format: the format to check rows against; None: rows are not checked.
        """
        indexes = {0: primary}
        for raw in space.rows():
            fields = codec.unpack(raw)
            if new_format is not None:
                new_format.check(fields)
            key = primary.key_of(fields, b"")
            if primary.get(key) is not None:
                raise BoxError(ErrorCode.TUPLE_FOUND, primary.name, space.name)
            primary.insert(key, raw)
        for secondary in (each for number, each in space.indexes.items() if number):
            index = create_index(secondary.definition, space.name, primary.key_def, primary)
            if not self._registry.has_rows_only(space):
                fill_index(space, index, primary=primary)
            indexes[index.id] = index
        return indexes

    def _set_indexes(self, space: MemtxSpace, indexes: dict[int, Index], bsize: int) -> Callable[[], None]:
        """Set the indexes of a space and the format that results from them."""
        before = (space.indexes, space.format, space.bsize)

        def put(indexes: dict[int, Index], new_format: Format, size: int) -> None:
            space.set_indexes(indexes)
            space.set_format(new_format)
            space.bsize = size
            self._registry.schema_changed(space.id)

        put(indexes, format_with_indexes(space, indexes, self._collations), bsize)
        return lambda: put(*before)

    def _build_index(self, space: MemtxSpace, fields: Sequence[Any]) -> Index:
        """The empty index of a row of `_index`."""
        primary = space.primary if fields[1] != 0 else None
        index = parse_index(fields, space.name, primary, self._collations, space.format.fields)
        if index.id == 0 and space.attached is not None:
            space.attached.check_index(index)
        return index


def _in_tarantools_order(space: MemtxSpace, index: Index) -> dict[int, Index]:
    """The indexes of a space with an added or changed one, in the order of Tarantool's checks.

    The order decides which of two errors is reported. A new index comes last, and so does a changed one,
    unless its definition is the same or the minimal number of fields changes.
    """
    others = {number: each for number, each in space.indexes.items() if number != index.id}
    indexes = {**others, index.id: index}
    if len(others) == len(space.indexes):
        return indexes
    before, after = (
        min_field_count(space.format.fields, [each.key_def for each in several.values()])
        for several in (space.indexes, indexes)
    )
    is_same = space.indexes[index.id].definition == index.definition
    return indexes if before == after and not is_same else dict(sorted(indexes.items()))
