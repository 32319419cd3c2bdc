"""Snapshots: all tuples of the database as of one moment.

A snapshot is a file of INSERT rows, numbered from 0, all with one timestamp, in the order of the spaces' ids,
so that system spaces precede the spaces they describe. An incomplete file has the suffix `.inprogress`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from pathlib import Path
from struct import pack
from types import TracebackType
from typing import Final, Protocol, Self

from iproto_server.codec import msgpack as codec
from iproto_server.descriptors import spare
from iproto_server.storage.directory import IN_PROGRESS, file_name
from iproto_server.storage.errors import TruncatedFileError
from iproto_server.storage.xlog import Block, RowType, XlogHeader, XlogReader, XlogWriter
from iproto_server.storage.xlog.block import BLOCK_SIZE, HEAD_SIZE
from iproto_server.storage.xlog.writer import sync_directory

SYNC_INTERVAL: Final = 8 * 1024**2
"""Bytes between two syncs. Short syncs do not delay those of the log."""

_RUN: Final = 64
"""Rows encoded at a time, if they fit into one block."""

_JOINED_MAX: Final = 8 * BLOCK_SIZE

_SLICE_ROWS: Final = 1024
_SLICE_SIZE: Final = 256 * 1024

_BYTES: Final = tuple(bytes((number,)) for number in range(256))


class RowSource(Protocol):
    """Rows of one space that are read step by step; see `iproto_server.box.memtx.read_view.Reader`."""

    space_id: int
    group_id: int

    def take(self, count: int, size: int) -> list[bytes]:
        """Return the next rows."""

    def take_numbered(
        self, head: bytes, number: int, tail: bytes, count: int, size: int
    ) -> tuple[bytes, int] | None:
        """Return the next rows in one piece and their number, if that can be done."""


class SnapshotEncoder:
    """Encodes tuples as the rows of a snapshot.

    Parameters:
        timestamp: Time of the snapshot, in seconds since 1970.

    Attributes:
        rows: Number of tuples added so far.
    """

    __slots__ = ("_pieces", "_size", "_stamp", "rows")

    def __init__(self, timestamp: float) -> None:
        self.rows = 0
        self._stamp = b"\x04\xcb" + pack(">d", timestamp)
        self._pieces: list[bytes] = []
        self._size = HEAD_SIZE

    def add(self, space_id: int, tuples: list[bytes], group_id: int = 0) -> list[list[bytes]]:
        """Add tuples of a space.

        Parameters:
            space_id: Id of the space.
            tuples: Its packed tuples.
            group_id: 1 if the space is not replicated.

        Returns:
            The rows of each full block. Those of a very large block are in pieces, because joining them takes
            time.
        """
        before_number, before_tuple = self._around_number(space_id, group_id)
        overhead = len(before_number) + len(before_tuple) + 9
        full: list[list[bytes]] = []
        position = 0
        if tuples and not self.rows:
            # Headers omit zeros.
            head = bytes((before_number[0] - 1,)) + before_number[1:-1]
            self._extend((head, before_tuple, tuples[0]), 1, len(tuples[0]) + overhead, full)
            position = 1
        while position < len(tuples):
            # Rows whose numbers differ only in the last byte share the bytes before it.
            first = self.rows & 0xFF
            alike = 256 - first if self.rows > 0xFF else 128 - first % 128
            run = tuples[position : position + min(alike, _RUN)]
            size = sum(map(len, run)) + overhead * len(run)
            if size > BLOCK_SIZE:
                run = run[:1]
                size = len(run[0]) + overhead
            head = before_number + codec.pack(self.rows)[:-1]
            numbers = _BYTES[first : first + len(run)]
            pieces = chain.from_iterable(zip(repeat(head), numbers, repeat(before_tuple), run, strict=False))
            self._extend(pieces, len(run), size, full)
            position += len(run)
        return full

    def read(self, source: RowSource) -> list[list[bytes]]:
        """Add the next rows of a space, about as many as fill a block.

        Parameters:
            source: Where they come from.

        Returns:
            As `add`.
        """
        found = None
        if self.rows:  # the header of the first row is another one
            head, tail = self._around_number(source.space_id, source.group_id)
            missing = max(1, BLOCK_SIZE - self._size)
            found = source.take_numbered(head, self.rows, tail, _SLICE_ROWS, missing)
        if found is None:
            return self.add(source.space_id, source.take(_SLICE_ROWS, _SLICE_SIZE), source.group_id)
        full: list[list[bytes]] = []
        self._extend((found[0],), found[1], len(found[0]), full)
        return full

    def _around_number(self, space_id: int, group_id: int) -> tuple[bytes, bytes]:
        """Return the bytes in front of a row's number, and those between the number and the tuple."""
        group = b"\x07" + codec.pack(group_id) if group_id else b""
        before_number = bytes((0x84 if group_id else 0x83, 0, RowType.INSERT)) + group + b"\x03"
        return before_number, self._stamp + b"\x82\x10\xce" + space_id.to_bytes(4, "big") + b"\x21"

    def _extend(self, pieces: Iterable[bytes], rows: int, size: int, full: list[list[bytes]]) -> None:
        self._pieces.extend(pieces)
        self.rows += rows
        self._size += size
        if self._size >= BLOCK_SIZE:
            full.append(self.take())

    def take(self) -> list[bytes]:
        """Return the rows of the last block, full or not, as `add` does; empty if there are none."""
        pieces, self._pieces = self._pieces, []
        size, self._size = self._size, HEAD_SIZE
        return pieces if size > _JOINED_MAX or len(pieces) <= 1 else [b"".join(pieces)]


class SnapshotWriter:
    """Writes a snapshot. As a context manager it commits at the end of the block, and aborts on an exception.

    Parameters:
        directory: The directory of the snapshot.
        header: Its header, whose clock determines the name.
        timestamp: Time of the snapshot, in seconds since 1970.
        compress: Whether blocks are compressed.

    Attributes:
        path: Path of the complete file.
        temporary: Path of the file until it is complete.
        encoder: Encodes its rows.

    Raises:
        OSError: The file cannot be created.
    """

    def __init__(
        self, directory: Path, header: XlogHeader, timestamp: float, *, compress: bool = True
    ) -> None:
        self.path = directory / file_name(header.file_type, header.vclock.signature)
        self.temporary = self.path.with_name(self.path.name + IN_PROGRESS)
        self.encoder = SnapshotEncoder(timestamp)
        self._synced = 0
        self._file = spare.open(lambda: self.temporary.open("wb", buffering=0))
        try:
            self._writer = XlogWriter.create(self._file, header, compress=compress)
        except BaseException:
            self.abort()
            raise

    @property
    def rows(self) -> int:
        """Number of tuples written so far."""
        return self.encoder.rows

    @property
    def size(self) -> int:
        """Size of the file so far, in bytes."""
        return self._writer.offset

    def write(self, space_id: int, tuples: Iterable[bytes], *, group_id: int = 0) -> None:
        """Add tuples of a space.

        Parameters:
            space_id: Id of the space; spaces must come in the order of their ids.
            tuples: Its packed tuples, in the order of the primary index.
            group_id: 1 if the space is not replicated (`is_local`).

        Raises:
            OSError: The file cannot be written; only `abort` may follow.
        """
        iterator = iter(tuples)
        while some := list(islice(iterator, _RUN)):
            if full := self.encoder.add(space_id, some, group_id):
                self.write_blocks(full)

    def write_blocks(self, blocks: Sequence[list[bytes]]) -> None:
        """Write blocks of the encoder. Another thread may do so while the encoder works on the next ones.

        Parameters:
            blocks: The rows of each block, in pieces.

        Raises:
            OSError: The file cannot be written; only `abort` may follow.
        """
        self._writer.write([b"".join(rows) for rows in blocks])
        if self.size - self._synced >= SYNC_INTERVAL:
            os.fdatasync(self._file.fileno())
            # Drop the pages from the cache: they are not read again soon.
            written = self.size - self._synced
            os.posix_fadvise(self._file.fileno(), self._synced, written, os.POSIX_FADV_DONTNEED)
            self._synced = self.size

    def finish(self) -> None:
        """Write the last block and the end marker, and sync the file, which keeps its temporary name.

        Raises:
            OSError: A write failed; only `abort` may follow.
        """
        last = self.encoder.take()
        if last:
            self.write_blocks([last])
        self._writer.end()
        os.fsync(self._file.fileno())
        self._file.close()

    def publish(self) -> Path:
        """Give the finished file its name.

        Returns:
            Its path.

        Raises:
            OSError: The file cannot be renamed, or the directory not be synced.
        """
        self.temporary.rename(self.path)
        sync_directory(self.path.parent)
        return self.path

    def commit(self) -> Path:
        """Complete and sync the file, and give it its name.

        Returns:
            Its path.

        Raises:
            OSError: A step failed; there is no snapshot then.
        """
        try:
            self.finish()
            return self.publish()
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Remove the incomplete file."""
        self._file.close()
        self.temporary.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.abort()


def read_snapshot(reader: XlogReader) -> Iterator[list[tuple[int, bytes]]]:
    """Read the tuples of a snapshot.

    Rows about the replica set are skipped.

    Parameters:
        reader: A reader at the beginning of the snapshot.

    Yields:
        Space ids and packed tuples, block by block.

    Raises:
        XlogError: At damage that the reader does not skip; TruncatedFileError after the last tuple if the
            end marker is missing.
        OSError: The file cannot be read.
    """
    for block in snapshot_blocks(reader):
        rows = reader.packed_rows(block)
        yield [] if rows is None else rows.tuples()


def snapshot_blocks(reader: XlogReader) -> Iterator[Block]:
    """Read the blocks of a snapshot; parameters and errors as of `read_snapshot`."""
    yield from reader.blocks()
    if not reader.closed:
        raise TruncatedFileError(reader.name, reader.good_end, "the snapshot ends without end marker")
