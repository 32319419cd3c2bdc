"""Users, roles and rights: who may do what.

Rights are bits, as in `_priv`. A user's rights are its own and those of every role it has, directly or
through another role; everybody has the role `public`, and an owner has every right on what it owns.

Source: Tarantool manual, "Access control".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntFlag
from typing import Protocol

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import CHAP_SHA1

GUEST, ADMIN, PUBLIC, SUPER = 0, 1, 2, 31


class Privilege(IntFlag):
    """The bits of `_priv.privilege`."""

    READ = 1
    WRITE = 2
    EXECUTE = 4
    SESSION = 8
    USAGE = 16
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
"""What everybody needs to log in at all; guest has it in every database."""

OBJECT_TYPES = ("universe", "space", "function", "user", "role", "sequence")


class Owned(Protocol):
    """A space, a function or a sequence, as far as rights on it are concerned."""

    @property
    def id(self) -> int:
        """Its number in its system space."""

    @property
    def name(self) -> str:
        """Its name, for the messages."""

    @property
    def owner(self) -> int:
        """The user id of its owner."""


class Credentials:
    """A user or role, with its rights summed up.

    `universe` holds the rights on everything; `objects` those on one object, by (object type, object id),
    where the object id "" stands for every object of the type.
    """

    __slots__ = ("auth", "is_role", "name", "objects", "owner", "universe", "user_id")

    def __init__(self, user_id: int, owner: int, name: str, is_role: bool, auth: dict[str, object]) -> None:
        self.user_id = user_id
        self.owner = owner
        self.name = name
        self.is_role = is_role
        self.auth = auth
        self.universe = 0
        self.objects: dict[tuple[str, int | str], int] = {}

    def granted(self, object_type: str, object_id: int | str) -> int:
        """The rights on one object, as a sum of bits: those on everything and on all like it included.

        Usage can be granted on everything or on all objects of a type only.
        """
        objects = self.objects
        general = self.universe | objects.get((object_type, ""), 0)
        return general | objects.get((object_type, object_id), 0) & ~Privilege.USAGE


class AccessControl:
    """Everybody known, and the checks. Kept in step with `_user` and `_priv` by the catalog.

    Attributes:
        auth_type: the method of AUTH for which new passwords are hashed.
        guest_changed: is called when guest has got its first grant, or has lost its last one.
    """

    def __init__(self) -> None:
        self.auth_type = CHAP_SHA1
        self._by_id: dict[int, Credentials] = {}
        self._by_name: dict[str, Credentials] = {}
        self._grants: dict[int, dict[tuple[str, int | str], int]] = {}
        self._is_open_to_guest = False
        self._is_guest_a_stranger = False
        self.guest_changed: Callable[[], None] = _nothing
        self._is_loading = False

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Forget everybody, and sum up rights only at the end of the block, in which all users come anew."""
        self._is_loading = True
        self._by_name = {}
        self._grants = {}
        try:
            yield
        finally:
            self._is_loading = False
            for user in list(self._by_id.values()):
                if self._by_name.get(user.name) is not user:
                    del self._by_id[user.user_id]
            self._sum_up()

    # -- users --

    def add(self, user_id: int, owner: int, name: str, kind: str, auth: dict[str, object]) -> None:
        """A row of `_user` has come."""
        user = self._by_id.get(user_id)
        if user is None:
            user = self._by_id[user_id] = Credentials(user_id, owner, name, kind == "role", auth)
        else:
            # Open sessions hold the object, so it stays the same one.
            self._by_name.pop(user.name, None)
            user.owner, user.name, user.is_role, user.auth = owner, name, kind == "role", auth
        self._by_name[name] = user
        self._sum_up()

    def remove(self, user_id: int) -> None:
        """A row of `_user` has gone."""
        user = self._by_id.pop(user_id)
        self._by_name.pop(user.name, None)
        user.universe, user.objects = 0, {}
        self._sum_up()

    def by_id(self, user_id: int) -> Credentials:
        """The user or role of that number. Raises BoxError NO_SUCH_USER."""
        user = self._by_id.get(user_id)
        if user is None:
            raise BoxError(ErrorCode.NO_SUCH_USER, user_id)
        return user

    def for_session(self, name: str | int) -> Credentials:
        """The user of that name or number, who may have a session.

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
        """Hash new passwords for this method of AUTH from now on; those that there are stay as they are."""
        self.auth_type = auth_type

    @property
    def has_passwords(self) -> bool:
        """Whether anybody but guest can log in: without that, access has not been configured."""
        return any(user.auth for user in self._by_id.values() if user.user_id != GUEST)

    # -- rights --

    def grant(self, grantee: int, object_type: str, object_id: int | str, privilege: int) -> None:
        """A row of `_priv` has come; a privilege of 0 takes it away."""
        grants = self._grants.setdefault(grantee, {})
        if privilege:
            grants[object_type, object_id] = privilege
        else:
            grants.pop((object_type, object_id), None)
        self._sum_up()

    def open_to_guest(self) -> None:
        """Give guest all rights from now on; no row of `_priv` says so, and nothing of it is kept."""
        self._is_open_to_guest = True
        self._sum_up()

    def is_stranger(self, user: Credentials) -> bool:
        """Whether a session that acts as the user may be anybody's: guest's, who has no right of its own."""
        return user.user_id == GUEST and self._is_guest_a_stranger

    def roles_of(self, user_id: int) -> set[int]:
        """Every role a user or role has, directly or through others, itself included."""
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
        """Whether somebody has the role, and not only rights on it."""
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
        is_stranger = self._has_guest_no_grant()
        if is_stranger != self._is_guest_a_stranger:
            self._is_guest_a_stranger = is_stranger
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
        """Raise BoxError ACCESS_DENIED unless the user may read or write the space; its owner may both."""
        granted = user.granted("space", space.id)
        if granted & Privilege.USAGE and (granted & privilege or space.owner == user.user_id):
            return
        if not user.universe & Privilege.USAGE:
            raise denied(Privilege.USAGE, "universe", "", user.name)
        raise denied(privilege, "space", space.name, user.name)

    def check_call(self, user: Credentials, name: str, function: Owned | None) -> None:
        """Raise BoxError ACCESS_DENIED unless the user may call the function.

        Parameters:
            user: the caller.
            name: the function's name.
            function: its row in `_func`; None for one that `_func` does not know, which can be called by
                those who may execute everything.
        """
        needed = Privilege.EXECUTE | Privilege.USAGE
        if function is None:
            missing = needed & ~user.universe
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
        """Raise BoxError ACCESS_DENIED unless the user may create, alter, drop, or grant rights on an object.

        The owner may, except create: every object to be created is its creator's own.
        """
        missing = (privilege | Privilege.USAGE) & ~user.universe & ~user.objects.get((object_type, ""), 0)
        if missing & Privilege.USAGE:
            raise denied(Privilege.USAGE, "universe", "", user.name)
        if not missing or (owner == user.user_id and privilege != Privilege.CREATE):
            return
        if missing & ~user.objects.get((object_type, object_id), 0):
            raise denied(privilege, object_type, name, user.name)


def _nothing() -> None:
    """What is called where nobody wants to know."""


def denied(privilege: int, object_type: str, name: str, user: str) -> BoxError:
    """The error 42 for missing rights; it names the first of them."""
    first = Privilege(int(privilege) & -int(privilege))
    return BoxError(ErrorCode.ACCESS_DENIED, (first.name or "").capitalize(), object_type, name, user)
