"""Types of tuple fields and index parts, and the values that each accepts."""

from __future__ import annotations

import uuid
from decimal import Decimal
from enum import StrEnum

from iproto_server.codec.msgpack import Datetime, Interval


class FieldType(StrEnum):
    """A field's type; the value is its name in messages, in `_space` and in `_index`."""

    ANY = "any"
    UNSIGNED = "unsigned"
    STRING = "string"
    NUMBER = "number"
    DOUBLE = "double"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    VARBINARY = "varbinary"
    SCALAR = "scalar"
    DECIMAL = "decimal"
    UUID = "uuid"
    DATETIME = "datetime"
    INTERVAL = "interval"
    ARRAY = "array"
    MAP = "map"

    @classmethod
    def by_name(cls, name: str) -> FieldType | None:
        """Find a type by a name in any case; the old names `num`, `str` and `*` are understood too.

        Returns:
            The type, or None when no type has that name.
        """
        return _BY_NAME.get(name.lower())

    @property
    def accepted(self) -> frozenset[type] | None:
        """The Python types of the decoded values that the type accepts; None means every value, nil included.

        `unsigned` also excludes negative integers: see `accepts`.
        """
        return _ACCEPTED.get(self)

    @property
    def is_indexable(self) -> bool:
        """True when an index part may have this type."""
        return self not in _NOT_INDEXABLE

    def accepts(self, value: object) -> bool:
        """Tell whether a decoded value, not nil (unless the type is `any`), belongs to the type."""
        accepted = _ACCEPTED.get(self)
        if accepted is None:
            return True
        if type(value) not in accepted:
            return False
        return self is not FieldType.UNSIGNED or value >= 0  # type: ignore[operator]  # an int by now

    def contains(self, other: FieldType) -> bool:
        """Tell whether every value of type `other` is also a value of this type."""
        return other is self or self is FieldType.ANY or other in _SUBTYPES.get(self, ())


_BY_NAME = {member.value: member for member in FieldType} | {
    "*": FieldType.ANY,
    "num": FieldType.UNSIGNED,
    "str": FieldType.STRING,
}

_NOT_INDEXABLE = frozenset({FieldType.ANY, FieldType.ARRAY, FieldType.MAP, FieldType.INTERVAL})

_NUMBERS: frozenset[type] = frozenset({int, float, Decimal})

_ACCEPTED: dict[FieldType, frozenset[type]] = {
    FieldType.UNSIGNED: frozenset({int}),
    FieldType.STRING: frozenset({str}),
    FieldType.NUMBER: _NUMBERS,
    FieldType.DOUBLE: frozenset({float}),
    FieldType.INTEGER: frozenset({int}),
    FieldType.BOOLEAN: frozenset({bool}),
    FieldType.VARBINARY: frozenset({bytes}),
    FieldType.SCALAR: _NUMBERS | {str, bool, bytes, uuid.UUID, Datetime},
    FieldType.DECIMAL: frozenset({Decimal}),
    FieldType.UUID: frozenset({uuid.UUID}),
    FieldType.DATETIME: frozenset({Datetime}),
    FieldType.INTERVAL: frozenset({Interval}),
    FieldType.ARRAY: frozenset({list}),
    FieldType.MAP: frozenset({dict}),
}

_SUBTYPES: dict[FieldType, tuple[FieldType, ...]] = {
    FieldType.INTEGER: (FieldType.UNSIGNED,),
    FieldType.NUMBER: (FieldType.UNSIGNED, FieldType.INTEGER, FieldType.DOUBLE, FieldType.DECIMAL),
    FieldType.SCALAR: (
        FieldType.UNSIGNED,
        FieldType.STRING,
        FieldType.NUMBER,
        FieldType.DOUBLE,
        FieldType.INTEGER,
        FieldType.BOOLEAN,
        FieldType.VARBINARY,
        FieldType.DECIMAL,
        FieldType.UUID,
        FieldType.DATETIME,
    ),
}
