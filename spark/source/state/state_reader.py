"""Reads the tuples of a space after all logged changes, or as of an LSN or a time.

Python data sources have no shuffle: tasks cannot pass rows to each other. So each task reads a part of the
snapshot and all of the logs, and returns

    complete rows of the logs whose key's hash selects the task;
    unchanged rows of its part of the snapshot;
    rows of its part of the snapshot that were only updated, with the updates applied.

The first task reports damage in the logs and checks that none of their rows is missing. If a key's first
change is an UPSERT, only the whole snapshot shows whether the row existed: the first of several tasks
searches all parts for such keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from iproto_server.storage.errors import XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Change
from pyspark_tarantool.source.arrow.columns import row_columns
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch.worker import WorkerSetup
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.log_span import DEFINING, ContinuityCheck, PerMember, counting
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.decode.snapshot_rows import read_tuples
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import (
    FileRange,
    group_blocks,
    read_blocks,
    split_file,
    whole_file,
)
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.options import OnDamaged, ReadOptions
from pyspark_tarantool.source.state.log_folder import LogFolder, NeedsFullReplay
from pyspark_tarantool.source.state.replay_fallback import replay
from pyspark_tarantool.source.state.state_files import StateFiles, Truncation

BATCH_ROWS: Final = 8192
"""The maximum number of tuples in a batch of individually packed tuples."""

LOG_SHARES: Final = 4
"""The maximum number of tasks due to large logs: they share the rows, but each reads all logs."""

_LOG_SHARE: Final = 256 * 1024**2
"""The minimum size in bytes of the logs for each of these tasks: to read smaller logs several times costs
more than to return their rows in one task."""


class TaskShare(NamedTuple):
    """The work of one task.

    Attributes:
        task: Its number, from 0.
        tasks: The number of tasks.
        part: Its part of the snapshot; None if no snapshot is read.
    """

    task: int
    tasks: int
    part: FileRange | None


class _UnreportedDamage(DamageHandler):
    """Handles damage that another task reports."""

    def add(self, error: XlogError, end: int) -> None:
        """Raise or ignore damage.

        Raises:
            XlogError: The error, unless damage is skipped.
        """
        if self._on_damaged is OnDamaged.FAIL:
            raise error


def state_schema(options: ReadOptions, state: StateFiles) -> StructType:
    """The columns of a space's tuples.

    Parameters:
        options: Of the query; the mode is current, at_lsn or at_time.
        state: The state to read.

    Raises:
        SourceError: If a column cannot be made.
    """
    return row_columns(state.space, options).schema


class StateReader(WorkerSetup, DataSourceReader):
    """Reads the tuples of a space as of a cutoff.

    Parameters:
        options: Of the query; the mode is current, at_lsn or at_time.
        schema: The requested columns.
        state: The state to read.

    Raises:
        SourceError: If there is no such column.
    """

    def __init__(self, options: ReadOptions, schema: StructType, state: StateFiles) -> None:
        self._options = options
        self._state = state
        self._columns = row_columns(self._state.space, options, schema)
        self._filters = Filters()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Accept filters on the fields of the primary key.

        Parameters:
            filters: The filters of the query.

        Returns:
            The filters that Spark has to evaluate.
        """
        types = self._columns.filter_types(self._state.space.primary_fields)
        return list(self._filters.accept(filters, types))

    def partitions(self) -> list[InputPartition]:
        """The shares of the tasks."""
        state, partition_bytes = self._state, self._options.partition_bytes
        if state.is_rekeyed:
            return [InputPartition(TaskShare(0, 1, None))]
        logs = sum(span.stop - span.start for span in state.spans)
        share = max(partition_bytes, _LOG_SHARE)
        at_least = max(1, min(LOG_SHARES, logs // share)) if partition_bytes else 1
        parts: list[FileRange | None] = []
        if state.snapshot is None or state.truncation is not None:
            parts = [None] * at_least
        else:
            # Each task reads all logs: that should not dominate its work.
            size = max(partition_bytes, min(logs, state.snapshot.size // LOG_SHARES))
            parts += split_file(state.snapshot, size if partition_bytes else 0)
            nothing = whole_file(state.snapshot)._replace(start=state.snapshot.size)
            parts += [nothing] * (at_least - len(parts))
        return [InputPartition(TaskShare(task, len(parts), part)) for task, part in enumerate(parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the share of a task.

        Parameters:
            partition: One of `partitions`.

        Yields:
            Record batches.

        Raises:
            XlogError: At damage that is not to be skipped.
            LogGapError: If rows of the logs are missing.
            SourceError: If a change does not fit its row, or a value its column.
            OSError: If a file cannot be read.
        """
        share: TaskShare = partition.value
        state = self._state
        name = state.snapshot.uri if state.snapshot is not None else state.spans[-1].file.uri
        with DamageHandler.of(self._options) as damage:
            for piece in self._pieces(share, damage):
                if isinstance(piece, Tuples):
                    yield self._columns.batch_of(piece, name, self._filters)
                else:
                    yield self._columns.batch(piece, name, self._filters)

    def _pieces(self, share: TaskShare, damage: DamageHandler) -> Iterator[Tuples | list[bytes]]:
        """The tuples that a task returns."""
        silent = _UnreportedDamage(self._options.damaged)
        is_first = share.task == 0
        folder = LogFolder(
            self._state.space,
            share.task,
            share.tasks,
            has_snapshot=share.part is not None,
            is_renamed=self._state.is_renamed,
            is_lenient=self._is_lenient,
        )
        needs_full_replay = self._state.is_rekeyed
        for found, low, high in self._changes(damage if is_first else silent, folder, is_first):
            if needs_full_replay:
                continue  # Read the remaining logs anyway, to check them.
            try:
                if isinstance(found, LogRows):
                    folder.apply_rows(found, low, high)
                else:
                    folder.apply_changes(found, low, high)
            except NeedsFullReplay:
                # All tasks reach the same change.
                needs_full_replay = True
        if needs_full_replay:
            if is_first:
                yield from _chunks(replay(self._state, damage, silent, is_lenient=self._is_lenient))
            return
        yield from _chunks(folder.rows())
        if share.part is None:
            return
        changed: list[bytes] = []
        for tuples in self._tuples(share.part, damage):
            same, others = folder.merge(tuples)
            yield same
            changed += others
            if len(changed) >= BATCH_ROWS:
                yield changed
                changed = []
        if is_first and folder.pending_upserts:
            rest = share.part._replace(start=share.part.end, end=share.part.size)
            for tuples in self._tuples(rest, silent):
                folder.mark_existing(tuples)
                if not folder.pending_upserts:
                    break
            changed += folder.inserted_rows()
        yield from _chunks(changed)

    def _tuples(self, part: FileRange, damage: DamageHandler) -> Iterator[Tuples]:
        """The tuples of the space in a part of the snapshot."""
        if part.start >= part.end:
            return
        space = self._state.space
        block_filter = BlockFilter([space.id])
        blocks = (block for block in read_blocks(part, damage) if block_filter.matches(block.payload))
        for some in group_blocks(blocks):
            yield from read_tuples(some, space.id, len(space.fields), part.uri, damage)

    def _changes(
        self, damage: DamageHandler, folder: LogFolder, is_first: bool
    ) -> Iterator[tuple[LogRows | list[Change], PerMember, PerMember]]:
        """The changes of the logs after the last truncation, with the LSN ranges that count.

        Changes that compiled code has folded are not yielded.
        """
        state, truncation = self._state, self._state.truncation
        continuity = ContinuityCheck(state.start, lambda: bool(damage.skipped)) if is_first else None
        # The first task checks all rows.
        block_filter = (
            None if is_first else BlockFilter({state.space.id, *(() if truncation is None else DEFINING)})
        )
        for number, span in enumerate(state.spans):
            low, high = counting(state.start, span.end, state.until)
            if continuity is not None:
                continuity.begin_log(span.file)
            elif truncation is not None and number <= truncation.span:
                if number < truncation.span:
                    continue
                span = span._replace(start=truncation.block)
            if truncation is None or number > truncation.span:
                is_taken = partial(
                    folder.apply_buffer, low=low, high=high, continuity=continuity, end=span.end
                )
                is_usual = partial(_goes_on, continuity, span.end)
                for block, found in span.found(damage, block_filter, is_taken, is_usual):
                    if continuity is not None and isinstance(found, list):
                        continuity.check(span, block, found)
                    yield found, low, high
                continue
            for block, changes in span.changes(damage, block_filter):
                if continuity is not None:
                    continuity.check(span, block, changes)
                if (number, block.start) > (truncation.span, truncation.block):
                    yield changes, low, high
                elif (number, block.start) == (truncation.span, truncation.block):
                    yield changes[_behind(truncation, changes) :], low, high
        if continuity is not None and state.spans and (end := state.spans[-1].end) is not None:
            continuity.check_reached(end, state.spans[-1].file.uri)

    @property
    def _is_lenient(self) -> bool:
        return self._options.damaged is OnDamaged.SKIP


def _goes_on(continuity: ContinuityCheck | None, end: VClock | None, rows: LogRows) -> bool:
    return continuity is None or continuity.accepts(rows, end)


def _behind(truncation: Truncation, changes: list[Change]) -> int:
    """The index of the first change after the truncation."""
    place = (truncation.member, truncation.lsn)
    return next(
        (number for number, (_, lsn, member, *_) in enumerate(changes, 1) if (member, lsn) == place), 0
    )


def _chunks(raws: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = iter(raws)
    while chunk := list(islice(rest, BATCH_ROWS)):
        yield chunk
