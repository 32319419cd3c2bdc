"""Reads the tuples of a space after all logged changes, or as of an LSN or a time.

Each task returns

    its share of the complete rows of the logs;
    unchanged rows of its part of the snapshot;
    rows of its part of the snapshot that were only updated, with the updates applied.

Python data sources have no shuffle: tasks cannot pass rows to each other. So the driver reads the logs once,
and gives each task the rows to return and the keys that were changed (`folded_logs`). If that is too much to
send, or if there are at most two tasks, each task reads all of the logs, and returns the rows whose key's
hash selects the task; the first task reports damage in the logs and checks that none of their rows is
missing.

If a key's first change is an UPSERT, only the whole snapshot shows whether the row existed: the first of
several tasks searches all parts for such keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_tarantool.source.arrow.columns import row_columns
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.batch.filtered_reader import FilteredReader
from pyspark_tarantool.source.batch.worker import ends_quietly
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.decode.snapshot_rows import read_tuples
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import (
    FileRange,
    group_blocks,
    read_blocks,
    split_range,
    whole_file,
)
from pyspark_tarantool.source.io.damage import DamageHandler, UnreportedDamage
from pyspark_tarantool.source.options import OnDamaged, ReadOptions
from pyspark_tarantool.source.state.folded_logs import FoldedLogs, fold_for_tasks
from pyspark_tarantool.source.state.log_folder import LogFolder
from pyspark_tarantool.source.state.replay_fallback import replay
from pyspark_tarantool.source.state.state_files import StateFiles
from pyspark_tarantool.source.state.state_logs import fold_logs

BATCH_ROWS: Final = 8192
"""The maximum number of tuples in a batch of individually packed tuples."""

LOG_SHARES: Final = 4
"""The maximum number of tasks due to large logs: they share the rows, but each reads all logs."""

_LOG_SHARE: Final = 256 * 1024**2
"""The minimum size in bytes of the logs for each of these tasks: to read smaller logs several times costs
more than to return their rows in one task."""


_FEW_TASKS: Final = 2
"""The maximum number of tasks that always read all logs themselves, at the same time."""


class TaskShare(NamedTuple):
    """The work of one task.

    Attributes:
        task: Its number, from 0.
        tasks: The number of tasks.
        part: Its part of the snapshot; None if no snapshot is read.
        logs: The changes of the logs; None if the task reads them.
    """

    task: int
    tasks: int
    part: FileRange | None
    logs: FoldedLogs | None = None


def state_schema(options: ReadOptions, state: StateFiles) -> StructType:
    """The columns of a space's tuples.

    Parameters:
        options: Of the query; the mode is current, at_lsn or at_time.
        state: The state to read.

    Raises:
        SourceError: If a column cannot be made.
    """
    return row_columns(state.space, options).schema


class StateReader(FilteredReader):
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

    @property
    def filter_types(self) -> Mapping[str, pa.DataType]:
        """The fields of the primary key."""
        return self._columns.filter_types(self._state.space.primary_fields)

    def partitions(self) -> list[InputPartition]:
        """The shares of the tasks.

        Raises:
            XlogError: At damage in the logs that is not to be skipped, if the driver reads them.
            LogGapError: If rows of the logs are missing.
            SourceError: If a change does not fit its row.
            OSError: If a file cannot be read.
        """
        state, partition_bytes = self._state, self._options.partition_bytes
        if state.is_rekeyed or not partition_bytes:
            return [InputPartition(TaskShare(0, 1, self._whole_snapshot))]
        logs = sum(span.stop - span.start for span in state.spans)
        at_least = max(1, min(LOG_SHARES, logs // max(partition_bytes, _LOG_SHARE)))
        whole = self._whole_snapshot
        parts: list[FileRange | None] = [None] if whole is None else [*split_range(whole, partition_bytes)]
        if max(at_least, len(parts)) > _FEW_TASKS:
            folded = fold_for_tasks(state, self._options, len(parts))
            if folded is not None:
                return [
                    InputPartition(TaskShare(task, len(parts), part, changes))
                    for task, (part, changes) in enumerate(zip(parts, folded, strict=True))
                ]
        if whole is not None:
            # Each task reads all logs: that should not dominate its work.
            size = max(partition_bytes, min(logs, (whole.end - whole.start) // LOG_SHARES))
            parts = [*split_range(whole, size)]
            whole = whole._replace(start=whole.end)
        parts += [whole] * (at_least - len(parts))
        return [InputPartition(TaskShare(task, len(parts), part)) for task, part in enumerate(parts)]

    @property
    def _whole_snapshot(self) -> FileRange | None:
        """The whole snapshot; None if none of its rows is read."""
        state = self._state
        if state.snapshot is None or not state.has_snapshot_rows or state.is_rekeyed:
            return None
        return whole_file(state.snapshot)

    @ends_quietly
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
        with DamageHandler.of(self._options) as damage:
            for piece, origin in self._pieces(share, damage):
                if isinstance(piece, Tuples):
                    yield self._columns.batch_of(piece, origin, self._filters)
                else:
                    yield self._columns.batch(piece, origin, self._filters)

    def _pieces(self, share: TaskShare, damage: DamageHandler) -> Iterator[tuple[Tuples | list[bytes], str]]:
        """The tuples that a task returns, and the names of the files that have them, for errors."""
        silent = UnreportedDamage(self._options.damaged)
        is_first = share.task == 0
        logs = _names([span.file.uri for span in self._state.spans])
        snapshot = "" if self._state.snapshot is None else self._state.snapshot.uri
        either = " or ".join(name for name in (snapshot, logs) if name)
        folder = LogFolder(
            self._state.space,
            share.task,
            share.tasks,
            has_snapshot=share.part is not None,
            is_renamed=self._state.is_renamed,
            is_lenient=self._is_lenient,
        )
        if share.logs is not None:
            yield from _chunks(share.logs.rows(), logs)
            share.logs.give_keys(folder)
        elif fold_logs(self._state, folder, damage if is_first else silent, checks_rows=is_first):
            yield from _chunks(folder.rows(), logs)
        else:
            # All tasks reach the same change.
            if is_first:
                rows = replay(self._state, damage, silent, is_lenient=self._is_lenient)
                yield from _chunks(rows, either)
            return
        if share.part is None:
            return
        changed: list[bytes] = []
        for tuples in self._tuples(share.part, damage):
            same, others = folder.merge(tuples)
            yield same, snapshot
            changed += others
            if len(changed) >= BATCH_ROWS:
                yield changed, either
                changed = []
        if is_first and folder.pending_upserts:
            rest = share.part._replace(start=share.part.end, end=share.part.size)
            for tuples in self._tuples(rest, silent):
                folder.mark_existing(tuples)
                if not folder.pending_upserts:
                    break
            changed += folder.inserted_rows()
        yield from _chunks(changed, either)

    def _tuples(self, part: FileRange, damage: DamageHandler) -> Iterator[Tuples]:
        """The tuples of the space in a part of the snapshot."""
        if part.start >= part.end:
            return
        space = self._state.space
        block_filter = BlockFilter([space.id])
        blocks = (block for block in read_blocks(part, damage) if block_filter.matches(block.payload))
        for some in group_blocks(blocks):
            yield from read_tuples(some, space.id, len(space.fields), part.uri, damage)

    @property
    def _is_lenient(self) -> bool:
        return self._options.damaged is OnDamaged.SKIP


def _names(files: Sequence[str]) -> str:
    """The names of logs for errors: a changed row is not in one of them alone."""
    return files[0] if len(files) == 1 else f"one of the logs {files[0]} to {files[-1]}" if files else ""


def _chunks(raws: Iterable[bytes], origin: str) -> Iterator[tuple[list[bytes], str]]:
    rest = iter(raws)
    while chunk := list(islice(rest, BATCH_ROWS)):
        yield chunk, origin
