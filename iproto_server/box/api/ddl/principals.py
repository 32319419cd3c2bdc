"""The common part of `box.schema.user` and `box.schema.role`.

As in Tarantool, these functions change `_user` and `_priv` with the caller's own rights: the caller must be
allowed to write there and must pass the checks of `user_catalog.py` for every such row.
"""

from __future__ import annotations

from typing import Any

from iproto_server.box.access.access_control import ADMIN, Privilege
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.functions import Functions
from iproto_server.box.api.ddl.privileges import PRIVILEGE_NAMES, Name, long_form, privilege_bits
from iproto_server.box.api.ddl.space_schema import SpaceSchema
from iproto_server.box.api.lua_arguments import lua_text
from iproto_server.box.api.sequences import SequenceSchema
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.box.catalog.foreign.system_rows import with_later_fields
from iproto_server.errors import BoxError, ErrorCode

_SYSTEM_IDS = 31
_BY_NAME = 2
_BY_OBJECT = 2
_BY_OWNER = 1


class Principals:
    """Users or roles: both are created, dropped and granted privileges in the same way."""

    kind = "user"
    _missing_code = ErrorCode.NO_SUCH_USER
    _exists_code = ErrorCode.USER_EXISTS

    def __init__(self, box: BoxCore) -> None:
        self._box = box

    def exists(self, name: Name) -> bool:
        """Whether one of that name exists and the caller may see it."""
        return self._row(name) is not None

    def drop(self, name: Name, *, if_exists: bool = False) -> None:
        """Remove a user or role with its privileges and the objects it owns.

        Raises:
            BoxError: NO_SUCH_USER (45) / NO_SUCH_ROLE (82); DROP_USER (44) for the system's own and for the
                user of the current session.
        """
        row = self._row(name)
        if row is None:
            if if_exists:
                return
            raise BoxError(self._missing_code, lua_text(name))
        user_id = row[0]
        if 0 <= user_id <= _SYSTEM_IDS:
            raise BoxError(ErrorCode.DROP_USER, name, "the user or the role is a system")
        if user_id in (self._box.session.uid(), self._box.session.euid()):
            raise BoxError(ErrorCode.DROP_USER, name, "the user is active in the current session")
        with self._box.in_transaction():
            self._drop(user_id)

    def _drop(self, user_id: int) -> None:
        box = self._box
        spaces, functions, sequences = SpaceSchema(box), Functions(box), SequenceSchema(box)
        for space in box.catalog.rows(system.VSPACE, _BY_OWNER, [user_id]):
            spaces.drop_space(space[0])
        for function in box.catalog.rows(system.VFUNC, _BY_OWNER, [user_id]):
            functions.drop(function[0])
        for grant in box.catalog.rows(system.VPRIV, _BY_OBJECT, ["role", user_id]):
            box.catalog.writable(system.PRIV).delete(0, grant[1:4])
        for sequence in box.catalog.rows(system.VSEQUENCE, _BY_OWNER, [user_id]):
            sequences.drop(sequence[0])
        if box.catalog.rows(system.VPRIV, 0, [user_id]):
            privileges = box.catalog.writable(system.PRIV)
            # Creators may drop what they created, although only admin can revoke some of the privileges.
            with box.session.su(ADMIN):
                for grant in box.catalog.rows(system.PRIV, 0, [user_id]):
                    privileges.delete(0, grant[1:4])
        box.catalog.writable(system.USER).delete(0, [user_id])

    def grant(
        self,
        name: Name,
        privileges: str | int,
        object_type: str | None = None,
        object_name: Name | None = None,
        *,
        if_not_exists: bool = False,
        grantor: Name | None = None,
    ) -> None:
        """Grant privileges, or a role.

        Parameters:
            name: the grantee.
            privileges: such as "read,write", or the sum of their bits; without other arguments, the name
                of a role.
            object_type: "universe", "space", "function", "user", "role" or "sequence".
            object_name: the object; None: all objects of the type.
            if_not_exists: do nothing if the privileges were granted before.
            grantor: the user recorded as grantor; None: the caller.

        Raises:
            BoxError: PRIV_GRANTED (89), ROLE_GRANTED (90), NO_SUCH_USER (45), NO_SUCH_ROLE (82),
                UNKNOWN_SCHEMA_OBJECT (49), UNSUPPORTED_PRIV (98), ACCESS_DENIED (42) and others.
        """
        grantee = self._id(name)
        privileges, object_type, object_name = long_form(privileges, object_type, object_name)
        bits = privilege_bits(privileges, object_type)
        object_id = self._object_id(object_type, object_name)
        before = self._granted(grantee, object_type, object_id)
        held = 0 if before is None else before[4]
        if held | bits != held:
            rows = self._box.catalog.writable(system.PRIV)
            grantor_id = self._box.session.euid() if grantor is None else self._grantor_id(grantor)
            rows.replace(rows.row([grantor_id, grantee, object_type, object_id, held | bits]))
        elif not if_not_exists:
            if object_type == "role" and object_name != "" and privileges == "execute":
                raise BoxError(ErrorCode.ROLE_GRANTED, name, object_name)
            shown = object_name if object_type == "universe" else f" '{object_name}'"
            raise BoxError(ErrorCode.PRIV_GRANTED, name, privileges, object_type, shown)

    def revoke(
        self,
        name: Name,
        privileges: str | int,
        object_type: str | None = None,
        object_name: Name | None = None,
        *,
        if_exists: bool = False,
    ) -> None:
        """Revoke privileges, or a role; the parameters are those of `grant`.

        Raises:
            BoxError: PRIV_NOT_GRANTED (91), ROLE_NOT_GRANTED (92) and others.
        """
        grantee = self._id(name)
        privileges, object_type, object_name = long_form(privileges, object_type, object_name)
        bits = privilege_bits(privileges, object_type)
        object_id = self._object_id(object_type, object_name)
        before = self._granted(grantee, object_type, object_id)
        if before is None or not before[4] & bits:
            if if_exists:
                return
            is_role = object_type == "role" and object_name != "" and privileges == "execute"
            if before is None and is_role:
                raise BoxError(ErrorCode.ROLE_NOT_GRANTED, name, object_name)
            raise BoxError(ErrorCode.PRIV_NOT_GRANTED, name, privileges, object_type, object_name)
        rows = self._box.catalog.writable(system.PRIV)
        left = before[4] & ~bits
        if left:
            rows.replace(rows.row([*before[:4], left]))
        else:
            rows.delete(0, before[1:4])

    def info(self, name: Name | None = None) -> list[list[Any]]:
        """The grants of a user or role, or of the caller, as rows [privileges, object type, object name]."""
        user_id = self._box.session.euid() if name is None else self._id(name)
        result: list[list[Any]] = []
        for _, _, object_type, object_id, bits, *_ in self._box.catalog.rows(system.VPRIV, 0, [user_id]):
            words = ",".join(word for word, bit in PRIVILEGE_NAMES.items() if bits & bit)
            result.append([words, object_type, self._object_name(object_type, object_id)])
        return result

    # -- helpers --

    def _create(self, name: object, auth: dict[str, str | list[str]], if_not_exists: bool) -> int | None:
        """Add a row to `_user`. Return its id; None if the name is taken."""
        if self._any_row(name) is not None:
            if if_not_exists:
                return None
            raise BoxError(self._exists_code, name)
        box = self._box
        # The new id is one above the greatest, which the caller must be allowed to see.
        box.access.check_space(
            box.session.current.credentials, Privilege.READ, box.catalog.space(system.USER)
        )
        rows = box.catalog.writable(system.USER)
        user_id = box.catalog.next_id(system.USER)
        row = [user_id, self._box.session.euid(), name, self.kind, auth]
        rows.insert(rows.row(with_later_fields(row, rows.format)))
        return user_id

    def _any_row(self, name: object) -> list[Any] | None:
        """The row of the user or role of that name or number; None if the caller does not see one."""
        if name is None:
            return None
        by_name = isinstance(name, str)
        return next(iter(self._box.catalog.rows(system.VUSER, _BY_NAME if by_name else 0, [name])), None)

    def _row(self, name: object) -> list[Any] | None:
        row = self._any_row(name)
        return row if row is not None and row[3] == self.kind else None

    def _id(self, name: Name) -> int:
        row = self._row(name)
        if row is None:
            raise BoxError(self._missing_code, lua_text(name))
        user_id: int = row[0]
        return user_id

    def _grantor_id(self, name: Name) -> int:
        row = self._any_row(name)
        if row is None:
            raise BoxError(ErrorCode.NO_SUCH_USER, lua_text(name))
        user_id: int = row[0]
        return user_id

    def _granted(self, grantee: int, object_type: str, object_id: Name) -> list[Any] | None:
        rows = self._box.catalog.rows(system.VPRIV, 0, [grantee, object_type, object_id])
        return next(iter(rows), None)

    def _object_id(self, object_type: str, name: object) -> Name:
        """The number of a privilege's object; "" for all objects of the type."""
        if isinstance(name, bool) or not isinstance(name, str | int | float):
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "wrong object name type")
        if object_type == "universe":
            return 0
        if name == "":
            return ""
        catalog = self._box.catalog
        by_name = isinstance(name, str)
        if object_type == "space":
            space = (
                catalog.find(name)
                if isinstance(name, str)
                else next((each for each in catalog if each.id == name), None)
            )
            if space is None:
                raise BoxError(ErrorCode.NO_SUCH_SPACE, name)
            return space.id
        code = ErrorCode.NO_SUCH_SEQUENCE
        rows: list[list[Any]] = []
        if object_type == "function":
            code = ErrorCode.NO_SUCH_FUNCTION
            rows = catalog.rows(system.VFUNC, _BY_NAME if by_name else 0, [name])
        elif object_type == "sequence":
            rows = catalog.rows(system.VSEQUENCE, _BY_NAME if by_name else 0, [name])
        else:
            code = ErrorCode.NO_SUCH_ROLE if object_type == "role" else ErrorCode.NO_SUCH_USER
            found = catalog.rows(system.VUSER, _BY_NAME if by_name else 0, [name])
            rows = [row for row in found if row[3] == object_type]
        if not rows:
            raise BoxError(code, name)
        object_id: int = rows[0][0]
        return object_id

    def _object_name(self, object_type: str, object_id: Name) -> str:
        if object_type == "universe" or object_id == "":
            return ""
        views = {"space": system.VSPACE, "function": system.VFUNC, "sequence": system.VSEQUENCE}
        rows = self._box.catalog.rows(views.get(object_type, system.VUSER), 0, [object_id])
        # The caller may see the grant but not its object; then the number is shown.
        return str(rows[0][2] if rows else object_id)
