"""Keys of rows and of clients sort as their values do, and rows are checked field by field."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from iproto_server.errors import BoxError, ErrorCode
from tests.box.key.test_key_encoding import exact
from tests.fuzz.draw import EDGES, Draw
from tests.fuzz.target import Target
from tests.fuzz.wire.messages import in_detail

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
_PRIMARY: Final = KeyDef([KeyPart(0, FieldType.UNSIGNED)])


def refusal(call: Callable[[], object]) -> str | None:
    """Return the text of the error of a call; None if it succeeds."""
    try:
        call()
    except BoxError as error:
        return error.message
    return None


def in_order(parts: Sequence[KeyPart], fields: Sequence[Any]) -> tuple[Any, ...] | None:
    """A key that Python compares as Tarantool compares the row's; None if the row does not fit the parts."""
    made: list[Any] = []
    for part in parts:
        value = fields[part.field_no] if part.field_no < len(fields) else None
        if value is None:
            if not part.is_nullable:
                return None
            made.append((0,))
        elif not part.type.accepts(value):
            return None
        else:
            made.append((1, exact(value)))
    return tuple(made)


def check_order(key_def: KeyDef, one: Sequence[Any], other: Sequence[Any]) -> None:
    """Keys of rows sort as the rows' values do."""
    lesser, greater = in_order(key_def.parts, one), in_order(key_def.parts, other)
    if lesser is None or greater is None:
        return
    assert (key_def.extract(one) < key_def.extract(other)) == (lesser < greater)
    assert (key_def.extract(one) == key_def.extract(other)) == (lesser == greater)


def check_distinct(key_def: KeyDef, is_unique: bool, fields: Sequence[Any]) -> None:
    """A key in a tree is followed by the primary key where the index's own parts may be equal."""
    found = distinct_key_of(key_def, is_unique, _PRIMARY)(fields, b"primary")
    own = key_def.extract(fields)
    if key_def.part_count > 1 and key_def.parts[-1] == _PRIMARY.parts[0]:
        assert found == KeyDef(key_def.parts[:-1]).extract(fields) + b"primary"
    elif _PRIMARY.missing_from(key_def) is None:
        assert found == own
    else:
        has_nil = (0,) in (in_order(key_def.parts, fields) or ())
        assert found == (own if is_unique and not has_nil else own + b"primary")


def key_fault_of(parts: Sequence[KeyPart], values: Sequence[Any]) -> str | None:
    """Find the first fault of a client's key by the parts."""
    if len(values) > len(parts):
        return BoxError(ErrorCode.KEY_PART_COUNT, len(parts), len(values)).message
    for number, (part, value) in enumerate(zip(parts, values, strict=False)):
        if not part.type.accepts(value) and not (value is None and part.is_nullable):
            return BoxError(ErrorCode.KEY_PART_TYPE, number, part.type.value).message
    return None


def check_client_key(key_def: KeyDef, values: Sequence[Any], whole: bytes) -> None:
    """A client's key is the beginning of the keys of rows that begin with its values, or is refused.

    Parameters:
        key_def: The definition.
        values: The client's key.
        whole: The key of such a row; empty if there is none.
    """
    found = refusal(lambda: key_def.encode_key(values))
    assert found == key_fault_of(key_def.parts, values)
    assert found or not whole or whole.startswith(key_def.encode_key(values))


def fault_of(format: Format, fields: Sequence[Any]) -> str | None:
    """Find the first fault of a row by its format."""
    if format.exact_field_count and len(fields) != format.exact_field_count:
        return BoxError(ErrorCode.EXACT_FIELD_COUNT, len(fields), format.exact_field_count).message
    for number, (field, value) in enumerate(zip(format.fields, fields, strict=False), 1):
        if not field.type.accepts(value) and not (value is None and field.is_nullable):
            return BoxError(ErrorCode.FIELD_TYPE, number, field.type.value).message
    for number in range(len(fields), len(format.fields)):
        if not format.fields[number].is_nullable:
            return BoxError(ErrorCode.FIELD_MISSING, number + 1).message
    return None


def check_format(format: Format, fields: Sequence[Any]) -> None:
    """A row is refused for its first fault."""
    assert refusal(lambda: format.check(fields)) == fault_of(format, fields)


def check_packed(format: Format, fields: Sequence[Any]) -> None:
    """A packed row has the fields that it was packed from, under their numbers and names."""
    raw = codec.pack(fields)
    expected = codec.unpack(raw)
    assert [in_detail(Tuple(raw, format)[place]) for place in range(len(fields))] == [
        *map(in_detail, expected)
    ]
    for names_only in (False, True):
        items: dict[str | int, Any] = {} if names_only else dict(enumerate(expected, 1))
        items.update(zip(format.names, expected, strict=False))
        row = Tuple(raw, format)
        assert in_detail(codec.unpack(row.as_map(names_only=names_only).raw)) == in_detail(items)
        assert in_detail(row.tomap(names_only=names_only)) == in_detail(items)


def draw_fields(draw: Draw) -> list[Any]:
    """Draw a row, which may not fit."""
    return [draw.pick(_VALUES) if draw.byte() % 4 else draw.value(2) for _ in range(draw.byte() % 6)]


def check(data: bytes) -> None:
    """Make keys of two rows by a definition, and check a row by a format."""
    draw = Draw(data)
    how = draw.byte()
    parts = [
        KeyPart(draw.byte() % 4, draw.pick(_TYPES), is_nullable=bool(draw.byte() & 1))
        for _ in range(how % 3 + 1)
    ]
    fields = draw_fields(draw)
    rules = [
        {"name": f"f{place}", "type": draw.pick([*FieldType]).value, "is_nullable": bool(draw.byte() & 1)}
        for place in range(how >> 2 & 3)
    ]
    exact = draw.byte() % 8
    format = Format.parse(rules, "space", exact if exact >= len(rules) else 0)
    other = draw_fields(draw)
    key_def = KeyDef(parts)
    check_order(key_def, fields, other)
    fits = in_order(parts, fields) is not None
    if fits:
        check_distinct(key_def, bool(how & 16), fields)
        own = [fields[part.field_no] if part.field_no < len(fields) else None for part in parts]
        for size in range(len(parts) + 1):
            check_client_key(key_def, own[:size], key_def.extract(fields))
    for size in range(len(fields) + 1):
        check_client_key(key_def, fields[:size], b"")
    check_format(format, fields)
    check_packed(format, fields)


TARGET: Final = Target(
    check,
    [
        *(
            bytes((0, 0, kind, 0, 2, 1, value, 1, 3, 0, 2, 1, value + 1, 1, 3))
            for kind in range(len(_TYPES))
            for value in (1, 34, 50, 62)
        ),
        bytes((1, 0, 0, 0, 1, 1, 1, 3, 1, 3, 1, 44, 1, 9, 0)),
        bytes((2, 0, 1, 0, 1, 3, 1, 2, 0, 0, 3, 1, 46, 1, 50, 1, 8, 0)),
        bytes((12, 0, 0, 0, 3, 1, 1, 1, 44, 1, 60, 1, 0, 4, 1, 5, 0, 3)),
    ],
)
