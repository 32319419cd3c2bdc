"""Converts column values to Tarantool's, by the type of the column or of the space's field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

import orjson
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from iproto_server.box.types.field_type import FieldType
from iproto_server.codec.msgpack import Datetime, Interval
from pyspark_tarantool.source.errors import shortened

Convert = Callable[[Any], Any]
"""Converts a pyarrow value other than None for `codec.pack`."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)

_BILLION: Final = 1_000_000_000

_DOUBLE_DIGITS: Final = 17
"""The maximum number of digits needed to distinguish doubles."""

_LONG_NUMBER: Final = re.compile(f"[0-9]{{{_DOUBLE_DIGITS + 1}}}|[0-9]{{4,}}[.][0-9]{{4,}}|[.][0-9]{{9,}}")
"""Matches texts with numbers that may have more digits."""

_INTERVAL: Final = re.compile(
    r"P(?:(?P<year>[-+]?\d+)Y)?(?:(?P<month>[-+]?\d+)M)?(?:(?P<week>[-+]?\d+)W)?(?:(?P<day>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hour>[-+]?\d+)H)?(?:(?P<minute>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.]\d{1,9})?)S)?)?"
)

INTEGERS: Final = DecimalType(20, 0)
"""The type of `spark.read` for 64-bit integers: such columns are sent as integers."""


def same(value: Any) -> Any:
    """Return a value unchanged."""
    return value


def natural(data_type: DataType, *, has_datetimes: bool) -> Convert | None:
    """Find the conversion of a column without a required type.

    Parameters:
        data_type: The column's type.
        has_datetimes: Whether the server supports datetimes, from 2.10 on; otherwise timestamps become
            seconds since 1970.

    Returns:
        The conversion; None if such values cannot be sent.
    """
    if isinstance(data_type, TimestampType | TimestampNTZType):
        return _moment if has_datetimes else _seconds
    if isinstance(data_type, DayTimeIntervalType):
        return _interval if has_datetimes else timedelta.total_seconds
    if isinstance(data_type, DateType):
        return lambda value: value.isoformat()
    if data_type == INTEGERS:
        return int
    if isinstance(data_type, StringType | BooleanType | NumericType | BinaryType | NullType):
        return same
    if isinstance(data_type, ArrayType):
        item = natural(data_type.elementType, has_datetimes=has_datetimes)
        return None if item is None else partial(_array, item)
    if isinstance(data_type, MapType):
        key = natural(data_type.keyType, has_datetimes=has_datetimes)
        item = natural(data_type.valueType, has_datetimes=has_datetimes)
        return None if key is None or item is None else partial(_map, key, item)
    if isinstance(data_type, StructType):
        found = {
            field.name: natural(field.dataType, has_datetimes=has_datetimes) for field in data_type.fields
        }
        items = {name: convert for name, convert in found.items() if convert is not None}
        return partial(_struct, items) if len(items) == len(found) else None
    return None


def fitting(kind: FieldType, data_type: DataType, *, has_datetimes: bool) -> Convert | None:
    """Find the conversion of a column to a field's type.

    Parameters:
        kind: The field's type.
        data_type: The column's type.
        has_datetimes: Whether the server supports datetimes.

    Returns:
        The conversion; None if the types are incompatible.
    """
    if isinstance(data_type, NullType):
        return same
    is_text = isinstance(data_type, StringType)
    if is_text and kind in _FROM_TEXT:
        return _FROM_TEXT[kind]
    if kind in (FieldType.ANY, FieldType.SCALAR):
        return natural(data_type, has_datetimes=has_datetimes)
    if kind is FieldType.NUMBER and isinstance(data_type, TimestampType | TimestampNTZType):
        return _seconds
    if kind is FieldType.DECIMAL and isinstance(data_type, DecimalType):
        return same
    if kind is FieldType.DECIMAL and isinstance(data_type, IntegralType):
        return Decimal
    if kind is FieldType.DOUBLE and isinstance(data_type, NumericType):
        return float
    if kind in (FieldType.UNSIGNED, FieldType.INTEGER) and isinstance(data_type, DecimalType):
        return _integer
    if kind is FieldType.UUID and isinstance(data_type, BinaryType):
        return lambda value: UUID(bytes=value)
    fits = _AS_THEY_ARE.get(kind)
    if fits is None or not isinstance(data_type, fits):
        return None
    return natural(data_type, has_datetimes=has_datetimes)


def json_value(text: str) -> Any:
    """Parse a JSON text. Numbers that exceed 64-bit integers or the precision of doubles become decimals.

    Raises:
        ValueError: If the text is invalid.
    """
    try:
        # orjson accepts UTF-8 only, and rounds such numbers.
        return orjson.loads(text) if _LONG_NUMBER.search(text) is None else _careful_json(text)
    except ValueError:
        pass
    try:
        return _careful_json(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{shortened(text)} is not a JSON text (strings need quotes)") from None


def interval(text: str) -> Interval:
    """Parse an interval as shown by `spark.read`: `P1Y-2M3W4DT5H6M7.000000008S`.

    Raises:
        ValueError: If the text is invalid.
    """
    match = _INTERVAL.fullmatch(text)
    if match is None or text[-1] in "PT":
        raise ValueError(f"{shortened(text)} is not an interval")
    parts = {name: int(part) for name, part in match.groupdict().items() if part and name != "seconds"}
    nanoseconds = int(Decimal(match["seconds"] or 0).scaleb(9))
    # Each part keeps its sign.
    second = abs(nanoseconds) // _BILLION * (-1 if nanoseconds < 0 else 1)
    return Interval(**parts, second=second, nsec=nanoseconds - second * _BILLION)


def _moment(value: datetime) -> Datetime:
    seconds, microseconds = divmod((_aware(value) - _EPOCH) // _MICROSECOND, 1_000_000)
    return Datetime(seconds, microseconds * 1000)


def _seconds(value: datetime) -> int | float:
    seconds = (_aware(value) - _EPOCH) / _SECOND
    return int(seconds) if seconds.is_integer() else seconds


def _aware(value: datetime) -> datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _careful_json(text: str) -> Any:
    return json.loads(text, parse_int=_whole, parse_float=_fraction, parse_constant=_no_constant)


def _whole(digits: str) -> int | Decimal:
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else Decimal(digits)


def _fraction(digits: str) -> float | Decimal:
    exact = Decimal(digits)
    return exact if len(exact.as_tuple().digits) > _DOUBLE_DIGITS else float(digits)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _interval(value: timedelta) -> Interval:
    return Interval(second=value.days * 86400 + value.seconds, nsec=value.microseconds * 1000)


def _integer(value: Decimal) -> int:
    number = int(value)
    if number != value:
        raise ValueError(f"{value} is not an integer")
    return number


def _number(text: str) -> Any:
    value = json_value(text)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"{shortened(text)} is not a number")
    return value


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{shortened(text)} is not a decimal number") from None


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ValueError(f"{shortened(text)} is not a UUID") from None


def _json_of(kind: type, name: str) -> Convert:
    def convert(text: str) -> Any:
        value = json_value(text)
        if not isinstance(value, kind):
            raise ValueError(f"{shortened(text)} is not a JSON text of {name}")
        return value

    return convert


def _array(item: Convert, value: list[Any]) -> list[Any]:
    return [None if each is None else item(each) for each in value]


def _map(key: Convert, item: Convert, value: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return {key(name): None if each is None else item(each) for name, each in value}


def _struct(items: Mapping[str, Convert], value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if value[name] is None else convert(value[name]) for name, convert in items.items()}


_FROM_TEXT: Final[Mapping[FieldType, Convert]] = {
    FieldType.STRING: same,
    FieldType.NUMBER: _number,
    FieldType.DECIMAL: _decimal,
    FieldType.UUID: _uuid,
    FieldType.INTERVAL: interval,
    FieldType.SCALAR: json_value,
    FieldType.ANY: json_value,
    FieldType.ARRAY: _json_of(list, "an array"),
    FieldType.MAP: _json_of(dict, "a map"),
}
"""Conversions of texts, as which `spark.read` shows many types."""

_AS_THEY_ARE: Final[Mapping[FieldType, tuple[type[DataType], ...]]] = {
    FieldType.UNSIGNED: (IntegralType,),
    FieldType.INTEGER: (IntegralType,),
    FieldType.NUMBER: (IntegralType, FractionalType),
    FieldType.STRING: (DateType,),
    FieldType.BOOLEAN: (BooleanType,),
    FieldType.VARBINARY: (BinaryType,),
    FieldType.DATETIME: (TimestampType, TimestampNTZType),
    FieldType.INTERVAL: (DayTimeIntervalType,),
    FieldType.ARRAY: (ArrayType,),
    FieldType.MAP: (MapType, StructType),
}
"""Column types whose natural conversion fits a field's type."""
