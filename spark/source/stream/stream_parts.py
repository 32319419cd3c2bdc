"""The parts of a batch of changes that tasks read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block
from pyspark_tarantool.source.arrow.changes_columns import ChangesColumns
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import FileRange, read_blocks
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.stream.live_logs import START_OVER
from pyspark_tarantool.source.stream.log_walk import Span
from pyspark_tarantool.source.stream.offset import earlier


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


def blocks_of(part: StreamRange, space_ids: frozenset[int] | None, damage: DamageHandler) -> Iterator[Block]:
    """Read the blocks of a range that may contain rows of the spaces.

    Parameters:
        part: The range.
        space_ids: The spaces to read; None for all.
        damage: Handles damage.

    Raises:
        SourceError: If the file has changed since the batch was planned.
        XlogError: At damage that is not to be skipped.
        OSError: If the file cannot be read.
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


def split_spans(
    spans: Sequence[Span], partition_bytes: int, until: VClock
) -> Iterator[tuple[StreamRange, ...]]:
    """Split the blocks of a batch among tasks; small logs share a task.

    Parameters:
        spans: The blocks.
        partition_bytes: The approximate size of each share; 0 for one share.
        until: The clock of the end of the batch.
    """
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
