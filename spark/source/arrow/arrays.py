"""Converts unpacked values to Arrow arrays of one type, all at once if possible.

Each column type has two functions: a fast one for many values, which may fail, and a fallback for single
values, which accepts every value that the column can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from functools import partial
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampType,
)

from iproto_server.box.types.field_type import FieldType
from iproto_server.codec.msgpack import Datetime, Interval
from pyspark_tarantool.source.arrow.cell_arrays import (
    CellConversion,
    booleans,
    doubles,
    integers,
    strings_of,
    texts,
    unpackable,
)
from pyspark_tarantool.source.arrow.json_text import (
    datetime_text,
    decimal_text,
    interval_text,
    json_array,
    json_text,
    strings,
)

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")

_INTEGERS: Final[dict[type[DataType], pa.DataType]] = {
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
}
_MOMENTS: Final = range(-62_135_596_800, 253_402_300_800)
"""The range of Spark's timestamps in seconds: the years 1 to 9999."""

_PLAIN_TEXTS: Final = frozenset(
    {FieldType.STRING, FieldType.DECIMAL, FieldType.UUID, FieldType.DATETIME, FieldType.INTERVAL}
)
"""The types whose texts are not JSON: each field has values of one type only."""

FAILURES: Final = (pa.ArrowException, ValueError, TypeError, ArithmeticError)
"""The exceptions of conversions for values that do not fit; they include UnicodeEncodeError."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion of values to a column.

    Attributes:
        type: The Arrow type.
        many: Converts all values to an array, or raises one of `FAILURES`.
        one: Converts a value other than None for `pack`, or raises one of `FAILURES` if it does not fit.
        pack: Makes an array of results of `one` and None.
        cells: Converts cells to an array without unpacking them, or returns None.
    """

    type: pa.DataType
    many: Callable[[Sequence[Any]], pa.Array]
    one: Callable[[Any], Any]
    pack: Callable[[Sequence[Any]], pa.Array]
    cells: CellConversion = unpackable


def conversion(field_type: FieldType, wanted: DataType) -> Conversion | None:
    """Find the conversion of a field to a column.

    Parameters:
        field_type: The field's type.
        wanted: The column's type.

    Returns:
        The conversion; None if the types are incompatible.
    """
    if isinstance(wanted, StringType):
        if field_type is FieldType.STRING:
            return Conversion(pa.string(), _text_array, _string_bytes, strings, _strings_of_cells)
        if field_type in _PLAIN_TEXTS:
            return Conversion(pa.string(), _unquoted_array, _unquoted, strings)
        return Conversion(pa.string(), json_array, json_text, strings, texts)
    if type(wanted) in _INTEGERS:
        return _integers(_INTEGERS[type(wanted)])
    if isinstance(wanted, DecimalType):
        return _decimals(wanted.precision, wanted.scale)
    return _OTHERS.get(type(wanted))


def _only(values: Sequence[Any], *types: type) -> None:
    if not {*map(type, values)} <= {*types, type(None)}:
        raise TypeError


def _plainly(arrow: pa.DataType, *types: type) -> Callable[[Sequence[Any]], pa.Array]:
    """A function that makes an array of values of the given Python types."""

    def many(values: Sequence[Any]) -> pa.Array:
        _only(values, *types)
        return pa.array(values, arrow)

    return many


def _packer(arrow: pa.DataType) -> Callable[[Sequence[Any]], pa.Array]:
    return lambda values: pa.array(values, arrow)


def _integers(arrow: pa.DataType) -> Conversion:
    limit = 1 << (arrow.bit_width - 1)

    def one(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value != int(value):
            raise ValueError("not an integer")
        if not -limit <= value < limit:
            raise ValueError("out of range")
        return int(value)

    return Conversion(arrow, _plainly(arrow, int), one, _packer(arrow), partial(integers, arrow=arrow))


def _decimals(precision: int, scale: int) -> Conversion:
    arrow = pa.decimal128(precision, scale)
    step = Decimal((0, (1,), -scale))

    def many(values: Sequence[Any]) -> pa.Array:
        _only(values, int)
        try:
            integers = pa.array(values, pa.uint64())
        except OverflowError:
            integers = pa.array(values, pa.int64())
        return integers.cast(arrow)

    def one(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise ValueError("not a number")
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        with localcontext() as context:
            context.prec = 76
            try:
                fitting = exact.quantize(step)
            except InvalidOperation:
                raise ValueError("out of range") from None
        if fitting != exact or len(fitting.as_tuple().digits) > precision:
            raise ValueError("out of range")
        return fitting

    return Conversion(arrow, many, one, _packer(arrow), partial(integers, arrow=arrow))


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("not a number")
    return float(value)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("not a boolean")
    return value


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return _string_bytes(value)
    if not isinstance(value, bytes):
        raise ValueError("not bytes")
    return value


def _microseconds(value: Any) -> int:
    if not isinstance(value, Datetime) or value.seconds not in _MOMENTS:
        raise ValueError("not a datetime of the years 1 to 9999")
    return value.seconds * 1_000_000 + value.nsec // 1000


def _moments(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.int64()).cast(TIMESTAMP)


def _moment_array(values: Sequence[Any]) -> pa.Array:
    return _moments([None if value is None else _microseconds(value) for value in values])


def _string_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError("not a string")
    return value.encode("utf-8", "surrogateescape")


def _text_array(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.string())


def _unquoted(value: Any) -> bytes:
    """The text of a value as in JSON, but without quotes."""
    if isinstance(value, str):
        return _string_bytes(value)
    if isinstance(value, Decimal):
        return decimal_text(value).encode()
    if isinstance(value, UUID):
        return str(value).encode()
    if isinstance(value, Datetime):
        return datetime_text(value).encode()
    if isinstance(value, Interval):
        return interval_text(value).encode()
    return json_text(value)


def _unquoted_array(values: Sequence[Any]) -> pa.Array:
    return strings([None if value is None else _unquoted(value) for value in values])


_strings_of_cells: Final = partial(strings_of, arrow=pa.string())


def _floats(arrow: pa.DataType) -> Conversion:
    many = _plainly(arrow, int, float)
    return Conversion(arrow, many, _double, _packer(arrow), partial(doubles, arrow=arrow))


_OTHERS: Final[dict[type[DataType], Conversion]] = {
    DoubleType: _floats(pa.float64()),
    FloatType: _floats(pa.float32()),
    BooleanType: Conversion(pa.bool_(), _plainly(pa.bool_(), bool), _boolean, _packer(pa.bool_()), booleans),
    BinaryType: Conversion(
        pa.binary(),
        _plainly(pa.binary(), bytes),
        _bytes,
        _packer(pa.binary()),
        partial(strings_of, arrow=pa.binary()),
    ),
    TimestampType: Conversion(TIMESTAMP, _moment_array, _microseconds, _moments),
}


def timestamps(seconds: npt.NDArray[np.float64]) -> pa.Array:
    """Convert timestamps of log rows, rounded to microseconds.

    Parameters:
        seconds: Seconds since 1970.
    """
    return pa.array(np.rint(seconds * 1_000_000).astype(np.int64)).cast(TIMESTAMP)
