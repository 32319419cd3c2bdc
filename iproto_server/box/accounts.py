"""Users, roles, grants and functions, as the rows of `_user`, `_priv` and `_func` say."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iproto_server.box.access import ADMIN, GUEST, OBJECT_TYPES, PUBLIC, SUPER
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import EMPTY_PASSWORD_HASH, HASH_SIZE

if TYPE_CHECKING:
    from iproto_server.box.catalog import Catalog

_SYSTEM_USERS = (GUEST, ADMIN, PUBLIC, SUPER)
_SYSTEM_ID_MAX = 31
_EXECUTE = 4


@dataclass(frozen=True, slots=True)
class Function:
    """A row of `_func`: it gives a procedure an owner, so that rights on it can be granted."""

    id: int
    owner: int
    name: str
    setuid: bool


class Accounts:
    """The effects of rows of `_user`, `_priv` and `_func`.

    Parameters:
        catalog: the catalog whose system spaces they are.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._access = catalog.access
        self.functions: dict[str, Function] = {}

    def check_owner(self, user_id: int) -> None:
        """Raise BoxError NO_SUCH_USER when nobody has that id. (Tarantool 2.6 takes any number.)"""

    def has_grants(self, object_type: str, object_id: int) -> bool:
        """Whether somebody was given a right on the object."""
        return bool(self._rows("_priv", 2, [object_type, object_id]))

    def _rows(self, space_name: str, index_id: int, key: list[Any]) -> list[bytes]:
        return self._catalog.space_by_name(space_name).select(index_id, 0, 0, 1, key)

    # -- _user --

    def user_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        """A row of `_user` comes, changes or goes."""
        if new is not None:
            self._check_user(new)
            self._access.add(*new[:5])
        else:
            assert old is not None
            self._check_drop(old)
            self._access.remove(old[0])
        return lambda: self._undo_user(old, new)

    def _undo_user(self, old: list[Any] | None, new: list[Any] | None) -> None:
        if old is not None:
            self._access.add(*old[:5])
        elif new is not None:
            self._access.remove(new[0])

    @staticmethod
    def _check_user(row: list[Any]) -> None:
        user_id, _owner, name, kind, auth = row[:5]
        if kind not in ("user", "role"):
            raise BoxError(ErrorCode.CREATE_USER, name, "unknown user type")
        for method, stored in auth.items():
            if method != "chap-sha1":
                raise BoxError(ErrorCode.CREATE_USER, name, "unsupported authentication method")
            if not _is_password_hash(stored):
                raise BoxError(ErrorCode.CREATE_USER, name, "invalid user password")
            if kind == "role":
                raise BoxError(ErrorCode.CREATE_ROLE, name, "authentication data can not be set for a role")
            if user_id == GUEST and stored != EMPTY_PASSWORD_HASH:
                raise BoxError(ErrorCode.GUEST_USER_PASSWORD)

    def _check_drop(self, row: list[Any]) -> None:
        user_id, _owner, name = row[:3]
        if user_id in _SYSTEM_USERS or user_id <= _SYSTEM_ID_MAX:
            raise BoxError(ErrorCode.DROP_USER, name, "the user or the role is a system")
        owned = (
            any(self._rows(space, 1, [user_id]) for space in ("_space", "_func", "_sequence"))
            or bool(self._rows("_priv", 0, [user_id]))
            or bool(self._rows("_priv", 1, [user_id]))
        )
        if owned:
            raise BoxError(ErrorCode.DROP_USER, name, "the user has objects")

    # -- _priv --

    def privilege_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        """A row of `_priv` comes, changes or goes."""
        if new is not None:
            self._check_privilege(new)
        self._set_privilege(old, new)
        return lambda: self._set_privilege(new, old)

    def _set_privilege(self, before: list[Any] | None, after: list[Any] | None) -> None:
        if before is not None:
            self._access.grant(before[1], before[2], before[3], 0)
        if after is not None:
            self._access.grant(after[1], after[2], after[3], after[4])

    def _check_privilege(self, row: list[Any]) -> None:
        grantor, grantee, object_type, object_id, _privilege = row[:5]
        self._access.by_id(grantor)
        receiver = self._access.by_id(grantee)
        if object_type not in OBJECT_TYPES:
            raise BoxError(ErrorCode.UNKNOWN_SCHEMA_OBJECT, object_type)
        if object_type == "space" and object_id != "":
            self._catalog.space(object_id)
        elif object_type == "role" and object_id != "":
            role = self._access.by_id(object_id)
            if not role.is_role:
                raise BoxError(ErrorCode.NO_SUCH_ROLE, role.name)
            if receiver.is_role and grantee in self._access.roles_of(role.user_id):
                raise BoxError(ErrorCode.ROLE_LOOP, receiver.name, role.name)

    # -- _func --

    def function_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        """A row of `_func` comes, changes or goes."""
        if old is not None and new is None and self.has_grants("function", old[0]):
            raise BoxError(ErrorCode.DROP_FUNCTION, old[0], "function has grants")
        self._set_function(old, new)
        return lambda: self._set_function(new, old)

    def _set_function(self, before: list[Any] | None, after: list[Any] | None) -> None:
        if before is not None:
            del self.functions[before[2]]
        if after is not None:
            function = Function(after[0], after[1], after[2], bool(after[3]))
            self.functions[function.name] = function


def _is_password_hash(stored: object) -> bool:
    if not isinstance(stored, str):
        return False
    try:
        return len(base64.b64decode(stored, validate=True)) == HASH_SIZE
    except binascii.Error:
        return False
