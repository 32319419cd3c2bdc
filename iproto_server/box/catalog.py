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

from iproto_server import codec
from iproto_server.box.access import ADMIN, AccessControl, Credentials
from iproto_server.box.accounts import Accounts
from iproto_server.box.format import Format, check_identifier
from iproto_server.box.index import Index, IteratorType
from iproto_server.box.memtx import MemtxSpace
from iproto_server.box.sysview import SysviewSpace
from iproto_server.box.transaction import TransactionManager
from iproto_server.errors import BoxError, ErrorCode

SCHEMA, COLLATION, SPACE, INDEX = 272, 276, 280, 288
FUNC, USER, PRIV, TRUNCATE = 296, 304, 312, 330
SYSTEM_ID_MAX = 511
"""Spaces up to this id belong to the system."""

_NAME_MAX = 65000

_FLAGS: dict[str, type | tuple[type, ...]] = {
    "temporary": bool,
    "group_id": int,
    "is_sync": bool,
    "view": bool,
    "sql": str,
    "defer_deletes": bool,
}
_TYPE_WORDS = {bool: "boolean", int: "unsigned", str: "string"}


class Catalog:
    """Every space by id and by name, and the version of the schema.

    Parameters:
        transactions: the transaction manager that every space reports to.
        access: users and rights, kept in step with `_user` and `_priv`.
    """

    def __init__(self, transactions: TransactionManager, access: AccessControl) -> None:
        self._transactions = transactions
        self.access = access
        self.spaces: dict[int, MemtxSpace] = {}
        self._names: dict[str, MemtxSpace] = {}
        self.schema_version = 1
        self.current_user: Callable[[], Credentials] = lambda: access.by_id(ADMIN)
        self.accounts = Accounts(self)
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

    def collation_id(self, name: str) -> int | None:
        """The number of a collation, None where there is none of that name."""
        rows = self.spaces[COLLATION].select(1, IteratorType.EQ, 0, 1, [name])
        return codec.unpack(rows[0])[0] if rows else None

    def __iter__(self) -> Iterator[MemtxSpace]:
        return iter(list(self.spaces.values()))

    # -- starting --

    def _bootstrap(self) -> None:
        rows: dict[str, list[list[Any]]] = json.loads(
            files("iproto_server.box").joinpath("bootstrap.json").read_text(encoding="utf-8")
        )
        for fields in rows["_space"]:
            self._register(self._define(fields))
        for fields in rows["_index"]:
            space = self.spaces[fields[0]]
            space.set_indexes({**space.indexes, fields[1]: self._build_index(space, fields)})
        for name, space_rows in rows.items():
            for fields in space_rows:
                self.load(self._names[name], codec.pack(fields))
        for space_id, hook in (
            (SPACE, self._space_changed),
            (INDEX, self._index_changed),
            (TRUNCATE, self._truncate_changed),
            (USER, self.accounts.user_changed),
            (PRIV, self.accounts.privilege_changed),
            (FUNC, self.accounts.function_changed),
        ):
            self.spaces[space_id].system_hook = hook
        for fields in rows["_user"]:
            self.accounts.user_changed(None, fields, "INSERT")
        for fields in rows["_func"]:
            self.accounts.function_changed(None, fields, "INSERT")
        for fields in rows["_priv"]:
            self.accounts.privilege_changed(None, fields, "INSERT")

    @staticmethod
    def load(space: MemtxSpace, raw: bytes) -> None:
        """Store a row that is known to be good, without hooks, triggers or log."""
        fields = codec.unpack(raw)
        assert space.primary is not None
        space.put_back(space.primary.key_of(fields, b""), raw, None)

    # -- _space --

    def _define(self, fields: Sequence[Any], error_code: ErrorCode = ErrorCode.CREATE_SPACE) -> MemtxSpace:
        """A space as a row of `_space` describes it, not yet known to anybody."""
        space_id, owner, name, engine, field_count, flags, format_row = fields[:7]
        if space_id == 0:
            raise BoxError(ErrorCode.CREATE_SPACE, name, "space id 0 is reserved")
        if len(name.encode("utf-8", "surrogateescape")) > _NAME_MAX:
            raise BoxError(error_code, name, "space name is too long")
        check_identifier(name)
        if engine == "sysview":
            return SysviewSpace(space_id, name, owner, self._transactions, self, list(format_row))
        if engine != "memtx" and space_id > SYSTEM_ID_MAX:
            raise BoxError(ErrorCode.NO_SUCH_ENGINE, engine)
        _check_flags(flags)
        space = MemtxSpace(space_id, name, owner, self._transactions)
        space.engine = engine
        space.field_count = field_count
        space.flags = flags
        space.is_temporary = bool(flags.get("temporary", False))
        space.format_row = list(format_row)
        space.set_format(Format.parse(space.format_row, name, field_count, error_code))
        return space

    def _register(self, space: MemtxSpace) -> None:
        self.spaces[space.id] = space
        self._names[space.name] = space
        self.schema_version += 1

    def _forget(self, space: MemtxSpace) -> None:
        del self.spaces[space.id]
        del self._names[space.name]
        self.schema_version += 1

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
        self.accounts.check_owner(space.owner)
        self._register(space)

        def undo() -> None:
            space.is_dropped = True
            self._forget(space)

        return undo

    def _drop_space(self, fields: list[Any]) -> Callable[[], None]:
        space = self.space(fields[0])
        if space.id <= SYSTEM_ID_MAX and space.indexes:
            raise BoxError(ErrorCode.DROP_SPACE, space.name, "the space has indexes")
        for reason, is_held in (
            ("the space has indexes", bool(space.indexes)),
            ("the space has grants", self.accounts.has_grants("space", space.id)),
            (
                "the space has truncate record",
                bool(self.spaces[TRUNCATE].select(0, IteratorType.EQ, 0, 1, [space.id])),
            ),
        ):
            if is_held:
                raise BoxError(ErrorCode.DROP_SPACE, space.name, reason)
        self._forget(space)
        space.is_dropped = True

        def undo() -> None:
            space.is_dropped = False
            self._register(space)

        return undo

    def _alter_space(self, old: list[Any], new: list[Any]) -> Callable[[], None]:
        space = self.space(old[0])
        altered = self._define(new, ErrorCode.ALTER_SPACE)
        if altered.id != space.id:
            raise BoxError(ErrorCode.ALTER_SPACE, space.name, "space id is immutable")
        if altered.engine != space.engine:
            raise BoxError(ErrorCode.ALTER_SPACE, space.name, "can not change space engine")
        if altered.is_temporary != space.is_temporary and len(space):
            raise BoxError(
                ErrorCode.ALTER_SPACE, space.name, "can not switch temporary flag on a non-empty space"
            )
        self.accounts.check_owner(altered.owner)
        altered.set_format(self._format_with_indexes(altered, space.indexes))
        if len(space) and (
            altered.format_row != space.format_row or altered.field_count != space.field_count
        ):
            space.check_rows(altered.format)
        before = _definition(space)
        self._redefine(space, _definition(altered))
        return lambda: self._redefine(space, before)

    def _redefine(self, space: MemtxSpace, definition: dict[str, Any]) -> None:
        del self._names[space.name]
        for attribute, value in definition.items():
            setattr(space, attribute, value)
        space.set_format(definition["format"])
        self._names[space.name] = space
        self.schema_version += 1

    @staticmethod
    def _format_with_indexes(space: MemtxSpace, indexes: dict[int, Index]) -> Format:
        """The format with what the indexes demand of their fields."""
        plain = Format.parse(space.format_row, space.name, space.field_count)
        return plain.with_index_parts([index.key_def for _, index in sorted(indexes.items())])

    # -- _index --

    def _build_index(self, space: MemtxSpace, fields: Sequence[Any]) -> Index:
        """An empty index as a row of `_index` describes it."""
        primary = space.primary.key_def if space.primary is not None and fields[1] != 0 else None
        return Index.parse(fields, space.name, primary)

    def _index_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        fields = new if new is not None else old
        assert fields is not None
        space = self.space(fields[0])
        index_id = fields[1]
        indexes = dict(space.indexes)
        if new is None:
            if index_id == 0:
                if space.id <= SYSTEM_ID_MAX:
                    raise BoxError(ErrorCode.LAST_DROP, space.name)
                if len(indexes) > 1:
                    raise BoxError(ErrorCode.DROP_PRIMARY_KEY, space.name)
            del indexes[index_id]
            return self._set_indexes(space, indexes, 0 if index_id == 0 else space.bsize)
        if index_id and space.primary is None:
            raise BoxError(ErrorCode.ALTER_SPACE, space.name, "can not add a secondary key before primary")
        check_identifier(fields[2])
        index = self._build_index(space, new)
        if len(space) and index_id == 0 and index.key_def != space.index(0).key_def:
            raise BoxError(
                ErrorCode.UNSUPPORTED, "This server", "changing the parts of a filled primary index"
            )
        present = space.indexes.get(index_id)
        indexes[index_id] = index
        format_after = self._format_with_indexes(space, indexes)
        if present is not None and present.key_def == index.key_def and present.kind_equals(index):
            index.adopt(present)
        elif len(space):
            space.check_rows(format_after)
            if index_id == 0:
                index.build(space.index(0).items())
            else:
                space.fill(index)
        return self._set_indexes(space, indexes, space.bsize)

    def _set_indexes(self, space: MemtxSpace, indexes: dict[int, Index], bsize: int) -> Callable[[], None]:
        """Give a space other indexes, and the format that follows from them."""
        before = (space.indexes, space.format, space.bsize)

        def put(indexes: dict[int, Index], new_format: Format, size: int) -> None:
            space.set_indexes(indexes)
            space.set_format(new_format)
            space.bsize = size
            self.schema_version += 1

        put(indexes, self._format_with_indexes(space, indexes), bsize)
        return lambda: put(*before)

    # -- _truncate --

    def _truncate_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None] | None:
        if new is None:
            return None
        space = self.space(new[0])
        if space.id <= SYSTEM_ID_MAX:
            raise BoxError(ErrorCode.TRUNCATE_SYSTEM_SPACE, space.name)
        # An insertion is what creates the record of a space, not a truncation.
        return None if operation == "INSERT" else space.truncate()


def _definition(space: MemtxSpace) -> dict[str, Any]:
    names = ("name", "owner", "field_count", "flags", "is_temporary", "format_row", "format")
    return {name: getattr(space, name) for name in names}


def _check_flags(flags: dict[str, Any]) -> None:
    for name, value in flags.items():
        expected = _FLAGS.get(name)
        if expected is None:
            raise BoxError(ErrorCode.WRONG_SPACE_OPTIONS, 5, f"unexpected option '{name}'")
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise BoxError(
                ErrorCode.WRONG_SPACE_OPTIONS,
                5,
                f"'{name}' must be {_TYPE_WORDS.get(expected, 'any')}",  # type: ignore[arg-type]
            )
    if flags.get("group_id", 0) not in (0, 1):
        raise BoxError(ErrorCode.NO_SUCH_GROUP, flags["group_id"])
