"""Cutting packed values out of bytes, without unpacking them.

A row is its bytes, so most of what is done with one is finding where its fields start and end. The C library
does that by skipping, which creates nothing and reserves nothing, whatever a message claims to hold.

In one thing the library is wrong: it skips the head of an extension of 2**32 - 1 bytes, which is never there,
as if it were a whole value. Where bytes come from others, `is_valid` and `skip` look closer at what might be
one.

Unpackers are taken from a pool and put back when they finished well: one that failed holds half a message,
and one that is in use by another thread, or further up in this one, must not be used.
"""

from enum import Enum
from typing import Final

import msgpack

from iproto_server.errors import BoxError, ErrorCode

# An unpacker keeps the largest buffer it ever needed, so those that read more than this are not kept.
_KEEP_UNPACKER: Final = 1 << 20

MALFORMED: Final = (ValueError, TypeError, msgpack.UnpackException)
"""Exceptions of the C library for bytes that it cannot read."""

ENDLESS_HEAD: Final = b"\xc9\xff\xff\xff\xff"
"""What the library skips without a word: it counts the type among the bytes, and 2**32 of them as none."""

# As deep as the library goes.
_DEEPEST: Final = 1024


class Kind(Enum):
    """The kind of a packed value, which its first byte tells."""

    UINT = "unsigned integer"
    INT = "negative integer"
    FLOAT = "float"
    DOUBLE = "double"
    STR = "string"
    BIN = "binary"
    ARRAY = "array"
    MAP = "map"
    NIL = "nil"
    BOOL = "boolean"
    EXT = "extension"


_KINDS: Final = (
    *[Kind.UINT] * 0x80,
    *[Kind.MAP] * 0x10,
    *[Kind.ARRAY] * 0x10,
    *[Kind.STR] * 0x20,
    *(Kind.NIL, Kind.EXT, Kind.BOOL, Kind.BOOL),  # 0xc1 means nothing, like an extension nobody knows.
    *(Kind.BIN, Kind.BIN, Kind.BIN, Kind.EXT, Kind.EXT, Kind.EXT, Kind.FLOAT, Kind.DOUBLE),
    *[Kind.UINT] * 4,
    *[Kind.INT] * 4,
    *[Kind.EXT] * 5,
    *[Kind.STR] * 3,
    *(Kind.ARRAY, Kind.ARRAY, Kind.MAP, Kind.MAP),
    *[Kind.INT] * 0x20,
)


def kind(raw: bytes, start: int = 0) -> Kind:
    """Tell what the packed value at ``start`` is; there must be one."""
    return _KINDS[raw[start]]


def is_valid(raw: bytes) -> bool:
    """Tell whether ``raw`` is exactly one well-formed value, without unpacking it.

    Args:
        raw: anything.

    Returns:
        True if there is one value, all of it and nothing after it.
    """
    if 0xC9 in raw and ENDLESS_HEAD in raw:
        return _end_of_value(raw, 0) == len(raw)
    unpacker = _take_unpacker()
    base = unpacker.tell()
    unpacker.feed(raw)
    try:
        unpacker.skip()
    except MALFORMED:
        return False
    if unpacker.tell() - base != len(raw):
        return False
    _give_back(unpacker, raw)
    return True


def skip(raw: bytes, start: int) -> int:
    """Find where a value ends without unpacking it.

    Args:
        raw: bytes that hold a value, and maybe others around it.
        start: where the value starts.

    Returns:
        The position just behind the value.

    Raises:
        BoxError: INVALID_MSGPACK when no well-formed value starts there.
    """
    if 0xC9 in raw and ENDLESS_HEAD in raw:
        after = _end_of_value(raw, start)
        if after is None:
            raise BoxError(ErrorCode.INVALID_MSGPACK, "malformed value")
        return after
    unpacker = _take_unpacker()
    base = unpacker.tell()
    unpacker.feed(raw[start:])
    try:
        unpacker.skip()
    except MALFORMED:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "malformed value") from None
    end: int = unpacker.tell() - base + start
    # What is left in it would be read first the next time, so only an empty one goes back.
    if end == len(raw):
        _give_back(unpacker, raw)
    return end


# How many bytes follow the first one: those of the value, or those that tell how many more there are.
_FIXED: Final = {
    **{0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8},
    **{0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17},
}
_WIDTHS: Final = {
    **{0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4},
    **{0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4},
}


def _end_of_value(raw: bytes, position: int) -> int | None:
    """Find where the value at a position ends, slowly; None if it is not well-formed, or nested too deep."""
    left = [1]  # values to come, on each level
    while left:
        if not left[-1]:
            left.pop()
            continue
        left[-1] -= 1
        if position >= len(raw):
            return None
        first = raw[position]
        position += 1
        what = _KINDS[first]
        count = 0
        if first in _WIDTHS:
            start, position = position, position + _WIDTHS[first]
            count = int.from_bytes(raw[start:position], "big")
        elif first < 0xC0:
            count = first & (0x1F if what is Kind.STR else 0x0F)
        elif first < 0xE0:
            if first not in _FIXED:
                return None
            position += _FIXED[first]
        if what is Kind.ARRAY or what is Kind.MAP:
            left.append(2 * count if what is Kind.MAP else count)
        elif what is not Kind.UINT:
            position += count + (what is Kind.EXT and first in _WIDTHS)
        if position > len(raw) or len(left) > _DEEPEST + 1:
            return None
    return position


def split_array(raw: bytes) -> list[bytes]:
    """Cut an array into its items without unpacking them.

    Args:
        raw: one MessagePack array.

    Returns:
        The items' bytes, in order.

    Raises:
        BoxError: INVALID_MSGPACK when ``raw`` is not exactly one well-formed array.
    """
    unpacker = _take_unpacker()
    base = unpacker.tell()
    unpacker.feed(raw)
    items = []
    try:
        count = unpacker.read_array_header()
        start = unpacker.tell() - base
        for _ in range(count):
            unpacker.skip()
            end = unpacker.tell() - base
            items.append(raw[start:end])
            start = end
    except MALFORMED:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "malformed array") from None
    if start != len(raw):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "bytes after an array")
    _give_back(unpacker, raw)
    return items


def array_count(raw: bytes) -> int:
    """Tell how many items an array claims to have.

    Args:
        raw: bytes that begin with a MessagePack array.
    """
    first = raw[0]
    if first < 0xA0:
        return first & 0x0F
    return int.from_bytes(raw[1 : 1 + _WIDTHS[first]], "big")


def first_items(raw: bytes, count: int) -> list[bytes]:
    """Cut the first items out of an array, and leave the others.

    Args:
        raw: one well-formed MessagePack array.
        count: how many; fewer are returned where the array has fewer.
    """
    unpacker = _new_unpacker()
    unpacker.feed(raw)
    items = []
    left = min(count, unpacker.read_array_header())
    start = unpacker.tell()
    for _ in range(left):
        unpacker.skip()
        end = unpacker.tell()
        items.append(raw[start:end])
        start = end
    return items


def map_count(raw: bytes) -> int:
    """Tell how many pairs a map claims to have.

    Args:
        raw: bytes that begin with a MessagePack map.
    """
    first = raw[0]
    if first < 0x90:
        return first & 0x0F
    return int.from_bytes(raw[1 : 1 + _WIDTHS[first]], "big")


def split_map(raw: bytes) -> list[tuple[bytes, bytes]]:
    """Cut a map into its keys and values without unpacking them.

    Args:
        raw: one MessagePack map.

    Returns:
        Pairs of bytes, key and value, in the map's order; a repeated key is repeated here.

    Raises:
        BoxError: INVALID_MSGPACK when ``raw`` is not exactly one well-formed map.
    """
    unpacker = _take_unpacker()
    base = unpacker.tell()
    unpacker.feed(raw)
    pairs = []
    try:
        count = unpacker.read_map_header()
        start = unpacker.tell() - base
        for _ in range(count):
            unpacker.skip()
            middle = unpacker.tell() - base
            unpacker.skip()
            end = unpacker.tell() - base
            pairs.append((raw[start:middle], raw[middle:end]))
            start = end
    except MALFORMED:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "malformed map") from None
    if start != len(raw):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "bytes after a map")
    _give_back(unpacker, raw)
    return pairs


def _new_unpacker() -> msgpack.Unpacker:
    return msgpack.Unpacker(None, max_buffer_size=0, read_size=16384)


def _take_unpacker() -> msgpack.Unpacker:
    try:
        return _unpackers.pop()
    except IndexError:
        return _new_unpacker()


def _give_back(unpacker: msgpack.Unpacker, raw: bytes) -> None:
    if len(raw) <= _KEEP_UNPACKER:
        _unpackers.append(unpacker)


_unpackers = [_new_unpacker()]
