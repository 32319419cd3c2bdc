"""Converts batches of rows to tuples: arguments of a procedure, or fields of a space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow
from pyspark.sql.types import DataType, StringType, StructType

from iproto_server.box.types.field_type import FieldType
from pyspark_tarantool.sink.values import Convert, fitting, json_value, natural, same
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import FieldDefinition, SpaceDefinition

EXTRA: Final = "_extra"
"""The column of `spark.read` for fields beyond those of the format, as a JSON array."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a written table.

    Attributes:
        name: Its name.
        position: Its index in the table, from 0.
        convert: Converts its values.
    """

    name: str
    position: int
    convert: Convert

    def values(self, batch: pyarrow.RecordBatch, first: int) -> list[Any]:
        """Convert the values of a batch.

        Parameters:
            batch: The batch.
            first: The number of its first row, for errors.

        Raises:
            SourceError: If a value cannot be converted; the message names row and column.
        """
        given = _values(batch.column(self.position))
        convert = self.convert
        if convert is same:
            return given
        made: list[Any] = []
        try:
            # extend() appends one by one, so the length shows which value failed.
            made.extend(None if value is None else convert(value) for value in given)
        except (ValueError, ArithmeticError) as error:
            raise SourceError(f'row {first + len(made)}: column "{self.name}": {error}') from None
        return made


class Tuples:
    """Converts batches to tuples.

    Parameters:
        columns: The columns of the tuple's fields, in order; None for a field that is always nil.
        drops_nils: Whether to drop nils at the end of a tuple.
        extra: The column with an array of further fields; None if there is none.
    """

    def __init__(
        self, columns: Sequence[Column | None], *, drops_nils: bool = False, extra: Column | None = None
    ) -> None:
        self._columns = tuple(columns)
        self._drops_nils = drops_nils
        self._extra = extra

    @classmethod
    def of_arguments(
        cls, schema: StructType, json_columns: Sequence[str] = (), *, has_datetimes: bool = True
    ) -> Tuples:
        """Create tuples of arguments, one per column; nulls at the end are dropped.

        Parameters:
            schema: The columns.
            json_columns: The names of columns with JSON texts.
            has_datetimes: Whether the server supports datetimes.

        Raises:
            SourceError: If the values of a column cannot be sent.
        """
        columns = []
        for position, field in enumerate(schema.fields):
            convert: Convert | None
            if field.name in json_columns:
                convert = json_value if isinstance(field.dataType, StringType) else None
            else:
                convert = natural(field.dataType, has_datetimes=has_datetimes)
            if convert is None:
                aim = "be read as JSON texts" if field.name in json_columns else "be sent"
                raise SourceError(
                    f'column "{field.name}": values of type {field.dataType.simpleString()} cannot {aim}'
                )
            columns.append(Column(field.name, position, convert))
        for name in json_columns:
            if name not in schema.fieldNames():
                raise SourceError(f'the option "json_columns" names "{name}", which is not a column')
        return cls(columns, drops_nils=True)

    @classmethod
    def of_space(cls, schema: StructType, space: SpaceDefinition, *, has_datetimes: bool = True) -> Tuples:
        """Create tuples of a space's fields, by column names; fields without a column are nil.

        Parameters:
            schema: The columns.
            space: The space.
            has_datetimes: Whether the server supports datetimes.

        Raises:
            SourceError: If a column is not a field, or its type does not fit.
        """
        found = _by_name(schema, space)
        extra = None
        if EXTRA not in {field.name for field in space.fields}:
            extra = _column(_EXTRA_FIELD, found, space, has_datetimes)
        columns = [_column(field, found, space, has_datetimes) for field in space.fields]
        return cls(columns, extra=extra)

    @classmethod
    def of_keys(cls, schema: StructType, space: SpaceDefinition, *, has_datetimes: bool = True) -> Tuples:
        """Create keys of a space from the columns of the primary key; others are ignored.

        Parameters:
            schema: The columns.
            space: The space.
            has_datetimes: Whether the server supports datetimes.

        Raises:
            SourceError: If a column of the key is missing, a column is not a field, or the key has parts
                inside fields.
        """
        found = _by_name(schema, space)
        columns = []
        for part in space.primary.parts:
            field = space.fields[part.field_no]
            if part.steps:
                raise SourceError(f"space '{space.name}' has a primary key with parts inside fields")
            column = _column(field, found, space, has_datetimes)
            if column is None:
                raise SourceError(f'column "{field.name}" is missing: it is in the primary key')
            columns.append(column)
        return cls(columns)

    def rows(self, batch: pyarrow.RecordBatch, first: int = 0) -> Iterator[list[Any]]:
        """Convert the rows of a batch to tuples.

        Parameters:
            batch: The batch.
            first: The number of its first row, for errors.

        Raises:
            SourceError: If a value cannot be converted; the message names row and column.
        """
        count = batch.num_rows
        made = [[None] * count if each is None else each.values(batch, first) for each in self._columns]
        extra = self._extra.values(batch, first) if self._extra is not None else None
        rows = map(list, zip(*made, strict=True)) if made else ([] for _ in range(count))
        for number, row in enumerate(rows):
            if extra is not None and extra[number]:
                row += extra[number]
            elif self._drops_nils:
                while row and row[-1] is None:
                    row.pop()
            yield row


_EXTRA_FIELD: Final = FieldDefinition(EXTRA, FieldType.ARRAY, is_nullable=True)


def _values(column: pyarrow.Array) -> list[Any]:
    """The values of a column; texts that are not UTF-8 keep their bytes, as in the codec."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        if not pyarrow.types.is_string(column.type):
            raise SourceError("a nested text is not UTF-8") from None
        raws = column.cast(pyarrow.binary()).to_pylist()
        values = [None if raw is None else raw.decode("utf-8", "surrogateescape") for raw in raws]
    return values


def _by_name(schema: StructType, space: SpaceDefinition) -> dict[str, tuple[int, DataType]]:
    """The columns by name; each must be a field, and occur once."""
    names = {field.name for field in space.fields} | {EXTRA}
    found: dict[str, tuple[int, DataType]] = {}
    for position, column in enumerate(schema.fields):
        if column.name not in names:
            known = ", ".join(field.name for field in space.fields) or "none"
            raise SourceError(
                f"column \"{column.name}\" is not a field of space '{space.name}': its fields are {known}"
            )
        if column.name in found:
            raise SourceError(f'there are two columns "{column.name}"')
        found[column.name] = (position, column.dataType)
    return found


def _column(
    field: FieldDefinition,
    found: dict[str, tuple[int, DataType]],
    space: SpaceDefinition,
    has_datetimes: bool,
) -> Column | None:
    if field.name not in found:
        return None
    position, data_type = found[field.name]
    convert = fitting(field.type, data_type, has_datetimes=has_datetimes)
    if convert is None:
        raise SourceError(
            f'column "{field.name}" of type {data_type.simpleString()} does not fit the field of type '
            f"{field.type} of space '{space.name}'"
        )
    return Column(field.name, position, convert)
