"""A stream of the changes in the logs of a live directory."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from iproto_server.box.catalog.system_space_ids import SPACE, SYSTEM_ID_MAX
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import RowType
from pyspark_tarantool.source.arrow.changes_columns import ChangesColumns
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch.changes_reader import known_spaces, space_of, without_earlier
from pyspark_tarantool.source.batch.worker import WorkerSetup, ends_quietly
from pyspark_tarantool.source.decode.cutoff import first_timestamp
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.row_scanner import read_rows
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.byte_ranges import group_blocks
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, DataFiles
from pyspark_tarantool.source.io.retries import with_retries
from pyspark_tarantool.source.options import (
    EARLIEST,
    LATEST,
    SNAPSHOT,
    ReadOptions,
    SchemaEvolution,
    TuplesAs,
)
from pyspark_tarantool.source.schema.definitions import Definitions, SpaceDefinition
from pyspark_tarantool.source.schema.system_rows import read_definitions
from pyspark_tarantool.source.stream.format_changes import FIELDS_KEY, check_format, fields_of
from pyspark_tarantool.source.stream.initial_snapshot import (
    SnapshotPart,
    SnapshotPlace,
    read_snapshot,
    snapshot_ranges,
)
from pyspark_tarantool.source.stream.live_logs import START_OVER
from pyspark_tarantool.source.stream.log_tail import Advance, LogTail
from pyspark_tarantool.source.stream.offset import SINCE, STARTING, Offset
from pyspark_tarantool.source.stream.stream_parts import StreamPart, StreamRange, blocks_of, split_spans

logger = logging.getLogger("pyspark_tarantool.source")

_RESOLVED: Final = ("lsn ", "time ")
"""The beginnings of initial offsets that the logs resolve."""

_LOOK_AGAIN: Final = 0.05
"""Seconds before rows that do not count yet are checked again."""


class ChangesStreamReader(WorkerSetup, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the logs of a directory; each row is in one batch, in whole blocks.

    An offset is a position in the logs (`Offset`), or the value of the option `starting`. The end offset of
    the first batch also contains its start: a retry after a restart must not begin at the new beginning or
    end of the logs.

    Parameters:
        options: Of the query.
        schema: The requested columns.
        logs: Follows the logs; None for those of the options.

    Raises:
        SourceError: If changes have no such column.
    """

    def __init__(self, options: ReadOptions, schema: StructType, logs: LogTail | None = None) -> None:
        _check(options, schema)
        self._options = options
        self._schema = schema
        self._logs = LogTail(options) if logs is None else logs
        self._planned: tuple[dict[str, Any], dict[str, Any], Advance] | None = None
        self._space = space_of(schema, options)
        # For Trigger.AvailableNow: the newest log when the query began, or None if there was none.
        self._target: list[DataFile | None] = []

    def __getstate__(self) -> dict[str, Any]:
        """The attributes that tasks need; the state of the logs stays on the driver."""
        return {"_options": self._options}

    # -- offsets --

    def initialOffset(self) -> dict[str, Any]:
        """The start in the options; it is resolved when the first batch is planned."""
        options = self._options
        if options.starting_lsn is not None:
            return {STARTING: f"lsn {options.starting_lsn}"}
        if options.starting_time is not None:
            return {STARTING: f"time {options.starting_time}"}
        return {STARTING: str(options.starting)}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The maximum size of a batch, from the options."""
        limit = self._options.max_bytes_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxBytes(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the current end of the logs, where the query ends.

        Raises:
            SourceError: If the path does not exist.
            XlogError: If a file is not a log.
            OSError: If one cannot be read.
        """
        self._target = [self._logs.newest()]

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Find the end of the next batch.

        Parameters:
            start: The end of the previous batch.
            limit: The maximum size.

        Returns:
            The end offset; the start if there are no new rows.

        Raises:
            SourceError: If the path does not exist, or rows are gone.
            LogGapError: If a log is missing between others.
            XlogError: At damage that is not to be skipped.
            OSError: If a file cannot be read.
        """
        self._logs.hold()
        place = self._place(start)
        if place is not None and not place.is_at_end:
            max_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
            return self._with_fields(start, place.advanced(max_bytes).to_json())
        if self._target == [None]:
            return {STARTING: EARLIEST} if start == {STARTING: LATEST} else start
        begin = self._begin(start)
        if begin is None:
            # There are no logs yet: all later rows are new, unless a snapshot comes first.
            return start if start == {STARTING: SNAPSHOT} else {STARTING: EARLIEST}
        end = start
        advance = self._advance(begin, limit)
        if STARTING in start:
            end = {**advance.end.to_json(), SINCE: begin.to_json()}
            if advance.end is begin and start == {STARTING: SNAPSHOT}:
                return start
        elif advance.end is not begin:
            end = advance.end.to_json()
        if end is not start:
            end = self._with_fields(start, end)
        self._planned = (start, end, advance)
        return end

    def _begin(self, start: Mapping[str, Any]) -> Offset | None:
        """The position of an offset; None if it needs logs and there are none."""
        starting = start.get(STARTING)
        if starting is None:
            return Offset.from_json(start)
        if starting == EARLIEST:
            return self._logs.earliest()
        if starting == LATEST:
            return self._logs.latest()
        if starting == SNAPSHOT:
            # Without a snapshot, only logs from the first row on have all rows.
            earliest = self._logs.earliest()
            return earliest if earliest is not None and not any(earliest.vclock.values()) else None
        if starting.startswith(_RESOLVED):
            return self._logs.since(self._options)
        return Offset.from_json({"vclock": dict(VClock.parse(starting))})

    def _place(self, start: Mapping[str, Any]) -> SnapshotPlace | None:
        """The place of an offset in the snapshot that the stream begins with; None for other offsets."""
        if start == {STARTING: SNAPSHOT}:
            return self._logs.newest_snapshot()
        return SnapshotPlace.from_json(start)

    def _advance(self, begin: Offset, limit: ReadLimit) -> Advance:
        max_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        if not self._target:
            return self._logs.advance(begin, max_bytes=max_bytes)
        while True:
            advance = self._logs.advance(begin, max_bytes=max_bytes, target=self._target[0])
            if advance.end is not begin or not advance.holds_back:
                return advance
            # Otherwise the query would end without the last rows.
            time.sleep(_LOOK_AGAIN)

    # -- planning --

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Split a batch among tasks by blocks, so that a retry splits it the same way.

        Parameters:
            start: The end of the previous batch.
            end: The end of this batch.

        Raises:
            SourceError: If some of its rows are gone, or the columns no longer fit the space.
            LogGapError: If a log is missing between others.
            XlogError: At damage that is not to be skipped.
            OSError: If a file cannot be read.
        """
        if STARTING in end:
            return []
        self._logs.hold()
        place = SnapshotPlace.from_json(end)
        if place is not None:
            return self._snapshot_parts(SnapshotPlace.from_json(start), place)
        advance = self._plan(start, end)
        if not advance.spans:
            return []
        space_ids = self._space_ids(advance.definitions)
        if space_ids is not None and not space_ids:
            return []
        fixed = self._fixed_space()
        if fixed is not None:
            check_format(self._options.schema_evolution, advance.definitions, fixed, end)
        columns = ChangesColumns(
            advance.definitions if fixed is None else Definitions([fixed]), self._options, self._schema
        )
        until = Offset.from_json(end).vclock
        return [
            StreamPart(ranges, advance.start.vclock, space_ids, columns)
            for ranges in split_spans(advance.spans, self._options.partition_bytes, until)
        ]

    def _snapshot_parts(self, start: SnapshotPlace | None, end: SnapshotPlace) -> Sequence[InputPartition]:
        """The parts of a batch of rows of the snapshot."""
        file = self._logs.snapshot_at(end)
        damage = DamageHandler(self._options.damaged)
        definitions = with_retries(lambda: read_definitions(file, (), damage))
        space_ids = self._space_ids(definitions)
        if start is None:
            _check_stored(definitions, space_ids)
        begin = file.begin if start is None else start.offset
        if begin >= end.offset or (space_ids is not None and not space_ids):
            return []
        fixed = self._fixed_space()
        shown = definitions if fixed is None else Definitions([fixed])
        columns = ChangesColumns(shown, self._options, self._schema)
        stamp = first_timestamp(file, damage) or 0.0
        lsn = file.header.vclock.signature
        return [
            SnapshotPart(part, lsn, stamp, space_ids, columns)
            for part in snapshot_ranges(file, begin, end.offset, self._options.partition_bytes)
        ]

    def _space_ids(self, definitions: Definitions) -> frozenset[int] | None:
        """The spaces to read, by their names at the end of the batch."""
        wanted = self._options.space
        if wanted is None or isinstance(wanted, int):
            return None if wanted is None else frozenset({wanted})
        if SPACE not in definitions:
            raise SourceError(
                f"{self._options.paths[0]}: no snapshot or log has the names of the spaces: pass the "
                "directory of the snapshots as path and that of the logs as wal_dir, or the space's id"
            )
        found = [space for space in definitions.values() if space.name == wanted]
        for space in found:
            space.check_logged()
        return frozenset(space.id for space in found)

    def _plan(self, start: dict[str, Any], end: dict[str, Any]) -> Advance:
        """The blocks of a batch; they are cached, except after a restart."""
        if self._planned is not None and self._planned[:2] == (start, end):
            return self._planned[2]
        begin = Offset.from_json(end[SINCE]) if STARTING in start and SINCE in end else self._begin(start)
        if begin is None:
            raise SourceError(f"there are no more logs in {self._options.paths[0]}; {START_OVER}")
        return self._logs.advance(begin, until=Offset.from_json(end))

    def _fixed_space(self) -> SpaceDefinition | None:
        """With `tuples=struct`, the space as of the query's start, whose columns are fixed; else None."""
        if self._options.tuples is not TuplesAs.STRUCT or self._options.space is None:
            return None
        if self._space is None:
            found = with_retries(lambda: known_spaces(self._options, DataFiles.find(self._options)))
            self._space = found.space(self._options.space)
        return self._space

    def _with_fields(self, start: Mapping[str, Any], end: dict[str, Any]) -> dict[str, Any]:
        """An end offset that remembers the fields of the query's first columns, if new ones are refused."""
        if self._options.schema_evolution is not SchemaEvolution.FAIL:
            return end
        if FIELDS_KEY in start:
            return {**end, FIELDS_KEY: start[FIELDS_KEY]}
        fixed = self._fixed_space()
        return end if fixed is None else {**end, FIELDS_KEY: fields_of(fixed)}

    def commit(self, end: dict[str, Any]) -> None:
        """Give up files that were held for the stream; the server manages its logs.

        Parameters:
            end: The end of the batch that was processed.

        Raises:
            SourceError: If a link cannot be removed.
        """
        place = SnapshotPlace.from_json(end)
        if STARTING not in end and (place is None or place.is_at_end):
            self._logs.release(Offset.from_json(end))

    def stop(self) -> None:
        """End the query; held files stay for its next run."""
        self._logs.stop()

    # -- tasks --

    @ends_quietly
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a part of a batch.

        Parameters:
            partition: One of `partitions`.

        Yields:
            Record batches.

        Raises:
            SourceError: If a value does not fit its column, or a log is gone.
            XlogError: At damage that is not to be skipped.
            OSError: If a log cannot be read.
        """
        if isinstance(partition, SnapshotPart):
            with DamageHandler.of(self._options) as damage:
                yield from read_snapshot(partition, damage)
            return
        assert isinstance(partition, StreamPart)
        with DamageHandler.of(self._options) as damage:
            for each in partition.ranges:
                uri = each.range.uri
                for blocks in group_blocks(blocks_of(each, partition.space_ids, damage)):
                    for rows in read_rows(blocks, uri, damage, partition.columns.items):
                        wanted = rows.take(self._wanted(rows, each, partition))
                        if len(wanted):
                            yield partition.columns.batch_of(wanted, uri, Filters())

    def _wanted(self, rows: LogRows, each: StreamRange, partition: StreamPart) -> npt.NDArray[np.bool_]:
        """The rows that count, of the spaces to read."""
        wanted = np.zeros(len(rows), np.bool_)
        for member in np.unique(rows.replica_id).tolist():
            first, last = partition.after.get(member, 0) + 1, each.until.get(member, 0)
            wanted |= (rows.replica_id == member) & (rows.lsn >= first) & (rows.lsn <= last)
        if partition.space_ids is not None:
            wanted &= np.isin(rows.space_id, list(partition.space_ids))
            wanted = without_earlier(rows, wanted, partition.columns.space, self._options)
        if not self._options.show_nop:
            wanted &= rows.type != RowType.NOP
        return wanted


def _check(options: ReadOptions, schema: StructType) -> None:
    """Check that changes have the requested columns."""
    everything = replace(options, tuples=TuplesAs.JSON, raw=True)
    known = ChangesColumns(Definitions(), everything).schema.names
    for name in schema.names:
        if name not in known:
            raise SourceError(
                f"changes have no column '{name}': there are {', '.join(known)}; a stream of a space "
                'also needs .option("mode", "changes"), because Spark asks for the columns before it '
                "announces a stream"
            )


def _check_stored(definitions: Definitions, space_ids: frozenset[int] | None) -> None:
    """Check that the snapshot has the rows of the requested spaces; of all spaces, name those it lacks."""
    if space_ids is not None:
        for space_id in space_ids & definitions.keys():
            definitions[space_id].check_stored()
        return
    lacking = sorted(
        space.name for space in definitions.values() if space.id > SYSTEM_ID_MAX and not space.is_stored
    )
    if lacking:
        logger.warning("the snapshot does not have the rows of %s", ", ".join(lacking))
