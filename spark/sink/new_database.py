"""A new database with one space, whose fields are the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID, uuid4

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
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from iproto_server.box.api.box import Box
from iproto_server.box.catalog.system_space_ids import CLUSTER, SCHEMA
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.vclock import VClock
from pyspark_tarantool.sink.database import Database, Rows
from pyspark_tarantool.sink.snapshot_options import SnapshotOptions
from pyspark_tarantool.sink.values import INTEGERS
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

_TYPES: Final[tuple[tuple[type[DataType], FieldType], ...]] = (
    (StringType, FieldType.STRING),
    (IntegralType, FieldType.INTEGER),
    (DecimalType, FieldType.DECIMAL),
    (FractionalType, FieldType.DOUBLE),
    (BooleanType, FieldType.BOOLEAN),
    (BinaryType, FieldType.VARBINARY),
    (TimestampType, FieldType.DATETIME),
    (TimestampNTZType, FieldType.DATETIME),
    (DateType, FieldType.STRING),
    (DayTimeIntervalType, FieldType.INTERVAL),
    (ArrayType, FieldType.ARRAY),
    (MapType, FieldType.MAP),
    (StructType, FieldType.MAP),
)
"""Field types by column types; the first match counts."""

_ONLY_MEMBER: Final = 1


_VERSION: Final = "2.11.0-0-iproto"
"""The version in the server's own snapshots."""


class NewDatabase(Database):
    """A database as created at a server's first start, with one more space.

    Parameters:
        options: The definition of the space.
        schema: The columns, which become its fields.

    Raises:
        SourceError: If the definition is invalid.
    """

    def __init__(self, options: SnapshotOptions, schema: StructType) -> None:
        self.instance_uuid = uuid4()
        self.vclock = VClock()
        self.server_version = _VERSION
        self._cluster_uuid: UUID = uuid4()
        self._options = options
        self._key = options.primary_key or tuple(schema.fieldNames()[:1])
        self._format = _format(schema, self._key, options.types)
        box = self._box()
        space_id = options.space_id
        (row,) = box.space["_space"].select([space_id])
        self.space = SpaceDefinition(
            id=space_id,
            name=options.space,
            field_count=0,
            format_rows=tuple(row[6]),
            index_rows=tuple(list(index) for index in box.space["_index"].select([space_id])),
            collation_rows={},
            is_local=False,
        )

    def rows(self) -> Iterator[Rows]:
        """The rows of the system spaces."""
        spaces = self._box().catalog.spaces
        for space_id in sorted(spaces):
            space = spaces[space_id]
            if not isinstance(space, SysviewSpace) and not space.is_temporary and space_id != self.space.id:
                yield Rows(space_id, int(space.is_local), list(space.rows()))

    def _box(self) -> Box:
        """The database in memory."""
        box, options = Box(), self._options
        try:
            space = box.schema.create_space(options.space, id=options.space_id, format=self._format)
            space.create_index("primary", parts=list(self._key))
            for index in options.indexes:
                space.create_index(index.name, parts=list(index.columns), unique=index.is_unique)
        except BoxError as error:
            raise SourceError(f"invalid definition of the space: {error.message}") from None
        spaces = box.catalog.spaces
        box.catalog.load(spaces[SCHEMA], codec.pack(["cluster", str(self._cluster_uuid)]))
        box.catalog.load(spaces[CLUSTER], codec.pack([_ONLY_MEMBER, str(self.instance_uuid)]))
        return box


def _format(schema: StructType, key: tuple[str, ...], types: Mapping[str, FieldType]) -> list[dict[str, Any]]:
    names = schema.fieldNames()
    for option, columns in (("primary_key", key), ("types", tuple(types))):
        unknown = [column for column in columns if column not in names]
        if unknown or not names:
            raise SourceError(f'the option "{option}": there is no column "{"".join(unknown[:1])}"')
    return [
        {"name": column.name, "type": (types.get(column.name) or _type(column)).value}
        | ({} if column.name in key else {"is_nullable": True})
        for column in schema.fields
    ]


def _type(column: StructField) -> FieldType:
    """The field type of a column."""
    if column.dataType == INTEGERS:
        return FieldType.INTEGER
    for data_type, found in _TYPES:
        if isinstance(column.dataType, data_type):
            return found
    raise SourceError(
        f'column "{column.name}": values of type {column.dataType.simpleString()} cannot be in a space'
    )
