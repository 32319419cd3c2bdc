"""The key of a change, and the tuples before and after it: as structs, or as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType, StringType, StructType

from iproto_server import codec
from iproto_server.box.key_part import Reader, reader_of
from iproto_server.storage.xlog import Row, RowType
from spark.source.columns import NamedField, RowColumns, row_columns
from spark.source.definitions import Definitions, SpaceDefinition
from spark.source.errors import SourceError
from spark.source.json_text import json_array
from spark.source.options import ExtraFields, ReadOptions
from spark.source.packed import Cells, Tuples, unpack_some

_OLD_TUPLE: Final = b"\x2c"
_NEW_TUPLE: Final = b"\x2d"
"""Keys in the bodies of rows of logs that carry tuples around the change (`wal_ext` of Tarantool)."""

_INSERT, _REPLACE, _UPDATE, _UPSERT = map(
    int, (RowType.INSERT, RowType.REPLACE, RowType.UPDATE, RowType.UPSERT)
)
_PLAIN_PAIRS: Final = {_UPDATE: 0x83, _UPSERT: 0x83}
"""How bodies begin that carry no such tuples; those of other rows begin with 82."""


def tuples_of_rows(name: str, rows: Sequence[Row]) -> list[bytes | None]:
    """The packed tuples before or after changes, as far as the rows have them.

    Args:
        name: `before` or `after`.
        rows: The rows.
    """
    if name == "before":
        return [_carried(row, _OLD_TUPLE) for row in rows]
    return [
        row.tuple_raw if row.type == _REPLACE or row.type == _INSERT else _carried(row, _NEW_TUPLE)
        for row in rows
    ]


def _carried(row: Row, key: bytes) -> bytes | None:
    """What a row's body has beside the change itself."""
    body = row.body
    if not body or body[0] <= _PLAIN_PAIRS.get(row.type, 0x82) or key not in body:
        return None
    return dict(codec.split_map(body)).get(key)


class ChangedTuples(ABC):
    """Makes the columns `key`, `before` and `after`."""

    @abstractmethod
    def types(self, name: str) -> tuple[DataType, pa.DataType]:
        """The type of a column, as Spark and as Arrow call it."""

    @abstractmethod
    def array(self, name: str, rows: Sequence[Row], origin: str) -> pa.Array:
        """Make a column.

        Args:
            name: Its name.
            rows: Rows of a log.
            origin: Where they are from, for errors.

        Raises:
            SourceError: If a value does not fit its column, or is malformed.
        """


class JsonTuples(ChangedTuples):
    """Makes JSON arrays of them.

    Args:
        definitions: The spaces that are known: of others it cannot be told what the key of a tuple is.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._readers: dict[int | None, Sequence[Reader]] = {}

    def types(self, name: str) -> tuple[DataType, pa.DataType]:
        return StringType(), pa.string()

    def array(self, name: str, rows: Sequence[Row], origin: str) -> pa.Array:
        if name != "key":
            return json_of(tuples_of_rows(name, rows), origin)
        keys: list[Any] = []
        for row, value in zip(rows, unpacked([_key_or_tuple(row) for row in rows], origin), strict=True):
            if row.key_raw is None and value is not None:
                readers = self._readers_of(row.space_id)
                keys.append([read(value) for read in readers] or None)
            else:
                keys.append(value)
        return json_array(keys)

    def _readers_of(self, space_id: int | None) -> Sequence[Reader]:
        """What finds the parts of the primary key in a tuple; none if that is not known."""
        readers = self._readers.get(space_id)
        if readers is None:
            space = None if space_id is None else self._definitions.get(space_id)
            readers = () if space is None else key_readers(space)
            self._readers[space_id] = readers
        return readers


class StructTuples(ChangedTuples):
    """Makes structs of them.

    Args:
        space: The space.
        options: Of the query.
        wanted: The columns that the user wants, which may have structs of fewer fields; None for all.

    Raises:
        SourceError: If a field is wanted that there is not, or of a type that it cannot have.
    """

    def __init__(self, space: SpaceDefinition, options: ReadOptions, wanted: StructType | None) -> None:
        self._space = space
        plain = replace(options, raw=False)
        self._columns: dict[str, RowColumns] = {}
        for name in ("key", "before", "after"):
            given = wanted[name].dataType if wanted is not None and name in wanted.names else None
            struct = given if isinstance(given, StructType) else None
            if name == "key":
                self._columns[name] = _key_columns(space, plain, struct)
            else:
                self._columns[name] = row_columns(space, plain, struct)

    def types(self, name: str) -> tuple[DataType, pa.DataType]:
        columns = self._columns[name]
        return columns.schema, pa.struct(list(columns.arrow_schema))

    def array(self, name: str, rows: Sequence[Row], origin: str) -> pa.Array:
        columns = self._columns[name]
        try:
            if name == "key":
                tuples, item = self._keys(rows)
            else:
                tuples = Tuples.of(tuples_of_rows(name, rows), len(self._space.fields))
                item = tuples.item
        except ValueError as error:
            raise SourceError(f"{origin}: space '{self._space.name}': {error}") from None
        arrays = columns.arrays(item, len(rows), origin, tuples)
        missing = pa.array(tuples.cells.start < 0)
        return pa.StructArray.from_arrays(arrays, fields=list(columns.arrow_schema), mask=missing)

    def _keys(self, rows: Sequence[Row]) -> tuple[Tuples, Callable[[int], Cells]]:
        """The keys, or tuples that have them, and what finds the parts."""
        parts = self._space.primary.parts
        raws = [_key_or_tuple(row) if row.index_id == 0 else None for row in rows]
        is_key = np.array([row.key_raw is not None for row in rows], np.bool_)
        if any(part.path is not None for part in parts):
            readers = key_readers(self._space)
            for place in np.flatnonzero(~is_key).tolist():
                raw = raws[place]
                if raw is not None:
                    raws[place] = codec.pack([read(codec.unpack(raw)) for read in readers])
            is_key[:] = True
        tuples = Tuples.of(raws, max(len(parts), *(part.field_no + 1 for part in parts)))

        def item(number: int) -> Cells:
            of_keys, of_tuples = tuples.item(number), tuples.item(parts[number].field_no)
            start = np.where(is_key, of_keys.start, of_tuples.start)
            return Cells(tuples.buffer, start, np.where(is_key, of_keys.end, of_tuples.end))

        return tuples, item


def _key_or_tuple(row: Row) -> bytes | None:
    return row.tuple_raw if row.key_raw is None else row.key_raw


def key_readers(space: SpaceDefinition) -> list[Reader]:
    """What finds the parts of a space's primary key in a tuple; none if the key is of an unknown kind."""
    try:
        return [reader_of(part) for part in space.primary.parts]
    except SourceError:
        return []


def _key_columns(space: SpaceDefinition, options: ReadOptions, wanted: StructType | None) -> RowColumns:
    """The columns of a space's primary key, named as its fields; with the path, of a part inside of one."""
    fields = []
    for part in space.primary.parts:
        name = space.fields[part.field_no].name
        path = (part.path or "").removeprefix(".")
        fields.append(NamedField(f"{name}.{path}" if path else name, part.type))
    return RowColumns(space.name, fields, replace(options, extra_fields=ExtraFields.DROP), wanted)


def unpacked(raws: Sequence[bytes | None], origin: str) -> list[Any]:
    """Unpack values of a log.

    Args:
        raws: The values; None for none.
        origin: Where they are from, for errors.

    Raises:
        SourceError: If one is malformed.
    """
    try:
        return unpack_some(raws)
    except ValueError as error:
        raise SourceError(f"{origin}: {error}") from None


def json_of(raws: Sequence[bytes | None], origin: str) -> pa.Array:
    """The JSON texts of values of a log; arguments and errors are those of `unpacked`."""
    return json_array(unpacked(raws, origin))
