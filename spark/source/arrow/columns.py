"""Converts packed tuples to Arrow record batches, and defines the columns of a space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
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

from iproto_server.box.types.field_type import FieldType
from pyspark_tarantool.source.arrow.arrays import FAILURES, Conversion, conversion
from pyspark_tarantool.source.arrow.cell_arrays import packed
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.arrow.json_text import json_array, json_text
from pyspark_tarantool.source.arrow.password_mask import USER_NAME, masked_tuples
from pyspark_tarantool.source.decode.packed import Cells
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ExtraFields, NumberAs, Passwords, ReadOptions, UnsignedAs
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

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
"""The maximum length of a value in a message."""


class NamedField(NamedTuple):
    """A field that may become a column.

    Attributes:
        name: The column's name.
        type: The field's type.
    """

    name: str
    type: FieldType


class Column(NamedTuple):
    """A column made of a field.

    Attributes:
        name: Its name.
        place: The field's index in the tuple.
        conversion: Converts its values to an Arrow array.
    """

    name: str
    place: int
    conversion: Conversion


def column_type(field_type: FieldType, options: ReadOptions) -> DataType:
    """The type of the column that a field becomes.

    Parameters:
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

    Parameters:
        space: The space.
        options: Of the query.
        wanted: The requested columns, by name and type; None for all.

    Raises:
        SourceError: If a requested column does not exist, or cannot have the type.
    """
    fields = [NamedField(field.name, field.type) for field in space.fields]
    return RowColumns(space.name, fields, options, wanted)


class RowColumns:
    """Converts packed tuples to record batches. It can be pickled.

    Parameters:
        space: The space's name, for errors.
        fields: The fields, in the order of the tuple.
        options: Of the query.
        wanted: The requested columns, by name and type; None for all.

    Attributes:
        schema: The columns, as Spark types.
        arrow_schema: The columns, as Arrow types.

    Raises:
        SourceError: If a requested column does not exist, or cannot have the type.
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
        self._masks_passwords = space == USER_NAME and options.passwords is Passwords.MASK
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

    def __reduce__(self) -> tuple[Any, ...]:
        """The arguments: unpickling creates it again."""
        return RowColumns, self._given

    def batch(self, raws: Sequence[bytes], origin: str, filters: Filters | None = None) -> pa.RecordBatch:
        """Convert individually packed tuples to a record batch.

        Parameters:
            raws: The tuples.
            origin: The file's name, for errors.
            filters: Select tuples by columns in `filter_types`; None for all.

        Raises:
            SourceError: If a value does not fit its column, or a tuple is malformed or has too many fields.
        """
        try:
            tuples = Tuples.of(raws, len(self._fields))
        except ValueError as error:
            raise SourceError(f"{origin}: space '{self._space}': {error}") from None
        return self.batch_of(tuples, origin, filters)

    def batch_of(self, tuples: Tuples, origin: str, filters: Filters | None = None) -> pa.RecordBatch:
        """Convert tuples in a buffer to a record batch; parameters and errors are those of `batch`."""
        if self._masks_passwords:
            tuples = masked_tuples(tuples)
        self._check_counts(tuples, origin)
        if filters is not None and filters.conditions:
            looked_at = {name: self._filtered(name, tuples, origin) for name in filters.columns}
            tuples = tuples.take(filters.mask(looked_at))
        arrays = self.arrays(tuples.item, len(tuples), origin, tuples)
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)

    def arrays(
        self, item: Callable[[int], Cells], count: int, origin: str, tuples: Tuples | None = None
    ) -> list[pa.Array]:
        """Make the columns' arrays.

        Parameters:
            item: Returns the cells of a field.
            count: The number of rows.
            origin: The file's name, for errors.
            tuples: The whole tuples; None if no column needs them.

        Raises:
            SourceError: As in `batch`.
        """
        arrays = []
        for field, column in zip(self.schema, self._columns, strict=True):
            if column is not None:
                array = self._array(column, item(column.place), origin)
            elif tuples is None:
                array = pa.nulls(count, _plain_type(field))
            elif field.name == self._raw:
                array = packed(tuples.cells)
            else:
                array = self._extra_array(tuples)
            if array.null_count and not field.nullable:
                raise SourceError(f"{origin}: space '{self._space}', field '{field.name}': a value is nil")
            arrays.append(array)
        return arrays

    def filter_types(self, places: Collection[int]) -> dict[str, pa.DataType]:
        """The columns that filters may use, and their types.

        Parameters:
            places: The indexes of the fields that filters may use.
        """
        return {
            column.name: column.conversion.type
            for column in self._columns
            if column is not None and column.place in places
        }

    def _filtered(self, name: str, tuples: Tuples, origin: str) -> pa.Array:
        column = next(column for column in self._columns if column is not None and column.name == name)
        return self._array(column, tuples.item(column.place), origin)

    def _check_counts(self, tuples: Tuples, origin: str) -> None:
        count = len(self._fields)
        if self._extra_fields is ExtraFields.FAIL and int(tuples.counts.max(initial=0)) > count:
            row = int(tuples.counts.argmax())
            value = _shown(tuples.cells.take(np.array([row])).values()[0])
            reason = f"a tuple has {tuples.counts[row]} fields, more than the {count} of the format: {value}"
            raise SourceError(f"{origin}: space '{self._space}': {reason}")

    def _extra_array(self, tuples: Tuples) -> pa.Array:
        """The fields beyond those of the format."""
        count = len(self._fields)
        extra: list[Any] = [None] * len(tuples)
        places = np.flatnonzero(tuples.counts > count)
        if not places.size:
            return pa.nulls(len(tuples), pa.string())
        for place, value in zip(places.tolist(), tuples.cells.take(places).values(), strict=True):
            extra[place] = value[count:]
        return json_array(extra)

    def _array(self, column: Column, cells: Cells, origin: str) -> pa.Array:
        how = column.conversion
        array = how.cells(cells)
        if array is not None:
            return array
        about = f"{origin}: space '{self._space}', field '{column.name}'"
        try:
            values = cells.values()
        except ValueError as error:
            raise SourceError(f"{about}: {error}") from None
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
                    f"{about}: the value {_shown(value)} does not fit a column of type {wanted}: {error}"
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
        """The column of a field; None for columns made of whole tuples."""
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


def _plain_type(field: StructField) -> pa.DataType:
    return pa.string() if isinstance(field.dataType, StringType) else pa.binary()


def _unused(name: str, names: Sequence[str]) -> str:
    """An unused name."""
    while name in names:
        name += "_"
    return name


def _shown(value: object) -> str:
    text = json_text(value).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
