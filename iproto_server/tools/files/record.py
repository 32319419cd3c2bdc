"""The fields of a row that the formats of `cat` show: those of its header and body, under Tarantool's names.

Tarantool prints fields in the order in which they happen to be in a Lua table. That order depends on which
fields there are, but not on anything else, and is kept here so that the output of both can be compared.
"""

from __future__ import annotations

from iproto_server.codec import msgpack as codec
from iproto_server.storage.xlog import Row, RowType

_TYPE_NAMES = {int(row_type): row_type.name for row_type in RowType}

_CHANGES = frozenset(
    (RowType.INSERT, RowType.REPLACE, RowType.UPDATE, RowType.DELETE, RowType.UPSERT, RowType.NOP)
)

# The keys of bodies, in the order in which they are shown.
_BODY_NAMES = {
    0x10: "space_id",
    0x28: "operations",
    0x15: "index_base",
    0x11: "index_id",
    0x20: "key",
    0x21: "tuple",
    0x2A: "tuple_meta",
    0x2B: "options",
    0x2C: "old_tuple",
    0x2D: "new_tuple",
}
_BODY_PLACES = {key: place for place, key in enumerate(_BODY_NAMES)}


def type_name(row: Row) -> str | int:
    """The request's name, or its number if it has none."""
    return _TYPE_NAMES.get(row.type, row.type)


def header_fields(row: Row) -> list[tuple[str, str | int | float | bool]]:
    """The header's fields; what is 0 is left out, and so is what follows from the rest."""
    fields: list[tuple[str, str | int | float | bool]] = []
    add = fields.append
    timestamp = ("timestamp", row.timestamp)
    commit = row.is_last and row.tsn != row.lsn
    if row.lsn:
        add(("lsn", row.lsn))
    elif row.timestamp:
        add(timestamp)
    if commit and not row.group_id:
        add(("commit", True))
    if row.group_id:
        add(("group_id", row.group_id))
    if row.replica_id:
        add(("replica_id", row.replica_id))
    add(("type", type_name(row)))
    if commit and row.group_id:
        add(("commit", True))
    if row.tsn != row.lsn or not row.is_last:
        add(("tsn", row.tsn))
    if row.lsn and row.timestamp:
        add(timestamp)
    return fields


def body_fields(row: Row) -> list[tuple[str | int, object]]:
    """The body's fields, unpacked; in rows that are no changes of tuples, under their numbers."""
    if not row.body:
        return []
    pairs = [(codec.unpack(key), codec.unpack(value)) for key, value in codec.split_map(row.body)]
    if row.type not in _CHANGES:
        return pairs
    pairs.sort(key=lambda pair: _BODY_PLACES.get(pair[0], len(_BODY_PLACES)))
    return [(_BODY_NAMES.get(key, key), value) for key, value in pairs]
