"""Writing a log or snapshot."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

import zstandard

from iproto_server.descriptors import spare
from iproto_server.storage.xlog.block import (
    BLOCK_SIZE,
    COMPRESSION_LEVEL,
    END_MARKER,
    HEAD_SIZE,
    encode_block,
)
from iproto_server.storage.xlog.header import XlogHeader


class WritableFile(Protocol):
    """What a writer needs of a file, which is an unbuffered one: `open(..., buffering=0)`."""

    def write(self, data: bytes, /) -> int | None:
        """Write some of the data, and tell how much."""

    def seek(self, offset: int, /) -> int:
        """Set where the next write goes."""

    def truncate(self, size: int, /) -> int:
        """Cut the file."""


class XlogWriter:
    """Writes blocks of rows to a file. Making them safe on the disk (fsync) is left to the caller.

    Args:
        file: Opened for writing, without a buffer.
        offset: Where its intact part ends (`XlogReader.good_end`); what is behind is cut off.
        compress: Whether blocks are compressed when they are large enough.
        level: How hard.

    Attributes:
        offset: The offset behind the last block that was written whole.
    """

    __slots__ = ("_clean", "_compressor", "_file", "offset")

    def __init__(
        self, file: WritableFile, offset: int, *, compress: bool = True, level: int = COMPRESSION_LEVEL
    ) -> None:
        self._file = file
        self.offset = offset
        # Whether the file is known to end at `offset`.
        self._clean = False
        self._compressor = zstandard.ZstdCompressor(level=level) if compress else None

    @classmethod
    def create(
        cls,
        file: WritableFile,
        header: XlogHeader,
        *,
        compress: bool = True,
        level: int = COMPRESSION_LEVEL,
    ) -> XlogWriter:
        """Begin a new file with its header.

        Args:
            file: An empty file, opened for writing, without a buffer.
            header: The header.
            compress: Whether blocks are compressed when they are large enough.
            level: How hard.

        Raises:
            OSError: If the header cannot be written.
        """
        writer = cls(file, 0, compress=compress, level=level)
        writer._append(header.encode())
        return writer

    def write(self, transactions: Iterable[bytes]) -> int:
        """Append transactions, as few blocks as their size allows, in one go: all of them or none.

        Args:
            transactions: The rows of one transaction each, as `RowEncoder.transaction` makes them.

        Returns:
            How many bytes the file has grown.

        Raises:
            OSError: If they could not all be written; the file is as it was before.
        """
        blocks = []
        rows: list[bytes] = []
        size = HEAD_SIZE
        for transaction in transactions:
            rows.append(transaction)
            size += len(transaction)
            if size >= BLOCK_SIZE:
                blocks.append(encode_block(b"".join(rows), self._compressor))
                rows = []
                size = HEAD_SIZE
        if rows:
            blocks.append(encode_block(rows[0] if len(rows) == 1 else b"".join(rows), self._compressor))
        return self._append(blocks[0] if len(blocks) == 1 else b"".join(blocks))

    def cut_back(self, offset: int) -> None:
        """Take back what was written behind an offset. Where that fails, the next write tries again.

        Args:
            offset: Where a block ended.
        """
        self.offset = offset
        self._clean = False
        with suppress(OSError):
            self._cut()

    def end(self) -> None:
        """Write the end marker; nothing may be written after it.

        Raises:
            OSError: If it could not be written.
        """
        self._append(END_MARKER)

    def _append(self, data: bytes) -> int:
        if not self._clean:
            self._cut()
        written = 0
        self._clean = False
        try:
            while written < len(data):
                accepted = self._file.write(data[written:] if written else data)
                if not accepted:
                    raise OSError(errno.EIO, "nothing was written")
                written += accepted
        except OSError:
            self._cut()
            raise
        self._clean = True
        self.offset += written
        return written

    def _cut(self) -> None:
        """Cut off what is behind the last whole block. Where that fails, the next write tries again."""
        self._file.truncate(self.offset)
        self._file.seek(self.offset)
        self._clean = True


def sync_directory(directory: str | os.PathLike[str]) -> None:
    """Make a directory's entries safe on the disk: names of new files are not before that.

    Args:
        directory: The directory.

    Raises:
        OSError: If it cannot be opened or synced.
    """
    descriptor = spare.open(lambda: os.open(directory, os.O_RDONLY | os.O_DIRECTORY))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
