"""Makes and applies update requests in one call, for tests of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from iproto_server.box.update import NO_DOUBLES, Doubles, apply_update, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError

NAMES = {"id": 0, "status": 1, "data": 2, "a.b": 3}
"""The names of the format's fields."""


def raw(value: object) -> bytes:
    return codec.pack(value)


def update(
    row: object, *operations: Sequence[object], index_base: int = 0, doubles: Doubles = NO_DOUBLES
) -> bytes:
    """Apply operations to a row, both given as values or packed; return bytes."""
    parsed = parse_update(raw(list(operations)), NAMES, index_base)
    return apply_update(parsed, row if isinstance(row, bytes) else raw(row), doubles)


def updated(row: object, *operations: Sequence[object], index_base: int = 0) -> Any:
    """As `update`; return values."""
    return codec.unpack(update(row, *operations, index_base=index_base))


def refusal(row: object, *operations: Sequence[object], index_base: int = 0) -> tuple[int, str]:
    """The number and text of the error of operations."""
    with pytest.raises(BoxError) as raised:
        update(row, *operations, index_base=index_base)
    return raised.value.code, raised.value.message
