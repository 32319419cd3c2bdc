"""The first part of a stream with `starting=snapshot`: the rows of a snapshot, as inserts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, RowType
from pyspark_tarantool.source.arrow.changes_columns import ChangesColumns
from pyspark_tarantool.source.arrow.filters import Filters
from pyspark_tarantool.source.decode.log_rows import LogRows
from pyspark_tarantool.source.decode.packed import Cells
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from pyspark_tarantool.source.decode.row_scanner import read_rows
from pyspark_tarantool.source.decode.snapshot_rows import read_tuples
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import (
    FileRange,
    group_blocks,
    read_blocks,
    split_range,
    whole_file,
)
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.stream.live_logs import START_OVER, name_of

SNAPSHOT_KEY: Final = "snapshot"
"""The key, in offsets within a snapshot, of the place in it."""


class SnapshotPlace(NamedTuple):
    """A position in the snapshot that a stream begins with.

    Attributes:
        vclock: The snapshot's clock.
        file: The name of the snapshot.
        offset: Blocks that begin before this offset were read.
        size: The snapshot's size in bytes.
    """

    vclock: VClock
    file: str
    offset: int
    size: int

    @property
    def is_at_end(self) -> bool:
        """Whether all rows were read: the changes after the clock follow."""
        return self.offset >= self.size

    def advanced(self, max_bytes: int | None) -> SnapshotPlace:
        """The place after the next batch.

        Parameters:
            max_bytes: The approximate size of a batch; None for no limit.
        """
        end = self.size if max_bytes is None else min(self.size, self.offset + max_bytes)
        return self._replace(offset=end)

    def to_json(self) -> dict[str, Any]:
        """The JSON object for a checkpoint; at the end of the snapshot, it is also a position in the logs."""
        return {
            "vclock": {str(member): self.vclock[member] for member in sorted(self.vclock)},
            SNAPSHOT_KEY: {"file": self.file, "offset": self.offset, "size": self.size},
        }

    @classmethod
    def from_json(cls, checkpoint: Mapping[str, Any]) -> SnapshotPlace | None:
        """Parse the JSON object of a checkpoint.

        Parameters:
            checkpoint: What `to_json` has made, or another offset.

        Returns:
            The place; None for other offsets.

        Raises:
            SourceError: If it is malformed.
        """
        if SNAPSHOT_KEY not in checkpoint:
            return None
        try:
            place = checkpoint[SNAPSHOT_KEY]
            clock = VClock({int(member): int(lsn) for member, lsn in checkpoint["vclock"].items()})
            return cls(clock, str(place["file"]), int(place["offset"]), int(place["size"]))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise SourceError(
                f"the checkpoint of the query is not one of this source: {checkpoint!r}"
            ) from None

    @classmethod
    def start_of(cls, file: DataFile) -> SnapshotPlace:
        """The beginning of a snapshot."""
        return cls(file.header.vclock, name_of(file), file.begin, file.size)


@dataclass(frozen=True)
class SnapshotPart(InputPartition):
    """The part of a snapshot that one task reads.

    Attributes:
        range: The range of its blocks.
        lsn: The snapshot's LSN: the sum of its clock.
        timestamp: The time of its first row, in seconds since 1970.
        space_ids: The spaces to read; None for all.
        columns: Converts rows to columns.
    """

    range: FileRange
    lsn: int
    timestamp: float
    space_ids: frozenset[int] | None
    columns: ChangesColumns


def snapshot_ranges(file: DataFile, start: int, end: int, partition_bytes: int) -> list[FileRange]:
    """Split a part of a snapshot among tasks.

    Parameters:
        file: The snapshot.
        start: The offset of the part.
        end: The offset after it.
        partition_bytes: The approximate size of a range; 0 for one range.
    """
    return split_range(whole_file(file)._replace(start=start, end=end), partition_bytes)


def snapshot_named(place: SnapshotPlace, snapshots: Sequence[DataFile], where: str) -> DataFile:
    """Find the snapshot of a place again.

    Parameters:
        place: The place.
        snapshots: The complete snapshots.
        where: The directory, for the error.

    Raises:
        SourceError: If it is gone, or another one has its name.
    """
    for file in snapshots:
        if (
            name_of(file) == place.file
            and file.size == place.size
            and file.header.vclock.same_as(place.vclock)
        ):
            return file
    raise snapshot_gone(f"{where}: the snapshot {place.file}")


def snapshot_gone(what: str) -> SourceError:
    """The error for a snapshot that was removed.

    Parameters:
        what: The snapshot.
    """
    return SourceError(
        f"{what} was removed before the stream has read its rows. Checkpoints of the server remove old "
        f'snapshots (its option checkpoint_count); the option "hold_path" keeps them; {START_OVER}'
    )


def read_snapshot(part: SnapshotPart, damage: DamageHandler) -> Iterator[pa.RecordBatch]:
    """Read a part of a snapshot.

    Parameters:
        part: The part.
        damage: Handles damage.

    Yields:
        Record batches: an INSERT for each row.

    Raises:
        SourceError: If a value does not fit its column, or the snapshot is gone.
        XlogError: At damage that is not to be skipped.
        OSError: If the snapshot cannot be read.
    """
    uri, columns = part.range.uri, part.columns
    try:
        for blocks in group_blocks(_blocks(part, damage)):
            for rows in _rows(part, blocks, damage):
                if len(rows):
                    yield columns.batch_of(rows, uri, Filters())
    except FileNotFoundError:
        raise snapshot_gone(uri) from None


def _blocks(part: SnapshotPart, damage: DamageHandler) -> Iterator[Block]:
    block_filter = None if part.space_ids is None else BlockFilter(part.space_ids)
    for block in read_blocks(part.range, damage):
        if block_filter is None or block_filter.matches(block.payload):
            yield block


def _rows(part: SnapshotPart, blocks: Sequence[Block], damage: DamageHandler) -> Iterator[LogRows]:
    """The rows of blocks, each with the snapshot's LSN."""
    uri, items = part.range.uri, part.columns.items
    if part.space_ids is None:
        for rows in read_rows(blocks, uri, damage, items):
            lsns = np.full(len(rows), part.lsn, np.int64)
            yield replace(rows, lsn=lsns, tsn=lsns, replica_id=np.zeros(len(rows), np.int64))
        return
    for space_id in sorted(part.space_ids):
        for tuples in read_tuples(blocks, space_id, items, uri, damage):
            yield _inserts(part, space_id, tuples, items)


def _inserts(part: SnapshotPart, space_id: int, tuples: Tuples, items: int) -> LogRows:
    """The tuples of a space as rows of a log."""
    count = len(tuples)

    def all_of(number: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.full(count, number, np.int64)

    nothing = all_of(-1)
    missing = Cells(tuples.buffer, nothing, nothing)
    zero, lsns = all_of(0), all_of(part.lsn)
    return LogRows(
        type=all_of(RowType.INSERT),
        lsn=lsns,
        replica_id=zero,
        tsn=lsns,
        timestamp=np.full(count, part.timestamp, np.float64),
        space_id=all_of(space_id),
        index_id=zero,
        index_base=zero,
        key=missing,
        tuple=tuples.cells,
        operations=missing,
        old=missing,
        new=missing,
        values=tuples if items else None,
    )
