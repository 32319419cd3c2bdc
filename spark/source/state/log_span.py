"""Parts of logs, the changes in them that count, and the check that none is missing."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from iproto_server.box.catalog.system_space_ids import COLLATION, INDEX, SPACE, TRUNCATE
from iproto_server.storage.errors import LogGapError, XlogError
from iproto_server.storage.vclock import VCLOCK_MAX, VClock
from iproto_server.storage.xlog import Block, Change, Row, RowType, decode_rows
from iproto_server.storage.xlog.decoder import change_of, decode_changes
from spark.source.decode.log_rows import LSN_MAX, LogRows
from spark.source.decode.packed import Buffer
from spark.source.decode.row_scanner import is_whole, plain_rows
from spark.source.errors import SourceError
from spark.source.io.block_filter import BlockFilter
from spark.source.io.byte_ranges import FileRange, group_blocks, read_blocks, scan_parts, whole_file
from spark.source.io.damage import DamageHandler
from spark.source.io.data_files import DataFile, LogPart

DEFINING: Final = frozenset({COLLATION, SPACE, INDEX, TRUNCATE})
"""The spaces whose rows say what other spaces are, and rows that truncate them."""

_WITHOUT_END: Final = 2**64


class LogSpan(NamedTuple):
    """A part of a log.

    Attributes:
        file: The log.
        start: Where the first of its blocks begins.
        stop: The offset that blocks begin before.
        end: The clock that the next log begins with: rows beyond are leftovers of a write that failed. None
            if no log follows, or none is read.
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

        What was written after the file was looked at is left out, so that all tasks see the same.

        Parameters:
            damage: What is done about places that cannot be read.

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
        """Tell whether a filter matches any block. Parts of large logs are searched concurrently.

        Parameters:
            block_filter: The filter.
            damage: What is done about places that cannot be read.

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
            damage: What is done about places that cannot be read.
            block_filter: Blocks that it does not match are left out; None for all blocks.

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
        """As `rows`, but of each row only what it changes; this takes less time."""
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
        """As `changes`, but of plain rows those of many blocks together; this takes much less time.

        Parameters:
            damage: What is done about places that cannot be read.
            block_filter: Blocks that it does not match may be left out; None for all blocks.
            is_taken: Takes the rows of whole blocks, which then are left out, or tells that it has not.
            is_usual: Tells whether rows can be taken together; it is asked once about all that could.

        Yields:
            The first of some blocks, and their rows with the first item of each key or tuple; or a block and
            its changes.

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
        changes = None if unfinished else decode_changes(block.payload)
        if changes is None:
            changes = [change_of(row) for row in self._whole(block, unfinished, damage)]
        return changes

    def _whole(self, block: Block, unfinished: list[Row], damage: DamageHandler) -> list[Row]:
        """The rows of the transactions that end in a block; what has not ended goes to `unfinished`.

        Only replicas of old wrote transactions into several blocks, row by row.
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
        rows: As `LogSpan.rows` gives them.
    """
    transaction: list[Row] = []
    for row in rows:
        transaction.append(row)
        if row.is_last:
            yield transaction
            transaction = []


class PerMember(dict[int, int]):
    """A number for each member that there can be."""

    def __missing__(self, member: int) -> int:
        """There is no such member.

        Raises:
            SourceError: Always.
        """
        raise SourceError(f"a row of a log is of the member {member}; their numbers are below {VCLOCK_MAX}")


def counting(start: VClock, end: VClock | None, until: VClock | None) -> tuple[PerMember, PerMember]:
    """Which rows of a log count: those with `low[member] < lsn <= high[member]`.

    Parameters:
        start: What the state begins with, of which rows are not counted again.
        end: The clock of the next log, if there is one.
        until: How far the state goes; None for all there is.

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
    """Numbers of 64 bits, by member: those that are not there are 0.

    Parameters:
        numbers: LSNs; None for those that no LSN is above.
    """
    if numbers is None:
        return array("q", [LSN_MAX]) * VCLOCK_MAX
    return array("q", [min(numbers.get(member, 0), LSN_MAX) for member in range(VCLOCK_MAX)])


class ContinuityCheck:
    """Checks that the rows of logs follow each other.

    Parameters:
        start: What the state begins with.
        is_forgiving: Tells whether rows may be missing, because damage was skipped.
    """

    def __init__(self, start: VClock, is_forgiving: Callable[[], bool]) -> None:
        self._clock = start.copy()
        self._is_forgiving = is_forgiving

    def begin_log(self, log: DataFile) -> None:
        """A log follows.

        Raises:
            LogGapError: If it begins behind what was read.
        """
        self.check_reached(log.header.vclock, log.uri)

    def check_reached(self, clock: VClock, uri: str) -> None:
        """Check that everything was read that came before.

        Parameters:
            clock: The clock of a log.
            uri: The log.

        Raises:
            LogGapError: If something was not.
        """
        if not self._clock.covers(clock):
            self._report(f"{uri}: rows are missing between {self._clock} and {clock}")
            for member, lsn in clock.items():
                self._clock[member] = max(lsn, self._clock.get(member, 0))

    def check(self, span: LogSpan, block: Block, changes: Iterable[Change]) -> None:
        """Rows follow.

        Raises:
            LogGapError: If some are missing before one of them.
            SourceError: If one says that others were taken back, which is not understood.
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
                reason = "synchronous transactions that were rolled back are not understood"
                raise SourceError(f"{span.file.uri}: row {lsn} of the member {member}: {reason}")
            clock[member] = lsn

    def accepts(self, rows: LogRows, end: VClock | None) -> bool:
        """Tell whether plain rows follow without a gap, and if so, go on behind them.

        Parameters:
            rows: The rows.
            end: The clock that the next log begins with; None if no log follows.

        Returns:
            Whether they do; if not, it is for `check` to say what is wrong.
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
        """What rows have to follow: by member, the last LSN, and the one that they are not above.

        Parameters:
            end: The clock that the next log begins with; None if no log follows.
        """
        return by_member(self._clock), by_member(end)

    def advance(self, member: int, last: int) -> None:
        """Rows have followed without a gap.

        Parameters:
            member: Whose they were.
            last: The last LSN, within the limits.
        """
        self._clock[member] = last

    def _report(self, reason: str) -> None:
        if not self._is_forgiving():
            raise LogGapError(reason)
