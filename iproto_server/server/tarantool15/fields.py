"""Conversion between fields of Tarantool 1.5's protocol, which are bytes, and values of the box.

A number has four or eight bytes, little-endian; a text is its bytes. The space's format may fix the size of a
number: `size` 4 (1.5's NUM) or 8 (NUM64). Otherwise both sizes are accepted, and responses use four bytes if
the number fits. A field without a type is a text if its bytes are UTF-8, else a binary string; its bytes are
kept.

Values that only other clients can write, such as floats and nil, are encoded as by 1.5's Lua.

Source: Tarantool 1.5.5, `lua_tofield` and `port_add_lua_multret` in `src/box/box_lua.cc`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from iproto_server.box import Tuple
from iproto_server.box.index.index import Index
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.codec.number64 import Float64, Number64
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.tarantool15.response import encode_tuple
from iproto_server.protocol.tarantool15.update_operations import Field

_UINT32_MAX: Final = 2**32 - 1
_INT32_MIN: Final = -(2**31)
_UINT64_MASK: Final = 2**64 - 1
_NOT_FINITE: Final = 2**63
"""Result of 1.5, on common machines, for a float out of the range of integers."""
_NIL: Final = b"nil"
_BOOLEANS: Final = {b"true": True, b"false": False}
_SIZES: Final = (4, 8)
_WHOLE: Final = (FieldType.UNSIGNED, FieldType.INTEGER, FieldType.NUMBER)
_UNTYPED: Final = (FieldType.ANY, FieldType.SCALAR)
_KNOWN_MAX: Final = 1000
"""Maximum number of cached formats."""


class FieldKind(NamedTuple):
    """The type of a field.

    Attributes:
        type: its type in the box.
        size: size of a number in bytes; None: as needed.
        is_nullable: whether it may be nil.
    """

    type: FieldType
    size: int | None = None
    is_nullable: bool = False


_ANYTHING: Final = FieldKind(FieldType.ANY)


class RowFields:
    """Converts the fields of rows of one format.

    Parameters:
        format: the format.
    """

    def __init__(self, format: Format) -> None:
        self._kinds: list[FieldKind] = []
        for number, rule in enumerate(format.rules):
            size = format.fields[number].extra.get("size") if number < len(format.fields) else None
            self._kinds.append(FieldKind(rule.type, size if size in _SIZES else None, rule.is_nullable))

    def kind(self, number: int) -> FieldKind:
        """Return the type of a field, by its number."""
        return self._kinds[number] if number < len(self._kinds) else _ANYTHING

    def values(self, fields: Sequence[bytes]) -> list[object]:
        """Decode the values of a row.

        Raises:
            BoxError: KEY_PART_TYPE, a field does not match its type.
        """
        return [value_of(self.kind(number), data) for number, data in enumerate(fields)]

    def field(self, number: int, value: object) -> bytes:
        """Encode one field. Raises BoxError PROC_RET for a value that 1.5 cannot represent."""
        return field_of(self.kind(number), value)

    def tuple(self, values: Sequence[object]) -> bytes:
        """Encode a row for a response. Raises BoxError PROC_RET."""
        return encode_tuple([self.field(number, value) for number, value in enumerate(values)])

    def updated(self, old: Sequence[Any], fields: Sequence[Field]) -> list[object]:
        """Decode a row after an UPDATE; unchanged fields keep their values.

        Parameters:
            old: the previous values.
            fields: the updated fields.

        Raises:
            BoxError: KEY_PART_TYPE, a field does not match its type.
        """
        return [self._value_now(number, old, field) for number, field in enumerate(fields)]

    def _value_now(self, number: int, old: Sequence[Any], field: Field) -> object:
        kind = self.kind(number)
        before = None if field.origin is None else old[field.origin]
        if field.data is None:
            assert field.origin is not None
            if kind == self.kind(field.origin):
                return before
            return value_of(kind, self.field(field.origin, before))
        if field.is_calculated and kind.type in _UNTYPED and type(before) is int:
            return int.from_bytes(field.data, "little", signed=before < 0)
        return value_of(kind, field.data)


class FormatCache:
    """Caches the `RowFields` of formats."""

    def __init__(self) -> None:
        self._cached: dict[int, tuple[Format, RowFields]] = {}

    def fields(self, format: Format) -> RowFields:
        """Return the `RowFields` of a format."""
        cached = self._cached.get(id(format))
        if cached is not None:
            return cached[1]
        if len(self._cached) >= _KNOWN_MAX:
            self._cached.clear()
        made = RowFields(format)
        self._cached[id(format)] = (format, made)  # the format stays, so nothing else gets its id
        return made


def key_of(index: Index, fields: RowFields, key: Sequence[bytes]) -> list[object]:
    """Decode a full or partial key.

    Parameters:
        index: the index.
        fields: converts the rows of the space.
        key: the packed fields of the key.

    Raises:
        BoxError: KEY_PART_COUNT or KEY_PART_TYPE.
    """
    parts = index.key_def.parts
    if len(key) > len(parts):
        raise BoxError(ErrorCode.KEY_PART_COUNT, len(parts), len(key))
    values: list[object] = []
    for part, data in zip(parts, key, strict=False):
        size = fields.kind(part.field_no).size if part.path is None else None
        # As in 1.5, the key for a number of eight bytes may have four.
        values.append(value_of(FieldKind(part.type, 4 if size == 4 else None, part.is_nullable), data))
    return values


def value_of(kind: FieldKind, data: bytes) -> object:
    """Decode a field.

    Raises:
        BoxError: KEY_PART_TYPE, the bytes do not match its type.
    """
    if kind.type is FieldType.STRING:
        return data.decode("utf-8", "surrogateescape")
    if kind.type in _UNTYPED:
        return text_or_bytes(data)
    if kind.type is FieldType.VARBINARY:
        return data
    if data == _NIL and kind.is_nullable:
        return None
    size = len(data)
    if kind.type in _WHOLE and (size == kind.size if kind.size else size in _SIZES):
        return int.from_bytes(data, "little", signed=kind.type is not FieldType.UNSIGNED)
    if kind.type is FieldType.DOUBLE and size == 8:
        return struct.unpack("<d", data)[0]
    if kind.type is FieldType.BOOLEAN and data in _BOOLEANS:
        return _BOOLEANS[data]
    expected = {4: "NUM", 8: "NUM64"}.get(kind.size or 0, kind.type.value)
    message = f"Supplied key field type does not match index type: expected {expected}"
    raise BoxError.with_message(ErrorCode.KEY_PART_TYPE, message)


def text_or_bytes(data: bytes) -> str | bytes:
    """Decode bytes as text if they are UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def field_of(kind: FieldKind, value: object) -> bytes:
    """Encode a value of a field.

    Raises:
        BoxError: PROC_RET, 1.5 cannot represent it.
    """
    if kind.type is FieldType.DOUBLE and isinstance(value, int | float):
        return struct.pack("<d", value)
    if kind.size is not None and type(value) is float:
        value = _truncated(value)
    if kind.type in _WHOLE and type(value) is int:
        if kind.size == 8:
            return (value & _UINT64_MASK).to_bytes(8, "little")
        if kind.type is FieldType.UNSIGNED:
            return value.to_bytes(4 if value <= _UINT32_MAX else 8, "little")
        if _INT32_MIN <= value < -_INT32_MIN:
            return value.to_bytes(4, "little", signed=True)
        return (value & _UINT64_MASK).to_bytes(8, "little")
    return plain_field(value)


def plain_field(value: object) -> bytes:
    """Encode a value without a field type, as 1.5's Lua does.

    Raises:
        BoxError: PROC_RET, 1.5 cannot represent it.
    """
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise BoxError.procedure("a string that has no UTF-8 form cannot be sent") from None
    if isinstance(value, bytes):
        return value
    if value is None:
        return _NIL
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        is_short = _INT32_MIN <= value <= _UINT32_MAX and not isinstance(value, Float64)
        return _whole_field(_truncated(value), is_short=is_short)
    if isinstance(value, int) and -(2**63) <= value <= _UINT64_MASK:
        is_short = _INT32_MIN <= value <= _UINT32_MAX and not isinstance(value, Number64)
        return _whole_field(value, is_short=is_short)
    raise _no_field(value)


def _truncated(value: float) -> int:
    """Convert a float to an integer as 1.5 does."""
    return int(value) if math.isfinite(value) and -(2.0**63) <= value < 2.0**64 else _NOT_FINITE


def _whole_field(value: int, *, is_short: bool) -> bytes:
    size = 4 if is_short else 8
    return (value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _no_field(value: object) -> BoxError:
    name = "table" if isinstance(value, list | tuple | dict) else type(value).__name__
    message = f"Return type '{name}' is not supported in the binary protocol"
    return BoxError.with_message(ErrorCode.PROC_RET, message)


class CallResults:
    """Encodes results of procedures as the tuples of a response.

    Parameters:
        formats: converts rows by their formats.
    """

    def __init__(self, formats: FormatCache) -> None:
        self._formats = formats

    def tuples(self, result: object) -> list[bytes]:
        """Encode a procedure's result as tuples.

        Each value becomes a tuple: the fields of a row or list, the values of a dictionary, or one field of
        any other value. A single list or dictionary whose first element would be a tuple of several fields is
        replaced by its elements.

        Raises:
            BoxError: PROC_RET, 1.5 cannot represent a value.
        """
        if result is None:
            return []
        values = [_opened(value) for value in (result if isinstance(result, tuple) else (result,))]
        if len(values) == 1:
            elements = [_opened(value) for value in _elements(values[0])]
            if elements and isinstance(elements[0], list | tuple | dict | Tuple):
                values = elements
        return [self._tuple(value) for value in values]

    def _tuple(self, value: object) -> bytes:
        if isinstance(value, Tuple):
            if value.format is None:
                return encode_tuple(map(plain_field, value.fields))
            return self._formats.fields(value.format).tuple(value.fields)
        if isinstance(value, list | tuple | dict):
            return encode_tuple([plain_field(each) for each in _elements(value)])
        return encode_tuple((plain_field(value),))


def _elements(value: object) -> Sequence[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list | tuple) else ()


def _opened(value: object) -> object:
    """Unpack a packed value, unless it is a row."""
    if isinstance(value, codec.Raw) and not isinstance(value, Tuple):
        return codec.unpack(value.raw)
    return value
