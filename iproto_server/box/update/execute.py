"""Applying operations to a stored tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from iproto_server import codec
from iproto_server.box.update.descent import Descent
from iproto_server.box.update.document import Documents
from iproto_server.box.update.node import NO_DOUBLES, Doubles, encode
from iproto_server.box.update.operation import Operations
from iproto_server.box.update.tree import Array, apply
from iproto_server.errors import BoxError


def _sizes() -> tuple[int, ...]:
    """How many bytes a value takes, by its first byte; 0 where that byte does not tell."""
    sizes = [0] * 256
    sizes[:0x80] = [1] * 0x80
    sizes[0xA0:0xC0] = range(1, 0x21)
    sizes[0xE0:] = [1] * 0x20
    fixed = {0xC0: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9}
    fixed |= {0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18}
    for first, size in fixed.items():
        sizes[first] = size
    return tuple(sizes)


_SIZES: Final = _sizes()


def apply_update(operations: Operations, raw: bytes, doubles: Doubles = NO_DOUBLES) -> bytes:
    """Apply operations as UPDATE does.

    Args:
        operations: what to do.
        raw: the old tuple.
        doubles: where fields of type `double` are; sums of floats are stored shorter elsewhere.

    Returns:
        The new tuple, not yet checked against the format, and with a primary key that may be another.

    Raises:
        BoxError: an operation does not fit the tuple.
    """
    assignments = operations.assignments
    if assignments is not None:
        new_raw = _assign(assignments, raw)
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
        operations: what to do.
        raw: the old tuple.
        doubles: as of `apply_update`.
        on_skipped: is told why an operation was skipped.

    Returns:
        The new tuple, as of `apply_update`.

    Raises:
        BoxError: the operations were read with `deferred` and are malformed.
    """
    assignments = operations.assignments
    if assignments is not None:
        new_raw = _assign(assignments, raw)
        if new_raw is not None:
            return new_raw
    return _apply(operations, raw, doubles, on_skipped or _ignore)


def _ignore(error: BoxError) -> None:
    """Skip an operation without telling anybody."""


def _apply(
    operations: Operations, raw: bytes, doubles: Doubles, on_skipped: Callable[[BoxError], None] | None
) -> bytes:
    documents = Documents()
    root = Array(raw, documents)
    for operation in operations.check():
        descent = Descent(operation, documents)
        try:
            apply(root.advance_to(descent, operation.field_no), descent)
        except BoxError as error:
            if on_skipped is None:
                raise
            on_skipped(error)
    return encode(root, doubles)


def _assign(assignments: tuple[tuple[int, bytes], ...], raw: bytes) -> bytes | None:
    """Assign to top-level fields; return None when a field is missing, which is told elsewhere."""
    if len(assignments) == 1 and raw[0] < 0xA0:
        field_no, value = assignments[0]
        if field_no < raw[0] - 0x90:
            # Walk to the field over others whose first byte tells their size.
            start = 1
            for _ in range(field_no):
                size = _SIZES[raw[start]]
                if not size:
                    break
                start += size
            else:
                size = _SIZES[raw[start]]
                if size:
                    return raw[:start] + value + raw[start + size :]
    fields = codec.split_array(raw)
    for field_no, value in assignments:
        if field_no < len(fields):
            fields[field_no] = value
        elif field_no == len(fields):
            fields.append(value)
        else:
            return None
    return codec.array_header(len(fields)) + b"".join(fields)
