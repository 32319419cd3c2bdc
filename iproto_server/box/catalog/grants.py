"""Rows of `_priv` about one object."""

from __future__ import annotations

from iproto_server.box.catalog.space_registry import SpaceRegistry
from iproto_server.box.catalog.system_space_ids import PRIV, VPRIV

_BY_OBJECT = 2


def has_grants(registry: SpaceRegistry, object_type: str, object_id: int) -> bool:
    """Whether somebody was given a right on the object."""
    # Without this index Tarantool 2.6 lets nothing go that can be granted, nor does it from a log.
    if registry.rows(PRIV, _BY_OBJECT, [object_type, object_id]):
        return True
    # Words for kinds of objects may have any case. Tarantool 2.6 finds them in small letters only here,
    # and does not start when the object of a grant is gone.
    grants = registry.rows(PRIV, 0, [])
    return any((row[2].lower(), row[3]) == (object_type, object_id) for row in grants)


def revoke_all(registry: SpaceRegistry, object_type: str, object_id: int) -> None:
    """Take away every right on an object that is to go, as far as the caller sees them.

    Raises:
        BoxError: ACCESS_DENIED (42).
    """
    for grant in registry.rows(VPRIV, _BY_OBJECT, [object_type, object_id]):
        registry.writable(PRIV).delete(0, grant[1:4])
