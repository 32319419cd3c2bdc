"""Parts of logs, their changes, and the check for missing rows."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from iproto_server.box.catalog.system_space_ids import COLLATION, INDEX, SPACE, TRUNCATE
from iproto_server.storage.errors import LogGapError, XlogError
from iproto_server.storage.vclock import VCLOCK_MAX, VClock
from iproto_server.storage.xlog import Block, Change, Row, RowType, decode_rows
from iproto_server.storage.xlog.decoder import change_of
from pyspark_tarantool.source.decode.log_rows import LSN_MAX, LogRows
from pyspark_tarantool.source.decode.packed import Buffer
from pyspark_tarantool.source.decode.row_scanner import is_whole, plain_rows
from pyspark_tarantool.source.errors import SourceError
from pyspark_tarantool.source.io.block_filter import BlockFilter
from pyspark_tarantool.source.io.byte_ranges import (
    FileRange,
    group_blocks,
    read_blocks,
    scan_parts,
    whole_file,
)
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile, LogPart

DEFINING: Final = frozenset({COLLATION, SPACE, INDEX, TRUNCATE})
"""The system spaces whose rows define other spaces or truncate them."""

_WITHOUT_END: Final = 2**64


class LogSpan(NamedTuple):
    """A part of a log.

    Attributes:
        file: The log.
        start: The offset of its first block.
        stop: The offset before which its blocks begin.
        end: The clock of the next log: later rows are leftovers of a failed write. None if no further log
            is read.
    """

    file: DataFile
    start: int
    stop: int
    end: VClock | None

    @classmethod
    def whole(cls, part: LogPart) -> LogSpan:
        """A log from its beginning to its end."""
        return cls(part.file, part.file.begin, part.file.size, part.end)

    def blocks(self, damage: DamageHandler) -> Iterator[Block]:
        """Read the blocks.

        Blocks written after the file was inspected are ignored, so that all tasks read the same ones.

        Parameters:
            damage: Handles damage.

        Raises:
            XlogError: At damage that is not to be skipped.
            OSError: If the file cannot be read.
        """
        whole = whole_file(self.file)
        for block in read_blocks(whole._replace(start=self.start, begin=self.start), damage):
            if block.start >= self.stop or block.end > self.file.size:
                return
            yield block

    def may_match(self, block_filter: BlockFilter, damage: DamageHandler) -> bool:
        """Whether a filter matches any block. Parts of large logs are searched concurrently.

        Parameters:
            block_filter: The filter.
            damage: Handles damage.

        Returns:
            False only if it matches none; True also if a part of the log cannot be read by itself.

        Raises:
            OSError: If the file cannot be read.
        """

        def matches(part: FileRange) -> bool:
            return any(block_filter.matches(block.payload) for block in read_blocks(part, damage))

        if self.start != self.file.begin or self.stop != self.file.size:
            return True
        try:
            return any(scan_parts(self.file, matches))
        except XlogError:
            return True

    def rows(
        self, damage: DamageHandler, block_filter: BlockFilter | None = None
    ) -> Iterator[tuple[Block, list[Row]]]:
        """Read the rows of whole transactions.

        Parameters:
            damage: Handles damage.
            block_filter: Skips blocks that it does not match; None for all blocks.

        Yields:
            A block, and the rows of the transactions that end in it.

        Raises:
            XlogError: At damage that is not to be skipped.
            OSError: If the file cannot be read.
        """
        unfinished: list[Row] = []
        for block in self.blocks(damage):
            if block_filter is None or unfinished or block_filter.matches(block.payload):
                whole = self._whole(block, unfinished, damage)
                if whole:
                    yield block, whole

    def changes(
        self, damage: DamageHandler, block_filter: BlockFilter | None = None
    ) -> Iterator[tuple[Block, list[Change]]]:
        """Like `rows`, but faster: yields only the changes of the rows."""
        unfinished: list[Row] = []
        for block in self.blocks(damage):
            if block_filter is None or unfinished or block_filter.matches(block.payload):
                yield block, self._changes(block, unfinished, damage)

    def found(
        self,
        damage: DamageHandler,
        block_filter: BlockFilter | None,
        is_taken: Callable[[Buffer], bool],
        is_usual: Callable[[LogRows], bool],
    ) -> Iterator[tuple[Block, LogRows | list[Change]]]:
        """Like `changes`, but much faster: decodes plain rows of many blocks together.

        Parameters:
            damage: Handles damage.
            block_filter: May skip blocks that it does not match; None for all blocks.
            is_taken: Processes the rows of whole blocks, and returns whether it did; these are not yielded.
            is_usual: Whether the rows can be processed together; called once per group.

        Yields:
            The first block of a group, and the group's rows with the first item of each key or tuple; or a
            block and its changes.

        Raises:
            XlogError: At damage that is not to be skipped.
            OSError: If the file cannot be read.
        """
        unfinished: list[Row] = []
        for blocks in group_blocks(self.blocks(damage)):
            if not (
                block_filter is None
                or unfinished
                or any(block_filter.matches(block.payload) for block in blocks)
            ):
                continue
            rows = None
            if not unfinished:
                buffer = Buffer(*(block.payload for block in blocks))
                if is_taken(buffer):
                    continue
                rows = plain_rows(buffer, 1)
            if rows is not None and is_whole(rows) and is_usual(rows):
                yield blocks[0], rows
                continue
            for block in blocks:
                if block_filter is None or unfinished or block_filter.matches(block.payload):
                    yield block, self._changes(block, unfinished, damage)

    def _changes(self, block: Block, unfinished: list[Row], damage: DamageHandler) -> list[Change]:
        """The changes of the transactions that end in a block."""
        return [change_of(row) for row in self._whole(block, unfinished, damage)]

    def _whole(self, block: Block, unfinished: list[Row], damage: DamageHandler) -> list[Row]:
        """The rows of the transactions that end in a block; the others are kept in `unfinished`.

        Only old replicas split transactions across blocks, row by row.
        """
        try:
            rows = decode_rows(block.payload)
        except ValueError as error:
            damage.add(XlogError(self.file.uri, block.start, str(error)), block.end)
            return []
        rows = [*unfinished, *rows]
        count = len(rows)
        while count and not rows[count - 1].is_last:
            count -= 1
        unfinished[:] = rows[count:]
        return rows[:count]


def transactions_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Split the rows of whole transactions.

    Parameters:
        rows: The rows, as yielded by `LogSpan.rows`.
    """
    transaction: list[Row] = []
    for row in rows:
        transaction.append(row)
        if row.is_last:
            yield transaction
            transaction = []


class PerMember(dict[int, int]):
    """A number for each possible member."""

    def __missing__(self, member: int) -> int:
        """Refuse an impossible member.

        Raises:
            SourceError: Always.
        """
        raise SourceError(f"a log has a row of member {member}, but member ids are below {VCLOCK_MAX}")


def counting(start: VClock, end: VClock | None, until: VClock | None) -> tuple[PerMember, PerMember]:
    """The range of rows of a log that count: those with `low[member] < lsn <= high[member]`.

    Parameters:
        start: The clock of the state's beginning.
        end: The clock of the next log; None if there is none.
        until: The clock of the state's end; None for no limit.

    Returns:
        `low` and `high`.
    """
    limits = [limit for limit in (end, until) if limit is not None]
    low = PerMember((member, start.get(member, 0)) for member in range(VCLOCK_MAX))
    high = PerMember(
        (member, min((limit.get(member, 0) for limit in limits), default=_WITHOUT_END))
        for member in range(VCLOCK_MAX)
    )
    return low, high


def by_member(numbers: Mapping[int, int] | None) -> array[int]:
    """LSNs as an array of 64-bit numbers by member; missing ones are 0.

    Parameters:
        numbers: The LSNs; None for the highest possible ones.
    """
    if numbers is None:
        return array("q", [LSN_MAX]) * VCLOCK_MAX
    return array("q", [min(numbers.get(member, 0), LSN_MAX) for member in range(VCLOCK_MAX)])


class ContinuityCheck:
    """Checks that no rows of the logs are missing.

    Parameters:
        start: The clock of the state's beginning.
        is_forgiving: Whether rows may be missing, because damage was skipped.
    """

    def __init__(self, start: VClock, is_forgiving: Callable[[], bool]) -> None:
        self._clock = start.copy()
        self._is_forgiving = is_forgiving

    def begin_log(self, log: DataFile) -> None:
        """Begin the next log.

        Raises:
            LogGapError: If rows before it were not read.
        """
        self.check_reached(log.header.vclock, log.uri)

    def check_reached(self, clock: VClock, uri: str) -> None:
        """Check that all rows before a clock were read.

        Parameters:
            clock: The clock.
            uri: The log, for the error message.

        Raises:
            LogGapError: If some were not.
        """
        if not self._clock.covers(clock):
            self._report(f"{uri}: rows are missing between {self._clock} and {clock}")
            for member, lsn in clock.items():
                self._clock[member] = max(lsn, self._clock.get(member, 0))

    def check(self, span: LogSpan, block: Block, changes: Iterable[Change]) -> None:
        """Check the next rows.

        Raises:
            LogGapError: If some are missing before one of them.
            SourceError: If one is a rollback, which is not supported.
        """
        clock, end = self._clock, span.end
        for kind, lsn, member, *_ in changes:
            last = clock.get(member, 0)
            if lsn <= last or (end is not None and lsn > end.get(member, 0)):
                continue
            if lsn != last + 1:
                place = f"{span.file.uri}, block at offset {block.start}"
                self._report(f"{place}: rows are missing between {last} and {lsn} of the member {member}")
            if kind == RowType.ROLLBACK:
                reason = "rolled-back synchronous transactions are not supported"
                raise SourceError(f"{span.file.uri}: row {lsn} of the member {member}: {reason}")
            clock[member] = lsn

    def accepts(self, rows: LogRows, end: VClock | None) -> bool:
        """Check plain rows, and advance past them if there is no gap.

        Parameters:
            rows: The rows.
            end: The clock of the next log; None if there is none.

        Returns:
            Whether there is no gap; if there is, `check` reports it.
        """
        clock: dict[int, int] = {}
        for member in rows.members():
            last = self._clock.get(member, 0)
            new = rows.lsn[(rows.replica_id == member) & (rows.lsn > last)]
            if end is not None:
                new = new[new <= end.get(member, 0)]
            if not np.array_equal(new, np.arange(last + 1, last + 1 + len(new))):
                return False
            clock[member] = last + len(new)
        self._clock.update(clock)
        return True

    def limits(self, end: VClock | None) -> tuple[array[int], array[int]]:
        """By member, the last LSN read, and the highest one to check.

        Parameters:
            end: The clock of the next log; None if there is none.
        """
        return by_member(self._clock), by_member(end)

    def advance(self, member: int, last: int) -> None:
        """Record rows checked elsewhere, without a gap.

        Parameters:
            member: The member that wrote them.
            last: Their last LSN, within the limits.
        """
        self._clock[member] = last

    def _report(self, reason: str) -> None:
        if not self._is_forgiving():
            raise LogGapError(reason)
