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

from iproto_server.codec import msgpack as codec
from iproto_server.native import twin

PLAIN_MARKER: Final = b"\xd5\xba\x0b\xab"
ZSTD_MARKER: Final = b"\xd5\xba\x0b\xba"
END_MARKER: Final = b"\xd5\x10\xad\xed"
"""Stands in place of a block at the end of a file that was properly closed."""

MARKER_SIZE: Final = 4
HEAD_SIZE: Final = 19

BLOCK_SIZE: Final = 128 * 1024
"""A block that has reached so many bytes is written, with all of the transaction that made it so long."""

COMPRESS_SIZE: Final = 2 * 1024
"""Blocks of at least so many bytes, the head included, are compressed."""

COMPRESSION_LEVEL: Final = 1
"""Zstandard level. Level 3 takes up to twice the time, and does not shrink rows of queues."""

PAYLOAD_MAX: Final = 2**31 - 1

_OF_THREAD: Final = local()

_WIDTHS: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_PADDING: Final = tuple(
    bytes((0xA0 + size - 1,)) + bytes(size - 1) if size else b"" for size in range(HEAD_SIZE + 1)
)


def checksum(data: bytes, start: int = 0) -> int:
    """The CRC-32C of `data`, which Tarantool computes without inverting it before and after.

    Parameters:
        data: what to sum up.
        start: the checksum of what is before `data`.
    """
    crc: int = google_crc32c.extend(start ^ 0xFFFFFFFF, data)
    return crc ^ 0xFFFFFFFF


def pack_unsigned(value: int) -> bytes:
    """Pack a number in the shortest form; this is `codec.pack` for the hot path."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x100:
        return b"\xcc" + value.to_bytes(1, "big")
    if value < 0x10000:
        return b"\xcd" + value.to_bytes(2, "big")
    if value < 0x100000000:
        return b"\xce" + value.to_bytes(4, "big")
    return b"\xcf" + value.to_bytes(8, "big")


def decode_head(head: bytes) -> tuple[bool, int, int]:
    """Read a block's head.

    Parameters:
        head: `HEAD_SIZE` bytes.

    Returns:
        Whether the rows are compressed, how many bytes they have, and their checksum.

    Raises:
        ValueError: if it is no head of a block.
    """
    marker = head[:MARKER_SIZE]
    if marker != PLAIN_MARKER and marker != ZSTD_MARKER:
        raise ValueError(f"no block: unknown marker {marker.hex()}")
    # Most blocks are small, and most checksums large.
    if head[5:7] == b"\x00\xce" and head[MARKER_SIZE] < 0x80:
        size, crc, position = head[MARKER_SIZE], int.from_bytes(head[7:11], "big"), 11
    else:
        size, position = _unsigned(head, MARKER_SIZE)
        _, position = _unsigned(head, position)
        crc, position = _unsigned(head, position)
    if head[position:] != _PADDING[HEAD_SIZE - position] and not codec.is_valid(head[position:]):
        raise ValueError("malformed head of a block")
    if size > PAYLOAD_MAX:
        raise ValueError(f"a block of {size} bytes is too large")
    return marker == ZSTD_MARKER, size, crc


def encode_block(rows: bytes, compressor: zstandard.ZstdCompressor | None) -> bytes:
    """Make a block of rows.

    Parameters:
        rows: the rows' bytes.
        compressor: what compresses them if there are enough; None to leave them as they are.

    Returns:
        The block.
    """
    if compressor is not None and len(rows) >= COMPRESS_SIZE - HEAD_SIZE:
        rows = compressor.compress(rows)
        return with_head(ZSTD_MARKER, rows, checksum(rows))
    return with_head(PLAIN_MARKER, rows, checksum(rows))


@twin
def with_head(marker: bytes, payload: bytes, crc: int) -> bytes:
    """Put a block's head in front of its payload.

    Parameters:
        marker: what kind of block it is.
        payload: what follows the head.
        crc: the checksum of the payload.

    Returns:
        The block.
    """
    head = marker + pack_unsigned(len(payload)) + b"\x00" + pack_unsigned(crc)
    return b"".join((head, _PADDING[HEAD_SIZE - len(head)], payload))


def decompress(payload: bytes) -> bytes:
    """Undo the compression of a block's rows.

    Parameters:
        payload: what follows the head.

    Returns:
        The rows' bytes.

    Raises:
        ValueError: if it is not exactly one zstd frame.
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
    """The thread's own: to make one takes half as long as to decompress a block."""
    try:
        own: zstandard.ZstdDecompressor = _OF_THREAD.decompressor
    except AttributeError:
        own = _OF_THREAD.decompressor = zstandard.ZstdDecompressor()
    return own


def _unsigned(data: bytes, position: int) -> tuple[int, int]:
    """The number at a position of a head, and the position behind it."""
    if position < HEAD_SIZE:
        first = data[position]
        if first < 0x80:
            return first, position + 1
        end = position + 1 + _WIDTHS.get(first, HEAD_SIZE)
        if end <= HEAD_SIZE:
            return int.from_bytes(data[position + 1 : end], "big"), end
    raise ValueError("malformed head of a block")
