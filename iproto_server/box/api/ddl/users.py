"""`box.schema.user` and `box.schema.role`: who there is and what they may do.

As in Tarantool, these are changes of `_user` and `_priv` that the caller makes itself: it needs the
right to write there, besides the rights that `accounts.py` checks for every such row.

Source: Tarantool reference, "box.schema.user", "box.schema.role".
"""

from __future__ import annotations

from typing import Any

from iproto_server.box.access.access_control import PUBLIC, Privilege
from iproto_server.box.api.core import BoxCore
from iproto_server.box.api.ddl.functions import Functions
from iproto_server.box.api.ddl.space_schema import SpaceSchema
from iproto_server.box.api.lua_arguments import lua_text
from iproto_server.box.api.sequences import SequenceSchema
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import hashed

_SYSTEM_IDS = 31
_BY_NAME = 2
_BY_OBJECT = 2
_BY_OWNER = 1

_WORDS = {
    "read": Privilege.READ,
    "write": Privilege.WRITE,
    "execute": Privilege.EXECUTE,
    "session": Privilege.SESSION,
    "usage": Privilege.USAGE,
    "create": Privilege.CREATE,
    "drop": Privilege.DROP,
    "alter": Privilege.ALTER,
    "reference": Privilege.REFERENCE,
    "trigger": Privilege.TRIGGER,
    "insert": Privilege.INSERT,
    "update": Privilege.UPDATE,
    "delete": Privilege.DELETE,
}
_DEFINITION = Privilege.USAGE | Privilege.CREATE | Privilege.DROP
_GRANTABLE: dict[str, int] = {
    "universe": Privilege.ALL,
    "space": Privilege.ALL & ~(Privilege.SESSION | Privilege.GRANT | Privilege.REVOKE),
    "sequence": _DEFINITION | Privilege.READ | Privilege.WRITE | Privilege.ALTER,
    "function": _DEFINITION | Privilege.EXECUTE,
    "role": _DEFINITION | Privilege.EXECUTE,
    "user": Privilege.CREATE | Privilege.ALTER | Privilege.DROP,
}
"""Which rights there are on what."""

Name = str | int
"""Users, roles, functions and spaces go by name or by number."""


class _Principals:
    """What users and roles share: rights are given to both in the same words."""

    kind = "user"
    _missing_code = ErrorCode.NO_SUCH_USER
    _exists_code = ErrorCode.USER_EXISTS

    def __init__(self, box: BoxCore) -> None:
        self._box = box

    def exists(self, name: Name) -> bool:
        """Whether there is one of that name, as far as the caller sees."""
        return self._row(name) is not None

    def drop(self, name: Name, *, if_exists: bool = False) -> None:
        """Remove it, with the rights it has and the objects it owns.

        Raises:
            BoxError: NO_SUCH_USER (45) / NO_SUCH_ROLE (82), or DROP_USER (44) for those the system needs and
                for the caller itself.
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
            # Everybody may drop whom it has made, although only admin can take some of the rights.
            with box.session.su("admin"):
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
        """Give rights, or a role.

        Parameters:
            name: to whom.
            privileges: such as "read,write", or the sum of their bits; or, alone, the name of a role.
            object_type: "universe", "space", "function", "user", "role" or "sequence".
            object_name: which one; None: all of the type.
            if_not_exists: do nothing when the rights are there already.
            grantor: in whose name; the caller's unless given.

        Raises:
            BoxError: PRIV_GRANTED (89), ROLE_GRANTED (90), NO_SUCH_USER (45), NO_SUCH_ROLE (82),
                UNKNOWN_SCHEMA_OBJECT (49), UNSUPPORTED_PRIV (98), ACCESS_DENIED (42) and others.
        """
        grantee = self._id(name)
        privileges, object_type, object_name = _long_form(privileges, object_type, object_name)
        bits = _bits(privileges, object_type)
        object_id = self._object_id(object_type, object_name)
        before = self._granted(grantee, object_type, object_id)
        held = 0 if before is None else before[4]
        if held | bits != held:
            rows = self._box.catalog.writable(system.PRIV)
            giver = self._box.session.euid() if grantor is None else self._giver(grantor)
            rows.replace(rows.row([giver, grantee, object_type, object_id, held | bits]))
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
        """Take rights, or a role, away; the parameters are those of `grant`.

        Raises:
            BoxError: PRIV_NOT_GRANTED (91), ROLE_NOT_GRANTED (92) and others.
        """
        grantee = self._id(name)
        privileges, object_type, object_name = _long_form(privileges, object_type, object_name)
        bits = _bits(privileges, object_type)
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
        """The rights given to it, or to the caller, as [privileges, object type, object name] rows."""
        user_id = self._box.session.euid() if name is None else self._id(name)
        result: list[list[Any]] = []
        for _, _, object_type, object_id, bits, *_ in self._box.catalog.rows(system.VPRIV, 0, [user_id]):
            words = ",".join(word for word, bit in _WORDS.items() if bits & bit)
            result.append([words, object_type, self._object_name(object_type, object_id)])
        return result

    # -- parts of the above --

    def _create(self, name: object, auth: dict[str, str | list[str]], if_not_exists: bool) -> int | None:
        """Add a row to `_user` and answer its id, None where there is one of that name."""
        if self._any_row(name) is not None:
            if if_not_exists:
                return None
            raise BoxError(self._exists_code, name)
        box = self._box
        # The number is one above the greatest, which the caller must be allowed to see.
        box.access.check_space(
            box.session.current.credentials, Privilege.READ, box.catalog.spaces[system.USER]
        )
        rows = box.catalog.writable(system.USER)
        user_id = box.catalog.next_id(system.USER)
        rows.insert(rows.row([user_id, self._box.session.euid(), name, self.kind, auth]))
        return user_id

    def _any_row(self, name: object) -> list[Any] | None:
        """The row of the user or role of that name or number, as far as the caller sees."""
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

    def _giver(self, name: Name) -> int:
        row = self._any_row(name)
        if row is None:
            raise BoxError(ErrorCode.NO_SUCH_USER, lua_text(name))
        user_id: int = row[0]
        return user_id

    def _granted(self, grantee: int, object_type: str, object_id: Name) -> list[Any] | None:
        rows = self._box.catalog.rows(system.VPRIV, 0, [grantee, object_type, object_id])
        return next(iter(rows), None)

    def _object_id(self, object_type: str, name: object) -> Name:
        """The number of what a right is on, "" for all of the type."""
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
        # A right can outlive the sight of what it is on: without it, the number must do.
        return str(rows[0][2] if rows else object_id)


class Users(_Principals):
    """`box.schema.user`."""

    def create(self, name: str, *, password: str | None = None, if_not_exists: bool = False) -> None:
        """Create a user, who may log in, change itself, and has what everybody has.

        Parameters:
            name: the user's name.
            password: without one nobody can log in as the user.
            if_not_exists: do nothing when there is such a user.

        Raises:
            BoxError: USER_EXISTS (46), IDENTIFIER (70), ACCESS_DENIED (42).
        """
        with self._box.in_transaction():
            auth = {} if password is None else {self._box.access.auth_type: self.password(password)}
            user_id = self._create(name, auth, if_not_exists)
            if user_id is None:
                return
            self.grant(user_id, "execute", "role", PUBLIC)
            self.grant(user_id, "alter", "user", user_id)
            # What is on everything is admin's to give.
            with self._box.session.su("admin"):
                self.grant(user_id, "session,usage", "universe", if_not_exists=True)

    def passwd(self, name: str, password: str | None = None) -> None:
        """Set a password: `passwd(new)` one's own, `passwd(user, new)` somebody else's.

        Raises:
            BoxError: NO_SUCH_USER (45), ACCESS_DENIED (42), GUEST_USER_PASSWORD (96).
        """
        if name is None:
            usage = "Usage: box.schema.user.passwd([user,] password)"
            raise BoxError.with_message(ErrorCode.PROC_LUA, usage, type="ClientError")
        if password is not None:
            self._set_password(self._id(name), self.password(password))
            return
        user_id = self._box.session.uid()
        # Everybody may do that, also who may not write to `_user`.
        with self._box.session.su("admin"):
            self._set_password(user_id, self.password(name))

    def _set_password(self, user_id: int, stored: str | list[str]) -> None:
        rows = self._box.catalog.writable(system.USER)
        operation = ("=", 4, {self._box.access.auth_type: stored})
        rows.update(0, [user_id], rows.parse_operations([operation]))

    def password(self, password: str) -> str | list[str]:
        """What `_user` holds for a password: its hash for chap-sha1, or salt and hash for pap-sha256."""
        if not isinstance(password, str):
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "password should be a string")
        return hashed(password, self._box.access.auth_type)

    def enable(self, name: Name) -> None:
        """Let a user log in."""
        self.grant(name, "session,usage", "universe", if_not_exists=True)

    def disable(self, name: Name) -> None:
        """Let a user not log in any more."""
        self.revoke(name, "session,usage", "universe", if_exists=True)


class Roles(_Principals):
    """`box.schema.role`."""

    kind = "role"
    _missing_code = ErrorCode.NO_SUCH_ROLE
    _exists_code = ErrorCode.ROLE_EXISTS

    def create(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a role. Raises BoxError ROLE_EXISTS (83)."""
        self._create(name, {}, if_not_exists)

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
        """Give rights, or another role; see `Users.grant`. Session and usage cannot be given to a role."""
        self._id(name)
        _refuse_system_rights(privileges)
        super().grant(
            name, privileges, object_type, object_name, if_not_exists=if_not_exists, grantor=grantor
        )

    def revoke(
        self,
        name: Name,
        privileges: str | int,
        object_type: str | None = None,
        object_name: Name | None = None,
        *,
        if_exists: bool = False,
    ) -> None:
        """Take rights, or another role, away; see `Users.revoke`."""
        self._id(name)
        _refuse_system_rights(privileges)
        super().revoke(name, privileges, object_type, object_name, if_exists=if_exists)


def _long_form(
    privileges: str | int, object_type: str | None, object_name: Name | None
) -> tuple[str | int, str, Name]:
    """What is given or taken, in full: the name of a role, or a type without a name, are short forms."""
    if object_name is not None:
        return privileges, object_type or "", object_name
    if object_type is not None:
        return privileges, object_type, ""
    return "execute", "role", privileges


def _bits(privileges: object, object_type: object) -> int:
    """The rights that are named, as a sum of bits.

    Raises:
        BoxError: UNKNOWN_SCHEMA_OBJECT (49), or UNSUPPORTED_PRIV (98) where there is no such right on that.
    """
    allowed = _GRANTABLE.get(object_type) if isinstance(object_type, str) else None
    if allowed is None:
        raise BoxError(ErrorCode.UNKNOWN_SCHEMA_OBJECT, lua_text(object_type))
    bits = 0
    if isinstance(privileges, str):
        # As in Tarantool, whatever stands between the words.
        text = privileges.lower()
        bits = sum(int(bit) for word, bit in _WORDS.items() if word in text)
    elif isinstance(privileges, int) and not isinstance(privileges, bool):
        bits = privileges
    if not bits or bits & ~allowed:
        raise BoxError(ErrorCode.UNSUPPORTED_PRIV, object_type, lua_text(privileges))
    return bits


def _refuse_system_rights(privileges: object) -> None:
    if isinstance(privileges, str) and any(word in privileges.lower() for word in ("session", "usage")):
        raise BoxError(ErrorCode.GRANT, "system privilege can not be granted to role")
