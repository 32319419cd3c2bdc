"""Reads the rows of a log or snapshot, transaction by transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.xlog.block_reader import Block, BlockReader, Damage, OnDamage
from iproto_server.storage.xlog.decoder import Change, change_of, decode_changes, decode_rows
from iproto_server.storage.xlog.row import Row, RowFlag

_COMMIT: Final = int(RowFlag.COMMIT)


class XlogReader(BlockReader):
    """Reads the rows of a file once, from its header to its end; see `BlockReader`.

    Parameters:
        file: a seekable file opened for reading, at its beginning.
        name: the file's name, for errors.
        on_damage: the reaction to damage.

    Attributes:
        name: the file's name.
        header: the file's header.
        good_end: offset of the end of the last intact block read, or of the header. A writer may continue
            there, over the end marker or a torn write.
        closed: whether the end marker was reached.
        damages: the parts that were skipped, or ignored at the end.

    Raises:
        XlogError: the header cannot be read.
    """

    def __init__(self, file: BinaryIO, name: str, on_damage: OnDamage = OnDamage.STOP) -> None:
        super().__init__(file, name, on_damage)
        # The rows of unfinished transactions by member, the block where the first of these began, and whether
        # another transaction ended in that block.
        self._unfinished: dict[int, list[Row]] = {}
        self._unfinished_at = 0
        self._shares_block = False

    def transactions(self) -> Iterator[list[Row]]:
        """Iterate over the remaining transactions.

        Yields:
            The rows of one transaction.

        Raises:
            XlogError: there is damage that `on_damage` does not allow.
            OSError: the file cannot be read.
        """
        for _, rows in self.batches():
            start = 0
            for end, row in enumerate(rows, 1):
                if row.flags & _COMMIT:
                    yield rows[start:end]
                    start = end

    def batches(self) -> Iterator[tuple[int, list[Row]]]:
        """Iterate over the remaining transactions, block by block.

        A transaction is in one block, except in logs of old replicas, which wrote row by row. If
        transactions of two members are mixed there, that is damage.

        Yields:
            The offset of a block, and the rows of the transactions that end in it.

        Raises:
            XlogError: there is damage that `on_damage` does not allow.
            OSError: the file cannot be read.
        """
        for block, rows in self.row_blocks():
            for batch in self._finished(block, rows):
                yield block.start, batch
        self._check_finished()

    def changes(
        self, take: Callable[[bytes], tuple[int, bool]] | None = None
    ) -> Iterator[tuple[int, list[Change]]]:
        """Iterate as `batches` does, but over changes instead of rows, which is faster.

        Parameters:
            take: receives the packed rows of each block first, and returns the number of rows that it has
                applied, and whether these are all. It applies only rows of blocks of whole transactions.

        Yields:
            The offset of a block, and the changes of the transactions that end in it, without those that were
                taken.

        Raises:
            XlogError: there is damage that `on_damage` does not allow.
            OSError: the file cannot be read.
        """
        for block in self.blocks():
            taken, are_all = (0, False) if take is None or self._unfinished else take(block.payload)
            if are_all:
                yield block.start, []
                continue
            changes = None if self._unfinished else decode_changes(block.payload)
            if changes is not None:
                yield block.start, changes[taken:]
            elif rows := self.rows(block):
                for batch in self._finished(block, rows):
                    yield block.start, [change_of(row) for row in batch[taken:]]
        self._check_finished()

    def _finished(self, block: Block, rows: list[Row]) -> Iterator[list[Row]]:
        """Yield the rows of the transactions that end in a block."""
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
        """Handle a transaction that the file does not finish."""
        if self._unfinished:
            reason = "the file ends within a transaction"
            if self._shares_block and self._on_damage is OnDamage.CUT_TAIL:
                # Truncating would lose another transaction, and this is not the result of a torn write.
                reason = "the last block ends within its second transaction, or a later one,"
                raise XlogError(self.name, self._unfinished_at, reason)
            if self._on_damage is OnDamage.STOP:
                raise TruncatedFileError(self.name, self._unfinished_at, reason)
            self.damages.append(Damage(self._unfinished_at, self._size(), reason))
            self.good_end = self._unfinished_at

    def _continue(self, unfinished: dict[int, list[Row]], block: Block, row: Row) -> Iterator[list[Row]]:
        """Add a row to the unfinished transactions, and yield the one that it finishes."""
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
        """Iterate over the remaining blocks with their rows.

        Yields:
            A block and its rows.

        Raises:
            XlogError: there is damage that `on_damage` does not allow.
            OSError: the file cannot be read.
        """
        while (block := self._next_block()) is not None:
            if rows := self.rows(block):
                yield block, rows

    def rows(self, block: Block) -> list[Row]:
        """Read the rows of a block.

        Parameters:
            block: a block of this file.

        Returns:
            Its rows; empty if they cannot be read and damage is skipped.

        Raises:
            XlogError: the rows cannot be read.
        """
        try:
            return decode_rows(block.payload)
        except ValueError as error:
            # The checksum is right, so this is not a torn write.
            if self._on_damage is not OnDamage.SKIP:
                raise XlogError(self.name, block.start, str(error)) from None
            self.damages.append(Damage(block.start, block.end, str(error)))
            return []
