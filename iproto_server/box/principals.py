"""`box.schema.user`, `box.schema.role` and `box.schema.func`: who there is and what they may do.

Source: Tarantool reference, "box.schema.user", "box.schema.role", "box.schema.func".
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from iproto_server import codec
from iproto_server.box.access import ADMIN, OBJECT_TYPES, PRIVILEGE_NAMES, PUBLIC, Credentials, Privilege
from iproto_server.box.format import check_identifier
from iproto_server.box.index import IteratorType
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import password_hash

if TYPE_CHECKING:
    from iproto_server.box.box import Box
    from iproto_server.box.memtx import MemtxSpace

_SYSTEM_IDS = 31
_EVERYTHING = 2**32 - 1


class _Principals:
    """What users and roles share: rights are given to both in the same words."""

    kind = "user"

    def __init__(self, box: Box) -> None:
        self._box = box

    def exists(self, name: str) -> bool:
        """Whether there is one of that name."""
        found = self._box.access.find(name)
        return found is not None and found.is_role == (self.kind == "role")

    def drop(self, name: str, *, if_exists: bool = False) -> None:
        """Remove it, with the rights it has and the objects it owns.

        Raises:
            BoxError: NO_SUCH_USER / NO_SUCH_ROLE, or DROP_USER for those the system needs.
        """
        if not self.exists(name):
            if if_exists:
                return
            raise self._missing(name)
        target = self._find(name)
        if target.user_id <= _SYSTEM_IDS:
            raise BoxError(ErrorCode.DROP_USER, name, "the user or the role is a system")
        self._box.check_universe(Privilege.DROP, self.kind, name, target.owner)
        with self._box.in_transaction():
            privileges = self._rows("_priv")
            for index_id in (0, 1):
                for raw in privileges.select(index_id, IteratorType.EQ, 0, _EVERYTHING, [target.user_id]):
                    privileges.delete(0, codec.unpack(raw)[1:4])
            for raw in privileges.select(2, IteratorType.EQ, 0, _EVERYTHING, [self.kind, target.user_id]):
                privileges.delete(0, codec.unpack(raw)[1:4])
            for core in self._box.catalog:
                if core.owner == target.user_id:
                    self._box.schema.drop_space(core.id)
            for function in list(self._box.catalog.accounts.functions.values()):
                if function.owner == target.user_id:
                    self._box.schema.func.drop(function.name)
            self._rows("_user").delete(0, [target.user_id])

    def grant(
        self,
        name: str,
        privileges: str,
        object_type: str | None = None,
        object_name: str | int | None = None,
        *,
        if_not_exists: bool = False,
    ) -> None:
        """Give rights, or a role.

        Parameters:
            name: to whom.
            privileges: such as "read,write"; or, alone, the name of a role.
            object_type: "universe", "space", "function", "user", "role" or "sequence".
            object_name: which one; None: all of the type.
            if_not_exists: do nothing when the rights are there already.

        Raises:
            BoxError: PRIV_GRANTED (89), ROLE_GRANTED (90), NO_SUCH_USER (45), NO_SUCH_ROLE (82) and others.
        """
        grantee = self._find(name)
        object_type, object_id, bits, words = self._meaning(privileges, object_type, object_name)
        before = self._box.access.granted(grantee.user_id, object_type, object_id)
        if before | bits == before:
            if if_not_exists:
                return
            if object_type == "role" and words == "execute":
                raise BoxError(
                    ErrorCode.ROLE_GRANTED, name, object_name if object_name is not None else privileges
                )
            raise BoxError(ErrorCode.PRIV_GRANTED, name, privileges, object_type, _shown(object_name))
        self._check_grant(object_type, object_id, privileges)
        grantor = self._box.session.current.credentials.user_id
        row = [grantor, grantee.user_id, object_type, object_id, before | bits]
        rows = self._rows("_priv")
        rows.replace(rows.row(row))

    def revoke(
        self,
        name: str,
        privileges: str,
        object_type: str | None = None,
        object_name: str | int | None = None,
        *,
        if_exists: bool = False,
    ) -> None:
        """Take rights, or a role, away; the parameters are those of `grant`.

        Raises:
            BoxError: PRIV_NOT_GRANTED (91), ROLE_NOT_GRANTED (92) and others.
        """
        grantee = self._find(name)
        object_type, object_id, bits, words = self._meaning(privileges, object_type, object_name)
        before = self._box.access.granted(grantee.user_id, object_type, object_id)
        if not before & bits:
            if if_exists:
                return
            if object_type == "role" and words == "execute":
                raise BoxError(
                    ErrorCode.ROLE_NOT_GRANTED, name, object_name if object_name is not None else privileges
                )
            raise BoxError(ErrorCode.PRIV_NOT_GRANTED, name, privileges, object_type, object_name or "")
        self._check_grant(object_type, object_id, privileges)
        rows = self._rows("_priv")
        key = [grantee.user_id, object_type, object_id]
        if before & ~bits:
            rows.update(0, key, rows.parse_operations([("=", 4, before & ~bits)]))
        else:
            rows.delete(0, key)

    def info(self, name: str | None = None) -> list[list[Any]]:
        """The rights given to it, as [privileges, object type, object name] rows."""
        target = self._box.session.current.credentials if name is None else self._find(name)
        result = []
        for raw in self._rows("_priv").select(0, IteratorType.EQ, 0, _EVERYTHING, [target.user_id]):
            _, _, object_type, object_id, bits = codec.unpack(raw)[:5]
            words = ",".join(word for word, bit in PRIVILEGE_NAMES.items() if word != "all" and bits & bit)
            result.append([words, object_type, self._object_name(object_type, object_id)])
        return result

    # -- parts of the above --

    def _create(self, name: str, auth: dict[str, str], if_not_exists: bool) -> None:
        if self._box.access.find(name) is not None:
            if if_not_exists and self.exists(name):
                return
            code = ErrorCode.ROLE_EXISTS if self.kind == "role" else ErrorCode.USER_EXISTS
            raise BoxError(code, name)
        check_identifier(name)
        self._box.check_universe(Privilege.CREATE, self.kind, name)
        with self._box.in_transaction():
            user_id = self._next_id()
            owner = self._box.session.current.credentials.user_id
            users = self._rows("_user")
            users.insert(users.row([user_id, owner, name, self.kind, auth]))
            if self.kind == "user":
                # As in Tarantool, a new user may log in, change itself, and has what everybody has.
                for object_type, object_id, bits in (
                    ("universe", 0, Privilege.SESSION | Privilege.USAGE),
                    ("user", user_id, Privilege.ALTER),
                    ("role", PUBLIC, Privilege.EXECUTE),
                ):
                    grants = self._rows("_priv")
                    grants.replace(grants.row([ADMIN, user_id, object_type, object_id, int(bits)]))

    def _next_id(self) -> int:
        top = self._rows("_user").select(0, IteratorType.REQ, 0, 1, [])
        last: int = codec.unpack(top[0])[0]
        return max(last, _SYSTEM_IDS) + 1

    def _find(self, name: str) -> Credentials:
        found = self._box.access.find(name)
        if found is None or found.is_role != (self.kind == "role"):
            raise self._missing(name)
        return found

    def _missing(self, name: str) -> BoxError:
        return BoxError(ErrorCode.NO_SUCH_ROLE if self.kind == "role" else ErrorCode.NO_SUCH_USER, name)

    def _meaning(
        self, privileges: str, object_type: str | None, object_name: str | int | None
    ) -> tuple[str, int | str, int, str]:
        """(object type, object id, the bits, the words) of what is given or taken."""
        if object_type is None and object_name is None:
            # The short form: privileges is the name of a role.
            object_type, object_name, privileges = "role", privileges, "execute"
        if object_type is None or object_type not in OBJECT_TYPES:
            raise BoxError(ErrorCode.UNKNOWN_SCHEMA_OBJECT, object_type)
        bits = 0
        for word in privileges.split(","):
            bit = PRIVILEGE_NAMES.get(word.strip().lower())
            if bit is None:
                raise BoxError(ErrorCode.UNSUPPORTED_PRIV, object_type, word.strip())
            bits |= bit
        return object_type, self._object_id(object_type, object_name), bits, privileges

    def _object_id(self, object_type: str, name: str | int | None) -> int | str:
        if object_type == "universe":
            return 0
        if name is None or name == "":
            return ""
        if object_type == "space":
            return self._box.catalog.space(name).id if isinstance(name, int) else self._box.space[name].id
        if object_type == "function":
            function = self._box.catalog.accounts.functions.get(str(name))
            if function is None:
                raise BoxError(ErrorCode.NO_SUCH_FUNCTION, name)
            return function.id
        if object_type == "sequence":
            raise BoxError(ErrorCode.NO_SUCH_SEQUENCE, name)
        found = self._box.access.find(str(name))
        if found is None or found.is_role != (object_type == "role"):
            code = ErrorCode.NO_SUCH_ROLE if object_type == "role" else ErrorCode.NO_SUCH_USER
            raise BoxError(code, name)
        return found.user_id

    def _object_name(self, object_type: str, object_id: int | str) -> str:
        if object_type == "universe" or object_id == "":
            return ""
        assert isinstance(object_id, int)
        if object_type == "space":
            return self._box.catalog.space(object_id).name
        if object_type == "function":
            return next(f.name for f in self._box.catalog.accounts.functions.values() if f.id == object_id)
        if object_type in ("user", "role"):
            return self._box.access.by_id(object_id).name
        return str(object_id)

    def _check_grant(self, object_type: str, object_id: int | str, what: str) -> None:
        """Only the owner of an object, or admin, gives rights on it."""
        user = self._box.session.current.credentials
        if user.user_id == ADMIN:
            return
        owner = ADMIN
        if object_type == "space" and isinstance(object_id, int):
            owner = self._box.catalog.space(object_id).owner
        elif object_type == "function" and isinstance(object_id, int):
            functions = self._box.catalog.accounts.functions.values()
            owner = next(function.owner for function in functions if function.id == object_id)
        elif object_type in ("user", "role") and isinstance(object_id, int):
            owner = self._box.access.by_id(object_id).owner
        if owner != user.user_id:
            raise BoxError(
                ErrorCode.ACCESS_DENIED,
                "Grant",
                object_type,
                self._object_name(object_type, object_id),
                user.name,
            )

    def _rows(self, name: str) -> MemtxSpace:
        return self._box.catalog.space_by_name(name)


class Users(_Principals):
    """`box.schema.user`."""

    kind = "user"

    def create(self, name: str, *, password: str | None = None, if_not_exists: bool = False) -> None:
        """Create a user.

        Parameters:
            name: the user's name.
            password: without one nobody can log in as the user.
            if_not_exists: do nothing when there is such a user.

        Raises:
            BoxError: USER_EXISTS (46), IDENTIFIER (70).
        """
        self._create(name, {} if password is None else {"chap-sha1": self.password(password)}, if_not_exists)

    def passwd(self, name: str, password: str | None = None) -> None:
        """Set a password: `passwd(new)` one's own, `passwd(user, new)` somebody else's."""
        current = self._box.session.current.credentials
        target = current if password is None else self._find(name)
        new = name if password is None else password
        if target is not current:
            self._box.check_universe(Privilege.ALTER, "user", target.name, target.owner)
        rows = self._rows("_user")
        rows.update(0, [target.user_id], rows.parse_operations([("=", 4, {"chap-sha1": self.password(new)})]))

    @staticmethod
    def password(password: str) -> str:
        """The hash that `_user` holds for a password: base64 of SHA-1 of SHA-1."""
        return password_hash(password)


class Roles(_Principals):
    """`box.schema.role`."""

    kind = "role"

    def create(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a role. Raises BoxError ROLE_EXISTS (83)."""
        self._create(name, {}, if_not_exists)


class Functions:
    """`box.schema.func`: names of procedures that rights can be given on."""

    def __init__(self, box: Box) -> None:
        self._box = box

    def exists(self, name: str) -> bool:
        """Whether `_func` has the name."""
        return name in self._box.catalog.accounts.functions

    def create(
        self, name: str, *, setuid: bool = False, if_not_exists: bool = False, language: str = "LUA"
    ) -> None:
        """Register a procedure's name. Raises BoxError FUNCTION_EXISTS (52)."""
        if self.exists(name):
            if if_not_exists:
                return
            raise BoxError(ErrorCode.FUNCTION_EXISTS, name)
        check_identifier(name)
        self._box.check_universe(Privilege.CREATE, "function", name)
        rows = self._box.catalog.space_by_name("_func")
        last = codec.unpack(rows.select(0, IteratorType.REQ, 0, 1, [])[0])[0] if len(rows) else 0
        now = datetime.now().strftime("%Y-%m-%d %H:%M:%S")
        owner = self._box.session.current.credentials.user_id
        row: list[Any] = [
            last + 1,
            owner,
            name,
            int(setuid),
            language,
            "",
            "function",
            [],
            "any",
            "none",
            "none",
        ]
        row += [False, False, True, ["LUA"], {}, "", now, now]
        rows.insert(rows.row(row))

    def drop(self, name: str, *, if_exists: bool = False) -> None:
        """Forget a procedure's name and the rights on it. Raises BoxError NO_SUCH_FUNCTION (51)."""
        function = self._box.catalog.accounts.functions.get(name)
        if function is None:
            if if_exists:
                return
            raise BoxError(ErrorCode.NO_SUCH_FUNCTION, name)
        self._box.check_universe(Privilege.DROP, "function", name, function.owner)
        with self._box.in_transaction():
            privileges = self._box.catalog.space_by_name("_priv")
            for raw in privileges.select(2, IteratorType.EQ, 0, _EVERYTHING, ["function", function.id]):
                privileges.delete(0, codec.unpack(raw)[1:4])
            self._box.catalog.space_by_name("_func").delete(0, [function.id])


def _shown(object_name: str | int | None) -> str:
    return "" if object_name is None else f" '{object_name}'"
