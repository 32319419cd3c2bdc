"""The space definitions of a database, from the rows of `_space` and `_index` in its files."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from iproto_server.box.catalog.system_space_ids import COLLATION, INDEX, SPACE
from iproto_server.box.index.index_def import IndexDef, without_exclude_null
from iproto_server.box.key.collation import Collation, Collations
from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.tuple.format import Format
from iproto_server.box.types.field_type import FieldType
from iproto_server.box.update import apply_update, apply_upsert, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import Block, Row, RowType, decode_rows
from pyspark_tarantool.native import IS_COMPILED
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import FileRange, read_blocks, scan_parts, whole_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.schema.space_rows import format_rows, index_row, is_temporary, space_flags

_KEY_SIZES: Final = {SPACE: 1, INDEX: 2, COLLATION: 1}
"""The system spaces that are read, and the number of fields of their primary keys, which come first."""

_DEFINING_BLOCKS: Final = BlockFilter(_KEY_SIZES)

MEMTX: Final = "memtx"
_SYSVIEW: Final = "sysview"

_SPACE_ID: Final = 0x10
_LARGE: Final = 16 * 1024
"""Smaller blocks are searched directly; with compiled code, all blocks are."""


class FieldDefinition(NamedTuple):
    """A field of a space's tuples.

    Attributes:
        name: Its name; `field_N`, counted from 1, for an unnamed field that an index uses.
        type: Its type.
        is_nullable: Whether it may be nil or missing.
    """

    name: str
    type: FieldType
    is_nullable: bool


@dataclass(frozen=True)
class SpaceDefinition:
    """The definition of a space. It can be pickled.

    Attributes:
        id: Its number.
        name: Its name.
        field_count: The number of fields of every tuple; 0 for any number.
        format_rows: Its format, as in `_space`.
        index_rows: Its rows of `_index`, in the order of the indexes' ids.
        collation_rows: The rows of `_collation` by id.
        is_local: Whether it is a local space, which is not replicated.
        engine: The engine that stores its rows.
        is_temporary: Whether its rows are in the server's memory only.
        is_synchronous: Whether its changes count only after a quorum of members has confirmed them.
    """

    id: int
    name: str
    field_count: int
    format_rows: tuple[Any, ...]
    index_rows: tuple[Any, ...]
    collation_rows: Mapping[int, Any]
    is_local: bool
    engine: str = MEMTX
    is_temporary: bool = False
    is_synchronous: bool = False

    @property
    def is_stored(self) -> bool:
        """Whether snapshots have its rows."""
        return self.engine == MEMTX and not self.is_temporary

    def check_logged(self) -> None:
        """Check that logs have the changes of the space.

        Raises:
            SourceError: If they have none, and a query would only find nothing.
        """
        if self.is_temporary:
            raise SourceError(
                f"space '{self.name}' is temporary: its rows are in the server's memory only, neither in "
                'snapshots nor in logs: read them from the server, with the option "url"'
            )
        if self.engine == _SYSVIEW:
            raise SourceError(
                f"space '{self.name}' is a view without rows of its own: read "
                f"'{self.name.replace('_v', '_', 1)}'"
            )

    def check_stored(self) -> None:
        """Check that snapshots have the rows of the space.

        Raises:
            SourceError: If they have none, or not all.
        """
        self.check_logged()
        if self.engine != MEMTX:
            raise SourceError(
                f"space '{self.name}' is of the engine {self.engine}: snapshots only have the rows of memtx. "
                "Read its logged changes with mode=changes, or its rows from the server, with the option "
                '"url"'
            )

    @cached_property
    def indexes(self) -> tuple[IndexDef, ...]:
        """The indexes, the primary one first; without those of unsupported kinds.

        Raises:
            SourceError: If the primary index is missing or of an unsupported kind.
        """
        found = []
        for row in self.index_rows:
            try:
                plain = without_exclude_null(index_row(row))
                found.append(IndexDef.parse(plain, self.name, self._collations, self._declared.fields))
            except BoxError as error:
                if row[1] == 0 or error.code != ErrorCode.UNSUPPORTED:
                    raise SourceError(f"space '{self.name}': {error.message}") from None
        if not found or found[0].id != 0:
            raise SourceError(f"space '{self.name}' has no primary index")
        return tuple(found)

    @property
    def primary(self) -> KeyDef:
        """The key of the primary index."""
        return self.indexes[0].key_def

    @property
    def primary_fields(self) -> set[int]:
        """The fields that the primary key uses as a whole, counted from 0."""
        return {part.field_no for part in self.primary.parts if part.path is None}

    @cached_property
    def format(self) -> Format:
        """The format of tuples, including the indexes' requirements."""
        return self._declared.with_index_parts([index.key_def for index in self.indexes])

    @cached_property
    def fields(self) -> tuple[FieldDefinition, ...]:
        """The known fields: those of the format, and those that indexes use."""
        declared = [
            FieldDefinition(field.name, field.type, field.is_nullable) for field in self._declared.fields
        ]
        parts = {
            part.field_no: part for index in self.indexes for part in index.key_def.parts if not part.steps
        }
        for number in range(len(declared), max(parts, default=-1) + 1):
            part = parts.get(number)
            kind = FieldType.ANY if part is None else part.type
            declared.append(FieldDefinition(f"field_{number + 1}", kind, part is None or part.is_nullable))
        return tuple(declared)

    def pack(self) -> str:
        """The definition as a text; see `unpack`."""
        values = [getattr(self, name) for name in self.__dataclass_fields__]
        return b64encode(codec.pack(values)).decode()

    @classmethod
    def unpack(cls, text: str) -> SpaceDefinition:
        """Parse a text of `pack`.

        Raises:
            ValueError: If the text is invalid.
        """
        try:
            number, name, field_count, format_rows, index_rows, *rest = codec.unpack(b64decode(text))
            return cls(number, name, field_count, tuple(format_rows), tuple(index_rows), *rest)
        except (BoxError, TypeError) as error:
            raise ValueError(f"invalid definition of a space: {error}") from None

    @cached_property
    def _declared(self) -> Format:
        rows = format_rows(self.id, self.format_rows)
        try:
            return Format.parse(rows, self.name, self.field_count, collation_ids=self._collations)
        except BoxError as error:
            raise SourceError(f"space '{self.name}': {error.message}") from None

    @cached_property
    def _collations(self) -> Collations:
        return {number: Collation.parse(row) for number, row in self.collation_rows.items()}

    def __getstate__(self) -> dict[str, Any]:
        """The fields only: cached properties contain functions, and are computed again."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


class Definitions(Mapping[int, SpaceDefinition]):
    """The spaces of a database, by id.

    Parameters:
        spaces: The existing spaces.
        dropped: Dropped spaces, with their last definitions.

    Attributes:
        dropped: The dropped spaces by id, without those whose id is in use again.
    """

    def __init__(
        self, spaces: Iterable[SpaceDefinition] = (), dropped: Iterable[SpaceDefinition] = ()
    ) -> None:
        self._by_id = {space.id: space for space in spaces}
        self.dropped = {space.id: space for space in dropped if space.id not in self._by_id}
        self._by_name = {space.name: space for space in self._by_id.values()}

    def __getitem__(self, space_id: int) -> SpaceDefinition:
        return self._by_id[space_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def space(self, name_or_id: str | int) -> SpaceDefinition:
        """Find a space.

        Raises:
            SourceError: If there is none; the message lists the existing names.
        """
        if isinstance(name_or_id, str):
            found = self._by_name.get(name_or_id)
        else:
            found = self._by_id.get(name_or_id)
        if found is None:
            names = sorted(space.name for space in self._by_id.values() if space.id > 511)
            known = f"there are {', '.join(names)}" if names else "there are only system spaces"
            raise SourceError(f"there is no space {name_or_id!r}: {known}")
        return found

    def with_dropped(self) -> Definitions:
        """All existing and dropped spaces in the files; of two with the same name, the newer one."""
        return Definitions([*self.dropped.values(), *self._by_id.values()])


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
    payload = block.payload
    is_searched = IS_COMPILED or len(payload) < _LARGE or _may_define(payload)
    return is_searched and _DEFINING_BLOCKS.matches(payload)


def _may_define(payload: bytes) -> bool:
    """A faster, weaker check: False if no space id is between 256 and 511."""
    octets = np.frombuffer(payload, np.uint8)
    at = np.flatnonzero(octets[:-2] == _SPACE_ID) + 1
    form = octets.take(at)
    is_short = (form == 0xCD) & (octets.take(at + 1) == 1)
    return bool((is_short | (form == 0xCE) | (form == 0xCF)).any())


def _rows(name: str, block: Block, damage: DamageHandler) -> list[Row]:
    """The rows of a block; empty if they cannot be read."""
    try:
        return decode_rows(block.payload)
    except ValueError as error:
        damage.add(XlogError(name, block.start, str(error)), block.end)
        return []


class SystemRows:
    """The rows of system spaces that define spaces."""

    def __init__(self) -> None:
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
        elif row.type == RowType.UPDATE and old is not None and row.operations_raw is not None:
            rows[key] = apply_update(parse_update(row.operations_raw, {}, row.index_base), old)
        elif row.type == RowType.UPSERT and row.tuple_raw is not None and row.operations_raw is not None:
            operations = parse_update(row.operations_raw, {}, row.index_base)
            rows[key] = row.tuple_raw if old is None else apply_upsert(operations, old)

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
