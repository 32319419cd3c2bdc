"""Reads the logged changes, one row per change."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructField, StructType

from iproto_server.storage.errors import LogGapError
from iproto_server.storage.vclock import VCLOCK_MAX, VClock
from iproto_server.storage.xlog import Row, RowType
from pyspark_tarantool.source.arrow.changes_columns import PLAIN_TYPES, ChangesColumns
from pyspark_tarantool.source.arrow.earlier_rows import rows_of_each, up_to
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch.changes_range import ChangesRange
from pyspark_tarantool.source.batch.drop_clocks import incarnations_of
from pyspark_tarantool.source.batch.filtered_reader import FilteredReader
from pyspark_tarantool.source.batch.worker import ends_quietly
from pyspark_tarantool.source.decode.log_rows import LSN_MAX, LogRows
from pyspark_tarantool.source.decode.row_scanner import read_rows
from pyspark_tarantool.source.decode.row_scanner import rows_of as rows_of
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import FileRange, group_blocks, read_blocks, split_file
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, DataFiles, LogPart, parts_of
from pyspark_tarantool.source.io.retries import with_retries
from pyspark_tarantool.source.options import OnDamaged, ReadOptions, Recreated, TuplesAs
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from pyspark_tarantool.source.schema.incarnations import Drop
from pyspark_tarantool.source.schema.system_rows import read_system_rows

logger = logging.getLogger("pyspark_tarantool.source")

_METADATA: Final = "tarantool.space"
"""The schema carries the space to the reader, which Spark creates in another process, so that logs are
scanned only once."""


class ChangesPart(NamedTuple):
    """A part of a log that one task reads.

    Attributes:
        range: The range in which its blocks begin.
        log: The log, and the end of its valid rows.
    """

    range: FileRange
    log: LogPart


def changes_schema(options: ReadOptions) -> StructType:
    """The columns of changes.

    Parameters:
        options: Of the query.

    Raises:
        SourceError: If there are no files, or no such space.
        XlogError: If the files that define the spaces cannot be read.
    """
    if options.space is None or options.tuples is TuplesAs.JSON:
        return ChangesColumns(Definitions(), options).schema
    # A stream may begin while a running server removes files.
    spaces = with_retries(lambda: known_spaces(options, DataFiles.find(options)))
    space = spaces.space(options.space)
    space.check_logged()
    first, *others = ChangesColumns(Definitions([space]), options).schema
    metadata = {_METADATA: space.pack()}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def _definitions(options: ReadOptions, files: DataFiles, schema: StructType) -> Definitions:
    """The spaces of the query: the one that the schema was made for, or all known ones."""
    space = space_of(schema, options)
    return known_spaces(options, files) if space is None else Definitions([space])


def space_of(schema: StructType, options: ReadOptions) -> SpaceDefinition | None:
    """The space that a schema was made for.

    Parameters:
        schema: A schema of `changes_schema`, or of the user.
        options: Of the query.

    Returns:
        The space as of then; None if the schema lacks it.
    """
    packed = schema.fields[0].metadata.get(_METADATA) if schema.fields else None
    space = None if packed is None else SpaceDefinition.unpack(packed)
    return space if space is not None and options.space in (space.id, space.name) else None


def known_spaces(options: ReadOptions, files: DataFiles) -> Definitions:
    """The spaces that rows of logs may belong to, including dropped ones.

    Parameters:
        options: Of the query.
        files: The available files.

    Raises:
        XlogError: If the files cannot be read, unless damage is skipped.
    """
    snapshot: DataFile | None = None
    for each in files.snapshots:
        if snapshot is None or (files.logs and files.logs[0].header.vclock.covers(each.header.vclock)):
            snapshot = each
    clock = VClock() if snapshot is None else snapshot.header.vclock

    def counts(row: Row) -> bool:
        # Rows older than the snapshot define dropped spaces; but they must not update rows of the snapshot
        # again.
        updates = row.type in (RowType.UPDATE, RowType.UPSERT)
        return not updates or row.lsn > clock.get(row.replica_id, 0)

    damage = DamageHandler(options.damaged)
    system = read_system_rows(snapshot, files.logs, damage, counts)
    found = system.definitions()
    spaces = found.with_dropped()
    incarnations = incarnations_of(_earlier(system.drops, spaces, found.dropped), files.logs, damage)
    return Definitions(
        replace(space, incarnations=tuple(each for each in incarnations if each.space_id == space.id))
        if any(each.space_id == space.id for each in incarnations)
        else space
        for space in spaces.values()
    )


def _earlier(drops: Sequence[Drop], spaces: Definitions, gone: Container[int]) -> list[Drop]:
    """The drops of spaces that differ from a later one with the same id."""
    last = {drop.space_id: drop for drop in drops}
    followed = [drop for drop in drops if drop is not last[drop.space_id] or drop.space_id not in gone]
    different = {
        drop.space_id
        for drop in followed
        if (drop.name, drop.shape) != (spaces[drop.space_id].name, spaces[drop.space_id].shape)
    }
    return [drop for drop in followed if drop.space_id in different]


class ChangesReader(FilteredReader):
    """Reads the changes of logs; tasks share their blocks.

    Parameters:
        options: Of the query.
        schema: The requested columns.

    Raises:
        SourceError: If there are no logs, no such space, no such column, or no such range.
        LogGapError: If a log is missing between others, unless damage is skipped.
        XlogError: If the rows that define the spaces cannot be read, unless damage is skipped.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        files = DataFiles.find(options)
        definitions = _definitions(options, files, schema)
        self._options = options
        self._range = ChangesRange.find(options, files.logs, DamageHandler(options.damaged))
        self._logs = [log for log in _parts(files, options) if self._range.may_match(log)]
        self._space_id = _space_id(options, definitions)
        self._space = None if self._space_id is None else definitions.get(self._space_id)
        self._incarnations = definitions.incarnations
        self._space_names = {number: space.name for number, space in definitions.items()}
        self._columns = ChangesColumns(definitions, options, schema)
        self._filters = Filters()

    def __getstate__(self) -> dict[str, Any]:
        """The attributes that tasks need: all but the list of logs."""
        return {name: value for name, value in self.__dict__.items() if name != "_logs"}

    @property
    def filter_types(self) -> Mapping[str, pa.DataType]:
        """The columns that need no unpacking, and the parts of the key."""
        return self._columns.filter_types

    def partitions(self) -> list[InputPartition]:
        """The ranges of the logs that may contain requested rows."""
        if self._spaces() == set():
            return []
        return [
            InputPartition(ChangesPart(part, log))
            for log in self._logs
            if may_have(log, self._filters)
            for part in split_file(log.file, self._options.partition_bytes)
        ]

    @ends_quietly
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a range.

        Parameters:
            partition: One of `partitions`.

        Yields:
            Record batches.

        Raises:
            XlogError: At damage that is not to be skipped.
            SourceError: If a value does not fit its column.
            OSError: If the file cannot be read.
        """
        part: ChangesPart | None = partition.value
        if part is None:  # Spark calls this even without partitions.
            return
        uri = part.range.uri
        spaces = self._spaces()
        block_filter = None if spaces is None else BlockFilter(spaces)
        with DamageHandler.of(self._options) as damage:
            blocks = (
                block
                for block in read_blocks(part.range, damage)
                if block_filter is None or block_filter.matches(block.payload)
            )
            for some in group_blocks(blocks):
                for rows in read_rows(some, uri, damage, self._columns.items):
                    wanted = rows.take(self._wanted(rows, part.log))
                    if len(wanted):
                        yield self._columns.batch_of(wanted, uri, self._filters)

    def _wanted(self, rows: LogRows, log: LogPart) -> npt.NDArray[np.bool_]:
        """The rows that count, of the requested space."""
        start, end = log.file.header.vclock, log.end
        wanted = np.zeros(len(rows), np.bool_)
        for member in rows.members():
            low, high = self._range.limits(member, rows)
            counts = (rows.replica_id == member) & (rows.lsn > max(low, start.get(member, 0)))
            for last in (high, None if end is None else end.get(member, 0)):
                if last is not None:
                    counts &= rows.lsn <= min(last, LSN_MAX)
            wanted |= counts
        if self._space_id is not None:
            wanted &= rows.space_id == self._space_id
            if isinstance(self._options.space, str):
                for each, mask in rows_of_each(rows, self._incarnations):
                    if each.name != self._options.space:
                        wanted &= ~mask
            wanted = without_earlier(rows, wanted, self._space, self._options)
        if not self._options.show_nop:
            wanted &= rows.type != RowType.NOP
        return wanted

    def _spaces(self) -> set[int] | None:
        """The requested spaces; None for all."""
        wanted: set[int] | None = None if self._space_id is None else {self._space_id}
        numbers, names = self._filters.values("space_id"), self._filters.values("space")
        if numbers is not None:
            given = {number for number in numbers if number is not None}
            wanted = given if wanted is None else wanted & given
        if names is not None:
            given = {number for number, name in self._space_names.items() if name in names}
            given |= {each.space_id for each in self._incarnations if each.name in names}
            wanted = given if wanted is None else wanted & given
        return wanted


def without_earlier(
    rows: LogRows, wanted: npt.NDArray[np.bool_], space: SpaceDefinition | None, options: ReadOptions
) -> npt.NDArray[np.bool_]:
    """Leave out the rows of a dropped space with the same id and other fields, if that is wanted.

    Parameters:
        rows: Rows of a log.
        wanted: A mask of the requested ones.
        space: The requested space; None if it is unknown.
        options: Of the query.

    Raises:
        SourceError: If there are such rows, which would not fit the columns.
    """
    if space is None or not space.since:
        return wanted
    is_earlier = up_to(rows, space.since) & wanted
    if not is_earlier.any():
        return wanted
    if options.recreated is Recreated.SKIP:
        return wanted & ~is_earlier
    if options.tuples is TuplesAs.JSON:
        return wanted
    raise SourceError(
        f"space '{space.name}': it was created again with other fields after the LSN {VClock(space.since)}; "
        f"the row {int(rows.lsn[is_earlier][0])} is of the earlier space: leave such rows out with "
        "recreated=skip, or read all rows with tuples=json"
    )


def may_have(log: LogPart, filters: Filters) -> bool:
    """Whether a log may contain requested rows, according to the clocks.

    Parameters:
        log: The log.
        filters: Of the query.
    """
    numbers = filters.on("lsn", "replica_id")
    if not numbers.conditions:
        return True
    start, end = log.file.header.vclock, log.end
    return any(
        (end is None or end.get(member, 0) > start.get(member, 0))
        and numbers.overlaps("lsn", start.get(member, 0) + 1, None if end is None else end.get(member, 0))
        and numbers.admits("replica_id", member, PLAIN_TYPES["replica_id"])
        for member in range(VCLOCK_MAX)
    )


def _space_id(options: ReadOptions, definitions: Definitions) -> int | None:
    """The requested space; with JSON tuples, an id need not be known."""
    wanted = options.space
    if wanted is None:
        return None
    is_unknown = isinstance(wanted, int) and options.tuples is TuplesAs.JSON and wanted not in definitions
    if isinstance(wanted, int) and is_unknown:
        return wanted
    space = definitions.space(wanted)
    space.check_logged()
    return space.id


def _parts(files: DataFiles, options: ReadOptions) -> list[LogPart]:
    """The logs, and the end of the valid rows of each."""
    try:
        return parts_of(files.logs)
    except LogGapError as error:
        if options.damaged is OnDamaged.FAIL:
            raise
        logger.warning("continuing after a gap: %s", error)
        ends = [log.header.vclock for log in files.logs[1:]]
        return [LogPart(log, end) for log, end in zip(files.logs, [*ends, None], strict=True)]
