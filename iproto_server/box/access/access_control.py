"""Users, roles and privileges.

Privileges are bits, as in `_priv`. A user has its own privileges and those of each of its roles, direct or
through other roles. Everybody has the role `public`, and owners have all privileges on their objects.

Source: Tarantool manual, "Access control".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntFlag
from typing import Protocol

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import _native
from iproto_server.password import CHAP_SHA1

GUEST, ADMIN, PUBLIC, SUPER = 0, 1, 2, 31


class Privilege(IntFlag):
    """The bits of `_priv.privilege`."""

    READ = _native.PRIVILEGE_READ
    WRITE = _native.PRIVILEGE_WRITE
    EXECUTE = _native.PRIVILEGE_EXECUTE
    SESSION = 8
    USAGE = _native.PRIVILEGE_USAGE
    CREATE = 32
    DROP = 64
    ALTER = 128
    REFERENCE = 256
    TRIGGER = 512
    INSERT = 1024
    UPDATE = 2048
    DELETE = 4096
    GRANT = 8192
    REVOKE = 16384
    ALL = 4294967295


_SESSIONS = int(Privilege.SESSION | Privilege.USAGE)
"""The privileges needed to log in; guest has them in every new database."""

OBJECT_TYPES = ("universe", "space", "function", "user", "role", "sequence")
OBJECT_TYPES_OF_3 = ("lua_call", "lua_eval", "sql")
"""Objects of grants that Tarantool 3 has stored. Only `lua_call` has an effect here, since neither EVAL nor
SQL is served."""
_LUA_CALL = "lua_call"
_BUILT_IN = "box."


class Owned(Protocol):
    """An object with an owner: a space, a function or a sequence."""

    @property
    def id(self) -> int:
        """Its number in its system space."""

    @property
    def name(self) -> str:
        """Its name, for the messages."""

    @property
    def owner(self) -> int:
        """The user id of its owner."""


class Credentials(_native.CredentialsState):
    """A user or role with its effective privileges.

    `universe` has the privileges on the universe; `objects` has those on single objects by (object type,
    object id), where the object id "" means all objects of the type.
    """

    __slots__ = ("auth", "is_role", "name", "objects", "owner", "user_id")

    def __init__(self, user_id: int, owner: int, name: str, is_role: bool, auth: dict[str, object]) -> None:
        self.user_id = user_id
        self.owner = owner
        self.name = name
        self.is_role = is_role
        self.auth = auth
        self.universe = 0
        self.objects: dict[tuple[str, int | str], int] = {}

    def granted(self, object_type: str, object_id: int | str) -> int:
        """The privileges on one object as a sum of bits, including those on the universe and on its type.

        USAGE is effective only if granted on the universe or on a type.
        """
        objects = self.objects
        general = self.universe | objects.get((object_type, ""), 0)
        return general | objects.get((object_type, object_id), 0) & ~Privilege.USAGE


class AccessControl:
    """All users and roles, and the access checks. The catalog keeps it in step with `_user` and `_priv`.

    Attributes:
        auth_type: the authentication method for which new passwords are hashed.
        guest_changed: called when guest gets its first grant or loses its last one.
    """

    def __init__(self) -> None:
        self.auth_type = CHAP_SHA1
        self._by_id: dict[int, Credentials] = {}
        self._by_name: dict[str, Credentials] = {}
        self._grants: dict[int, dict[tuple[str, int | str], int]] = {}
        self._is_open_to_guest = False
        self._is_guest_unauthenticated = False
        self.guest_changed: Callable[[], None] = _nothing
        self._is_loading = False
        self._loaded: set[int] = set()
        """The numbers of users that were added since loading began."""

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Replace all users and grants in a block; effective privileges are computed at its end."""
        self._is_loading = True
        self._loaded = set()
        self._by_name = {}
        self._grants = {}
        try:
            yield
        finally:
            self._is_loading = False
            for user_id in self._by_id.keys() - self._loaded:
                del self._by_id[user_id]
            self._sum_up()

    # -- users --

    def add(self, user_id: int, owner: int, name: str, kind: str, auth: dict[str, object]) -> None:
        """Add or replace the user or role of a row of `_user`."""
        user = self._by_id.get(user_id)
        if user is None:
            user = self._by_id[user_id] = Credentials(user_id, owner, name, kind == "role", auth)
        else:
            # Open sessions refer to this object, so it is updated in place.
            self._forget_name(user)
            user.owner, user.name, user.is_role, user.auth = owner, name, kind == "role", auth
        self._by_name[name] = user
        if self._is_loading:
            self._loaded.add(user_id)
        self._sum_up()

    def remove(self, user_id: int) -> None:
        """Remove the user or role of a row of `_user`."""
        user = self._by_id.pop(user_id)
        self._forget_name(user)
        user.universe, user.objects = 0, {}
        self._sum_up()

    def _forget_name(self, user: Credentials) -> None:
        """Without the unique index of names in `_user`, another user may have the name, too."""
        if self._by_name.get(user.name) is user:
            del self._by_name[user.name]

    def by_id(self, user_id: int) -> Credentials:
        """The user or role of that number. Raises BoxError NO_SUCH_USER."""
        user = self._by_id.get(user_id)
        if user is None:
            raise BoxError(ErrorCode.NO_SUCH_USER, user_id)
        return user

    def for_session(self, name: str | int) -> Credentials:
        """The user of that name or number, if it may have a session.

        Raises:
            BoxError: NO_SUCH_USER (45), also for the name of a role; ACCESS_DENIED (42), also for the number
                of one.
        """
        user = self._by_name.get(name) if isinstance(name, str) else self._by_id.get(name)
        if user is None or (user.is_role and user.name == name):
            raise BoxError(ErrorCode.NO_SUCH_USER, name)
        self.check_session(user)
        return user

    def find_id(self, user_id: int | str) -> Credentials | None:
        """The user or role of that number, or None."""
        return self._by_id.get(user_id) if isinstance(user_id, int) else None

    def by_name(self, name: str) -> Credentials:
        """The user of that name. Raises BoxError NO_SUCH_USER (45), also for a role."""
        user = self._by_name.get(name)
        if user is None or user.is_role:
            raise BoxError(ErrorCode.NO_SUCH_USER, name)
        return user

    def find(self, name: str) -> Credentials | None:
        """The user or role of that name, or None."""
        return self._by_name.get(name)

    def set_auth_type(self, auth_type: str) -> None:
        """Set the authentication method for which new passwords are hashed; stored ones stay."""
        self.auth_type = auth_type

    @property
    def has_passwords(self) -> bool:
        """Whether any user but guest has a password; if not, access was never configured."""
        return any(user.auth for user in self._by_id.values() if user.user_id != GUEST)

    # -- privileges --

    def grant(self, grantee: int, object_type: str, object_id: int | str, privilege: int) -> None:
        """Set the privileges of a row of `_priv`; 0 removes the grant."""
        grants = self._grants.setdefault(grantee, {})
        if privilege:
            grants[object_type, object_id] = privilege
        else:
            grants.pop((object_type, object_id), None)
        self._sum_up()

    def open_to_guest(self) -> None:
        """Give guest all privileges from now on, without a row of `_priv`; nothing is stored."""
        self._is_open_to_guest = True
        self._sum_up()

    def is_unauthenticated(self, user: Credentials) -> bool:
        """Whether the user is guest without any grant: its sessions count as unauthenticated."""
        return user.user_id == GUEST and self._is_guest_unauthenticated

    def roles_of(self, user_id: int) -> set[int]:
        """All roles of a user or role, direct and indirect, itself included."""
        reached: set[int] = set()
        to_visit = [user_id]
        while to_visit:
            current = to_visit.pop()
            if current in reached:
                continue
            reached.add(current)
            to_visit += [
                int(object_id)
                for (kind, object_id), privilege in self._grants.get(current, {}).items()
                if kind == "role" and object_id != "" and privilege & Privilege.EXECUTE
            ]
        return reached

    def is_granted(self, role_id: int) -> bool:
        """Whether any user or role has been granted the role."""
        return any(grants.get(("role", role_id), 0) & Privilege.EXECUTE for grants in self._grants.values())

    def _sum_up(self) -> None:
        if self._is_loading:
            return
        for user in self._by_id.values():
            has_all = user.user_id == ADMIN or (user.user_id == GUEST and self._is_open_to_guest)
            universe = int(Privilege.ALL) if has_all else 0
            objects: dict[tuple[str, int | str], int] = {}
            for member in self.roles_of(user.user_id):
                for (kind, object_id), privilege in self._grants.get(member, {}).items():
                    if kind == "universe":
                        universe |= privilege
                    else:
                        objects[kind, object_id] = objects.get((kind, object_id), 0) | privilege
            user.universe = universe
            user.objects = objects
        is_unauthenticated = self._has_guest_no_grant()
        if is_unauthenticated != self._is_guest_unauthenticated:
            self._is_guest_unauthenticated = is_unauthenticated
            self.guest_changed()

    def _has_guest_no_grant(self) -> bool:
        """Whether guest may do no more than `public`: sessions, and what the role is granted."""
        guest, public = self._by_id.get(GUEST), self._by_id.get(PUBLIC)
        if guest is None or public is None:
            return False
        general = guest.universe & ~(_SESSIONS | public.universe)
        return not general and all(
            not rights & ~public.objects.get(place, 0)
            for place, rights in guest.objects.items()
            if place != ("role", PUBLIC)
        )

    # -- checks --

    def check_session(self, user: Credentials) -> None:
        """Raise BoxError ACCESS_DENIED unless the user may have a session."""
        if not user.universe & Privilege.SESSION:
            raise denied(Privilege.SESSION, "universe", "", user.name)

    def check_space(self, user: Credentials, privilege: Privilege, space: Owned) -> None:
        """Raise BoxError ACCESS_DENIED unless the user has the privilege on the space or owns it."""
        granted = user.granted("space", space.id)
        if granted & Privilege.USAGE and (granted & privilege or space.owner == user.user_id):
            return
        if not user.universe & Privilege.USAGE:
            raise denied(Privilege.USAGE, "universe", "", user.name)
        raise denied(privilege, "space", space.name, user.name)

    def check_eval(self, user: Credentials) -> None:
        """Raise BoxError ACCESS_DENIED unless the user may evaluate code: EXECUTE on the universe."""
        missing = (Privilege.EXECUTE | Privilege.USAGE) & ~user.universe
        if missing:
            raise denied(Privilege.EXECUTE, "universe", "", user.name)

    def check_call(self, user: Credentials, name: str, function: Owned | None) -> None:
        """Raise BoxError ACCESS_DENIED unless the user may call the function.

        Parameters:
            user: the caller.
            name: the function's name.
            function: its row in `_func`; None if it has none: then EXECUTE on the universe is needed, or
                on `lua_call`, which without a name covers all functions but those of `box`.
        """
        needed = Privilege.EXECUTE | Privilege.USAGE
        if function is None:
            missing = needed & ~user.universe
            if missing and not name.startswith(_BUILT_IN):
                missing &= ~user.objects.get((_LUA_CALL, ""), 0)
            if not missing & Privilege.USAGE:
                missing &= ~user.objects.get((_LUA_CALL, name), 0)
            if missing:
                raise denied(missing, "function", name, user.name)
            return
        missing = needed & ~user.granted("function", function.id)
        if missing & Privilege.USAGE or (missing and function.owner != user.user_id):
            raise denied(Privilege.EXECUTE, "function", name, user.name)

    def check_definition(
        self,
        user: Credentials,
        privilege: Privilege,
        object_type: str,
        object_id: int | str,
        name: str,
        owner: int,
    ) -> None:
        """Raise BoxError ACCESS_DENIED unless the user may create, alter, drop or grant on an object.

        Owners may do all of that except create.
        """
        missing = (privilege | Privilege.USAGE) & ~user.universe & ~user.objects.get((object_type, ""), 0)
        if missing & Privilege.USAGE:
            raise denied(Privilege.USAGE, "universe", "", user.name)
        if not missing or (owner == user.user_id and privilege != Privilege.CREATE):
            return
        if missing & ~user.objects.get((object_type, object_id), 0):
            raise denied(privilege, object_type, name, user.name)


def _nothing() -> None:
    """Do nothing: the default of `guest_changed`."""


def denied(privilege: int, object_type: str, name: str, user: str) -> BoxError:
    """The error 42 for missing privileges; it names the first of them."""
    first = Privilege(int(privilege) & -int(privilege))
    return BoxError(ErrorCode.ACCESS_DENIED, (first.name or "").capitalize(), object_type, name, user)
