"""Reads the rows of a log or snapshot, transaction by transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final, TypeVar

from iproto_server.native._native import BlockRows
from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.xlog.block_reader import Block, BlockReader, Damage, OnDamage
from iproto_server.storage.xlog.decoder import Change, change_of, decode_rows
from iproto_server.storage.xlog.row import Row, RowFlag

_COMMIT: Final = int(RowFlag.COMMIT)
_Rows = TypeVar("_Rows")


class XlogReader(BlockReader):
    """Reads the rows of a file once, from its header to its end; see `BlockReader`.

    Parameters:
        file: A seekable file opened for reading, at its beginning.
        name: The file's name, for errors.
        on_damage: The reaction to damage.

    Attributes:
        name: The file's name.
        header: The file's header.
        good_end: Offset of the end of the last intact block read, or of the header. A writer may continue
            there, over the end marker or a torn write.
        closed: Whether the end marker was reached.
        damages: The parts that were skipped, or ignored at the end.

    Raises:
        XlogError: The header cannot be read.
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
            XlogError: There is damage that `on_damage` does not allow.
            OSError: The file cannot be read.
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
            XlogError: There is damage that `on_damage` does not allow.
            OSError: The file cannot be read.
        """
        for block, rows in self.row_blocks():
            for batch in self._finished(block, rows):
                yield block.start, batch
        self._check_finished()

    def changes(self) -> Iterator[tuple[int, Sequence[Change]]]:
        """Iterate as `batches` does, but over changes instead of rows, which is faster.

        Yields:
            The offset of a block, and the changes of the transactions that end in it: `BlockRows` if these
            are the block's rows.

        Raises:
            XlogError: There is damage that `on_damage` does not allow.
            OSError: The file cannot be read.
        """
        for block in self.blocks():
            rows = self.packed_rows(block)
            if rows is None:
                continue
            if rows.is_whole and not self._unfinished:
                yield block.start, rows
                continue
            for batch in self._finished(block, decode_rows(block.payload)):
                yield block.start, [change_of(row) for row in batch]
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
            XlogError: There is damage that `on_damage` does not allow.
            OSError: The file cannot be read.
        """
        while (block := self._next_block()) is not None:
            if rows := self.rows(block):
                yield block, rows

    def rows(self, block: Block) -> list[Row]:
        """Read the rows of a block.

        Parameters:
            block: A block of this file.

        Returns:
            Its rows; empty if they cannot be read and damage is skipped.

        Raises:
            XlogError: The rows cannot be read.
        """
        return self._decoded(block, decode_rows) or []

    def packed_rows(self, block: Block) -> BlockRows | None:
        """Read the rows of a block without making objects of them.

        Parameters:
            block: A block of this file.

        Returns:
            Its rows; None if they cannot be read and damage is skipped.

        Raises:
            XlogError: The rows cannot be read.
        """
        return self._decoded(block, BlockRows)

    def _decoded(self, block: Block, decode: Callable[[bytes], _Rows]) -> _Rows | None:
        try:
            return decode(block.payload)
        except ValueError as error:
            # The checksum is right, so this is not a torn write.
            if self._on_damage is not OnDamage.SKIP:
                raise XlogError(self.name, block.start, str(error)) from None
            self.damages.append(Damage(block.start, block.end, str(error)))
            return None
