"""The catalog: the spaces there are, as the rows of the system spaces say.

DDL is DML on the system spaces: creating a space is inserting a row into `_space`. The hooks here check such
a row and bring its effect about; each answers how to take the effect back, so DDL rolls back like any other
change. A new catalog holds the rows that a freshly bootstrapped Tarantool 2.6 holds (`bootstrap.json`), hence
its directories and ours can be exchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any

from iproto_server.box.access.access_control import ADMIN, AccessControl, Credentials, Privilege
from iproto_server.box.catalog.collation_catalog import CollationCatalog
from iproto_server.box.catalog.constraint_catalog import Constraints
from iproto_server.box.catalog.function_def import SQL_BUILTIN
from iproto_server.box.catalog.index_catalog import IndexCatalog
from iproto_server.box.catalog.loader import Loader
from iproto_server.box.catalog.replica_set import ReplicaSet
from iproto_server.box.catalog.sequence_catalog import SequenceCatalog
from iproto_server.box.catalog.system_space_ids import (
    COLLATION,
    FUNC,
    INDEX,
    OTHER_ENGINES,
    PRIV,
    SCHEMA,
    SEQUENCE,
    SEQUENCE_DATA,
    SESSION_SETTINGS,
    SPACE,
    SPACE_SEQUENCE,
    SYSTEM_ID_MAX,
    TRUNCATE,
    USER,
)
from iproto_server.box.catalog.sysview import SYSVIEWS, SysviewSpace
from iproto_server.box.catalog.user_catalog import Accounts
from iproto_server.box.index.index import Index
from iproto_server.box.index.iterator_type import IteratorType
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.memtx.index_build import check_rows
from iproto_server.box.memtx.memtx_space import MemtxSpace
from iproto_server.box.memtx.sequence_data_space import SequenceDataSpace
from iproto_server.box.memtx.settings_space import SettingsSpace
from iproto_server.box.tuple.format import Format, check_collations, check_names, parse_fields
from iproto_server.box.txn.local_effect import LocalEffect
from iproto_server.box.txn.transaction import TransactionManager
from iproto_server.box.types.identifier import NAME_MAX, check_identifier
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

SPACE_ID_MAX = 2**31 - 1
_NAME_SHOWN = 64
_ENGINE_MAX = 16
_UINT32_MASK = 0xFFFFFFFF
_EVERYTHING = 0xFFFFFFFF
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


class Catalog:
    """Every space by id and by name, and the version of the schema.

    Parameters:
        transactions: the transaction manager that every space reports to.
        access: users and rights, kept in step with `_user` and `_priv`.

    Attributes:
        is_loading: whether a database is being loaded: secondary indexes of users' spaces are left empty.
        on_schema_change: called with the schema's version when that has changed.
    """

    def __init__(self, transactions: TransactionManager, access: AccessControl) -> None:
        self._transactions = transactions
        self.access = access
        self.spaces: dict[int, MemtxSpace] = {}
        self._names: dict[str, MemtxSpace] = {}
        self.schema_version = 1
        self.on_schema_change: Callable[[int], object] = lambda version: None
        self.is_loading = False
        starter = Credentials(ADMIN, ADMIN, "admin", False, {})
        starter.universe = int(Privilege.ALL)
        self.current_user: Callable[[], Credentials] = lambda: starter
        self.accounts = Accounts(self)
        self.collations = CollationCatalog(self)
        self.sequences = SequenceCatalog(self)
        self.constraints = Constraints(self)
        self.indexes = IndexCatalog(self)
        self.replica_set = ReplicaSet(self)
        self._bootstrap()

    # -- looking up --

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
        """A system space, for a caller that may write to it. Raises BoxError ACCESS_DENIED."""
        space = self.spaces[space_id]
        self.access.check_space(self.current_user(), Privilege.WRITE, space)
        return space

    def rows(self, space_id: int, index_id: int, key: list[Any]) -> list[list[Any]]:
        """The decoded rows of a system space, or of a view what the caller sees, with a whole or partial key.

        Raises:
            BoxError: the key does not fit.
        """
        found = self.spaces[space_id].select(index_id, IteratorType.EQ, 0, _EVERYTHING, key)
        return [codec.unpack(raw) for raw in found]

    def next_id(self, space_id: int) -> int:
        """One more than the greatest id in a system space."""
        last = self.spaces[space_id].select(0, IteratorType.REQ, 0, 1, [])
        return int(codec.unpack(last[0])[0]) + 1 if last else 1

    def collation_id(self, name: str) -> int | None:
        """The number of a collation, None where there is none of that name."""
        rows = self.spaces[COLLATION].select(1, IteratorType.EQ, 0, 1, [name])
        return codec.unpack(rows[0])[0] if rows else None

    def collation_name(self, collation_id: int) -> str:
        """The name of a collation that there is."""
        return str(self.rows(COLLATION, 0, [collation_id])[0][1])

    def __iter__(self) -> Iterator[MemtxSpace]:
        return iter(list(self.spaces.values()))

    def check_access(self, privilege: Privilege, space: MemtxSpace) -> None:
        """Raise BoxError ACCESS_DENIED unless the caller may define the space so."""
        self.access.check_definition(
            self.current_user(), privilege, "space", space.id, space.name, space.owner
        )

    # -- starting --

    def _bootstrap(self) -> None:
        rows: dict[str, list[list[Any]]] = json.loads(
            files("iproto_server.box.catalog").joinpath("bootstrap.json").read_text(encoding="utf-8")
        )
        numbers = {fields[2]: fields[0] for fields in rows["_space"]}
        with Loader(self) as loader:
            for name, space_rows in rows.items():
                loader.load(numbers[name], [codec.pack(fields) for fields in space_rows])
            loader.finish()
        self.accounts.sql_builtins = frozenset(
            function.name for function in self.accounts.functions.values() if function.language == SQL_BUILTIN
        )

    def clear(self) -> None:
        """Forget every space and function, and what rows of system spaces bring about."""
        for space in self:
            self._forget(space)
            space.is_dropped = True
        self.accounts.functions.clear()
        self.collations.clear()
        self.sequences.clear()
        self.accounts.setuid.clear()

    def set_hooks(self) -> None:
        """From now on, changes of the system spaces have consequences."""
        for space_id, hook in (
            (SPACE, self._space_changed),
            (INDEX, self.indexes.changed),
            (TRUNCATE, self._truncate_changed),
            (COLLATION, self.collations.changed),
            (USER, self.accounts.user_changed),
            (PRIV, self.accounts.privilege_changed),
            (FUNC, self.accounts.function_changed),
            (SEQUENCE, self.sequences.sequence_changed),
            (SEQUENCE_DATA, self.sequences.data_changed),
            (SPACE_SEQUENCE, self.sequences.attachment_changed),
            *self.constraints.hooks().items(),
            *self.replica_set.hooks().items(),
        ):
            if space_id in self.spaces:
                self.spaces[space_id].system_hook = hook

    def define(self, fields: Sequence[Any]) -> None:
        """Make the space that a row of `_space` describes, as yet without indexes. Raises BoxError."""
        self._register(self._define(fields))

    @staticmethod
    def load(space: MemtxSpace, raw: bytes) -> None:
        """Store a row that is known to be good, without hooks, triggers or log."""
        fields = codec.unpack(raw)
        assert space.primary is not None
        space.put_back(space.primary.key_of(fields, b""), raw, None)

    # -- _space --

    def _define(self, fields: Sequence[Any], error_code: ErrorCode = ErrorCode.CREATE_SPACE) -> MemtxSpace:
        """A space as a row of `_space` describes it, not yet known to anybody.

        Everything is checked in Tarantool's order, so that a row with two faults is refused for the same one.
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
        format_row = list(format_row)
        field_count &= _UINT32_MASK
        field_defs = parse_fields(format_row, name, field_count, error_code)
        _check_flags(flags, name, error_code)
        check_names(field_defs)
        space: MemtxSpace
        # That an engine does not change is said of any that Tarantool has.
        is_changed = error_code == ErrorCode.ALTER_SPACE and engine in _ENGINES_OF_TARANTOOL
        if engine == "sysview" and (space_id in SYSVIEWS or not is_changed):
            space = SysviewSpace(space_id, name, owner & _UINT32_MASK, self._transactions, self)
        elif space_id == SESSION_SETTINGS and engine == "service":
            space = SettingsSpace(space_id, name, owner & _UINT32_MASK, self._transactions)
        else:
            if engine == "service" and space_id > SYSTEM_ID_MAX and not is_changed:
                raise BoxError(ErrorCode.UNSUPPORTED, "Tarantool", "non-system space with 'service' engine.")
            if engine != "memtx" and OTHER_ENGINES.get(space_id) != engine and not is_changed:
                raise BoxError(ErrorCode.NO_SUCH_ENGINE, engine)
            if space_id == SEQUENCE_DATA:
                space = SequenceDataSpace(
                    space_id, name, owner & _UINT32_MASK, self._transactions, self.sequences
                )
            else:
                space = MemtxSpace(space_id, name, owner & _UINT32_MASK, self._transactions)
        space.engine = engine
        space.field_count = field_count
        space.flags = flags
        space.is_temporary = bool(flags.get("temporary", False))
        space.is_local = flags.get("group_id", 0) == _LOCAL_GROUP
        space.format_row = format_row
        check_collations(field_defs, self.collations)
        space.set_format(Format(field_defs, field_count))
        return space

    def _register(self, space: MemtxSpace) -> None:
        self.spaces[space.id] = space
        self._names[space.name] = space
        self.schema_changed()

    def _forget(self, space: MemtxSpace) -> None:
        del self.spaces[space.id]
        self._forget_name(space)
        self.schema_changed()

    def _forget_name(self, space: MemtxSpace) -> None:
        """Take away a space's name, unless it is another's by now: two may have one in a loaded database."""
        if self._names.get(space.name) is space:
            del self._names[space.name]

    def _check_name(self, space: MemtxSpace) -> None:
        """Raise BoxError TUPLE_FOUND (3) if another space has the name, whatever indexes `_space` has."""
        present = self._names.get(space.name)
        if present is not None and present.id != space.id and not self.is_loading:
            raise BoxError(ErrorCode.TUPLE_FOUND, "name", self.spaces[SPACE].name)

    def schema_changed(self) -> None:
        self.schema_version += 1
        self.on_schema_change(self.schema_version)

    def _space_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        if old is None:
            assert new is not None
            return self._create_space(new)
        if new is None:
            return self._drop_space(old)
        return self._alter_space(old, new)

    def _create_space(self, fields: list[Any]) -> Callable[[], None]:
        space = self._define(fields)
        self.check_access(Privilege.CREATE, space)
        self._check_name(space)
        self._register(space)

        def undo() -> None:
            space.is_dropped = True
            self._forget(space)

        return undo

    def _drop_space(self, fields: list[Any]) -> Callable[[], None]:
        space = self.space(fields[0])
        self.check_access(Privilege.DROP, space)
        held: list[tuple[str, Callable[[], bool]]] = [
            ("the space has indexes", lambda: bool(space.indexes)),
            ("the space has grants", lambda: self.accounts.has_grants("space", space.id)),
            (
                "the space has truncate record",
                lambda: bool(self.spaces[TRUNCATE].select(0, IteratorType.EQ, 0, 1, [space.id])),
            ),
        ]
        for reason, is_held in held:
            if is_held():
                raise BoxError(ErrorCode.DROP_SPACE, space.name, reason)
        self.constraints.check_drop(space)
        self._forget(space)
        space.is_dropped = True

        def undo() -> None:
            space.is_dropped = False
            self._register(space)

        return undo

    def _alter_space(self, old: list[Any], new: list[Any]) -> Callable[[], None]:
        space = self.space(old[0])
        altered = self._define(new, ErrorCode.ALTER_SPACE)
        self.check_access(Privilege.ALTER, altered)
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
        altered.set_format(self.format_with_indexes(altered, space.indexes))
        if altered.name != space.name:
            self._check_name(altered)
            if space.id == SCHEMA and not self.is_loading:
                # A Tarantool that starts looks for the schema's version by this name.
                raise BoxError(ErrorCode.UNSUPPORTED, "This server", "another name of the space _schema")
        if (
            has_rows
            and not self.has_rows_only(space)
            and (altered.format_row != space.format_row or altered.field_count != space.field_count)
        ):
            check_rows(space, altered.format)
        before = _definition(space)
        self._redefine(space, _definition(altered))
        return lambda: self._redefine(space, before)

    def _redefine(self, space: MemtxSpace, definition: dict[str, Any]) -> None:
        self._forget_name(space)
        for attribute, value in definition.items():
            setattr(space, attribute, value)
        space.set_format(definition["format"])
        for index in space.indexes.values():
            index.space_name = space.name
        self._names[space.name] = space
        self.schema_changed()

    def has_rows_only(self, space: MemtxSpace) -> bool:
        """Whether the space's rows are taken as they are, and its secondary indexes are built at the end."""
        return self.is_loading and space.id > SYSTEM_ID_MAX

    def format_with_indexes(self, space: MemtxSpace, indexes: dict[int, Index]) -> Format:
        """The format with what the indexes demand of their fields: first the primary one, then as given."""
        in_order = sorted(indexes.values(), key=lambda index: index.id != 0)
        return self.format_with_keys(space, [index.key_def for index in in_order])

    def format_with_keys(self, space: MemtxSpace, keys: Sequence[KeyDef]) -> Format:
        """The format with what keys demand of their fields, in their order."""
        plain = Format.parse(space.format_row, space.name, space.field_count, collation_ids=self.collations)
        return plain.with_index_parts(keys)

    # -- _truncate --

    def _truncate_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None] | None:
        if new is None:
            return None
        space = self.space(new[0])
        if operation == "INSERT":
            # It makes the record of a space, for those that restore a database row by row.
            return None
        if space.id <= SYSTEM_ID_MAX:
            raise BoxError(ErrorCode.TRUNCATE_SYSTEM_SPACE, space.name)
        self.access.check_space(self.current_user(), Privilege.WRITE, space)
        put_rows_back, before = space.truncate(), space.format
        if any(not index.field_numbers for index in space.indexes.values()):
            # Now what indexes demand inside fields is heard in the order of their ids.
            space.set_format(self.format_with_indexes(space, space.indexes))

        def undo() -> None:
            space.set_format(before)
            put_rows_back()

        return LocalEffect(undo) if space.is_local or space.is_temporary else undo


def _definition(space: MemtxSpace) -> dict[str, Any]:
    names = ("name", "owner", "field_count", "flags", "is_temporary", "format_row", "format")
    return {name: getattr(space, name) for name in names}


def _check_flags(flags: dict[Any, Any], space_name: str, error_code: ErrorCode) -> None:
    """Check the options of a space, which are the sixth field of its row."""
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
        # Its rows would need confirmations in the log: Tarantool waits for them, also after a start.
        raise BoxError(ErrorCode.UNSUPPORTED, "This server", "synchronous spaces")
