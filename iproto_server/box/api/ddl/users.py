"""`box.schema.user` and `box.schema.role`: users, roles and their privileges.

Source: Tarantool reference, "box.schema.user", "box.schema.role".
"""

from __future__ import annotations

from iproto_server.box.access.access_control import ADMIN, PUBLIC
from iproto_server.box.api.ddl.principals import Principals
from iproto_server.box.api.ddl.privileges import Name, refuse_system_privileges
from iproto_server.box.catalog import system_space_ids as system
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import hashed


class Users(Principals):
    """`box.schema.user`."""

    def create(self, name: str, *, password: str | None = None, if_not_exists: bool = False) -> None:
        """Create a user that may log in, alter itself, and has the role `public`.

        Parameters:
            name: the user's name.
            password: None: no login as this user is possible.
            if_not_exists: do nothing if the user exists.

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
            # Only admin grants privileges on the universe.
            with self._box.session.su(ADMIN):
                self.grant(user_id, "session,usage", "universe", if_not_exists=True)

    def passwd(self, name: str, password: str | None = None) -> None:
        """Set a password: `passwd(new)` sets one's own, `passwd(user, new)` that of another user.

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
        # Users may change their own password without the right to write to `_user`.
        with self._box.session.su(ADMIN):
            self._set_password(user_id, self.password(name))

    def _set_password(self, user_id: int, stored: str | list[str]) -> None:
        rows = self._box.catalog.writable(system.USER)
        operation = ("=", 4, {self._box.access.auth_type: stored})
        rows.update(0, [user_id], rows.parse_operations([operation]))

    def password(self, password: str) -> str | list[str]:
        """The form in which `_user` stores a password: a hash for chap-sha1, salt and hash for pap-sha256."""
        if not isinstance(password, str):
            raise BoxError(ErrorCode.ILLEGAL_PARAMS, "password should be a string")
        return hashed(password, self._box.access.auth_type)

    def enable(self, name: Name) -> None:
        """Allow a user to log in."""
        self.grant(name, "session,usage", "universe", if_not_exists=True)

    def disable(self, name: Name) -> None:
        """Forbid a user to log in."""
        self.revoke(name, "session,usage", "universe", if_exists=True)


class Roles(Principals):
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
        """Grant privileges, or another role; see `Users.grant`. A role cannot have "session" and "usage"."""
        self._id(name)
        refuse_system_privileges(privileges)
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
        """Revoke privileges, or another role; see `Users.revoke`."""
        self._id(name)
        refuse_system_privileges(privileges)
        super().revoke(name, privileges, object_type, object_name, if_exists=if_exists)
