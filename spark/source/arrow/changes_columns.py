"""Converts rows of logs to record batches: the columns of `mode=changes`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from iproto_server.storage.xlog import Row, RowType
from pyspark_tarantool.source.arrow.arrays import TIMESTAMP, timestamps
from pyspark_tarantool.source.arrow.cell_arrays import packed
from pyspark_tarantool.source.arrow.changed_tuples import (
    ChangedTuples,
    JsonTuples,
    StructTuples,
    json_of,
    unpacked,
)
from pyspark_tarantool.source.arrow.earlier_rows import rows_of_each
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.arrow.json_text import json_array
from pyspark_tarantool.source.arrow.password_mask import masked_rows
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.packed import Offsets
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import Passwords, ReadOptions, TuplesAs
from pyspark_tarantool.source.schema.definitions import Definitions

_PLAIN: Final[Mapping[str, tuple[DataType, pa.DataType]]] = {
    "lsn": (LongType(), pa.int64()),
    "timestamp": (TimestampType(), TIMESTAMP),
    "replica_id": (IntegerType(), pa.int32()),
    "transaction": (LongType(), pa.int64()),
    "space_id": (IntegerType(), pa.int32()),
    "space": (StringType(), pa.string()),
    "operation": (StringType(), pa.string()),
    "index_id": (IntegerType(), pa.int32()),
}
"""The columns that need no unpacking: filters on them are evaluated first."""

PLAIN_TYPES: Final = {name: arrow for name, (_, arrow) in _PLAIN.items()}
"""Their Arrow types."""

_OF_KEY: Final = "key."
_TUPLES: Final = ("key", "before", "after")
_TEXTS: Final = ("operations", "upsert_tuple")
_RAWS: Final = ("key_raw", "tuple_raw", "operations_raw")
_SPREAD: Final = 1 << 12
"""Numbers in a smaller range are counted instead of sorted."""

_NAMES: Final = {int(row_type): row_type.name for row_type in RowType}


def operation_name(row_type: int) -> str:
    """The name of a row type: `INSERT`; `TYPE 99` if unknown."""
    return _NAMES.get(row_type) or f"TYPE {row_type}"


class ChangesColumns:
    """Converts rows of logs to record batches. It can be pickled.

    Parameters:
        definitions: The known spaces; with `tuples=struct`, they include that of the query.
        options: Of the query.
        wanted: The requested columns, by name and type; None for all.

    Attributes:
        space: With `tuples=struct`, the space; else None.
        schema: The columns, as Spark types.
        arrow_schema: The columns, as Arrow types.

    Raises:
        SourceError: If a requested column does not exist, or cannot have the type; or if the space does not
            exist.
    """

    def __init__(
        self, definitions: Definitions, options: ReadOptions, wanted: StructType | None = None
    ) -> None:
        self._given = (definitions, options, wanted)
        self._space_names = {number: space.name for number, space in definitions.items()}
        self._incarnations = definitions.incarnations
        self._masks_passwords = options.passwords is Passwords.MASK
        self.space = (
            definitions.space(options.space)
            if options.tuples is TuplesAs.STRUCT and options.space is not None
            else None
        )
        self._tuples: ChangedTuples
        if self.space is not None:
            self._tuples = StructTuples(self.space, options, wanted)
        else:
            self._tuples = JsonTuples(definitions)
        key = self._tuples.types("key")[1]
        of_key = list(key) if pa.types.is_struct(key) else []
        self._key_types = {_OF_KEY + field.name: field.type for field in of_key}
        available = {
            **_PLAIN,
            **{name: self._tuples.types(name) for name in _TUPLES},
            **{name: (StringType(), pa.string()) for name in _TEXTS},
            **{name: (BinaryType(), pa.binary()) for name in _RAWS},
        }
        if wanted is None:
            shown = [name for name in available if options.raw or name not in _RAWS]
            wanted = StructType([StructField(name, available[name][0]) for name in shown])
        _check(wanted, {name: spark for name, (spark, _) in available.items()})
        self.schema = wanted
        self.arrow_schema = pa.schema(
            [pa.field(field.name, available[field.name][1], field.nullable) for field in wanted]
        )

    @property
    def filter_types(self) -> dict[str, pa.DataType]:
        """The columns that filters may use, and their types; parts of a key are `key.NAME`."""
        return {**PLAIN_TYPES, **self._key_types}

    @property
    def items(self) -> int:
        """The number of items of each key and tuple that the columns need; 0 for whole tuples."""
        return self._tuples.items

    def __reduce__(self) -> tuple[Any, ...]:
        """The arguments: unpickling creates it again."""
        return ChangesColumns, self._given

    def batch(self, rows: Sequence[Row], origin: str, filters: Filters) -> pa.RecordBatch:
        """Convert individually decoded rows to a record batch; see `batch_of`."""
        return self.batch_of(LogRows.of(rows), origin, filters)

    def batch_of(self, rows: LogRows, origin: str, filters: Filters) -> pa.RecordBatch:
        """Convert rows to a record batch.

        Parameters:
            rows: Rows of a log.
            origin: The file's name, for errors.
            filters: Select rows by columns in `filter_types`.

        Raises:
            SourceError: If a value does not fit its column, or is malformed.
        """
        if self._masks_passwords:
            rows = masked_rows(rows)
        names = self.schema.names
        plain = filters.on(*PLAIN_TYPES)
        columns = self._plain(rows, {*names, *plain.columns})
        if plain.conditions:
            rows, columns = _filtered(rows, columns, plain.mask(columns))
        of_keys = filters.on(*self._key_types)
        if of_keys.conditions:
            columns["key"] = self._tuples.array("key", rows, origin)
            parts = {
                name: pc.struct_field(columns["key"], name.removeprefix(_OF_KEY)) for name in of_keys.columns
            }
            rows, columns = _filtered(rows, columns, of_keys.mask(parts))
        for name in names:
            if name in columns:
                continue
            if name in _TUPLES:
                columns[name] = self._tuples.array(name, rows, origin)
            elif name in _RAWS:
                columns[name] = packed(getattr(rows, name.removesuffix("_raw")))
            elif name == "operations":
                columns[name] = _operations(rows, origin)
            elif name == "upsert_tuple":
                is_upsert = rows.type == RowType.UPSERT
                columns[name] = json_of(rows.tuple.where(is_upsert, rows.tuple.none()), origin)
        for field in self.arrow_schema:
            if not field.nullable and columns[field.name].null_count:
                raise SourceError(f"{origin}: column '{field.name}' of changes: a value is null")
        return pa.RecordBatch.from_arrays([columns[name] for name in names], schema=self.arrow_schema)

    def _plain(self, rows: LogRows, names: Collection[str]) -> dict[str, pa.Array]:
        """The requested columns that need no unpacking."""
        columns: dict[str, pa.Array] = {}
        about_none = rows.space_id < 0
        for name in PLAIN_TYPES.keys() & names:
            if name == "timestamp":
                columns[name] = timestamps(rows.timestamp)
            elif name == "operation":
                columns[name] = _named(rows.type, operation_name)
            elif name == "space":
                columns[name] = self._names(rows)
            elif name in ("space_id", "index_id"):
                columns[name] = pa.array(getattr(rows, name), PLAIN_TYPES[name], mask=about_none)
            else:
                numbers = rows.tsn if name == "transaction" else getattr(rows, name)
                columns[name] = pa.array(numbers, PLAIN_TYPES[name])
        return columns

    def _names(self, rows: LogRows) -> pa.Array:
        """The names of the spaces; those of dropped ones whose ids are in use again are their own."""
        names = _named(rows.space_id, self._space_names.get)
        for each, mask in rows_of_each(rows, self._incarnations):
            if mask.any():
                names = pc.if_else(pa.array(mask), pa.scalar(each.name, pa.string()), names)
        return names


def _filtered(
    rows: LogRows, columns: Mapping[str, pa.Array], mask: npt.NDArray[np.bool_]
) -> tuple[LogRows, dict[str, pa.Array]]:
    """The selected rows, and their columns."""
    return rows.take(mask), {name: array.filter(pa.array(mask)) for name, array in columns.items()}


def _named(numbers: Offsets, name_of: Callable[[int], str | None]) -> pa.Array:
    """The names of numbers, few of which are distinct."""
    if not numbers.size:
        return pa.array([], pa.string())
    low, high = int(numbers.min()), int(numbers.max())
    if low == high:
        return pa.repeat(pa.scalar(name_of(low), pa.string()), len(numbers))
    if high - low < _SPREAD:
        places = numbers - low
        different = np.flatnonzero(np.bincount(places)) + low
        ranks = np.zeros(high - low + 1, np.int64)
        ranks[different - low] = np.arange(len(different))
        places = ranks.take(places)
    else:
        different, places = np.unique(numbers, return_inverse=True)
    return pa.array([name_of(number) for number in different.tolist()], pa.string()).take(pa.array(places))


def _operations(rows: LogRows, origin: str) -> pa.Array:
    """The operations as JSON."""
    if rows.operations.are_missing:
        return pa.nulls(len(rows), pa.string())
    if not rows.index_base.any():
        return json_of(rows.operations, origin)
    return json_array(
        [
            None if operations is None else _from_zero(operations, base)
            for operations, base in zip(
                unpacked(rows.operations, origin), rows.index_base.tolist(), strict=True
            )
        ]
    )


def _from_zero(operations: list[Any], base: int) -> list[Any]:
    """Operations with zero-based field numbers and splice offsets."""
    if base == 0:
        return operations
    counted = []
    for operation in operations:
        shifted = list(operation) if isinstance(operation, list) else operation
        if isinstance(shifted, list):
            for place in (1, 2) if shifted[:1] == [":"] else (1,):
                if place < len(shifted) and type(shifted[place]) is int and shifted[place] >= base:
                    shifted[place] -= base
        counted.append(shifted)
    return counted


def _check(wanted: StructType, available: Mapping[str, DataType]) -> None:
    """Check that the requested columns exist with these types."""
    for field in wanted:
        expected = available.get(field.name)
        if expected is None:
            raise SourceError(f"changes have no column '{field.name}': there are {', '.join(available)}")
        if field.dataType != expected:
            raise SourceError(
                f"the column '{field.name}' of changes is of type {expected.simpleString()}, not of type "
                f"{field.dataType.simpleString()}"
            )
