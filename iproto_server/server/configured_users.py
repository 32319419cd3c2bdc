"""The users and roles of a configuration file, in the database.

They are made at each start; what is there already stays as it is. A user, role or privilege that has left the
file stays in the database.

Source: Tarantool 3 manual, "Configuration reference", `credentials`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from iproto_server.box import Box
from iproto_server.box.api.ddl.users import Roles, Users
from iproto_server.config.config import ConfigError
from iproto_server.config.credentials import ConfiguredGrant, ConfiguredPrincipal, Credentials
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.password import PAP_SHA256, fits_salted, password_hash

logger = logging.getLogger("iproto_server.server")

_MISSING = (ErrorCode.NO_SUCH_SPACE, ErrorCode.NO_SUCH_SEQUENCE)


def create_configured_users(box: Box, credentials: Credentials) -> None:
    """Create the users and roles, set passwords and grant privileges, in one transaction.

    A privilege on a space or sequence that does not exist is a warning in the log; it is granted at the next
    start.

    Parameters:
        box: the database, after the setups of the applications.
        credentials: the users and roles.

    Raises:
        ConfigError: one of them is impossible, such as a role that does not exist; the message has its
            place in the file.
        BoxError: the changes cannot be logged.
    """
    box.run(box.session.background, _create, box, credentials)


def _create(box: Box, credentials: Credentials) -> None:
    users, roles = box.schema.user, box.schema.role
    for principals, configured in ((roles, credentials.roles), (users, credentials.users)):
        for each in configured:
            with _place(each.path):
                principals.create(each.name, if_not_exists=True)
            if not principals.exists(each.name):
                raise ConfigError(f'{each.path}: there is a {_other(principals)} of the name "{each.name}"')
            _set_password(box, each)
    for principals, configured in ((roles, credentials.roles), (users, credentials.users)):
        for each in configured:
            for role in each.roles:
                with _place(f"{each.path}.roles"):
                    principals.grant(each.name, role, if_not_exists=True)
            for grant in each.grants:
                _grant(box, principals, each.name, grant)


def _other(principals: Users | Roles) -> str:
    return "user" if isinstance(principals, Roles) else "role"


@contextmanager
def _place(path: str) -> Iterator[None]:
    """Turn an error of the database into one of the configuration. Raises ConfigError."""
    try:
        yield
    except BoxError as error:
        raise ConfigError(f"{path}: {error.message}") from error


def _set_password(box: Box, user: ConfiguredPrincipal) -> None:
    """Set the password, unless it is set already: then the log gets no row."""
    if user.password is None:
        return
    access = box.access
    stored = access.by_name(user.name).auth.get(access.auth_type)
    if access.auth_type == PAP_SHA256:
        is_set = fits_salted(stored, user.password)
    else:
        is_set = stored == password_hash(user.password)
    if not is_set:
        with _place(f"{user.path}.password"):
            box.schema.user.passwd(user.name, user.password)


def _grant(box: Box, principals: Users | Roles, name: str, grant: ConfiguredGrant) -> None:
    if grant.object_type == "function" and grant.object_name is not None:
        # A procedure has a row in `_func` only if privileges on it are granted.
        with _place(grant.path):
            box.schema.func.create(grant.object_name, if_not_exists=True)
    try:
        principals.grant(
            name,
            ",".join(grant.privileges),
            grant.object_type,
            grant.object_name,
            if_not_exists=True,
        )
    except BoxError as error:
        if error.code not in _MISSING:
            raise ConfigError(f"{grant.path}: {error.message}") from error
        logger.warning("%s: %s; it is granted at the next start", grant.path, error.message)
