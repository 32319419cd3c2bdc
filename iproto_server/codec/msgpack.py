"""MessagePack as Tarantool speaks it; every byte that the server packs or unpacks goes through here.

Texts are MP_STR and may hold any bytes (those that are no UTF-8 become lone surrogates and turn back into
themselves), ``bytes`` are MP_BIN, and Tarantool's extension types are Python's values where Python has them.

The work is done by the C library; what needs no decoding is cut out by the functions of :mod:`~.slices`,
which are here too. What the library cannot do is done in Python, and only when it occurs: packed values
(:class:`Raw`) inside a value that is being packed, maps whose keys are arrays or maps, and extension types
below zero (they stay packed).

Packers are taken from a pool and put back when they finished well: one that failed holds half a message, and
one that is in use by another thread, or further up in this one, must not be used.
"""

import datetime
import decimal
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgpack

from iproto_server.codec import extensions
from iproto_server.codec.extensions import Datetime, ExtensionType, Interval, IntervalAdjust
from iproto_server.codec.scan import (
    ENDLESS_HEAD,
    MALFORMED,
    Kind,
    array_count,
    first_items,
    is_valid,
    kind,
    map_count,
    skip,
    split_array,
    split_map,
)
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native import twin

__all__ = [
    "ENDLESS_HEAD",
    "MALFORMED",
    "Datetime",
    "ExtType",
    "ExtensionType",
    "Interval",
    "IntervalAdjust",
    "Kind",
    "Raw",
    "array_count",
    "array_header",
    "first_items",
    "is_valid",
    "kind",
    "map_count",
    "map_header",
    "new_unpacker",
    "pack",
    "skip",
    "split_array",
    "split_map",
    "unpack",
]

ExtType = msgpack.ExtType

# A message that claims enormous arrays inside each other makes the C library reserve memory for each before
# it finds that they are not there. What is longer than this is first skipped, which reserves nothing.
_CHECK_FIRST: Final = 4096

# Errors that are inside of more errors than this stay packed.
_DEEPEST_ERROR: Final = 8

# A packer starts with a buffer of this size (in bytes; left to itself, it takes 1 MiB), and keeps the largest
# one that it ever needed, so those that wrote much are not kept.
_PACKER_BUFFER: Final = 1 << 14
_KEEP_PACKER: Final = 1 << 20

_ARRAY_HEADERS: Final[tuple[bytes, ...]] = tuple(
    msgpack.Packer().pack_array_header(count) for count in range(64)
)


@twin
class Raw:
    """A value that is packed already: :func:`pack` copies its bytes.

    Attributes:
        raw: exactly one well-formed MessagePack value.
    """

    __slots__ = ("raw",)

    raw: bytes

    def __init__(self, raw: bytes) -> None:
        """Promise that ``raw`` is one well-formed MessagePack value; nothing checks it."""
        self.raw = raw


class _RawInside(Exception):
    """Found a packed value where the C packer cannot splice it in."""


@twin
def pack(value: object) -> bytes:
    """Pack a value.

    Args:
        value: None, bool, int, float, str, bytes, list, tuple, dict, ``decimal.Decimal``, ``uuid.UUID``,
            :class:`Datetime`, an aware ``datetime.datetime``, :class:`Interval`, ``BoxError``, ``ExtType``,
            :class:`Raw`, or containers of these.

    Returns:
        One MessagePack value.

    Raises:
        BoxError: PROC_LUA when the value holds something that has no MessagePack form.
    """
    # What procedures return most, so it need not fail in the C packer first.
    if isinstance(value, Raw):
        return value.raw
    if isinstance(value, list | tuple) and value and isinstance(value[0], Raw):
        return _pack_by_parts(value)
    packer = _take_packer()
    try:
        raw: bytes = packer.pack(value)
    except _RawInside:
        return _pack_by_parts(value)
    except (RecursionError, ValueError) as error:
        raise _not_packed(error) from None
    _give_back(packer, raw)
    return raw


def _not_packed(error: Exception) -> BoxError:
    if isinstance(error, UnicodeEncodeError):
        return BoxError.procedure("a string that has no UTF-8 form cannot be packed")
    return BoxError.procedure("a value that is nested too deep or is too large cannot be packed")


def _pack_by_parts(value: object) -> bytes:
    parts: list[bytes] = []
    try:
        if not _append_items(value, parts, _append_part):
            _append_slowly(value, parts)
    except (RecursionError, ValueError) as error:
        raise _not_packed(error) from None
    return b"".join(parts)


def _append_items(value: object, parts: list[bytes], append: Callable[[object, list[bytes]], None]) -> bool:
    """Pack the items of a container one by one; False for what is none."""
    if isinstance(value, dict):
        parts.append(map_header(len(value)))
        for key, item in value.items():
            append(key, parts)
            append(item, parts)
    elif isinstance(value, list | tuple) and not isinstance(value, ExtType):
        parts.append(array_header(len(value)))
        for item in value:
            append(item, parts)
    else:
        return False
    return True


def _append_part(value: object, parts: list[bytes]) -> None:
    """Pack a value in one go unless it is, or holds, a packed one."""
    if isinstance(value, Raw):
        parts.append(value.raw)
        return
    try:
        raw = _pack_at_once(value)
    except _RawInside:
        _append_slowly(value, parts)
    else:
        parts.append(raw)


def _append_slowly(value: object, parts: list[bytes]) -> None:
    """Pack a value that may hold packed ones anywhere: the C packer is tried only on what holds nothing.

    Were it tried on containers, what is nested would be packed again on every level.
    """
    if isinstance(value, Raw):
        parts.append(value.raw)
    elif isinstance(value, BoxError):
        inside: list[bytes] = []
        _append_slowly(extensions.error_stack(value), inside)
        parts.append(_pack_at_once(ExtType(ExtensionType.ERROR, b"".join(inside))))
    elif not _append_items(value, parts, _append_slowly):
        parts.append(_pack_at_once(value))


def _pack_at_once(value: object) -> bytes:
    packer = _take_packer()
    raw: bytes = packer.pack(value)
    _give_back(packer, raw)
    return raw


def _pack_extension(value: object) -> object:
    """Turn what the C packer does not know into what it knows."""
    if isinstance(value, Raw):
        raise _RawInside
    if isinstance(value, decimal.Decimal):
        return ExtType(ExtensionType.DECIMAL, extensions.encode_decimal(value))
    if isinstance(value, uuid.UUID):
        return ExtType(ExtensionType.UUID, value.bytes)
    if isinstance(value, Datetime):
        return ExtType(ExtensionType.DATETIME, extensions.encode_datetime(value))
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return ExtType(ExtensionType.DATETIME, extensions.encode_datetime(Datetime.from_datetime(value)))
    if isinstance(value, Interval):
        return ExtType(ExtensionType.INTERVAL, extensions.encode_interval(value))
    if isinstance(value, BoxError):
        # Not with `pack`: what cannot be packed at once is for whoever began.
        return ExtType(ExtensionType.ERROR, _pack_at_once(extensions.error_stack(value)))
    if isinstance(value, int):
        raise BoxError.procedure(f"integer {value} does not fit 64 bits")
    raise BoxError.procedure(f"unsupported Python type '{type(value).__name__}'")


def _extension(number: int, payload: bytes, error: Callable[[bytes], BoxError | None]) -> object:
    """Make the value of an extension; `error` reads those that are errors."""
    decode = extensions.DECODERS.get(number)
    if decode is not None:
        value = decode(payload)
    elif number == ExtensionType.ERROR:
        value = error(payload)
    elif number < 0:
        return Raw(msgpack.Packer(buf_size=len(payload) + 6).pack_ext_type(number, payload))
    else:
        value = None
    return ExtType(number, payload) if value is None else value


def _unpacking(depth: int) -> dict[str, Any]:
    """The C library's options for what is inside of so many errors.

    What cannot be read at once inside of an error is given up as a whole: otherwise what is nested would be
    read again on every level. And the library needs so much of the stack that errors could exhaust it.
    """
    inside = None if depth == _DEEPEST_ERROR else _unpacking(depth + 1)

    def error(payload: bytes) -> BoxError | None:
        if inside is None:
            return None
        if len(payload) > _CHECK_FIRST and not is_valid(payload):
            raise ValueError("malformed value")
        return extensions.error_from_stack(msgpack.unpackb(payload, **inside))

    def extension(number: int, payload: bytes) -> object:
        return _extension(number, payload, error)

    return {
        "raw": False,
        "strict_map_key": False,
        "unicode_errors": "surrogateescape",
        "ext_hook": extension,
    }


_UNPACKING: Final = _unpacking(0)
_UNPACK_EXTENSION: Final = _UNPACKING["ext_hook"]


@twin
def unpack(raw: bytes) -> Any:
    """Unpack exactly one value.

    Args:
        raw: the whole message; may be of any size and come from anybody.

    Returns:
        The value: arrays are lists, maps are dicts. Keys that a dict cannot have become tuples: arrays the
        tuple of their items, maps the tuple of their pairs.

    Raises:
        BoxError: INVALID_MSGPACK when ``raw`` is not exactly one well-formed value, or is nested too deep
            (the limit is near 1000).
    """
    if len(raw) > _CHECK_FIRST and not is_valid(raw):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "malformed value")
    try:
        return msgpack.unpackb(  # Spelled out: bundling the options costs 0.1 µs a call.
            raw,
            raw=False,
            strict_map_key=False,
            unicode_errors="surrogateescape",
            ext_hook=_UNPACK_EXTENSION,
        )
    except MALFORMED:
        return _unpack_with_care(raw)


def _unpack_with_care(raw: bytes, depth: int = 0) -> object:
    """Unpack what the C library gave up on: malformed, or with unhashable keys, or with odd timestamps.

    `depth` is of how many errors it is inside.
    """
    if not is_valid(raw):
        raise BoxError(ErrorCode.INVALID_MSGPACK, "malformed value")
    # One for each value that is inside of another's extension: they need no room for more than that.
    unpacker = new_unpacker(buffer_size=len(raw))
    unpacker.feed(raw)
    try:
        return _next_value(unpacker, raw, depth)
    except RecursionError:
        raise BoxError(ErrorCode.INVALID_MSGPACK, "nested too deep") from None


def _next_value(unpacker: msgpack.Unpacker, raw: bytes, depth: int) -> object:
    start = unpacker.tell()
    first = raw[start]
    if 0x90 <= first <= 0x9F or first in (0xDC, 0xDD):
        return [_next_value(unpacker, raw, depth) for _ in range(unpacker.read_array_header())]
    if 0x80 <= first <= 0x8F or first in (0xDE, 0xDF):
        value: dict[object, object] = {}
        for _ in range(unpacker.read_map_header()):
            key = _hashable(_next_value(unpacker, raw, depth))
            value[key] = _next_value(unpacker, raw, depth)
        return value
    if 0xC7 <= first <= 0xC9 or 0xD4 <= first <= 0xD8:
        unpacker.skip()
        head = start + {0xC7: 2, 0xC8: 3, 0xC9: 5}.get(first, 1)
        number = int.from_bytes(raw[head : head + 1], "big", signed=True)
        payload = raw[head + 1 : unpacker.tell()]
        return _extension(number, payload, partial(_error_with_care, depth=depth + 1))
    plain: object = unpacker.unpack()
    return plain


def _error_with_care(payload: bytes, depth: int) -> BoxError | None:
    if depth > _DEEPEST_ERROR:
        return None
    try:
        return extensions.error_from_stack(_unpack_with_care(payload, depth))
    except BoxError:
        return None


def _hashable(value: object) -> object:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, _hashable(item)) for key, item in value.items())
    return value


def array_header(count: int) -> bytes:
    """Return the bytes that announce an array of ``count`` items, in the shortest form."""
    if count < 64:
        return _ARRAY_HEADERS[count]
    return b"\xdc" + count.to_bytes(2, "big") if count < 65536 else b"\xdd" + count.to_bytes(4, "big")


def map_header(count: int) -> bytes:
    """Return the bytes that announce a map of ``count`` pairs, in the shortest form."""
    if count < 16:
        return bytes((0x80 | count,))
    return b"\xde" + count.to_bytes(2, "big") if count < 65536 else b"\xdf" + count.to_bytes(4, "big")


def _new_packer() -> msgpack.Packer:
    return msgpack.Packer(default=_pack_extension, unicode_errors="surrogateescape", buf_size=_PACKER_BUFFER)


def _take_packer() -> msgpack.Packer:
    try:
        return _packers.pop()
    except IndexError:
        return _new_packer()


def _give_back(packer: msgpack.Packer, raw: bytes) -> None:
    if len(raw) <= _KEEP_PACKER:
        _packers.append(packer)


def new_unpacker(max_items: int = 2**31 - 1, buffer_size: int = 16384) -> msgpack.Unpacker:
    """Create an unpacker to be fed bytes and asked for values, which it unpacks as :func:`unpack` does.

    Unlike :func:`unpack` it fails on keys that a dict cannot have, and after a failure it is of no more use.

    Args:
        max_items: how long an array or map may be. Memory for that many is reserved for every array that
            claims to be so long, however little follows.
        buffer_size: how many bytes it has room for at first.

    Returns:
        The C library's own unpacker.
    """
    return msgpack.Unpacker(
        None,
        **_UNPACKING,
        max_buffer_size=0,
        max_array_len=max_items,
        max_map_len=max_items,
        read_size=buffer_size,
    )


_packers = [_new_packer()]
