"""Users and roles of a configuration file.

Source: Tarantool 3 manual, "Configuration reference", `credentials`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ConfiguredGrant:
    """Privileges on objects.

    Parameters:
        path: where the file has them, `credentials.users.ann.privileges[1]`.
        privileges: such as `("read", "write")`.
        object_type: "universe", "space", "function" or "sequence".
        object_name: the object; None: all of the type.
    """

    path: str
    privileges: tuple[str, ...]
    object_type: str
    object_name: str | None = None


@dataclass(frozen=True, slots=True)
class ConfiguredPrincipal:
    """A user or a role.

    Parameters:
        name: its name.
        path: where the file has it, `credentials.users.ann`.
        password: a user's password; None: the stored one stays, and a new user cannot log in.
        roles: names of the roles that it has.
        grants: its privileges.
    """

    name: str
    path: str
    password: str | None = field(default=None, repr=False)
    roles: tuple[str, ...] = ()
    grants: tuple[ConfiguredGrant, ...] = ()


@dataclass(frozen=True, slots=True)
class Credentials:
    """The users and roles that exist once the server has started.

    Parameters:
        roles: the roles.
        users: the users; `guest` and `admin` may be among them.
    """

    roles: tuple[ConfiguredPrincipal, ...] = ()
    users: tuple[ConfiguredPrincipal, ...] = ()

    def beside(self, others: Credentials | None) -> Credentials:
        """Return these users and roles after others."""
        if others is None:
            return self
        return Credentials(others.roles + self.roles, others.users + self.users)
