"""Reading the rows of a log or snapshot, transaction by transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.xlog.block_reader import Block, BlockReader, Damage, OnDamage
from iproto_server.storage.xlog.decoder import Change, change_of, decode_changes, decode_rows
from iproto_server.storage.xlog.row import Row, RowFlag

_COMMIT: Final = int(RowFlag.COMMIT)


class XlogReader(BlockReader):
    """Reads the rows of a file from its header to its end, once; see `BlockReader`.

    Args:
        file: Opened for reading, at its beginning; it must be seekable.
        name: The file's name, for errors.
        on_damage: What to do about damage.

    Attributes:
        name: As given.
        header: The file's header.
        good_end: The offset behind the last intact block that was read, or behind the header. This is where a
            writer may go on, over the end marker or what was cut.
        closed: Whether the end marker was reached.
        damages: What was skipped, or cut from the end.

    Raises:
        XlogError: If the header cannot be read.
    """

    def __init__(self, file: BinaryIO, name: str, on_damage: OnDamage = OnDamage.STOP) -> None:
        super().__init__(file, name, on_damage)
        # Transactions that have begun and not ended, by member, where the first of them began, and whether
        # another one had ended in that block.
        self._unfinished: dict[int, list[Row]] = {}
        self._unfinished_at = 0
        self._shares_block = False

    def transactions(self) -> Iterator[list[Row]]:
        """Iterate over the transactions that follow.

        Yields:
            The rows of one transaction.

        Raises:
            XlogError: At damage that is neither to be skipped nor to be cut.
            OSError: If the file cannot be read.
        """
        for _, rows in self.batches():
            start = 0
            for end, row in enumerate(rows, 1):
                if row.flags & _COMMIT:
                    yield rows[start:end]
                    start = end

    def batches(self) -> Iterator[tuple[int, list[Row]]]:
        """Iterate over the transactions that follow, as many at a time as a block has.

        A transaction is in one block, except in logs of old replicas, which wrote row by row. There it may
        even be mixed with another member's, which is damage.

        Yields:
            Where the block is in the file, and the rows of the transactions that end in it.

        Raises:
            XlogError: At damage that is neither to be skipped nor to be cut.
            OSError: If the file cannot be read.
        """
        for block, rows in self.row_blocks():
            for batch in self._finished(block, rows):
                yield block.start, batch
        self._check_finished()

    def changes(self) -> Iterator[tuple[int, list[Change]]]:
        """As `batches`, but of every row only what it changes; this takes less time.

        Yields:
            Where the block is in the file, and the changes of the transactions that end in it.

        Raises:
            XlogError: At damage that is neither to be skipped nor to be cut.
            OSError: If the file cannot be read.
        """
        for block in self.blocks():
            changes = None if self._unfinished else decode_changes(block.payload)
            if changes is not None:
                yield block.start, changes
            elif rows := self.rows(block):
                for batch in self._finished(block, rows):
                    yield block.start, [change_of(row) for row in batch]
        self._check_finished()

    def _finished(self, block: Block, rows: list[Row]) -> Iterator[list[Row]]:
        """The rows of the transactions that end in a block."""
        if not self._unfinished and rows[-1].flags & _COMMIT:
            yield rows
            return
        has_ended = False
        for row in rows:
            if not self._unfinished:
                self._unfinished_at, self._shares_block = block.start, has_ended
            yield from self._continue(self._unfinished, block, row)
            has_ended = has_ended or bool(row.flags & _COMMIT)

    def _check_finished(self) -> None:
        """Every transaction must have ended by now."""
        if self._unfinished:
            reason = "the file ends within a transaction"
            if self._shares_block and self._on_damage is OnDamage.CUT_TAIL:
                # To cut it off would take another one with it; and no interrupted write has left it so.
                reason = "the last block ends within its second transaction, or a later one,"
                raise XlogError(self.name, self._unfinished_at, reason)
            if self._on_damage is OnDamage.STOP:
                raise TruncatedFileError(self.name, self._unfinished_at, reason)
            self.damages.append(Damage(self._unfinished_at, self._size(), reason))
            self.good_end = self._unfinished_at

    def _continue(self, unfinished: dict[int, list[Row]], block: Block, row: Row) -> Iterator[list[Row]]:
        """Add a row to the unfinished transactions, by member, and give the one that it finishes."""
        # Rows that are not replicated belong to the transaction around them.
        member = row.replica_id or next(reversed(unfinished), 0)
        rows = unfinished.get(member)
        if unfinished and (rows is None or rows[0].tsn != row.tsn):
            reason = "a transaction begins before another one has ended"
            if self._on_damage is not OnDamage.SKIP:
                raise XlogError(self.name, block.start, reason)
            if rows is not None:
                self.damages.append(Damage(block.start, block.start, reason))
                del unfinished[member]
                rows = None
        if rows is None:
            rows = unfinished[member] = []
        rows.append(row)
        if row.flags & _COMMIT:
            del unfinished[member]
            yield rows

    def row_blocks(self) -> Iterator[tuple[Block, list[Row]]]:
        """Iterate over the blocks that follow, with their rows.

        Yields:
            A block and its rows.

        Raises:
            XlogError: At damage that is neither to be skipped nor to be cut.
            OSError: If the file cannot be read.
        """
        while (block := self._next_block()) is not None:
            if rows := self.rows(block):
                yield block, rows

    def rows(self, block: Block) -> list[Row]:
        """Read the rows of a block.

        Args:
            block: One of this file.

        Returns:
            Its rows; none if they cannot be read and damage is skipped.

        Raises:
            XlogError: If they cannot be read.
        """
        try:
            return decode_rows(block.payload)
        except ValueError as error:
            # The checksum is right, so no interrupted write made it so.
            if self._on_damage is not OnDamage.SKIP:
                raise XlogError(self.name, block.start, str(error)) from None
            self.damages.append(Damage(block.start, block.end, str(error)))
            return []
