"""The definition of a space on a running server."""

from __future__ import annotations

from typing import Any, Final

from iproto_server.iterator_type import IteratorType
from iproto_server.protocol import Key, RequestType
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.remote.connection import Connection
from pyspark_tarantool.source.schema.definitions import SpaceDefinition

# Views of the system spaces, which show each user the accessible objects.
_VCOLLATION: Final = 277
_VSPACE: Final = 281
_VINDEX: Final = 289

_BY_ID, _BY_NAME = 0, 2
_ALL: Final = 2**32 - 1


def find_space(connection: Connection, name_or_id: str | int) -> SpaceDefinition:
    """Get the definition of a space from a server.

    Parameters:
        connection: A connection without requests in flight.
        name_or_id: The space.

    Raises:
        SourceError: If it does not exist, is not accessible, or has no primary index.
        LostConnectionError: If the connection breaks.
    """
    index = _BY_NAME if isinstance(name_or_id, str) else _BY_ID
    found = _select(connection, _VSPACE, index, [name_or_id])
    if not found:
        raise SourceError(f"there is no space {name_or_id!r} on the server, or this user may not see it")
    space_id, _, name, engine, field_count, options, fields, *_ = found[0]
    indexes = _select(connection, _VINDEX, _BY_ID, [space_id])
    parts = [part for row in indexes for part in row[5]]
    has_collations = any(
        isinstance(part, dict) and part.get("collation") is not None for part in (*fields, *parts)
    )
    collations = _select(connection, _VCOLLATION, _BY_ID, []) if has_collations else []
    return SpaceDefinition(
        id=space_id,
        name=name,
        field_count=field_count,
        format_rows=tuple(fields),
        index_rows=tuple(indexes),
        collation_rows={row[0]: row for row in collations},
        is_local=bool(options.get("group_id")),
        engine=engine,
    )


def _select(connection: Connection, space_id: int, index_id: int, key: list[Any]) -> list[Any]:
    rows: list[Any] = connection.ask(
        RequestType.SELECT,
        {
            Key.SPACE_ID: space_id,
            Key.INDEX_ID: index_id,
            Key.LIMIT: _ALL,
            Key.OFFSET: 0,
            Key.ITERATOR: IteratorType.EQ if key else IteratorType.ALL,
            Key.KEY: key,
        },
    )
    return rows
