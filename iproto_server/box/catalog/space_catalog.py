"""Spaces, as defined by the rows of `_space` and `_truncate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.catalog.collation_catalog import CollationCatalog
from iproto_server.box.catalog.constraint_catalog import ConstraintCatalog
from iproto_server.box.catalog.foreign.definitions import served_space
from iproto_server.box.catalog.grants import has_grants
from iproto_server.box.catalog.sequence_catalog import SequenceCatalog
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import (
    OTHER_ENGINES,
    SCHEMA,
    SEQUENCE_DATA,
    SESSION_SETTINGS,
    SYSTEM_ID_MAX,
    TRUNCATE,
)
from iproto_server.box.catalog.sysview import SYSVIEWS, SysviewSpace
from iproto_server.box.memtx.index_build import check_rows
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.sequence_data_space import SequenceDataSpace
from iproto_server.box.memtx.settings_space import SettingsSpace
from iproto_server.box.memtx.space_format import format_with_indexes, shared_format
from iproto_server.box.tuple.format import check_collations, check_names, parse_fields
from iproto_server.box.txn.local_undo import LocalUndo
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.box.types.identifier import NAME_MAX, check_identifier
from iproto_server.errors import BoxError, ErrorCode

SPACE_ID_MAX = 2**31 - 1
_NAME_SHOWN = 64
_ENGINE_MAX = 16
_UINT32_MASK = 0xFFFFFFFF
_FLAGS_FIELD = 5
_LOCAL_GROUP = 1
_ENGINES_OF_TARANTOOL = ("vinyl", "blackhole", "service", "sysview")

_FLAGS: dict[str, type] = {
    "temporary": bool,
    "group_id": int,
    "is_sync": bool,
    "view": bool,
    "sql": str,
}
_TYPE_WORDS: dict[type, str] = {bool: "boolean", int: "unsigned", str: "string"}


class SpaceCatalog:
    """The effects of rows of `_space` and `_truncate`.

    Parameters:
        registry: all spaces.
        transactions: the transaction manager of all spaces.
        collations, sequences, constraints: the effects of other system spaces.
    """

    def __init__(
        self,
        registry: SpaceRegistry,
        transactions: TransactionManager,
        collations: CollationCatalog,
        sequences: SequenceCatalog,
        constraints: ConstraintCatalog,
    ) -> None:
        self._registry = registry
        self._transactions = transactions
        self._collations = collations
        self._sequences = sequences
        self._constraints = constraints

    # -- _space --

    def define(self, fields: Sequence[Any]) -> None:
        """Create the space of a row of `_space`, without indexes. Raises BoxError."""
        self._registry.register(self._define(fields))

    def _define(
        self,
        fields: Sequence[Any],
        error_code: ErrorCode = ErrorCode.CREATE_SPACE,
        before: Sequence[Any] | None = None,
    ) -> MemtxSpace:
        """The space of a row of `_space`, not yet registered.

        Checks follow Tarantool's order, so a row with two faults is refused for the same one.

        Parameters:
            fields: the decoded row.
            error_code: CREATE_SPACE (9) for a new space, ALTER_SPACE (12) for an existing one.
            before: the row that it replaces.
        """
        space_id, owner, name, engine, field_count, flags, format_row = fields[:7]
        space_id &= _UINT32_MASK
        if len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
            raise BoxError(error_code, name[:_NAME_SHOWN], "space name is too long")
        check_identifier(name)
        for reason, is_wrong in (
            ("space id is too big", space_id > SPACE_ID_MAX),
            ("space id 0 is reserved", space_id == 0),
            ("space engine name is too long", len(engine.encode("utf-8", "surrogateescape")) > _ENGINE_MAX),
        ):
            if is_wrong:
                raise BoxError(error_code, name, reason)
        check_identifier(engine)
        served_flags, served_format, is_temporary = served_space(
            fields, before, self._registry.version_loaded
        )
        field_count &= _UINT32_MASK
        field_defs = parse_fields(served_format, name, field_count, error_code)
        _check_flags(served_flags, name, error_code)
        check_names(field_defs)
        space: MemtxSpace
        # A change of the engine has its own error, for all engines of Tarantool.
        is_changed = error_code == ErrorCode.ALTER_SPACE and engine in _ENGINES_OF_TARANTOOL
        if engine == "sysview" and (space_id in SYSVIEWS or not is_changed):
            space = SysviewSpace(space_id, name, owner & _UINT32_MASK, self._transactions, self._registry)
        elif space_id == SESSION_SETTINGS and engine == "service":
            space = SettingsSpace(space_id, name, owner & _UINT32_MASK, self._transactions)
        else:
            if engine == "service" and space_id > SYSTEM_ID_MAX and not is_changed:
                raise BoxError(ErrorCode.UNSUPPORTED, "Tarantool", "non-system space with 'service' engine.")
            if engine != "memtx" and OTHER_ENGINES.get(space_id) != engine and not is_changed:
                raise BoxError(ErrorCode.NO_SUCH_ENGINE, engine)
            if space_id == SEQUENCE_DATA:
                space = SequenceDataSpace(
                    space_id, name, owner & _UINT32_MASK, self._transactions, self._sequences
                )
            else:
                space = MemtxSpace(space_id, name, owner & _UINT32_MASK, self._transactions)
        space.engine = engine
        space.field_count = field_count
        space.flags = flags
        space.is_temporary = is_temporary
        space.is_local = flags.get("group_id", 0) == _LOCAL_GROUP
        space.format_row = list(format_row)
        check_collations(field_defs, self._collations)
        space.set_format(shared_format(served_format, name, field_count, self._collations))
        return space

    def space_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        """Apply a change of a row of `_space`."""
        if old is None:
            assert new is not None
            return self._create_space(new)
        if new is None:
            return self._drop_space(old)
        return self._alter_space(old, new)

    def _create_space(self, fields: list[Any]) -> Callable[[], None]:
        space = self._define(fields)
        self._registry.check_access(Privilege.CREATE, space)
        self._registry.check_name(space)
        self._registry.register(space)

        def undo() -> None:
            space.is_dropped = True
            self._registry.forget(space)

        return undo

    def _drop_space(self, fields: list[Any]) -> Callable[[], None]:
        space = self._registry.space(fields[0])
        self._registry.check_access(Privilege.DROP, space)
        held: list[tuple[str, Callable[[], bool]]] = [
            ("the space has indexes", lambda: bool(space.indexes)),
            ("the space has grants", lambda: has_grants(self._registry, "space", space.id)),
            (
                "the space has truncate record",
                lambda: bool(self._registry.rows(TRUNCATE, 0, [space.id])),
            ),
        ]
        for reason, is_held in held:
            if is_held():
                raise BoxError(ErrorCode.DROP_SPACE, space.name, reason)
        self._constraints.check_drop(space)
        self._registry.forget(space)
        space.is_dropped = True

        def undo() -> None:
            space.is_dropped = False
            self._registry.register(space)

        return undo

    def _alter_space(self, old: list[Any], new: list[Any]) -> Callable[[], None]:
        space = self._registry.space(old[0])
        altered = self._define(new, ErrorCode.ALTER_SPACE, old)
        self._registry.check_access(Privilege.ALTER, altered)
        has_rows = not isinstance(space, SysviewSpace) and len(space) > 0
        for reason, is_wrong in (
            ("space id is immutable", altered.id != space.id),
            ("can not change space engine", altered.engine != space.engine),
            (
                "replication group is immutable",
                altered.flags.get("group_id", 0) != space.flags.get("group_id", 0),
            ),
            (
                "can not switch temporary flag on a non-empty space",
                has_rows and altered.is_temporary != space.is_temporary,
            ),
        ):
            if is_wrong:
                raise BoxError(ErrorCode.ALTER_SPACE, space.name, reason)
        altered.set_format(format_with_indexes(altered, space.indexes, self._collations))
        if altered.name != space.name:
            self._registry.check_name(altered)
            if space.id == SCHEMA and not self._registry.is_loading:
                # Tarantool looks up the schema version by this name when it starts.
                raise BoxError(ErrorCode.UNSUPPORTED, "This server", "another name of the space _schema")
        if (
            has_rows
            and not self._registry.has_rows_only(space)
            and (altered.format_row != space.format_row or altered.field_count != space.field_count)
        ):
            check_rows(space, altered.format)
        before = _definition(space)
        self._redefine(space, _definition(altered))
        return lambda: self._redefine(space, before)

    def _redefine(self, space: MemtxSpace, definition: dict[str, Any]) -> None:
        def change() -> None:
            for attribute, value in definition.items():
                setattr(space, attribute, value)
            space.set_format(definition["format"])
            for index in space.indexes.values():
                index.space_name = space.name

        self._registry.redefine(space, change)

    # -- _truncate --

    def truncate_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None] | None:
        """Apply a change of a row of `_truncate`."""
        if new is None:
            return None
        space = self._registry.space(new[0])
        if operation == "INSERT":
            # Only tools that restore a database row by row insert such a row.
            return None
        if space.id <= SYSTEM_ID_MAX:
            raise BoxError(ErrorCode.TRUNCATE_SYSTEM_SPACE, space.name)
        self._registry.access.check_space(self._registry.current_user(), Privilege.WRITE, space)
        put_rows_back, before = space.truncate(), space.format
        if any(not index.field_numbers for index in space.indexes.values()):
            # The requirements of indexes inside fields apply in the order of ids from now on.
            space.set_format(format_with_indexes(space, space.indexes, self._collations))

        def undo() -> None:
            space.set_format(before)
            put_rows_back()

        return LocalUndo(undo) if space.is_local or space.is_temporary else undo


def _definition(space: MemtxSpace) -> dict[str, Any]:
    names = ("name", "owner", "field_count", "flags", "is_temporary", "format_row", "format")
    return {name: getattr(space, name) for name in names}


def _check_flags(flags: dict[Any, Any], space_name: str, error_code: ErrorCode) -> None:
    """Check the options of a space, the sixth field of its row."""
    for name, value in flags.items():
        if not isinstance(name, str):
            raise BoxError(ErrorCode.WRONG_SPACE_OPTIONS, _FLAGS_FIELD, "key must be a string")
        expected = _FLAGS.get(name)
        if expected is None:
            raise BoxError(ErrorCode.WRONG_SPACE_OPTIONS, _FLAGS_FIELD, f"unexpected option '{name}'")
        if type(value) is not expected or (isinstance(value, int) and value < 0):
            reason = f"'{name}' must be {_TYPE_WORDS[expected]}"
            raise BoxError(ErrorCode.WRONG_SPACE_OPTIONS, _FLAGS_FIELD, reason)
    group = flags.get("group_id", 0)
    if group not in (0, _LOCAL_GROUP):
        raise BoxError(ErrorCode.NO_SUCH_GROUP, group)
    if flags.get("view") and "sql" not in flags:
        raise BoxError(ErrorCode.VIEW_MISSING_SQL)
    if flags.get("view"):
        raise BoxError(ErrorCode.UNSUPPORTED, "This server", "SQL views")
    if flags.get("is_sync") and group == _LOCAL_GROUP:
        raise BoxError(error_code, space_name, "local space can't be synchronous")
    if flags.get("is_sync"):
        # Tarantool would wait for confirmations of its rows in the log, also after a restart.
        raise BoxError(ErrorCode.UNSUPPORTED, "This server", "synchronous spaces")
