"""The section `credentials` of a Tarantool 3 configuration file.

Source: Tarantool 3 manual, "Configuration reference", `credentials`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from iproto_server.config.credentials import ConfiguredGrant, ConfiguredPrincipal, Credentials
from iproto_server.config.suggestions import did_you_mean
from iproto_server.config.tarantool3.cluster_file import Found, Key

PERMISSIONS: Final = ("read", "write", "execute", "create", "alter", "drop", "usage", "session")
_OBJECTS: Final = {
    "spaces": "space",
    "functions": "function",
    "sequences": "sequence",
    "lua_call": "function",
}
"""Names of lists of objects, and the type of the objects."""

_ABSENT: Final = {"lua_eval": "there is no Lua", "sql": "there is no SQL"}
_SECTION: Final = "credentials"


def read_credentials(found: Mapping[Key, Found]) -> Credentials | None:
    """Read the users and roles.

    Parameters:
        found: the options of an instance.

    Returns:
        The users and roles; None if the file has none.

    Raises:
        ValueError: a value is wrong; the message begins with its place, and has no password.
    """
    roles = tuple(_principals(found, "roles"))
    users = tuple(_principals(found, "users"))
    return Credentials(roles, users) if roles or users else None


def _principals(found: Mapping[Key, Found], kind: str) -> Iterator[ConfiguredPrincipal]:
    for key, entry in found.items():
        if len(key) != 3 or key[:2] != (_SECTION, kind):
            continue
        name = key[2]
        if not name:
            raise ValueError(f"{_SECTION}.{kind}: a name is empty")
        roles, privileges = found.get((*key, "roles")), found.get((*key, "privileges"))
        yield ConfiguredPrincipal(
            name,
            entry.path,
            _password(found.get((*key, "password")), name),
            () if roles is None else _texts(roles.value, roles.path),
            () if privileges is None else tuple(_grants(privileges)),
        )


def _password(found: Found | None, user: str) -> str | None:
    if found is None:
        return None
    if user == "guest":
        raise ValueError(f"{found.path}: guest cannot have a password")
    if not isinstance(found.value, str):
        raise ValueError(f"{found.path}: a text is expected, in quotes if it looks like a number")
    if not found.value:
        raise ValueError(f"{found.path}: the password is empty")
    return found.value


def _texts(value: object, path: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError(f"{path}: a list of names is expected")
    return tuple(value)


def _grants(found: Found) -> Iterator[ConfiguredGrant]:
    if not isinstance(found.value, list):
        raise ValueError(f"{found.path}: a list is expected")
    for number, entry in enumerate(found.value, start=1):
        path = f"{found.path}[{number}]"
        if not isinstance(entry, dict):
            raise ValueError(f"{path}: a mapping with permissions and objects is expected")
        known = ("permissions", "universe", *_OBJECTS, *_ABSENT)
        for name in entry:
            if name not in known:
                raise ValueError(f"{path}.{name}: unknown option{did_you_mean(name, known)}")
        permissions = _texts(entry.get("permissions"), f"{path}.permissions")
        for permission in permissions:
            if permission not in PERMISSIONS:
                hint = did_you_mean(permission, PERMISSIONS)
                raise ValueError(f'{path}.permissions: unknown permission "{permission}"{hint}')
        objects = list(_objects(entry, path))
        if not permissions or not objects:
            raise ValueError(f"{path}: permissions and objects are expected, such as universe: true")
        for object_type, object_name in objects:
            yield ConfiguredGrant(path, permissions, object_type, object_name)


def _objects(entry: Mapping[str, object], path: str) -> Iterator[tuple[str, str | None]]:
    """Yield types and names of the objects; None is the name of all."""
    for name, reason in _ABSENT.items():
        if entry.get(name):
            raise ValueError(f"{path}.{name}: it is not supported, because {reason}")
    universe = entry.get("universe", False)
    if not isinstance(universe, bool):
        raise ValueError(f"{path}.universe: true or false is expected")
    if universe:
        yield "universe", None
    for option, object_type in _OBJECTS.items():
        for name in _texts(entry.get(option) or [], f"{path}.{option}"):
            if option == "lua_call" and name == "all":
                raise ValueError(f"{path}.lua_call: name the procedures, or grant execute on the universe")
            yield object_type, None if name == "all" else name
