"""The key of a change and the tuples before and after it, as structs or JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.types import DataType, StringType, StructType

from iproto_server.box.key.key_part import Reader, reader_of
from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import RowType
from pyspark_tarantool.source.arrow.columns import NamedField, RowColumns, row_columns
from pyspark_tarantool.source.arrow.earlier_rows import rows_of_each
from pyspark_tarantool.source.arrow.json_text import json_array, json_cells
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.packed import Cells
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.options import ExtraFields, ReadOptions
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition

_LATEST: Final = -1


def tuples_around(name: str, rows: LogRows) -> Cells:
    """The tuples before or after changes, if logged.

    Parameters:
        name: `before` or `after`.
        rows: The rows.
    """
    if name == "before":
        return rows.old
    has_tuple_after = (rows.type == RowType.INSERT) | (rows.type == RowType.REPLACE)
    return rows.tuple.where(has_tuple_after, rows.new)


def keys_or_tuples(rows: LogRows) -> tuple[Cells, npt.NDArray[np.bool_]]:
    """The keys of changes, or else the tuples that contain them; and a mask of the keys."""
    is_key = rows.key.start >= 0
    return rows.key.where(is_key, rows.tuple), is_key


class ChangedTuples(ABC):
    """Creates the columns `key`, `before` and `after`.

    Attributes:
        items: The number of items of each key and tuple that they need; 0 for whole tuples.
    """

    items = 0

    @abstractmethod
    def types(self, name: str) -> tuple[DataType, pa.DataType]:
        """The Spark and Arrow types of a column."""

    @abstractmethod
    def array(self, name: str, rows: LogRows, origin: str) -> pa.Array:
        """Create a column.

        Parameters:
            name: Its name.
            rows: Rows of a log.
            origin: Where they are from, for errors.

        Raises:
            SourceError: If a value does not fit its column, or is malformed.
        """


class JsonTuples(ChangedTuples):
    """Creates columns of JSON arrays.

    Parameters:
        definitions: The known spaces: tuples of others have no known key.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._readers: dict[tuple[int, int], Sequence[Reader]] = {}

    def types(self, name: str) -> tuple[DataType, pa.DataType]:
        return StringType(), pa.string()

    def array(self, name: str, rows: LogRows, origin: str) -> pa.Array:
        if name != "key":
            return json_of(tuples_around(name, rows), origin)
        cells, is_key = keys_or_tuples(rows)
        keys = unpacked(cells, origin)
        earlier = np.full(len(rows), _LATEST)
        for number, (_, mask) in enumerate(rows_of_each(rows, self._definitions.incarnations)):
            earlier[mask] = number
        for place in np.flatnonzero(~is_key & (cells.start >= 0)).tolist():
            readers = self._readers_of(int(rows.space_id[place]), int(earlier[place]))
            keys[place] = [read(keys[place]) for read in readers] or None
        return json_array(keys)

    def _readers_of(self, space_id: int, earlier: int) -> Sequence[Reader]:
        """Readers of the primary key's parts; none if the key is unknown.

        Parameters:
            space_id: The space.
            earlier: The index of the earlier space with that id; `_LATEST` for the latest one.
        """
        readers = self._readers.get((space_id, earlier))
        if readers is None:
            space = self._definitions.get(space_id)
            if earlier != _LATEST and space is not None:
                was = self._definitions.incarnations[earlier]
                space = replace(space, format_rows=tuple(was.format_rows), index_rows=tuple(was.index_rows))
            readers = () if space is None else key_readers(space)
            self._readers[space_id, earlier] = readers
        return readers


class StructTuples(ChangedTuples):
    """Creates columns of structs.

    Parameters:
        space: The space.
        options: Of the query.
        wanted: The requested columns, whose structs may have fewer fields; None for all.

    Raises:
        SourceError: If a requested field does not exist, or cannot have the type.
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
        self.items = len(space.fields)

    def types(self, name: str) -> tuple[DataType, pa.DataType]:
        columns = self._columns[name]
        return columns.schema, pa.struct(list(columns.arrow_schema))

    def array(self, name: str, rows: LogRows, origin: str) -> pa.Array:
        columns = self._columns[name]
        try:
            if name == "key":
                tuples, item = self._keys(rows)
            else:
                cells = tuples_around(name, rows)
                if cells.are_missing:
                    return pa.nulls(len(rows), self.types(name)[1])
                tuples = rows.taken_apart(cells, len(self._space.fields))
                item = tuples.item
        except ValueError as error:
            raise SourceError(f"{origin}: space '{self._space.name}': {error}") from None
        arrays = columns.arrays(item, len(rows), origin, tuples)
        missing = pa.array(tuples.cells.start < 0)
        return pa.StructArray.from_arrays(arrays, fields=list(columns.arrow_schema), mask=missing)

    def _keys(self, rows: LogRows) -> tuple[Tuples, Callable[[int], Cells]]:
        """The keys, or tuples that contain them, and a function that returns the parts."""
        parts = self._space.primary.parts
        cells, is_key = keys_or_tuples(rows)
        # A key of another index does not identify the tuple.
        start = np.where(rows.index_id == 0, cells.start, -1)
        if any(part.path is not None for part in parts):
            readers = key_readers(self._space)
            raws = [
                raw if raw is None or of_key else codec.pack([read(codec.unpack(raw)) for read in readers])
                for raw, of_key in zip(Cells(cells.buffer, start, cells.end).raws(), is_key, strict=True)
            ]
            tuples = Tuples.of(raws, len(parts))
            return tuples, tuples.item
        wanted = max(len(parts), *(part.field_no + 1 for part in parts))
        tuples = rows.taken_apart(Cells(cells.buffer, start, cells.end), wanted)

        def item(number: int) -> Cells:
            if parts[number].field_no == number:
                return tuples.item(number)
            return tuples.item(number).where(is_key, tuples.item(parts[number].field_no))

        return tuples, item


def key_readers(space: SpaceDefinition) -> list[Reader]:
    """Readers of the parts of a space's primary key; none if the key is of an unknown kind."""
    try:
        return [reader_of(part) for part in space.primary.parts]
    except SourceError:
        return []


def _key_columns(space: SpaceDefinition, options: ReadOptions, wanted: StructType | None) -> RowColumns:
    """The columns of a space's primary key: the fields' names, with the path of a part inside a field."""
    fields = []
    for part in space.primary.parts:
        name = space.fields[part.field_no].name
        path = (part.path or "").removeprefix(".")
        fields.append(NamedField(f"{name}.{path}" if path else name, part.type))
    return RowColumns(space.name, fields, replace(options, extra_fields=ExtraFields.DROP), wanted)


def unpacked(cells: Cells, origin: str) -> list[Any]:
    """Unpack values of a log.

    Parameters:
        cells: The values.
        origin: Where they are from, for errors.

    Raises:
        SourceError: If one is malformed.
    """
    try:
        return cells.values()
    except ValueError as error:
        raise SourceError(f"{origin}: {error}") from None


def json_of(cells: Cells, origin: str) -> pa.Array:
    """The JSON texts of values of a log; arguments and errors are those of `unpacked`."""
    if cells.are_missing:
        return pa.nulls(len(cells), pa.string())
    try:
        return json_cells(cells)
    except ValueError as error:
        raise SourceError(f"{origin}: {error}") from None
