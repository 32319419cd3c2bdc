"""Snapshots: every tuple of the database as it was at one moment.

A snapshot is a file of INSERT rows, numbered from 0, all with one timestamp, space after space in the order
of the spaces' ids, so that system spaces come before what they describe. It has its name only when it is
complete: until then the name ends in `.inprogress`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import pack
from types import TracebackType
from typing import Self

from iproto_server.storage.directory import IN_PROGRESS, file_name
from iproto_server.storage.errors import CutShortError
from iproto_server.storage.xlog import RowType, XlogHeader, XlogReader, XlogWriter, decode_tuples
from iproto_server.storage.xlog.block import BLOCK_SIZE, HEAD_SIZE, pack_unsigned
from iproto_server.storage.xlog.writer import sync_directory


class SnapshotWriter:
    """Writes a snapshot. As a context manager it commits at the end of the block, or aborts at an exception.

    Args:
        directory: Where the snapshot goes.
        header: Its header; the name follows from the clock.
        timestamp: The moment it shows, in seconds since 1970.
        compress: Whether blocks are compressed.

    Attributes:
        path: The file, once it is complete.
        rows: How many tuples were written so far.

    Raises:
        OSError: If the file cannot be made.
    """

    def __init__(
        self, directory: Path, header: XlogHeader, timestamp: float, *, compress: bool = True
    ) -> None:
        self.path = directory / file_name(header.file_type, header.vclock.signature)
        self.rows = 0
        self._temporary = self.path.with_name(self.path.name + IN_PROGRESS)
        self._stamp = b"\x04\xcb" + pack(">d", timestamp)
        self._parts: list[bytes] = []
        self._size = HEAD_SIZE
        self._file = self._temporary.open("wb", buffering=0)
        try:
            self._writer = XlogWriter.create(self._file, header, compress=compress)
        except BaseException:
            self.abort()
            raise

    @property
    def size(self) -> int:
        """How many bytes the file has so far."""
        return self._writer.offset

    def write(self, space_id: int, tuples: Iterable[bytes], *, group_id: int = 0) -> None:
        """Add tuples of a space.

        Args:
            space_id: The space; spaces must come in the order of their ids.
            tuples: Its tuples, in the order of the primary index.
            group_id: 1 if the space is not replicated (`is_local`).

        Raises:
            OSError: If the file cannot be written; only `abort` makes sense after that.
        """
        number, size = self.rows, self._size
        parts = self._parts
        group = b"\x07" + pack_unsigned(group_id) if group_id else b""
        pairs = 4 if group_id else 3
        before_number = bytes((0x80 + pairs, 0, RowType.INSERT)) + group + b"\x03"
        before_tuple = self._stamp + b"\x82\x10\xce" + space_id.to_bytes(4, "big") + b"\x21"
        for raw in tuples:
            if number:
                row = b"".join((before_number, pack_unsigned(number), before_tuple, raw))
            else:
                # What is 0 is left out of headers.
                row = bytes((0x80 + pairs - 1,)) + before_number[1:-1] + before_tuple + raw
            number += 1
            parts.append(row)
            size += len(row)
            if size >= BLOCK_SIZE:
                self._writer.write((b"".join(parts),))
                parts.clear()
                size = HEAD_SIZE
        self.rows, self._size = number, size

    def commit(self) -> Path:
        """Complete the file, make it safe on the disk and give it its name.

        Returns:
            Its path.

        Raises:
            OSError: If that fails; there is no snapshot then.
        """
        try:
            if self._parts:
                self._writer.write((b"".join(self._parts),))
            self._writer.end()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.rename(self.path)
        except BaseException:
            self.abort()
            raise
        sync_directory(self.path.parent)
        return self.path

    def abort(self) -> None:
        """Remove what was written."""
        self._file.close()
        self._temporary.unlink(missing_ok=True)

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

    Rows that are about the replica set, not about tuples, are passed over.

    Args:
        reader: Of the snapshot, none of which was read yet.

    Yields:
        Space ids and tuples, as many at a time as a block has.

    Raises:
        XlogError: At damage that the reader is not to skip, and CutShortError after the last tuple if the end
            marker is missing.
        OSError: If the file cannot be read.
    """
    for block in reader.blocks():
        tuples = decode_tuples(block.payload)
        if tuples is None:
            rows = reader.rows(block)
            tuples = [
                (row.space_id, row.tuple_raw)
                for row in rows
                if row.space_id is not None and row.tuple_raw is not None
            ]
        yield tuples
    if not reader.closed:
        raise CutShortError(reader.name, reader.good_end, "the snapshot ends without end marker")
