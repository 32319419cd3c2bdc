"""A stream of the changes in the logs of a live directory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

from iproto_server.box.catalog.system_space_ids import SPACE
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, RowType
from pyspark_tarantool.source.arrow.changes_columns import ChangesColumns
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch.changes_reader import known_spaces, space_of
from pyspark_tarantool.source.batch.worker import WorkerSetup
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.row_scanner import read_rows
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import FileRange, group_blocks, read_blocks
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, DataFiles
from pyspark_tarantool.source.options import ReadOptions, TuplesAs
from pyspark_tarantool.source.schema.definitions import Definitions
from pyspark_tarantool.source.stream.live_logs import START_OVER
from pyspark_tarantool.source.stream.log_tail import Advance, LogTail, with_retries
from pyspark_tarantool.source.stream.log_walk import Span
from pyspark_tarantool.source.stream.offset import SINCE, STARTING, Offset, earlier

_LOOK_AGAIN: Final = 0.05
"""Seconds before rows that do not count yet are checked again."""


@dataclass(frozen=True)
class StreamRange:
    """A range of a log.

    Attributes:
        range: The range of its blocks.
        until: Rows after this clock do not count.
    """

    range: FileRange
    until: VClock


@dataclass(frozen=True)
class StreamPart(InputPartition):
    """The part of a batch that one task reads.

    Attributes:
        ranges: Parts of logs, in order.
        after: Rows up to this clock belong to earlier batches.
        space_ids: The spaces to read; None for all.
        columns: Converts rows to columns.
    """

    ranges: tuple[StreamRange, ...]
    after: VClock
    space_ids: frozenset[int] | None
    columns: ChangesColumns


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
        """The option `starting`; it is resolved when the first batch is planned."""
        return {STARTING: str(self._options.starting)}

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
        if self._target == [None]:
            return {STARTING: "earliest"} if start == {STARTING: "latest"} else start
        begin = self._begin(start)
        if begin is None:
            # There are no logs yet: all later rows are new.
            return {STARTING: "earliest"}
        end = start
        advance = self._advance(begin, limit)
        if STARTING in start:
            end = {**advance.end.to_json(), SINCE: begin.to_json()}
        elif advance.end is not begin:
            end = advance.end.to_json()
        self._planned = (start, end, advance)
        return end

    def _begin(self, start: Mapping[str, Any]) -> Offset | None:
        """The position of an offset; None if it needs logs and there are none."""
        starting = start.get(STARTING)
        if starting is None:
            return Offset.from_json(start)
        if starting == "earliest":
            return self._logs.earliest()
        if starting == "latest":
            return self._logs.latest()
        return Offset.from_json({"vclock": dict(VClock.parse(starting))})

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
        advance = self._plan(start, end)
        if not advance.spans:
            return []
        space_ids = self._space_ids(advance.definitions)
        if space_ids is not None and not space_ids:
            return []
        columns = ChangesColumns(self._definitions(advance), self._options, self._schema)
        until = Offset.from_json(end).vclock
        return [
            StreamPart(ranges, advance.start.vclock, space_ids, columns)
            for ranges in _split(advance.spans, self._options.partition_bytes, until)
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
        return frozenset(space.id for space in definitions.values() if space.name == wanted)

    def _plan(self, start: dict[str, Any], end: dict[str, Any]) -> Advance:
        """The blocks of a batch; they are cached, except after a restart."""
        if self._planned is not None and self._planned[:2] == (start, end):
            return self._planned[2]
        begin = Offset.from_json(end[SINCE]) if STARTING in start and SINCE in end else self._begin(start)
        if begin is None:
            raise SourceError(f"there are no more logs in {self._options.paths[0]}; {START_OVER}")
        return self._logs.advance(begin, until=Offset.from_json(end))

    def _definitions(self, advance: Advance) -> Definitions:
        """The space definitions at the end of a batch; with `tuples=struct`, that of the space when the query
        began, because its columns are fixed."""
        if self._options.tuples is not TuplesAs.STRUCT or self._options.space is None:
            return advance.definitions
        if self._space is None:
            found = with_retries(lambda: known_spaces(self._options, DataFiles.find(self._options)))
            self._space = found.space(self._options.space)
        return Definitions([self._space])

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the server manages its logs."""

    # -- tasks --

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
        assert isinstance(partition, StreamPart)
        with DamageHandler.of(self._options) as damage:
            for each in partition.ranges:
                uri = each.range.uri
                for blocks in group_blocks(_blocks(each, partition.space_ids, damage)):
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


def _blocks(part: StreamRange, space_ids: frozenset[int] | None, damage: DamageHandler) -> Iterator[Block]:
    """The blocks of a range that may contain rows of the spaces.

    Raises:
        SourceError: If the file has changed since the batch was planned.
    """
    uri, end = part.range.uri, part.range.start
    block_filter = None if space_ids is None else BlockFilter(space_ids)
    try:
        for block in read_blocks(part.range, damage):
            end = block.end
            if block_filter is None or block_filter.matches(block.payload):
                yield block
    except FileNotFoundError:
        raise SourceError(
            f"{uri}: the log was removed before the stream has read its rows up to {part.until}. Checkpoints "
            f"of the server remove old logs (its option checkpoint_count); {START_OVER}"
        ) from None
    if end < part.range.end and not damage.skipped:
        raise SourceError(
            f"{uri}: the log was truncated at offset {end}, before {part.range.end}, after the batch was "
            f"planned; {START_OVER}"
        )


def _split(spans: Sequence[Span], partition_bytes: int, until: VClock) -> Iterator[tuple[StreamRange, ...]]:
    """Split blocks into parts of about `partition_bytes`; small logs share a part."""
    ranges: list[StreamRange] = []
    size = 0
    for span in spans:
        end = span.part.end
        limit = until if end is None else earlier(end, until)
        start = span.start
        for number, border in enumerate(span.borders, 1):
            is_full = 0 < partition_bytes <= size + border - start
            if is_full or number == len(span.borders):
                uri = span.part.file.uri
                part = FileRange(uri, start, border, start, border, is_cut=False, may_grow=False)
                ranges.append(StreamRange(part, limit))
                size += border - start
                start = border
            if is_full:
                yield tuple(ranges)
                ranges, size = [], 0
    if ranges:
        yield tuple(ranges)
