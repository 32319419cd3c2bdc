"""The definitions of spaces, indexes and users: columns of system spaces, after all logged changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from iproto_server.box.catalog.system_space_ids import INDEX, SPACE, USER
from pyspark_tarantool.source.batch.worker import ends_quietly
from pyspark_tarantool.source.options import Mode, ReadOptions
from pyspark_tarantool.source.state.state_files import FoundState
from pyspark_tarantool.source.state.state_reader import StateReader

_NUMBER, _TEXT = LongType(), StringType()


class SystemSpace(NamedTuple):
    """A system space, and the shown fields.

    Attributes:
        id: Its number.
        fields: The names of its fields, with the name and the type of the column that each becomes.
    """

    id: int
    fields: Mapping[str, tuple[str, DataType]]

    def schema(self) -> StructType:
        """The columns."""
        return StructType([StructField(name, kind) for name, kind in self.fields.values()])

    def stored(self) -> StructType:
        """The same columns, by the names of the fields."""
        return StructType([StructField(field, kind) for field, (_, kind) in self.fields.items()])


SYSTEM_SPACES: Final[Mapping[str, SystemSpace]] = {
    "spaces": SystemSpace(
        SPACE,
        {
            "id": ("id", _NUMBER),
            "owner": ("owner", _NUMBER),
            "name": ("name", _TEXT),
            "engine": ("engine", _TEXT),
            "field_count": ("field_count", _NUMBER),
            "flags": ("flags", _TEXT),
            "format": ("format", _TEXT),
        },
    ),
    "indexes": SystemSpace(
        INDEX,
        {
            "id": ("space_id", _NUMBER),
            "iid": ("index_id", _NUMBER),
            "name": ("name", _TEXT),
            "type": ("type", _TEXT),
            "opts": ("options", _TEXT),
            "parts": ("parts", _TEXT),
        },
    ),
    # Not `auth`, which has hashes of passwords.
    "users": SystemSpace(
        USER,
        {
            "id": ("id", _NUMBER),
            "owner": ("owner", _NUMBER),
            "name": ("name", _TEXT),
            "type": ("type", _TEXT),
        },
    ),
}
"""The tables by mode. Maps and arrays are JSON."""


class SystemSpaceReader(DataSourceReader):
    """Reads columns of a system space.

    Parameters:
        system_space: The system space.
        options: Of the query; they select the files.

    Raises:
        SourceError: If there are no files.
        XlogError: If they cannot be read.
    """

    def __init__(self, system_space: SystemSpace, options: ReadOptions) -> None:
        options = replace(options, mode=Mode.CURRENT, space=system_space.id)
        self._names = system_space.schema().fieldNames()
        found = FoundState.find(options)
        self._reader = StateReader(options, system_space.stored(), found.state)

    def partitions(self) -> list[InputPartition]:
        """The parts of the files."""
        return list(self._reader.partitions())

    @ends_quietly
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a part.

        Parameters:
            partition: One of `partitions`.

        Yields:
            Record batches.

        Raises:
            XlogError: At damage that is not to be skipped.
            OSError: If a file cannot be read.
        """
        for batch in self._reader.read(partition):
            yield batch.rename_columns(self._names)
