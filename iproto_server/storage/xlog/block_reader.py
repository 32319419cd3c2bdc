"""Reads a log or snapshot block by block."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from io import SEEK_END
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.xlog.block import (
    END_MARKER,
    HEAD_SIZE,
    MARKER_SIZE,
    PLAIN_MARKER,
    ZSTD_MARKER,
    checksum,
    decode_head,
    decompress,
)
from iproto_server.storage.xlog.header import HEADER_MAX, XlogHeader

READ_AHEAD: Final = 512 * 1024
"""Bytes read from the file at a time."""
PAGE: Final = 4096

BLANK_MIN: Final = 16
"""Zeros at the end of a block that count as a page never written."""


class OnDamage(Enum):
    """Reaction of a reader to damage."""

    STOP = "stop"
    """Raise an error."""

    CUT_TAIL = "cut"
    """End before the last block if it may be a torn write; otherwise raise an error."""

    SKIP = "skip"
    """Continue with the next intact block."""


class Damage(NamedTuple):
    """A part of a file whose rows were not read.

    Attributes:
        start: Offset of its first byte.
        end: Offset of its end.
        reason: The problem.
    """

    start: int
    end: int
    reason: str


class Block(NamedTuple):
    """One block of rows.

    Attributes:
        start: Offset of its first byte.
        end: Offset of its end.
        payload: The packed rows, uncompressed.
    """

    start: int
    end: int
    payload: bytes


class BlockReader:
    """Reads the blocks of a file once, in order. The file may grow meanwhile: only whole blocks are read.

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
        self._file = file
        self.name = name
        self._on_damage = on_damage
        # A part of the file and its offset.
        self._window = b""
        self._window_start = 0
        self._load(0, HEADER_MAX)
        self.header, self.good_end = XlogHeader.decode(self._window, name)
        self._position = self.good_end
        self.closed = False
        self.damages: list[Damage] = []

    @classmethod
    def open(cls, path: Path, on_damage: OnDamage = OnDamage.STOP) -> Self:
        """Open a file for reading. Use as a context manager, or call `close`.

        Parameters:
            path: The file.
            on_damage: The reaction to damage.

        Raises:
            OSError: The file cannot be opened.
            XlogError: The header cannot be read.
        """
        file = path.open("rb", buffering=0)
        try:
            return cls(file, str(path), on_damage)
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def blocks(self) -> Iterator[Block]:
        """Iterate over the remaining blocks without decoding their rows.

        Yields:
            The blocks with correct checksums.

        Raises:
            XlogError: There is damage that `on_damage` does not allow.
            OSError: The file cannot be read.
        """
        while (block := self._next_block()) is not None:
            yield block

    def _next_block(self) -> Block | None:
        """Return the next intact block; None at the end."""
        while True:
            start = self._position
            try:
                block = self.block_at(start)
            except XlogError as error:
                if self._on_damage is OnDamage.SKIP:
                    end = self.next_intact(start + 1)
                else:
                    self._refuse(error)
                    end = self._size()
                self.damages.append(Damage(start, end, error.reason))
                self._position = end
                continue
            if block is not None:
                self._position = self.good_end = block.end
            elif not self.closed and self._load(start, MARKER_SIZE)[1]:
                self.closed = True
            return block

    def _refuse(self, error: XlogError) -> None:
        """Raise an error unless the reader tolerates it."""
        if self._on_damage is OnDamage.STOP or not isinstance(error, TruncatedFileError):
            raise error
        # A wrong size in a head looks like a torn write, but no blocks follow a torn write.
        follows = self.next_intact(error.offset + 1)
        if follows < self._size():
            reason = f"{error.reason} (with intact blocks from offset {follows} on),"
            raise XlogError(self.name, error.offset, reason) from error

    def block_at(self, start: int) -> Block | None:
        """Read the block at an offset, independently of the reader's position.

        Parameters:
            start: Offset of the block.

        Returns:
            The block; None at the end of the file and at the end marker.

        Raises:
            XlogError: There is no intact block; TruncatedFileError if the file ends within it.
            OSError: The file cannot be read.
        """
        index, available = self._load(start, HEAD_SIZE)
        if not available:
            return None
        head = self._window[index : index + HEAD_SIZE]
        if head.startswith(END_MARKER):
            if available > MARKER_SIZE:
                raise XlogError(self.name, start, "there are bytes after the end marker")
            return None
        if available < HEAD_SIZE:
            raise TruncatedFileError(self.name, start, "the file ends within the head of a block")
        try:
            compressed, size, crc = decode_head(head)
        except ValueError as error:
            if self._is_blank(start):
                raise TruncatedFileError(self.name, start, "nothing but zeros") from None
            raise XlogError(self.name, start, str(error)) from None
        end = start + HEAD_SIZE + size
        if available < HEAD_SIZE + size:
            self._check_size(start, size, crc)
            index, _ = self._load(start, HEAD_SIZE + size)
        index += HEAD_SIZE
        payload = self._window[index : index + size]
        if checksum(payload) != crc:
            # Pages that did not reach the disk before a power failure.
            zeros = len(payload) - len(payload.rstrip(b"\0"))
            unwritten = -(-(end - zeros) // PAGE) * PAGE
            if unwritten + BLANK_MIN <= end == self._size():
                raise TruncatedFileError(self.name, start, "a block that ends in zeros")
            raise XlogError(self.name, start, "wrong checksum of a block")
        if compressed:
            try:
                payload = decompress(payload)
            except ValueError as error:
                raise XlogError(self.name, start, f"a block that {error}") from None
        return Block(start, end, payload)

    def _check_size(self, start: int, size: int, crc: int) -> None:
        """Raise an error if the file ends within a block's rows."""
        there = self._size() - start - HEAD_SIZE
        if there >= size:
            return
        crc_there = 0
        for piece in self._pieces(start + HEAD_SIZE):
            crc_there = checksum(piece, crc_there)
        if crc_there == crc:
            raise XlogError(self.name, start, f"wrong size {size} of a block of {there} bytes")
        raise TruncatedFileError(
            self.name, start, f"the file ends after {there} of {size} bytes of the rows of a block"
        )

    def next_intact(self, start: int) -> int:
        """Find the next intact block or valid end marker.

        Parameters:
            start: Offset at which the search begins.

        Returns:
            Its offset; the file's size if there is none.

        Raises:
            OSError: The file cannot be read.
        """
        while True:
            index, available = self._load(start, READ_AHEAD)
            found = [
                at
                for marker in (PLAIN_MARKER, ZSTD_MARKER, END_MARKER)
                if (at := self._window.find(marker, index)) >= 0
            ]
            if not found:
                if available < READ_AHEAD:
                    return start + available
                start += available - MARKER_SIZE + 1
                continue
            start += min(found) - index
            try:
                self.block_at(start)
            except XlogError:
                start += 1
            else:
                return start

    def _is_blank(self, start: int) -> bool:
        """Whether the file has only zeros from an offset on."""
        return not any(piece.strip(b"\0") for piece in self._pieces(start))

    def _pieces(self, start: int) -> Iterator[bytes]:
        """Yield the file from an offset on, in pieces."""
        while True:
            index, _ = self._load(start, READ_AHEAD)
            piece = self._window[index:]
            if not piece:
                return
            yield piece
            start += len(piece)

    def _size(self) -> int:
        return self._file.seek(0, SEEK_END)

    def _load(self, start: int, count: int) -> tuple[int, int]:
        """Load a part of the file into the window.

        Parameters:
            start: Offset of the part.
            count: Number of bytes wanted.

        Returns:
            Its position in the window, and the number of bytes available: fewer than `count` at the end of
            the file.
        """
        index = start - self._window_start
        available = len(self._window) - index
        if available >= count and index >= 0:
            return index, available
        kept = self._window[index:] if 0 <= index < len(self._window) else b""
        wanted = max(count, READ_AHEAD) - len(kept)
        pieces = [kept]
        self._file.seek(start + len(kept))
        while wanted > 0 and (piece := self._file.read(wanted)):
            pieces.append(piece)
            wanted -= len(piece)
        self._window = b"".join(pieces)
        self._window_start = start
        return 0, len(self._window)
