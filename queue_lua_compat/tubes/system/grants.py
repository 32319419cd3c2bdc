"""The privileges that users of a tube need, as rows of `_priv` and `_func`.

Source: README of github.com/tarantool/queue, "Granting access to a queue".
"""

from __future__ import annotations

from typing import Final, Protocol

from iproto_server import Box, BoxError
from queue_lua_compat.tubes.driver import Options, TubeDriver
from queue_lua_compat.tubes.system.system_spaces import (
    CONSUMERS,
    QUEUE,
    SESSION_IDS,
    SHARED_SESSIONS,
    TAKEN,
)

_FUNCTIONS: Final = ("queue.identify", "queue.statistics")
_METHODS: Final = ("put", "take", "touch", "ack", "release", "peek", "bury", "kick", "delete")
_BULK_METHODS: Final = ("put_many", "take_many", "ack_many")
_PREFIX: Final = "queue.tube"


class Grantees(Protocol):
    """`box.schema.user` or `box.schema.role`."""

    def grant(
        self,
        name: str,
        privileges: str,
        object_type: str | None = None,
        object_name: str | None = None,
        *,
        if_not_exists: bool = False,
    ) -> None:
        """Grant privileges to a user or role."""


def grant_to_user(box: Box, driver: TubeDriver, tube: str, user: str, options: Options) -> None:
    """Grant a user access to a tube.

    Parameters:
        box: the box.
        driver: the driver of the tube.
        tube: the tube's name.
        user: the user's name.
        options: as for `grant_calls`.
    """
    grant_spaces(box.schema.user, user)
    driver.grant(user, if_not_exists=True)
    grant_calls(box, box.schema.user, user, tube, options)


def grant_to_role(box: Box, driver: TubeDriver, tube: str, role: str, options: Options) -> None:
    """Grant a role access to a tube.

    Parameters:
        box, driver, tube, options: as for `grant_to_user`.
        role: the role's name.

    Raises:
        BoxError: the driver does not support roles.
    """
    if not driver.supports_grant_role:
        raise BoxError.procedure(f"Tube {tube} driver does not support grant_role()")
    driver.grant_role(role, if_not_exists=True)
    grant_spaces(box.schema.role, role)
    grant_calls(box, box.schema.role, role, tube, options)


def grant_spaces(grantees: Grantees, grantee: str) -> None:
    """Grant a user or role access to the spaces that all tubes share.

    Parameters:
        grantees: `box.schema.user` or `box.schema.role`.
        grantee: the name.
    """
    grantees.grant(grantee, "read", "space", QUEUE, if_not_exists=True)
    for space in (CONSUMERS, TAKEN, SESSION_IDS, SHARED_SESSIONS):
        grantees.grant(grantee, "read,write", "space", space, if_not_exists=True)


def grant_calls(box: Box, grantees: Grantees, grantee: str, tube: str, options: Options) -> None:
    """Grant a user or role the procedures of a tube.

    Parameters:
        box: the box.
        grantees, grantee: as for `grant_spaces`.
        tube: the tube's name.
        options: `call` for the procedures, `truncate` for that procedure, `prefix` if clients find the tubes
            under another name than "queue.tube".
    """
    prefix = f"{options.get('prefix') or _PREFIX}.{tube}:"
    names: list[str] = []
    if options.get("call"):
        names += [*_FUNCTIONS, *(prefix + method for method in (*_METHODS, *_BULK_METHODS))]
    if options.get("truncate"):
        names.append(prefix + "truncate")
    for name in names:
        box.schema.func.create(name, if_not_exists=True)
        grantees.grant(grantee, "execute", "function", name, if_not_exists=True)
