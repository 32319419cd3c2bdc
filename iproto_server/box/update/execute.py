"""Applying operations to a stored tuple."""

from __future__ import annotations

from collections.abc import Callable

from iproto_server.box.update.document import Documents
from iproto_server.box.update.errors import field_text
from iproto_server.box.update.node import NO_DOUBLES, Doubles, encode
from iproto_server.box.update.operation import Operations
from iproto_server.box.update.packed_values import SIZES
from iproto_server.box.update.path_cursor import PathCursor
from iproto_server.box.update.tree import Array, apply
from iproto_server.box.update.value import compute
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.native import twin
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
    assignment = operations.assignment
    if assignment is not None:
        new_raw = _assign(assignment[0], assignment[1], raw)
        if new_raw is not None:
            return new_raw
    if operations.request is not None:
        new_raw = apply_request(operations.request, raw, doubles)
        if new_raw is not None:
            return new_raw
    if operations.is_flat:
        new_raw = _apply_flat(operations, raw, doubles)
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
    if operations.is_flat:
        try:
            new_raw = _apply_flat(operations, raw, doubles)
        except BoxError:
            new_raw = None
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


def _apply_flat(operations: Operations, raw: bytes, doubles: Doubles) -> bytes | None:
    """Replace top-level fields; return None if a field is missing or is computed after a change."""
    fields = codec.split_array(raw)
    changed = set()
    for opcode, field_no, path, _, argument in operations.check():
        if opcode == "=":
            assert isinstance(argument, bytes)
            if field_no < len(fields):
                fields[field_no] = argument
            elif field_no == len(fields):
                fields.append(argument)
            else:
                return None
        else:
            if field_no >= len(fields) or field_no in changed:
                return None
            value = compute(opcode, argument, fields[field_no], field_text(field_no, path))
            fields[field_no] = value.as_double if (field_no,) in doubles else value.raw
        changed.add(field_no)
    return codec.array_header(len(fields)) + b"".join(fields)


@twin
def _assign(field_no: int, value: bytes, raw: bytes) -> bytes | None:
    """Replace a field near the beginning of the tuple; return None if the sizes are not obvious."""
    if field_no >= raw[0] - 0x90 or raw[0] > 0x9F:
        return None
    start = 1
    for _ in range(field_no):
        size = SIZES[raw[start]]
        if not size:
            return None
        start += size
    size = SIZES[raw[start]]
    return raw[:start] + value + raw[start + size :] if size else None
