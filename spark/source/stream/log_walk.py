"""A scan of the logs of a live directory, starting from a position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from iproto_server.native._native import BlockRows
from iproto_server.storage.errors import XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import Block, Change, Row, decode_rows
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, LogPart
from pyspark_tarantool.source.stream.live_logs import START_OVER, NewestLog, name_of
from pyspark_tarantool.source.stream.live_schema import LiveSchema
from pyspark_tarantool.source.stream.log_blocks import LogBlocks
from pyspark_tarantool.source.stream.offset import Offset, RowFingerprint, later, rows_between


class Span(NamedTuple):
    """Consecutive blocks of a log.

    Attributes:
        part: The log, and the end of its valid rows.
        start: The offset of the first block.
        borders: The end offset of each block.
    """

    part: LogPart
    start: int
    borders: list[int]


class LogWalk:
    """Scans the logs from a position to their end, or to a limit.

    Parameters:
        start: The position.
        damage: Handles damage.
        spaces: The space definitions at the position; they are updated.
        newest: The newest log.
        target: The newest log at an earlier time: later rows are ignored. None for no target.
        max_bytes: The limit, but at least one block is read; None for no limit.
        until: The clock at which to end, reached before; None for none.

    Attributes:
        end: The position reached.
        spans: The blocks read.
        holds_back: Whether there are blocks that may count later.
    """

    def __init__(
        self,
        start: Offset,
        damage: DamageHandler,
        spaces: LiveSchema,
        *,
        newest: NewestLog,
        target: DataFile | None = None,
        max_bytes: int | None = None,
        until: VClock | None = None,
    ) -> None:
        self.end = self._start = start
        self.spans: list[Span] = []
        self.holds_back = False
        self._damages = damage
        self._spaces = spaces
        self._newest = newest
        self._target = target
        self._left = max_bytes
        self._until = until
        self._clock = start.vclock.copy()

    def run(self, parts: Sequence[LogPart]) -> None:
        """Scan the logs.

        Parameters:
            parts: The logs from the position on, oldest first.

        Raises:
            SourceError: If the logs differ from those read before.
            XlogError: At damage that is not to be skipped, and if rows are missing.
            OSError: If a file cannot be read.
        """
        for number, part in enumerate(parts):
            if self._is_done() or not self._read(part, is_first=number == 0):
                break
        self._spaces.vclock = self._clock.copy()
        if self._until is not None and not self._is_done():
            raise _ends_early(parts[-1] if parts else None, self._clock, self._until)

    def _is_done(self) -> bool:
        return self._until is not None and self._clock.covers(self._until)

    def _read(self, part: LogPart, *, is_first: bool) -> bool:
        """Read a log; return whether to continue with the next one."""
        size, limit = self._size_of(part), self._limit_of(part)
        is_settled = self._newest.is_settled
        with LogBlocks(part, self._damages, size, is_settled=is_settled, limit=limit) as blocks:
            start = self._find_place(part, blocks) if is_first else blocks.begin
            span = Span(part, start, [])
            last: Block | None = None
            goes_on = True
            for block in blocks.read(start):
                goes_on = not self._is_done() and self._may_take(block.end - blocks.last_end)
                if not goes_on:
                    break
                self._take(part, block)
                span.borders.append(block.end)
                last = block
            self.holds_back = blocks.holds_back
            if goes_on and size is None and limit is None:
                self._check_end(part, blocks, span)
        if span.borders:
            self.spans.append(span)
        if not self._clock.same_as(self.end.vclock):
            self.end = self._position(part, last)
        return goes_on

    def _size_of(self, part: LogPart) -> int | None:
        newest = self._newest.file
        return newest.size if part.file.uri == newest.uri else None

    def _limit_of(self, part: LogPart) -> int | None:
        target = self._target
        return target.size if target is not None and part.file.uri == target.uri else None

    def _may_take(self, size: int) -> bool:
        """Whether the limit allows another block; the first one is always allowed."""
        if self._left is None:
            return True
        may_take = size <= self._left or self._clock.same_as(self._start.vclock)
        self._left -= size
        return may_take

    def _take(self, part: LogPart, block: Block) -> None:
        """Read a block."""
        clock, end = self._clock, part.end

        def counts(row: Row) -> bool:
            return row.lsn > clock.get(row.replica_id, 0) and (
                end is None or row.lsn <= end.get(row.replica_id, 0)
            )

        try:
            changes = BlockRows(block.payload)
            self._spaces.apply_block(block, counts)
        except ValueError as error:
            self._damages.add(XlogError(part.file.uri, block.start, str(error)), block.end)
            return
        _follow(clock, changes, end)

    def _check_end(self, part: LogPart, blocks: LogBlocks, span: Span) -> None:
        """Check that a log contains all rows before its successor."""
        if part.end is None or self._clock.covers(part.end):
            return
        error = blocks.end_error
        if error is None:
            missing = f"{rows_between(self._clock, part.end)} are missing after the last block"
            error = XlogError(part.file.uri, blocks.end, missing)
        else:
            # The tasks that read the rows report it.
            span.borders.append(part.file.size)
        self._damages.add(error, part.file.size)
        self._clock = later(self._clock, part.end)

    def _position(self, part: LogPart, last: Block | None) -> Offset:
        """The position after the last block read."""
        clock = self._clock.copy()
        if last is None:
            return Offset(clock, instance=str(part.file.header.instance_uuid))
        marks = (
            RowFingerprint.of(row) for row in reversed(_rows(last)) if row.lsn == clock.get(row.replica_id)
        )
        return Offset(
            clock,
            name_of(part.file),
            last.end,
            last.start,
            next(marks, None),
            str(part.file.header.instance_uuid),
        )

    # -- finding the place --

    def _find_place(self, part: LogPart, blocks: LogBlocks) -> int:
        """Find the start of the next block, by the position's offset or else by its clock."""
        start = self.end
        if start.vclock.same_as(part.file.header.vclock):
            return blocks.begin
        if start.last_row is not None and start.file == name_of(part.file):
            block = blocks.at(start.block_start)
            if block is not None and block.end == start.block_end and _has_last(block, start):
                return start.block_end
        offset = blocks.begin
        clock = part.file.header.vclock.copy()
        for block in blocks.intact(offset):
            try:
                changes = BlockRows(block.payload)
            except ValueError:
                continue  # reported when the block is read
            self._check_last(part, block, changes)
            _follow(clock, changes, part.end)
            if not start.vclock.covers(clock):
                return block.start
            offset = block.end
        if self._size_of(part) is not None and not clock.covers(start.vclock):
            raise _ends_early(part, clock, start.vclock)
        return offset

    def _check_last(self, part: LogPart, block: Block, changes: Sequence[Change]) -> None:
        """Check that the last row read has not changed."""
        last = self.end.last_row
        if last is None:
            return
        number = self.end.vclock.get(last.member, 0)
        if any(lsn == number and member == last.member for _, lsn, member, *_ in changes) and not _has_last(
            block, self.end
        ):
            raise SourceError(
                f"{part.file.uri}: row {number} of member {last.member} is not the one that the stream has "
                f"read: the server has lost written rows, or this is another database; {START_OVER}"
            )


def _rows(block: Block) -> list[Row]:
    """The rows of a block; empty if it cannot be decoded."""
    try:
        return decode_rows(block.payload)
    except ValueError:
        return []


def _follow(clock: VClock, changes: Sequence[Change], end: VClock | None) -> None:
    """Advance a clock by changes.

    Parameters:
        clock: The clock.
        changes: The changes.
        end: The clock of the next log; later rows do not count.
    """
    for _, lsn, member, *_ in changes:
        if lsn > clock.get(member, 0) and (end is None or lsn <= end.get(member, 0)):
            clock[member] = lsn


def _has_last(block: Block, position: Offset) -> bool:
    """Whether a block contains the last row before a position."""
    assert position.last_row is not None
    number = position.vclock.get(position.last_row.member, 0)
    return any(row.lsn == number and RowFingerprint.of(row) == position.last_row for row in _rows(block))


def _ends_early(part: LogPart | None, clock: VClock, wanted: VClock) -> SourceError:
    return SourceError(
        f"{'the log' if part is None else part.file.uri}: the logs end at {clock}, before {wanted}, where "
        f"the stream is: the server has lost rows that it had written, or this is an old copy; {START_OVER}"
    )
