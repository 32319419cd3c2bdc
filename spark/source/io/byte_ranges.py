"""Splits files into byte ranges, so that several tasks can read one file, each block once.

A block belongs to the range in which it begins. A task finds the first block of its range by searching for
the marker of a block with a correct checksum. The task of the previous range makes the same search where its
own blocks end, and both must find the same block: this detects damage at the boundary, and tuples that
contain the bytes of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Final, NamedTuple, TypeVar

from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.xlog import Block, FileType, XlogReader
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.io.data_files import DataFile
from pyspark_tarantool.source.io.filesystem import open_file

_SMALLEST: Final = 64 * 1024
"""The minimum size of a range: each search reads about as much."""

_THREADS: Final = 4
_PART_BYTES: Final = 8 * 1024**2
"""The approximate size of the parts that `scan_parts` uses."""

_Found = TypeVar("_Found")

_TOGETHER: Final = 1024**2
"""The minimum size in bytes of a group of blocks."""


class FileRange(NamedTuple):
    """A part of a file.

    Attributes:
        uri: The file.
        start: Its start offset; the first range of a file starts after the header.
        end: The offset after it. Blocks that begin before it are read to their end.
        begin: The offset after the file's header.
        size: The file's size when it was inspected.
        is_cut: Whether the file is a snapshot without the end marker.
        may_grow: Whether the file may end within a block: a log that a server is writing, or whose server has
            crashed.
    """

    uri: str
    start: int
    end: int
    begin: int
    size: int
    is_cut: bool
    may_grow: bool


def whole_file(file: DataFile) -> FileRange:
    """A file as one range.

    Parameters:
        file: The file.
    """
    is_snapshot = file.header.file_type is FileType.SNAPSHOT
    is_cut = is_snapshot and not file.closed
    may_grow = not is_snapshot and not file.closed
    return FileRange(file.uri, file.begin, file.size, file.begin, file.size, is_cut, may_grow)


def split_file(file: DataFile, partition_bytes: int) -> list[FileRange]:
    """Split a file.

    Parameters:
        file: The file.
        partition_bytes: The approximate size of a range; 0 for one range.

    Returns:
        The ranges, in order; at least one.
    """
    return split_range(whole_file(file), partition_bytes)


def split_range(whole: FileRange, partition_bytes: int) -> list[FileRange]:
    """Split a range of a file; see `split_file`.

    Parameters:
        whole: The range.
        partition_bytes: The approximate size of a part; 0 for one part.
    """
    size = whole.end - whole.start
    count = 1 if partition_bytes == 0 else max(1, round(size / max(partition_bytes, _SMALLEST)))
    borders = [whole.start + size * number // count for number in range(count)] + [whole.end]
    return [whole._replace(start=start, end=end) for start, end in pairwise(borders)]


def scan_parts(file: DataFile, look: Callable[[FileRange], _Found]) -> Iterator[_Found]:
    """Process the parts of a file; those of a large file concurrently.

    Parameters:
        file: The file.
        look: Processes a part, in a separate thread.

    Yields:
        The result of each part, in order.

    Raises:
        Exception: Whatever `look` raises.
    """
    parts = split_file(file, _PART_BYTES)
    if len(parts) == 1:
        yield look(parts[0])
        return
    # Decompression, which is most of the work, releases the GIL.
    with ThreadPoolExecutor(_THREADS) as threads:
        yield from threads.map(look, parts)


def read_blocks(part: FileRange, damage: DamageHandler) -> Iterator[Block]:
    """Read the blocks that begin in a range.

    Parameters:
        part: The range.
        damage: Handles damage.

    Yields:
        The blocks, in order.

    Raises:
        XlogError: At damage that is not to be skipped; or if the starts of blocks are ambiguous.
        OSError: If the file cannot be read.
    """
    with XlogReader(open_file(part.uri), part.uri) as file:
        position = part.start if part.start == part.begin else file.next_intact(part.start)
        while position < part.end:
            try:
                block = file.block_at(position)
            except XlogError as error:
                end = file.next_intact(position + 1)
                if _is_unfinished(part, error, end):
                    return
                damage.add(error, end)
                position = end
                continue
            if block is None:
                break
            yield block
            position = block.end
        if part.end < part.size:
            _hand_over(file, part, position, damage)
        elif part.is_cut:
            damage.add(
                TruncatedFileError(part.uri, position, "the snapshot ends without end marker"), position
            )


def group_blocks(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Group blocks, so that groups are large enough for numpy and Arrow but fit into memory.

    Parameters:
        blocks: The blocks.
    """
    group: list[Block] = []
    size = 0
    for block in blocks:
        group.append(block)
        size += len(block.payload)
        if size >= _TOGETHER:
            yield group
            group, size = [], 0
    if group:
        yield group


def _hand_over(file: XlogReader, part: FileRange, position: int, damage: DamageHandler) -> None:
    """Check that the task of the next range begins where this one ends."""
    found = file.next_intact(part.end)
    if found < position:
        reason = "a block contains the bytes of another one (partition_bytes=0 reads such files)"
        raise XlogError(part.uri, found, reason)
    if found > position:
        try:
            file.block_at(position)
        except XlogError as error:
            if not _is_unfinished(part, error, found):
                damage.add(error, found)


def _is_unfinished(part: FileRange, error: XlogError, end: int) -> bool:
    """Whether the unreadable bytes up to an offset are an incompletely written block."""
    return part.may_grow and isinstance(error, TruncatedFileError) and end >= part.size
