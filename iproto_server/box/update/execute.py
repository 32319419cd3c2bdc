"""Applying operations to a stored tuple.

The engine applies what it knows (`engine/core/update.c`); everything else is applied here, to a tree of the
tuple's values.
"""

from __future__ import annotations

from collections.abc import Callable

from iproto_server.box.update.document import Documents
from iproto_server.box.update.node import NO_DOUBLES, Doubles, encode
from iproto_server.box.update.operation import Operations
from iproto_server.box.update.path_cursor import PathCursor
from iproto_server.box.update.tree import Array, apply
from iproto_server.errors import BoxError
from iproto_server.native._native import apply_request


def apply_update(operations: Operations, raw: bytes, doubles: Doubles = NO_DOUBLES) -> bytes:
    """Apply operations as UPDATE does.

    Args:
        operations: the operations.
        raw: the old tuple.
        doubles: the places of fields of type `double`; elsewhere sums of floats may be stored shorter.

    Returns:
        The new tuple, unchecked; its primary key may have changed.

    Raises:
        BoxError: an operation does not fit the tuple.
    """
    if operations.request is not None:
        new_raw = apply_request(operations.request, raw, doubles)
        if new_raw is not None:
            return new_raw
    return _apply(operations, raw, doubles, None)


def apply_upsert(
    operations: Operations,
    raw: bytes,
    doubles: Doubles = NO_DOUBLES,
    *,
    on_skipped: Callable[[BoxError], None] | None = None,
) -> bytes:
    """Apply operations as UPSERT does: those that do not fit the tuple are skipped.

    Args:
        operations: the operations.
        raw: the old tuple.
        doubles: as for `apply_update`.
        on_skipped: called with the error of each skipped operation.

    Returns:
        The new tuple, as from `apply_update`.

    Raises:
        BoxError: the operations were parsed with `deferred` and are malformed.
    """
    if operations.request is not None:
        new_raw = apply_request(operations.request, raw, doubles)
        if new_raw is not None:
            return new_raw
    return _apply(operations, raw, doubles, on_skipped or _ignore)


def _ignore(error: BoxError) -> None:
    """Skip an operation silently."""


def _apply(
    operations: Operations, raw: bytes, doubles: Doubles, on_skipped: Callable[[BoxError], None] | None
) -> bytes:
    documents = Documents()
    root = Array(raw, documents)
    for operation in operations.check():
        cursor = PathCursor(operation, documents)
        try:
            apply(root.advance_to(cursor, operation.field_no), cursor)
        except BoxError as error:
            if on_skipped is None:
                raise
            on_skipped(error)
    return encode(root, doubles)
