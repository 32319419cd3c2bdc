"""Blocks: the parts of a file after its header. A block holds the rows of one or more transactions.

A block has a head of 19 bytes and the rows, which are zstd-compressed if they are long. The head is
MessagePack: a marker, the number of bytes after the head, the checksum of the previous block (always 0), the
checksum of those bytes, and a string as padding. The rows of a transaction are never in two blocks.
"""

from __future__ import annotations

from threading import local
from typing import Final

import google_crc32c
import zstandard

from iproto_server.native._native import (
    BLOCK_SIZE,
    HEAD_SIZE,
    MARKER_SIZE,
    PLAIN_MARKER,
    ZSTD_MARKER,
    decode_head,
    with_head,
)

__all__ = [
    "BLOCK_SIZE",
    "COMPRESSION_LEVEL",
    "COMPRESS_SIZE",
    "END_MARKER",
    "HEAD_SIZE",
    "MARKER_SIZE",
    "PLAIN_MARKER",
    "ZSTD_MARKER",
    "checksum",
    "decode_head",
    "decompress",
    "encode_block",
    "with_head",
]

END_MARKER: Final = b"\xd5\x10\xad\xed"
"""The end of a file that was properly closed, in place of a block."""

COMPRESS_SIZE: Final = 2 * 1024
"""Blocks of at least so many bytes, the head included, are compressed."""

COMPRESSION_LEVEL: Final = 1
"""Zstandard level. Level 3 takes up to twice the time, and does not shrink rows of queues."""

_OF_THREAD: Final = local()


def checksum(data: bytes, start: int = 0) -> int:
    """Return the CRC-32C of bytes as Tarantool computes it: without inverting it before and after.

    Parameters:
        data: The bytes.
        start: The checksum of the bytes before `data`.
    """
    crc: int = google_crc32c.extend(start ^ 0xFFFFFFFF, data)
    return crc ^ 0xFFFFFFFF


def encode_block(rows: bytes, compressor: zstandard.ZstdCompressor | None) -> bytes:
    """Make a block of rows.

    Parameters:
        rows: The packed rows.
        compressor: Compresses them from `COMPRESS_SIZE` on; None to leave them as they are.

    Returns:
        The block.
    """
    if compressor is not None and len(rows) >= COMPRESS_SIZE - HEAD_SIZE:
        rows = compressor.compress(rows)
        return with_head(ZSTD_MARKER, rows, checksum(rows))
    return with_head(PLAIN_MARKER, rows, checksum(rows))


def decompress(payload: bytes) -> bytes:
    """Undo the compression of a block's rows.

    Parameters:
        payload: The bytes after the head.

    Returns:
        The packed rows.

    Raises:
        ValueError: These are not exactly one zstd frame.
    """
    stream = _decompressor().decompressobj()
    try:
        rows = stream.decompress(payload)
    except zstandard.ZstdError as error:
        raise ValueError(f"cannot be decompressed: {error}") from None
    if not stream.eof or stream.unused_data:
        raise ValueError("cannot be decompressed: not exactly one frame")
    return rows


def _decompressor() -> zstandard.ZstdDecompressor:
    """Return the thread's own decompressor: making one takes half as long as decompressing a block."""
    try:
        own: zstandard.ZstdDecompressor = _OF_THREAD.decompressor
    except AttributeError:
        own = _OF_THREAD.decompressor = zstandard.ZstdDecompressor()
    return own
