"""Keys of rows and of clients, and checks of rows: compiled code and pure Python agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from iproto_server.box.key.key_def import KeyDef, distinct_key_of
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.tuple.format import Format
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Datetime
from iproto_server.errors import BoxError
from iproto_server.storage.primary_key import first_key
from tests.fuzz.draw import EDGES, Draw
from tests.fuzz.target import Target

_TYPES: Final = (
    *(FieldType.UNSIGNED, FieldType.STRING, FieldType.INTEGER, FieldType.NUMBER, FieldType.DOUBLE),
    *(FieldType.BOOLEAN, FieldType.VARBINARY, FieldType.SCALAR, FieldType.UUID, FieldType.DECIMAL),
)
_VALUES: Final[tuple[Any, ...]] = (
    *EDGES,
    *(0.0, -0.0, 0.5, -1.5, 2.0**53, 2.0**63, 2.0**64, 1e300, 5e-324, math.inf, -math.inf),
    *("", "\0", "a", "a\0", "b", "é", "\udcff", "x" * 15, "x" * 16, "x" * 300),
    *(b"", b"\0", b"a", b"\xff" * 9),
    *(True, False, None, Decimal("1.5"), Decimal(1), Decimal("-1E-38"), UUID(int=0), UUID(int=2**128 - 1)),
    *([], {}, Datetime(1)),
)


def told(function: Callable[[], object]) -> object:
    """Return what a function returns, or its error: of rows that do not fit their keys, whatever it is."""
    try:
        return function()
    except BoxError as error:
        return error.code, error.message
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


def outcome(data: bytes) -> object:
    """Make keys of a row by a definition, and check the row by a format.

    Returns:
        All keys, or the errors.
    """
    draw = Draw(data)
    how = draw.byte()
    parts = [
        KeyPart(draw.byte() % 4, draw.pick(_TYPES), is_nullable=bool(draw.byte() & 1))
        for _ in range(how % 3 + 1)
    ]
    fields: list[Any] = [
        draw.pick(_VALUES) if draw.byte() % 4 else draw.value(2) for _ in range(draw.byte() % 6)
    ]
    rules = [
        {"name": f"f{place}", "type": draw.pick([*FieldType]).value, "is_nullable": bool(draw.byte() & 1)}
        for place in range(how >> 2 & 3)
    ]
    exact = draw.byte() % 8
    key_def = KeyDef(parts)
    primary = KeyDef([KeyPart(0, FieldType.UNSIGNED)])
    format = Format.parse(rules, "space", exact if exact >= len(rules) else 0)
    found: list[object] = [
        told(lambda: key_def.extract(fields)),
        told(lambda: distinct_key_of(key_def, bool(how & 16), primary)(fields, b"primary")),
        told(lambda: format.check(fields)),
        *(told(lambda size=size: key_def.encode_key(fields[:size])) for size in range(len(fields) + 1)),  # type: ignore[misc]
    ]
    raw = told(lambda: codec.pack(fields))
    if isinstance(raw, bytes):
        row = Tuple(raw, format)
        found += [raw, told(lambda: first_key(raw)) if fields else None, told(lambda: row.tomap())]
        found += [told(lambda named=named: row.as_map(names_only=named).raw) for named in (False, True)]  # type: ignore[misc]
        found += [told(lambda place=place: repr(row[place])) for place in range(len(fields))]  # type: ignore[misc]
    return found


TARGET: Final = Target(
    outcome,
    [
        *(
            bytes((0, 0, kind, 0, 2, 1, value, 1, 3, 0))
            for kind in range(len(_TYPES))
            for value in (1, 34, 50, 62)
        ),
        bytes((1, 0, 0, 0, 1, 1, 1, 3, 1, 3, 1, 44, 1, 9, 0)),
        bytes((2, 0, 1, 0, 1, 3, 1, 2, 0, 0, 3, 1, 46, 1, 50, 1, 8, 0)),
        bytes((12, 0, 0, 0, 3, 1, 1, 1, 44, 1, 60, 1, 0, 4, 1, 5, 0, 3)),
    ],
)
