"""Grants on one object: its rows of `_priv`."""

from __future__ import annotations

from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import PRIV, VPRIV

_BY_OBJECT = 2


def has_grants(registry: SpaceRegistry, object_type: str, object_id: int) -> bool:
    """Whether any privilege on the object was granted."""
    # Without this index, Tarantool 2.6 refuses to drop any object that can have grants, also in recovery.
    if registry.rows(PRIV, _BY_OBJECT, [object_type, object_id]):
        return True
    # Object types may be written in any case. Tarantool 2.6 finds only lower case here, and does not start if
    # the object of a grant is missing.
    grants = registry.rows(PRIV, 0, [])
    return any((row[2].lower(), row[3]) == (object_type, object_id) for row in grants)


def revoke_all(registry: SpaceRegistry, object_type: str, object_id: int) -> None:
    """Revoke all grants on an object that the caller sees, before the object is dropped.

    Raises:
        BoxError: ACCESS_DENIED (42).
    """
    for grant in registry.rows(VPRIV, _BY_OBJECT, [object_type, object_id]):
        registry.writable(PRIV).delete(0, grant[1:4])
