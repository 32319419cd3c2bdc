"""The blocks of a log that a server may be writing."""

from __future__ import annotations

from collections.abc import Iterator
from io import SEEK_END
from types import TracebackType
from typing import Final, Self

from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.xlog import Block, XlogReader
from iproto_server.storage.xlog.block import BLOCK_SIZE, HEAD_SIZE
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import LogPart
from pyspark_tarantool.source.io.filesystem import open_file

_UNLIMITED: Final = 2**63


class LogBlocks:
    """Reads the blocks of a log; use as a context manager.

    A log with a successor is read to its end. Reading the newest log stops before an incomplete block, and
    before blocks that may be withdrawn: a server may write several blocks at once and, if it cannot write or
    sync them all, truncates them before the next write. So blocks count once other data follows the last one
    of the same write, or the file has not changed for a while.

    Parameters:
        part: The log.
        damage: Handles damage.
        size: The size of the newest log; None for a log with a successor.
        is_settled: Whether all rows within that size count.
        limit: An earlier size, to ignore later rows; None for no limit.

    Attributes:
        end_error: The error at the end of the log, after which no intact block follows.
        begin: The offset after the header.
        end: The offset after the last block read.
        last_end: The offset after the block before that one.
        holds_back: Whether there are blocks that may count later.

    Raises:
        XlogError: If the header cannot be read.
        OSError: If the file cannot be opened.
    """

    def __init__(
        self,
        part: LogPart,
        damage: DamageHandler,
        size: int | None,
        *,
        is_settled: bool,
        limit: int | None = None,
    ) -> None:
        self._damages = damage
        self._size = size
        self._is_settled = is_settled or size is None
        self._last_end = min(_UNLIMITED if size is None else size, _UNLIMITED if limit is None else limit)
        self._file = open_file(part.file.uri)
        self._reader = XlogReader(self._file, part.file.uri)
        self.end_error: XlogError | None = None
        # The header of a log without rows may have been rewritten with another length.
        self.begin = self.end = self.last_end = self._reader.good_end
        self.holds_back = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    def at(self, offset: int) -> Block | None:
        """The block at an offset; None if there is none."""
        try:
            return self._reader.block_at(offset)
        except XlogError:
            return None

    def read(self, start: int) -> Iterator[Block]:
        """Read the blocks that count.

        Parameters:
            start: The offset of the first one.

        Raises:
            XlogError: At damage that is not to be skipped.
            OSError: If the file cannot be read.
        """
        held: list[int] = []
        self.end = self.last_end = start
        for block in self.intact(start):
            # Large blocks are not kept in memory, but read again.
            held.append(block.start)
            if self._is_settled or self._is_followed(block):
                for offset in held:
                    again = block if offset == block.start else self._reader.block_at(offset)
                    assert again is not None
                    self.last_end, self.end = self.end, again.end
                    yield again
                held.clear()
        self.holds_back = bool(held)

    def _is_followed(self, block: Block) -> bool:
        """Whether a block was the last one of its write, and another write followed.

        A write begins another block only after one has reached `BLOCK_SIZE` (`LogRows.blocks`).
        """
        is_last = HEAD_SIZE + len(block.payload) < BLOCK_SIZE
        return is_last and self._size is not None and block.end < self._size

    def intact(self, position: int) -> Iterator[Block]:
        """Read the intact blocks, whether they count or not; see `read`."""
        self.end_error = None
        while position < self._last_end:
            try:
                block = self._reader.block_at(position)
            except XlogError as error:
                self.end_error = error
                if self._size is not None and isinstance(error, TruncatedFileError):
                    return
                end = self._reader.next_intact(position + 1)
                if end >= self._file.seek(0, SEEK_END):
                    return
                self.end_error = None
                self._damages.add(error, end)
                position = end
                continue
            if block is None or block.end > self._last_end:
                return
            yield block
            position = block.end
