"""Assembles the parts of a snapshot into a file from which a server can start."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

import zstandard
from pyarrow import fs

from iproto_server.box.catalog.system_space_ids import SEQUENCE_DATA
from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import IN_PROGRESS, file_name
from iproto_server.storage.snapshot import SnapshotEncoder
from iproto_server.storage.xlog import FileType
from iproto_server.storage.xlog.block import COMPRESSION_LEVEL, END_MARKER, encode_block
from iproto_server.storage.xlog.writer import sync_directory
from pyspark_tarantool.sink.database import LAST_SYSTEM_SPACE, AttachedSequence, Database, Rows
from pyspark_tarantool.sink.snapshot_parts import Part, first_row
from pyspark_tarantool.source.io.filesystem import locate

_COPIED: Final = 8 * 1024**2
"""The chunk size for copying, in bytes."""


def assemble(database: Database, parts: Sequence[Part], directory: str, timestamp: float) -> str:
    """Assemble a snapshot; it gets its name when it is complete.

    Parameters:
        database: Provides all other rows.
        parts: The rows of the loaded space, in the order of the table's partitions.
        directory: The snapshot's directory.
        timestamp: The snapshot's timestamp, in seconds since 1970.

    Returns:
        The snapshot's path.

    Raises:
        OSError: If it cannot be written, or a part cannot be read; no snapshot is left.
        XlogError: If the template is damaged.
    """
    filesystem, path = locate(directory)
    target = f"{path}/{file_name(FileType.SNAPSHOT, database.vclock.signature)}"
    temporary = target + IN_PROGRESS
    try:
        _write_file(database, parts, filesystem, temporary, timestamp)
        if isinstance(filesystem, fs.LocalFileSystem):
            _sync(temporary)
            os.rename(temporary, target)
            sync_directory(path)
        else:
            filesystem.move(temporary, target)
    except BaseException:
        _remove(filesystem, temporary)
        raise
    return target


def _write_file(
    database: Database, parts: Sequence[Part], filesystem: fs.FileSystem, path: str, timestamp: float
) -> None:
    with filesystem.open_output_stream(path) as file:
        file.write(database.header().encode())
        compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL)
        encoder = SnapshotEncoder(timestamp)
        is_copied = False
        for rows in _with_sequence(database, parts):
            if not is_copied and rows.space_id > max(LAST_SYSTEM_SPACE, database.space.id):
                _write(file, compressor, encoder.take())
                _copy(parts, file)
                is_copied = True
                encoder.rows = first_row(parts[-1].number + 1) if parts else encoder.rows
            for block in encoder.add(rows.space_id, rows.tuples, rows.group_id):
                _write(file, compressor, block)
        _write(file, compressor, encoder.take())
        if not is_copied:
            _copy(parts, file)
        file.write(END_MARKER)


def _write(file: Any, compressor: zstandard.ZstdCompressor, rows: list[bytes]) -> None:
    if rows:
        file.write(encode_block(b"".join(rows), compressor))


def _copy(parts: Sequence[Part], file: Any) -> None:
    for part in parts:
        filesystem, path = locate(part.uri)
        with filesystem.open_input_file(path) as source:
            source.seek(part.begin)
            while piece := source.read(_COPIED):
                file.write(piece)


def _remove(filesystem: fs.FileSystem, path: str) -> None:
    (info,) = filesystem.get_file_info([path])
    if info.is_file:
        filesystem.delete_file(path)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _with_sequence(database: Database, parts: Sequence[Part]) -> Iterator[Rows]:
    """The rows of a database, with the space's sequence advanced past the loaded rows."""
    sequence = database.sequence
    furthest = [part.furthest for part in parts if part.furthest is not None]
    if sequence is None or not furthest:
        yield from database.rows()
        return
    value = _furthest(sequence, furthest)
    is_written = False
    for rows in database.rows():
        if rows.space_id == SEQUENCE_DATA:
            others = [raw for raw in rows.tuples if codec.unpack(raw)[0] != sequence.id]
            rows = rows._replace(tuples=others)
        if rows.space_id >= SEQUENCE_DATA and not is_written:
            yield Rows(SEQUENCE_DATA, 0, [codec.pack([sequence.id, value])])
            is_written = True
        yield rows


def _furthest(sequence: AttachedSequence, values: Sequence[int]) -> int:
    known = [*values] if sequence.value is None else [*values, sequence.value]
    return max(known) if sequence.step > 0 else min(known)
