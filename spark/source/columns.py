"""From packed tuples to record batches of Arrow, and what the columns of a space are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from iproto_server import codec
from iproto_server.box.field_type import FieldType
from iproto_server.errors import BoxError
from spark.source.arrays import FAILURES, Conversion, conversion
from spark.source.definitions import SpaceDefinition
from spark.source.errors import SourceError
from spark.source.json_text import json_array, json_text
from spark.source.options import ExtraFields, NumberAs, ReadOptions, UnsignedAs

EXTRA: Final = "_extra"
RAW: Final = "_raw"

_NUMBERS: Final[dict[NumberAs, DataType]] = {
    NumberAs.TEXT: StringType(),
    NumberAs.BIGINT: LongType(),
    NumberAs.DOUBLE: DoubleType(),
}
_TYPES: Final[dict[FieldType, DataType]] = {
    FieldType.DOUBLE: DoubleType(),
    FieldType.BOOLEAN: BooleanType(),
    FieldType.VARBINARY: BinaryType(),
    FieldType.DATETIME: TimestampType(),
}
_SHOWN: Final = 100
"""A value in a message is not longer than that."""


class NamedField(NamedTuple):
    """A field that may become a column.

    Attributes:
        name: The column's name.
        type: The field's type.
    """

    name: str
    type: FieldType


class Column(NamedTuple):
    """A column that is made of a field.

    Attributes:
        name: Its name.
        place: The field's place in the tuple.
        conversion: How its values become an Arrow array.
    """

    name: str
    place: int
    conversion: Conversion


def column_type(field_type: FieldType, options: ReadOptions) -> DataType:
    """The type of the column that a field becomes.

    Args:
        field_type: The field's type.
        options: Of the query.
    """
    if field_type in (FieldType.UNSIGNED, FieldType.INTEGER):
        return LongType() if options.unsigned is UnsignedAs.BIGINT else DecimalType(20, 0)
    if field_type is FieldType.NUMBER:
        return _NUMBERS[options.number]
    return _TYPES.get(field_type, StringType())


def row_columns(space: SpaceDefinition, options: ReadOptions, wanted: StructType | None = None) -> RowColumns:
    """The columns of a space.

    Args:
        space: The space.
        options: Of the query.
        wanted: The columns that the user wants, by name and type; None for all.

    Raises:
        SourceError: If the user wants one that there is not, or of a type that it cannot have.
    """
    fields = [NamedField(field.name, field.type) for field in space.fields]
    return RowColumns(space.name, fields, options, wanted)


class RowColumns:
    """Makes record batches of packed tuples. It can be pickled.

    Args:
        space: The space's name, for errors.
        fields: The fields, in the order of the tuple.
        options: Of the query.
        wanted: The columns that are wanted, by name and type; None for all.

    Attributes:
        schema: The columns, as Spark calls them.
        arrow_schema: The columns, as Arrow calls them.

    Raises:
        SourceError: If a column is wanted that there is not, or of a type that it cannot have.
    """

    def __init__(
        self,
        space: str,
        fields: Iterable[NamedField],
        options: ReadOptions,
        wanted: StructType | None = None,
    ) -> None:
        self._given = (space, tuple(fields), options, wanted)
        self._space = space
        self._fields = self._given[1]
        self._extra_fields = options.extra_fields
        names = [field.name for field in self._fields]
        self._extra, self._raw = _unused(EXTRA, names), _unused(RAW, names)
        self.schema = self._all(options) if wanted is None else wanted
        self._columns = [self._column(field) for field in self.schema]
        self.arrow_schema = pa.schema(
            [
                pa.field(field.name, made.conversion.type if made else _plain_type(field), field.nullable)
                for field, made in zip(self.schema, self._columns, strict=True)
            ]
        )
        self._has_extra = any(field.name == self._extra for field in self.schema)

    def __reduce__(self) -> tuple[Any, ...]:
        """What it was made of: it is made anew where it goes."""
        return RowColumns, self._given

    def batch(self, raws: Sequence[bytes], origin: str) -> pa.RecordBatch:
        """Make a record batch.

        Args:
            raws: Packed tuples.
            origin: Where they are from, for errors.

        Raises:
            SourceError: If a value does not fit its column, a tuple has more fields than it may, or is none.
        """
        return pa.RecordBatch.from_arrays(self.arrays(raws, origin), schema=self.arrow_schema)

    def arrays(self, raws: Sequence[bytes], origin: str) -> list[pa.Array]:
        """Make the columns' arrays; arguments and errors are those of `batch`."""
        return self.arrays_of(unpack_all(raws, f"{origin}: space '{self._space}'"), raws, origin)

    def arrays_of(self, rows: Sequence[Sequence[Any]], raws: Sequence[bytes], origin: str) -> list[pa.Array]:
        """Make the columns' arrays of unpacked tuples.

        Args:
            rows: The tuples.
            raws: The same, packed: what the column of packed tuples has; none if it is not wanted.
            origin: Where they are from, for errors.

        Raises:
            SourceError: As in `batch`.
        """
        count = len(self._fields)
        lengths = {*map(len, rows)}
        extra: list[list[Any] | None] | None = None
        if max(lengths, default=0) > count:
            if self._extra_fields is ExtraFields.FAIL:
                row = next(row for row in rows if len(row) > count)
                reason = (
                    f"a tuple has {len(row)} fields, {len(row) - count} more than the format: {_shown(row)}"
                )
                raise SourceError(f"{origin}: space '{self._space}': {reason}")
            if self._has_extra:
                extra = [list(row[count:]) or None for row in rows]
        if len(lengths) == 1:
            values: list[Sequence[Any]] = list(zip(*rows, strict=True))
        else:
            values = list(zip_longest(*rows))
        missing: Sequence[Any] = [None] * len(rows)
        arrays = []
        for field, column in zip(self.schema, self._columns, strict=True):
            if column is not None:
                array = self._array(
                    column, values[column.place] if column.place < len(values) else missing, origin
                )
            elif field.name == self._raw:
                array = pa.array(raws, pa.binary())
            elif extra is None:
                array = pa.nulls(len(rows), pa.string())
            else:
                array = json_array(extra)
            if array.null_count and not field.nullable:
                raise SourceError(f"{origin}: space '{self._space}', field '{field.name}': a value is nil")
            arrays.append(array)
        return arrays

    def _array(self, column: Column, values: Sequence[Any], origin: str) -> pa.Array:
        how = column.conversion
        try:
            return how.many(values)
        except FAILURES:
            pass
        fitting = []
        for value in values:
            try:
                fitting.append(None if value is None else how.one(value))
            except FAILURES as error:
                wanted = self.schema[column.name].dataType.simpleString()
                raise SourceError(
                    f"{origin}: space '{self._space}', field '{column.name}': the value {_shown(value)} does "
                    f"not fit a column of type {wanted}: {error}"
                ) from None
        return how.pack(fitting)

    def _all(self, options: ReadOptions) -> StructType:
        columns = [StructField(field.name, column_type(field.type, options)) for field in self._fields]
        if self._extra_fields is ExtraFields.COLUMN:
            columns.append(StructField(self._extra, StringType()))
        if options.raw:
            columns.append(StructField(self._raw, BinaryType()))
        return StructType(columns)

    def _column(self, wanted: StructField) -> Column | None:
        """The column of a field; None for those that are made of whole tuples."""
        for place, field in enumerate(self._fields):
            if field.name == wanted.name:
                how = conversion(field.type, wanted.dataType)
                if how is None:
                    raise SourceError(
                        f"space '{self._space}': the field '{field.name}' of type {field.type} cannot be a "
                        f"column of type {wanted.dataType.simpleString()}"
                    )
                return Column(field.name, place, how)
        if (wanted.name, wanted.dataType) in ((self._extra, StringType()), (self._raw, BinaryType())):
            return None
        names = ", ".join([field.name for field in self._fields] + [self._extra, self._raw])
        raise SourceError(f"space '{self._space}' has no column '{wanted.name}': there are {names}")


def unpack_all(raws: Sequence[bytes], origin: str) -> list[Any]:
    """Unpack many values.

    Args:
        raws: The values.
        origin: What they are, for errors.

    Raises:
        SourceError: If one is malformed.
    """
    unpacker = codec.new_unpacker()
    try:
        unpacker.feed(b"".join(raws))
        rows = list(unpacker)
    except codec.MALFORMED:
        rows = []
    if len(rows) == len(raws):
        return rows
    try:
        return [codec.unpack(raw) for raw in raws]
    except BoxError as error:
        raise SourceError(f"{origin}: {error.message}") from None


def _plain_type(field: StructField) -> pa.DataType:
    return pa.string() if isinstance(field.dataType, StringType) else pa.binary()


def _unused(name: str, names: Sequence[str]) -> str:
    """A name that no field has."""
    while name in names:
        name += "_"
    return name


def _shown(value: object) -> str:
    text = json_text(value).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
