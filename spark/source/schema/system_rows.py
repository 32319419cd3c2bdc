"""The rows of `_space`, `_index` and `_collation` in files, which define the spaces of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from iproto_server.box.catalog.system_space_ids import COLLATION, INDEX, SPACE
from iproto_server.box.update import apply_update, apply_upsert, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import Block, Row, RowType, decode_rows
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import FileRange, read_blocks, scan_parts, whole_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from pyspark_tarantool.source.schema.incarnations import Drop, shape_of
from pyspark_tarantool.source.schema.space_rows import is_temporary, space_flags

_KEY_SIZES: Final = {SPACE: 1, INDEX: 2, COLLATION: 1}
"""The system spaces that are read, and the number of fields of their primary keys, which come first."""

_DEFINING_BLOCKS: Final = BlockFilter(_KEY_SIZES)


def read_definitions(
    snapshot: DataFile | None,
    logs: Sequence[DataFile],
    damage: DamageHandler,
    counts: Callable[[Row], bool] = lambda row: True,
) -> Definitions:
    """Read the space definitions.

    This reads the beginning of the snapshot and all blocks of the logs, and decodes those with such rows.

    Parameters:
        snapshot: The snapshot to begin with; None for an empty database.
        logs: The following logs, oldest first.
        damage: Handles damage. Readers of the rows report it, so pass a handler without reports.
        counts: Whether to apply a row of a log.

    Raises:
        XlogError: At damage that is not to be skipped.
        OSError: If a file cannot be read.
    """
    return read_system_rows(snapshot, logs, damage, counts).definitions()


def read_system_rows(
    snapshot: DataFile | None,
    logs: Sequence[DataFile],
    damage: DamageHandler,
    counts: Callable[[Row], bool] = lambda row: True,
) -> SystemRows:
    """Read the rows that define spaces, to update them later; see `read_definitions`."""
    system = SystemRows()
    if snapshot is not None:
        for block in read_blocks(whole_file(snapshot), damage):
            rows = _rows(snapshot.uri, block, damage)
            for row in rows:
                system.apply(row)
            if rows and (rows[-1].space_id or 0) > max(_KEY_SIZES):
                break
    for log in logs:
        for row in _defining_rows(log, damage):
            if counts(row):
                system.apply(row)
    return system


def _defining_rows(log: DataFile, damage: DamageHandler) -> Iterator[Row]:
    """The rows of a log that define spaces."""

    def defining_rows(part: FileRange) -> list[Row]:
        return [
            row
            for block in read_blocks(part, damage)
            if may_define(block)
            for row in _rows(part.uri, block, damage)
            if row.space_id in _KEY_SIZES
        ]

    for rows in scan_parts(log, defining_rows):
        yield from rows


def may_define(block: Block) -> bool:
    """Whether a block of a log may contain rows that define spaces; most do not."""
    return _DEFINING_BLOCKS.matches(block.payload)


def _rows(name: str, block: Block, damage: DamageHandler) -> list[Row]:
    """The rows of a block; empty if they cannot be read."""
    try:
        return decode_rows(block.payload)
    except ValueError as error:
        damage.add(XlogError(name, block.start, str(error)), block.end)
        return []


class SystemRows:
    """The rows of system spaces that define spaces.

    Attributes:
        drops: The rows that dropped spaces, in order.
    """

    def __init__(self) -> None:
        self.drops: list[Drop] = []
        self._rows: dict[int, dict[tuple[Any, ...], bytes]] = {space: {} for space in _KEY_SIZES}
        self._deleted: dict[int, dict[tuple[Any, ...], bytes]] = {space: {} for space in _KEY_SIZES}

    def apply(self, row: Row) -> None:
        """Apply a row of a snapshot or a log."""
        rows = self._rows.get(-1 if row.space_id is None else row.space_id)
        if rows is None or row.space_id is None:
            return
        given = row.key_raw if row.tuple_raw is None else row.tuple_raw
        key = tuple(codec.unpack(given or b"\x90")[: _KEY_SIZES[row.space_id]])
        old = rows.get(key)
        if row.type in (RowType.INSERT, RowType.REPLACE) and row.tuple_raw is not None:
            rows[key] = row.tuple_raw
        elif row.type == RowType.DELETE:
            if old is not None:
                self._deleted[row.space_id][key] = rows.pop(key)
                if row.space_id == SPACE:
                    self.drops.append(self._drop(row, codec.unpack(old)))
        elif row.type == RowType.UPDATE and old is not None and row.operations_raw is not None:
            rows[key] = apply_update(parse_update(row.operations_raw, {}, row.index_base), old)
        elif row.type == RowType.UPSERT and row.tuple_raw is not None and row.operations_raw is not None:
            operations = parse_update(row.operations_raw, {}, row.index_base)
            rows[key] = row.tuple_raw if old is None else apply_upsert(operations, old)

    def _drop(self, row: Row, space: Sequence[Any]) -> Drop:
        """Describe the drop of a space, whose indexes were dropped before."""
        primary = self._deleted[INDEX].get((space[0], 0))
        shape = shape_of(space[6], None if primary is None else codec.unpack(primary))
        return Drop(space[0], space[2], shape, row.replica_id, row.lsn)

    def definitions(self) -> Definitions:
        """The spaces that the rows define."""
        rows, deleted = self._rows, self._deleted
        collations = {**deleted[COLLATION], **rows[COLLATION]}
        return Definitions(
            _spaces(rows[SPACE], rows[INDEX], collations),
            _spaces(deleted[SPACE], {**deleted[INDEX], **rows[INDEX]}, collations),
        )


_Rows = Mapping[tuple[Any, ...], bytes]


def _spaces(spaces: _Rows, index_rows: _Rows, collation_rows: _Rows) -> list[SpaceDefinition]:
    """The spaces that rows of `_space`, `_index` and `_collation` define."""
    indexes: dict[int, list[Any]] = {}
    for key in sorted(index_rows):
        row = codec.unpack(index_rows[key])
        indexes.setdefault(row[0], []).append(row)
    collations = {key[0]: codec.unpack(raw) for key, raw in collation_rows.items()}
    found = []
    for space_id, _, name, engine, field_count, given, fields, *_ in map(codec.unpack, spaces.values()):
        own, flags = tuple(indexes.get(space_id, ())), space_flags(given)
        found.append(
            SpaceDefinition(
                id=space_id,
                name=name,
                field_count=field_count,
                format_rows=tuple(fields),
                index_rows=own,
                collation_rows=_used(collations, fields, own),
                is_local=bool(flags.get("group_id")),
                engine=engine,
                is_temporary=is_temporary(flags),
                is_synchronous=bool(flags.get("is_sync")),
            )
        )
    return found


def _used(collations: Mapping[int, Any], rows: Sequence[Any], indexes: Sequence[Any]) -> dict[int, Any]:
    """The collations that fields and index parts use: a few of hundreds."""
    parts = [part for index in indexes for part in index[5]]
    named = {part.get("collation") for part in (*rows, *parts) if isinstance(part, dict)}
    return {number: row for number, row in collations.items() if number in named}
