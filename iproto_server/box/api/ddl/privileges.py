"""Privileges as `grant` and `revoke` name them, and the bits that `_priv` stores."""

from __future__ import annotations

from iproto_server.box.access.access_control import Privilege
from iproto_server.box.api.lua_arguments import lua_text
from iproto_server.errors import BoxError, ErrorCode

PRIVILEGE_NAMES = {
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
_DEFINE = Privilege.USAGE | Privilege.CREATE | Privilege.DROP
_GRANTABLE: dict[str, int] = {
    "universe": Privilege.ALL,
    "space": Privilege.ALL & ~(Privilege.SESSION | Privilege.GRANT | Privilege.REVOKE),
    "sequence": _DEFINE | Privilege.READ | Privilege.WRITE | Privilege.ALTER,
    "function": _DEFINE | Privilege.EXECUTE,
    "role": _DEFINE | Privilege.EXECUTE,
    "user": Privilege.CREATE | Privilege.ALTER | Privilege.DROP,
}
"""The privileges that each type of object has."""

Name = str | int
"""The name or the number of a user, role, function, sequence or space."""


def long_form(
    privileges: str | int, object_type: str | None, object_name: Name | None
) -> tuple[str | int, str, Name]:
    """Complete the arguments of `grant` and `revoke`.

    A role alone is short for "execute" on it; a type without a name means all objects of that type.
    """
    if object_name is not None:
        return privileges, object_type or "", object_name
    if object_type is not None:
        return privileges, object_type, ""
    return "execute", "role", privileges


def privilege_bits(privileges: object, object_type: object) -> int:
    """Return privileges as a sum of bits.

    Raises:
        BoxError: UNKNOWN_SCHEMA_OBJECT (49), or UNSUPPORTED_PRIV (98) if the type has no such privilege.
    """
    allowed = _GRANTABLE.get(object_type) if isinstance(object_type, str) else None
    if allowed is None:
        raise BoxError(ErrorCode.UNKNOWN_SCHEMA_OBJECT, lua_text(object_type))
    bits = 0
    if isinstance(privileges, str):
        # As in Tarantool, names may be separated by anything.
        text = privileges.lower()
        bits = sum(int(bit) for word, bit in PRIVILEGE_NAMES.items() if word in text)
    elif isinstance(privileges, int) and not isinstance(privileges, bool):
        bits = privileges
    if not bits or bits & ~allowed:
        raise BoxError(ErrorCode.UNSUPPORTED_PRIV, object_type, lua_text(privileges))
    return bits


def refuse_system_privileges(privileges: object) -> None:
    """Raise BoxError GRANT (88) if the privileges include "session" or "usage", which no role can have."""
    if isinstance(privileges, str) and any(word in privileges.lower() for word in ("session", "usage")):
        raise BoxError(ErrorCode.GRANT, "system privilege can not be granted to role")
