"""Writes a log or snapshot."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

import zstandard

from iproto_server.descriptors import spare
from iproto_server.storage.xlog.block import COMPRESSION_LEVEL, END_MARKER, encode_block
from iproto_server.storage.xlog.header import XlogHeader


class WritableFile(Protocol):
    """The methods that a writer needs of an unbuffered file: `open(..., buffering=0)`."""

    def write(self, data: bytes, /) -> int | None:
        """Write a part of the data; return the number of bytes."""

    def seek(self, offset: int, /) -> int:
        """Set the position of the next write."""

    def truncate(self, size: int, /) -> int:
        """Truncate the file."""


class XlogWriter:
    """Writes blocks of rows to a file. Syncing the file is left to the caller.

    Parameters:
        file: A file opened for writing, without a buffer.
        offset: End of its intact part (`XlogReader.good_end`); the rest is truncated.
        compress: Whether large blocks are compressed.

    Attributes:
        offset: End of the last complete block.
    """

    __slots__ = ("_clean", "_compressor", "_file", "offset")

    def __init__(self, file: WritableFile, offset: int, *, compress: bool = True) -> None:
        self._file = file
        self.offset = offset
        # Whether the file is known to end at `offset`.
        self._clean = False
        self._compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL) if compress else None

    @classmethod
    def create(cls, file: WritableFile, header: XlogHeader, *, compress: bool = True) -> XlogWriter:
        """Begin a new file with its header.

        Parameters:
            file: An empty file, opened for writing, without a buffer.
            header: The header.
            compress: Whether large blocks are compressed.

        Raises:
            OSError: The header cannot be written.
        """
        writer = cls(file, 0, compress=compress)
        writer._append(header.encode())
        return writer

    def write(self, blocks: Iterable[bytes]) -> int:
        """Append all blocks, or none, in one write.

        Parameters:
            blocks: The rows of each block, such as `LogRows.blocks` returns.

        Returns:
            The number of bytes by which the file has grown.

        Raises:
            OSError: Not all could be written; the file is unchanged.
        """
        encoded = [encode_block(rows, self._compressor) for rows in blocks]
        return self._append(encoded[0] if len(encoded) == 1 else b"".join(encoded))

    def cut_back(self, offset: int) -> None:
        """Truncate the file to an offset. If that fails, the next write tries again.

        Parameters:
            offset: End of a block.
        """
        self.offset = offset
        self._clean = False
        with suppress(OSError):
            self._cut()

    def end(self) -> None:
        """Write the end marker; no write may follow.

        Raises:
            OSError: The marker cannot be written.
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
        """Truncate the file after the last complete block. If that fails, the next write tries again."""
        self._file.truncate(self.offset)
        self._file.seek(self.offset)
        self._clean = True


def sync_directory(directory: str | os.PathLike[str]) -> None:
    """Sync a directory, so that names of new files are on the disk.

    Parameters:
        directory: The directory.

    Raises:
        OSError: The directory cannot be opened or synced.
    """
    descriptor = spare.open(lambda: os.open(directory, os.O_RDONLY | os.O_DIRECTORY))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
