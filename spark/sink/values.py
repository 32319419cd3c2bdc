"""The values of columns as values of Tarantool, by what the column or the field of a space is."""

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

Convert = Callable[[Any], Any]
"""From a column's value as pyarrow gives it, which is not None, to one that `codec.pack` takes."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_MICROSECOND: Final = timedelta(microseconds=1)

_BILLION: Final = 1_000_000_000

_DOUBLE_DIGITS: Final = 17
"""No double needs more to be told from all others."""

_LONG_NUMBER: Final = re.compile(f"[0-9]{{{_DOUBLE_DIGITS + 1}}}|[0-9]{{4,}}[.][0-9]{{4,}}|[.][0-9]{{9,}}")
"""Where a number may have so many digits."""

_INTERVAL: Final = re.compile(
    r"P(?:(?P<year>[-+]?\d+)Y)?(?:(?P<month>[-+]?\d+)M)?(?:(?P<week>[-+]?\d+)W)?(?:(?P<day>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hour>[-+]?\d+)H)?(?:(?P<minute>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.]\d{1,9})?)S)?)?"
)

FIRST_WITH_DATETIMES: Final = (2, 10)
"""The first version of Tarantool that knows datetimes and intervals."""

INTEGERS: Final = DecimalType(20, 0)
"""What `spark.read` makes of integers of 64 bits: columns of this type are sent as integers."""


def same(value: Any) -> Any:
    """A value that is sent as it is."""
    return value


def natural(data_type: DataType, *, has_datetimes: bool) -> Convert | None:
    """Find what values of a column become where nothing asks for a certain type.

    Parameters:
        data_type: The column's.
        has_datetimes: Whether the server knows datetimes, as from 2.10 on; otherwise moments are seconds
            since 1970.

    Returns:
        The function; None if such values cannot be sent.
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
    """Find what values of a column become where a space's format asks for a type.

    Parameters:
        kind: The field's type.
        data_type: The column's.
        has_datetimes: Whether the server knows datetimes.

    Returns:
        The function; None if such a column has no values of that type.
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
    """Read a JSON text. Numbers with more digits than integers of 64 bits or doubles have are decimals.

    Raises:
        ValueError: If it is none.
    """
    try:
        # The quick way takes no text that is no UTF-8, and rounds such numbers.
        return orjson.loads(text) if _LONG_NUMBER.search(text) is None else _careful_json(text)
    except ValueError:
        pass
    try:
        return _careful_json(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{shortened(text)} is no JSON text (a string has quotes there)") from None


def interval(text: str) -> Interval:
    """Read a span as `spark.read` shows it: `P1Y-2M3W4DT5H6M7.000000008S`.

    Raises:
        ValueError: If it is none.
    """
    match = _INTERVAL.fullmatch(text)
    if match is None or text[-1] in "PT":
        raise ValueError(f"{shortened(text)} is no interval")
    parts = {name: int(part) for name, part in match.groupdict().items() if part and name != "seconds"}
    nanoseconds = int(Decimal(match["seconds"] or 0).scaleb(9))
    # Each part keeps its sign.
    second = abs(nanoseconds) // _BILLION * (-1 if nanoseconds < 0 else 1)
    return Interval(**parts, second=second, nsec=nanoseconds - second * _BILLION)


def shortened(value: object, most: int = 60) -> str:
    """A value for a message."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


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
        raise ValueError(f"{value} is no integer")
    return number


def _number(text: str) -> Any:
    value = json_value(text)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"{shortened(text)} is no number")
    return value


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{shortened(text)} is no decimal number") from None


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ValueError(f"{shortened(text)} is no UUID") from None


def _json_of(kind: type, name: str) -> Convert:
    def convert(text: str) -> Any:
        value = json_value(text)
        if not isinstance(value, kind):
            raise ValueError(f"{shortened(text)} is no JSON text of {name}")
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
"""What texts become: `spark.read` shows many types so."""

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
"""Columns whose values belong to a type of fields as they naturally are."""
