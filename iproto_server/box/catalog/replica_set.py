"""The replica set and its members, as defined by the rows of `_schema` and `_cluster`.

Tarantool does not start from a database with invalid rows there, so they are checked when written. Source of
the rules and their order: the behaviour of Tarantool 2.6, except for the rules that `ReplicaSet` lists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID, uuid4

from iproto_server.box.catalog.foreign.versions import UNKNOWN, version_of_schema
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import CLUSTER, SCHEMA
from iproto_server.box.memtx.memtx_space import SystemHook
from iproto_server.errors import BoxError, ErrorCode

MEMBERS_MAX: Final = 32
"""The upper bound of member ids, exclusive."""

Row = list[Any]

_UINT32_MASK: Final = 0xFFFFFFFF
_UUID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_VARIANT: Final = 8
"""The position of the byte of a UUID that contains its variant."""
_RESERVED_VARIANT: Final = 0xE0
_VERSION_PARTS: Final = 3


class ReplicaSet:
    """The effects of rows of `_schema` and `_cluster`.

    Three rules are this server's own, because Tarantool 2.6 accepts such rows and then does not start, or
    starts as another member: the schema version cannot be deleted, damaged or lowered; UUIDs of members
    differ in more than case; a UUID is written in full.

    Parameters:
        registry: all spaces.

    Attributes:
        uuid: the replica set's identity.
        version: the version of the schema that was loaded.
        own_id: this instance's number in `_cluster`, whose row is read-only; None: not assigned yet.
    """

    def __init__(self, registry: SpaceRegistry) -> None:
        self._registry = registry
        self.uuid = uuid4()
        self.own_id: int | None = None
        self.version = UNKNOWN

    def hooks(self) -> dict[int, SystemHook]:
        """The hooks that check changes, by system space id."""
        return {SCHEMA: self._schema_changed, CLUSTER: self._member_changed}

    # -- _schema --

    def _schema_changed(self, old: Row | None, new: Row | None, operation: str) -> Callable[[], None] | None:
        """Apply a change of a row of `_schema`."""
        row = old if new is None else new
        assert row is not None
        match _key(row):
            case "cluster":
                return self._set_uuid(new)
            case "version" if not self._registry.is_loading:
                _check_version(old, new)
            case "version":
                self.load_setting(row)
        return None

    def load_setting(self, row: Row) -> None:
        """Load a row of `_schema` from a snapshot. Raises the errors of `parse_uuid`."""
        match _key(row):
            case "cluster":
                self.uuid = parse_uuid(row)
            case "version":
                self.version = version_of_schema(row)
                self._registry.written_by = max(self._registry.written_by, self.version)

    def _set_uuid(self, new: Sequence[Any] | None) -> Callable[[], None]:
        if new is None:
            raise BoxError(ErrorCode.REPLICASET_UUID_IS_RO)
        before, self.uuid = self.uuid, parse_uuid(new)

        def undo() -> None:
            self.uuid = before

        return undo

    # -- _cluster --

    def load_member(self, row: Row) -> None:
        """Load a row of `_cluster` from a snapshot.

        Raises:
            BoxError: REPLICA_ID_IS_RESERVED (67), REPLICA_MAX (73), or an error of `parse_uuid`.
        """
        _parse_member(row)

    def _member_changed(self, old: Row | None, new: Row | None, operation: str) -> None:
        """Check a change of a row of `_cluster`."""
        if new is None:
            assert old is not None
            # All other rows, damaged ones included, may be deleted.
            if old[0] & _UINT32_MASK == self.own_id:
                raise BoxError(ErrorCode.LOCAL_INSTANCE_ID_IS_READ_ONLY, self.own_id)
            return
        if new[0] & _UINT32_MASK == self.own_id:
            raise BoxError(ErrorCode.LOCAL_INSTANCE_ID_IS_READ_ONLY, self.own_id)
        member_id, uuid = _parse_member(new)
        if old is not None and old[1].lower() != new[1].lower():
            raise BoxError(ErrorCode.UNSUPPORTED, "Space _cluster", "updates of instance uuid")
        if not self._registry.is_loading:
            self._check_unique(member_id, uuid)

    def _check_unique(self, member_id: int, uuid: UUID) -> None:
        """Raise BoxError TUPLE_FOUND (3) if another member has the UUID, ignoring case."""
        for number, text, *_ in self._registry.rows(CLUSTER, 0, []):
            if number & _UINT32_MASK != member_id and text.lower() == str(uuid):
                raise BoxError(ErrorCode.TUPLE_FOUND, "uuid", self._registry.spaces[CLUSTER].name)


def _key(row: Sequence[Any]) -> str:
    """The key of a row of `_schema`, which Tarantool reads up to its first NUL."""
    key: str = row[0].partition("\0")[0]
    return key


def parse_uuid(row: Sequence[Any]) -> UUID:
    """Read the UUID in the second field of a row of `_schema` or `_cluster`.

    Parameters:
        row: the decoded row.

    Raises:
        BoxError: NO_SUCH_FIELD_NO (37), FIELD_TYPE (23), INVALID_UUID (64).
    """
    if len(row) < 2:
        raise BoxError(ErrorCode.NO_SUCH_FIELD_NO, 2)
    text = row[1]
    if not isinstance(text, str):
        raise BoxError(ErrorCode.FIELD_TYPE, 2, "string")
    if _UUID.fullmatch(text) is None or (uuid := UUID(text)).bytes[_VARIANT] >= _RESERVED_VARIANT:
        raise BoxError(ErrorCode.INVALID_UUID, text.partition("\0")[0])
    return uuid


def _parse_member(row: Sequence[Any]) -> tuple[int, UUID]:
    """Read a row of `_cluster`. Raises BoxError; see `ReplicaSet.load_member`."""
    member_id = row[0] & _UINT32_MASK
    if member_id == 0:
        raise BoxError(ErrorCode.REPLICA_ID_IS_RESERVED, member_id)
    if member_id >= MEMBERS_MAX:
        raise BoxError(ErrorCode.REPLICA_MAX, member_id)
    uuid = parse_uuid(row)
    if not uuid.int:
        raise BoxError(ErrorCode.INVALID_UUID, uuid)
    return member_id, uuid


def _check_version(old: Sequence[Any] | None, new: Sequence[Any] | None) -> None:
    """Raise BoxError unless Tarantool can read the version and needs no upgrade."""
    if new is None:
        raise BoxError(ErrorCode.UNSUPPORTED, "This server", "a schema without a version")
    version, before = _version(new), None if old is None else _version(old)
    if version is None:
        raise BoxError(ErrorCode.WRONG_DD_VERSION)
    if before is not None and version < before:
        raise BoxError(ErrorCode.UNSUPPORTED, "This server", "an older version of the schema")


def _version(row: Sequence[Any]) -> tuple[int, ...] | None:
    """The version in a row of `_schema`; None if it is invalid."""
    parts = tuple(row[1 : 1 + _VERSION_PARTS])
    if len(parts) < 2 or any(type(part) is not int or part < 0 for part in parts):
        return None
    return parts
