"""Users, roles, grants and functions, as defined by the rows of `_user`, `_priv` and `_func`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NoReturn

from iproto_server.box.access.access_control import (
    ADMIN,
    GUEST,
    OBJECT_TYPES,
    OBJECT_TYPES_OF_3,
    PUBLIC,
    SUPER,
    Privilege,
    denied,
)
from iproto_server.box.catalog.function_def import SQL_BUILTIN, Function, completed, is_same_definition
from iproto_server.box.catalog.grants import has_grants
from iproto_server.box.catalog.sequence_catalog import SequenceCatalog
from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import FUNC, PRIV, SEQUENCE, SPACE, USER
from iproto_server.box.types.identifier import NAME_MAX, check_identifier
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import (
    AUTH_TYPES,
    CHAP_SHA1,
    EMPTY_PASSWORD_HASH,
    PAP_SHA256,
    fits_salted,
    is_salted_hash,
)

_NAME_SHOWN = 64
_USER_MAX = 32
"""The greatest number of users and roles, predefined ones included; Tarantool does not start with more."""
_OWNER = 1
_GRANTOR, _GRANTEE = 0, 1
_HASH_LENGTH = len(EMPTY_PASSWORD_HASH)


class UserCatalog:
    """The effects of rows of `_user`, `_priv` and `_func`.

    Parameters:
        registry: all spaces.
        sequences: the sequences, as objects of grants.

    Attributes:
        functions: the functions by name.
        sql_builtins: the names of SQL's built-in functions.
        on_function_change: called with the name of a function that is new, changed or gone.
        setuid: the owners' user ids of functions that run with their owner's privileges, by name.
    """

    def __init__(self, registry: SpaceRegistry, sequences: SequenceCatalog) -> None:
        self._registry = registry
        self._sequences = sequences
        self._access = registry.access
        self.functions: dict[str, Function] = {}
        self.sql_builtins: Collection[str] = ()
        self.setuid: dict[str, int] = {}
        self.on_function_change: Callable[[str], object] = lambda name: None

    # -- loading --

    def load_user(self, row: list[Any]) -> None:
        """Load a row of `_user`, which was checked when it was stored."""
        user_id, owner, name, kind = _definition(row)
        self._access.add(user_id, owner, name, kind, _passwords(row))

    def load_function(self, row: list[Any]) -> None:
        """Load a row of `_func`, which was checked when it was stored."""
        self._set_function(None, Function.parse(completed(row), is_stored=True))

    def load_privilege(self, row: list[Any]) -> None:
        """Load a row of `_priv`, which was checked when it was stored.

        Raises:
            BoxError: UNKNOWN_SCHEMA_OBJECT (49).
        """
        if row[2].lower() not in OBJECT_TYPES + OBJECT_TYPES_OF_3:
            raise BoxError(ErrorCode.UNKNOWN_SCHEMA_OBJECT, row[2])
        self._set_privilege(None, row)

    def _has_row(self, space_id: int, field_no: int, value: int) -> bool:
        """Whether a row of a system space has a value in a field, found without an index on the field."""
        return any(row[field_no] == value for row in self._registry.rows(space_id, 0, []))

    def _check_access(
        self, privilege: Privilege, object_type: str, object_id: int | str, name: str, owner: int
    ) -> None:
        """Raise BoxError ACCESS_DENIED unless the caller has the privilege on the object's definition."""
        user = self._registry.current_user()
        self._access.check_definition(user, privilege, object_type, object_id, name, owner)

    # -- _user --

    def user_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        """Apply a change of a row of `_user`."""
        if new is not None:
            _check_user(new)
            user_id, owner, name, kind = _definition(new)
            if old is None:
                self._check_access(Privilege.CREATE, kind, user_id, name, owner)
                if len(self._registry.spaces[USER]) > _USER_MAX and not self._registry.is_loading:
                    raise BoxError(ErrorCode.USER_MAX, _USER_MAX)
            else:
                # As in Tarantool, users count as their own owners here.
                self._check_access(Privilege.ALTER, _definition(old)[3], user_id, name, user_id)
                self._check_kind(old, new)
            self._access.add(user_id, owner, name, kind, _passwords(new))
        else:
            assert old is not None
            self._check_drop(old)
            self._access.remove(old[0])
        return lambda: self._undo_user(old, new)

    def _check_kind(self, old: list[Any], new: list[Any]) -> None:
        """Raise BoxError UNSUPPORTED (5) if a granted role is to become a user, or a user with grants a role.

        Tarantool 2.6 allows that, but does not start from the snapshot, because the grant has no object.
        """
        user_id, _, _, before = _definition(old)
        after = _definition(new)[3]
        if before != after and not self._registry.is_loading and has_grants(self._registry, before, user_id):
            raise BoxError(
                ErrorCode.UNSUPPORTED, "This server", f"a {after} that has been granted as a {before}"
            )

    def _undo_user(self, old: list[Any] | None, new: list[Any] | None) -> None:
        if old is not None:
            user_id, owner, name, kind = _definition(old)
            self._access.add(user_id, owner, name, kind, _passwords(old))
        elif new is not None:
            self._access.remove(new[0])

    def _check_drop(self, row: list[Any]) -> None:
        user_id, owner, name, kind = _definition(row)
        self._check_access(Privilege.DROP, kind, user_id, name, owner)
        if user_id <= PUBLIC or user_id == SUPER:
            raise BoxError(ErrorCode.DROP_USER, name, "the user or the role is a system")
        has_data = (
            any(self._has_row(space, _OWNER, user_id) for space in (SPACE, FUNC, SEQUENCE))
            or self._has_row(PRIV, _GRANTOR, user_id)
            or self._has_row(PRIV, _GRANTEE, user_id)
            or self._access.is_granted(user_id)
        )
        if has_data:
            raise BoxError(ErrorCode.DROP_USER, name, "the user has objects")

    # -- _priv --

    def privilege_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        """Apply a change of a row of `_priv`."""
        if new is not None:
            self._check_privilege(new, Privilege.GRANT)
        else:
            assert old is not None
            self._check_privilege(old, Privilege.REVOKE)
        self._set_privilege(old, new)
        return lambda: self._set_privilege(new, old)

    def _set_privilege(self, before: list[Any] | None, after: list[Any] | None) -> None:
        if before is not None:
            self._access.grant(before[1], before[2].lower(), before[3], 0)
        if after is not None:
            self._access.grant(after[1], after[2].lower(), after[3], after[4])

    def _check_privilege(self, row: list[Any], action: Privilege) -> None:
        """Check a grant: the grantor must own the object, and the caller must be the grantor."""
        grantor_id, grantee_id, object_type, object_id, bits = row[:5]
        # Object types may be written in any case.
        is_of_3 = object_type.lower() in OBJECT_TYPES_OF_3 and (
            action is Privilege.REVOKE or self._registry.is_loading
        )
        if not is_of_3 and (
            object_type.lower() not in OBJECT_TYPES or (object_type.lower() == "universe" and object_id == "")
        ):
            raise BoxError(ErrorCode.UNKNOWN_SCHEMA_OBJECT, object_type)
        object_type = object_type.lower()
        if not is_of_3 and object_id != "" and (type(object_id) is not int or object_id < 0):
            raise BoxError(ErrorCode.FIELD_TYPE, 4, "unsigned")
        grantor = self._access.by_id(grantor_id)
        grantee = self._access.by_id(grantee_id)
        name, owner, is_public = self._object(object_type, object_id)
        self._check_access(action, object_type, object_id, name, grantor.user_id)
        if owner is None:
            self._missing(object_type, object_id)
        if grantor.user_id not in (owner, ADMIN) and not (is_public and bits == Privilege.EXECUTE):
            raise denied(action, object_type, name, grantor.name)
        if object_type == "role" and object_id != "" and grantee_id in self._access.roles_of(object_id):
            raise BoxError(ErrorCode.ROLE_LOOP, name, grantee.name)
        if bits == 0:
            raise BoxError(ErrorCode.GRANT, "the grant tuple has no privileges")
        left = bits if action is Privilege.GRANT else 0
        if grantee_id == ADMIN and object_type == "universe" and left != Privilege.ALL:
            raise BoxError(ErrorCode.GRANT, "can't revoke universe from the admin user")

    def _object(self, object_type: str, object_id: int | str) -> tuple[str, int | None, bool]:
        """The object of a grant: its name, its owner, and whether it is the role `public`.

        The owner is None if the object does not exist. Admin owns the universe and all objects of a type.
        """
        if object_type == "universe" or not isinstance(object_id, int):
            return "", ADMIN, False
        if object_type == "space":
            space = self._registry.spaces.get(object_id)
            return ("(nil)", None, False) if space is None else (space.name, space.owner, False)
        if object_type == "function":
            function = self.function_by_id(object_id)
            return ("(nil)", None, False) if function is None else (function.name, function.owner, False)
        if object_type == "sequence":
            sequence = self._sequences.find(object_id)
            if sequence is None:
                return "(nil)", None, False
            return sequence.definition.name, sequence.definition.owner, False
        user = self._access.find_id(object_id)
        if user is None:
            return "(nil)", None, False
        is_kind = user.is_role == (object_type == "role")
        return user.name, user.owner if is_kind else None, is_kind and object_id == PUBLIC

    def _missing(self, object_type: str, object_id: int | str) -> NoReturn:
        user = self._access.find_id(object_id) if object_type in ("user", "role") else None
        code = {
            "space": ErrorCode.NO_SUCH_SPACE,
            "function": ErrorCode.NO_SUCH_FUNCTION,
            "sequence": ErrorCode.NO_SUCH_SEQUENCE,
            "role": ErrorCode.NO_SUCH_ROLE,
            "user": ErrorCode.NO_SUCH_USER,
        }[object_type]
        raise BoxError(code, str(object_id) if user is None else user.name)

    # -- _func --

    def function_by_id(self, function_id: int) -> Function | None:
        """The function of that number, or None."""
        return next((each for each in self.functions.values() if each.id == function_id), None)

    def function_changed(
        self, old: list[Any] | None, new: list[Any] | None, operation: str
    ) -> Callable[[], None]:
        """Apply a new or deleted row of `_func`; rows cannot change."""
        old = None if old is None else completed(old)
        new = None if new is None else completed(new)
        is_stored = self._registry.is_loading
        before = None if old is None else Function.parse(old, is_stored=True)
        after = None if new is None else Function.parse(new, is_stored=is_stored or old is not None)
        if after is not None and old is None:
            self._check_access(Privilege.CREATE, "function", after.id, after.name, after.owner)
            if after.language == SQL_BUILTIN and not (
                self._registry.is_loading or after.name in self.sql_builtins
            ):
                raise BoxError(ErrorCode.CREATE_FUNCTION, after.name, "given built-in is not predefined")
        if before is not None and new is None:
            self._check_access(Privilege.DROP, "function", before.id, before.name, before.owner)
            held: list[tuple[str, Callable[[], bool]]] = [
                ("function has grants", lambda: has_grants(self._registry, "function", before.id)),
                (
                    "function is SQL built-in",
                    lambda: before.language == SQL_BUILTIN and before.name in self.sql_builtins,
                ),
            ]
            for reason, is_held in held:
                if is_held():
                    raise BoxError(ErrorCode.DROP_FUNCTION, before.owner, reason)
        if old is not None and new is not None and not is_same_definition(old, new):
            raise BoxError(ErrorCode.UNSUPPORTED, "function", "alter")
        self._set_function(before, after)
        return lambda: self._set_function(after, before)

    def _set_function(self, before: Function | None, after: Function | None) -> None:
        if before is not None:
            del self.functions[before.name]
            self.setuid.pop(before.name, None)
        if after is not None:
            self.functions[after.name] = after
            if after.setuid:
                self.setuid[after.name] = after.owner
        changed = after or before
        if changed is not None:
            self.on_function_change(changed.name)


def _check_user(row: list[Any]) -> None:
    """Check a row of `_user`, in Tarantool's order."""
    user_id, _owner, name, kind = row[:4]
    if len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
        raise BoxError(ErrorCode.CREATE_USER, name[:_NAME_SHOWN], "user name is too long")
    if kind.lower() not in ("user", "role"):
        raise BoxError(ErrorCode.CREATE_USER, name, "unknown user type")
    check_identifier(name)
    auth = row[4]
    if auth and kind.lower() == "role":
        raise BoxError(ErrorCode.CREATE_ROLE, name, "authentication data can not be set for a role")
    for method, stored in auth.items():
        known = method.lower() if isinstance(method, str) else ""
        if known == CHAP_SHA1:
            is_valid = isinstance(stored, str) and len(stored) in (0, _HASH_LENGTH)
            is_empty = stored in ("", EMPTY_PASSWORD_HASH)
        elif known == PAP_SHA256:
            is_valid = is_salted_hash(stored)
            is_empty = fits_salted(stored, "")
        else:
            continue
        if not is_valid:
            raise BoxError(ErrorCode.CREATE_USER, name, "invalid user password")
        if user_id == GUEST and not is_empty:
            raise BoxError(ErrorCode.GUEST_USER_PASSWORD)


def _definition(row: list[Any]) -> tuple[int, int, str, str]:
    """The id, owner, name and kind of a user or role; the kind in lower case."""
    user_id, owner, name, kind = row[:4]
    return user_id, owner, name, kind.lower()


def _passwords(row: list[Any]) -> dict[str, object]:
    """The password hashes of a user, by authentication method."""
    methods = {method.lower(): stored for method, stored in row[4].items() if isinstance(method, str)}
    return {method: methods[method] for method in AUTH_TYPES if methods.get(method)}
