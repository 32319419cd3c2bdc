"""MessagePack as the library `msgpack` reads and writes it: an independent model of the codec.

Only the payloads of Tarantool's extension types are left to `extensions.decode`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgpack

from iproto_server.codec import extensions
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError

_ERRORS_MAX: Final = 8
"""Errors inside of more errors stay packed."""


class Malformed(Exception):
    """Bytes are not exactly one value."""


class Unknown(Exception):
    """The library takes a head for a whole value, or fails on timestamps, which stay packed here."""


_UNKNOWN: Final = re.compile(rb"\xc9\xff{4}|[\xd4-\xd8]\xff|\xc7.\xff|\xc8..\xff|\xc9....\xff", re.DOTALL)


@dataclass(eq=False)
class Extension:
    """A value of an extension type."""

    number: int
    payload: bytes


class _Pairs(list[tuple[Any, Any]]):
    """The pairs of a map."""


def packed(value: object) -> bytes:
    """Pack a value without extension types of Tarantool.

    Raises:
        ValueError, OverflowError: The library cannot pack it.
    """
    raw: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return raw


def unpacked(raw: bytes) -> Any:
    """Unpack exactly one value.

    Returns:
        The value as the codec makes it; those of extension types below zero are `Extension`.

    Raises:
        Malformed: There is not exactly one value.
        Unknown: The library does not say.
    """
    return _converted(_read(raw), 0)


def _read(raw: bytes) -> Any:
    if _UNKNOWN.search(raw):
        raise Unknown
    try:
        return msgpack.unpackb(
            raw,
            strict_map_key=False,
            unicode_errors="surrogateescape",
            object_pairs_hook=_Pairs,
            ext_hook=Extension,
        )
    except (ValueError, msgpack.UnpackException):
        raise Malformed from None


def _converted(value: Any, errors: int) -> Any:
    """Convert what the library has made, inside of some errors."""
    if isinstance(value, _Pairs):
        return {_key(_converted(key, errors)): _converted(item, errors) for key, item in value}
    if isinstance(value, list):
        return [_converted(item, errors) for item in value]
    if isinstance(value, Extension) and value.number >= 0:
        return extensions.decode(value.number, value.payload, _described(value, errors))
    return value


def _described(extension: Extension, errors: int) -> Any:
    if extension.number != codec.ExtensionType.ERROR or errors == _ERRORS_MAX:
        return None
    try:
        return _converted(_read(extension.payload), errors + 1)
    except Malformed:
        return None


def _key(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_key(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, _key(item)) for key, item in value.items())
    return value


def in_detail(value: Any) -> str:
    """Describe a value with its types, all parts of errors, and what is inside of packed values."""
    if isinstance(value, Extension):
        return f"extension {value.number} {value.payload!r}"
    if isinstance(value, codec.Raw):
        return (
            in_detail(_read(value.raw))
            if type(value) is codec.Raw
            else f"{type(value).__name__} {value.raw!r}"
        )
    if isinstance(value, BoxError):
        parts = (value.code, value.message, value.type, value.errno, value.file, value.line)
        return f"error {parts!r} {in_detail(value.fields)} {in_detail(value.previous)}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(map(in_detail, value))}]"
    if isinstance(value, dict):
        pairs = (f"{in_detail(key)}: {in_detail(item)}" for key, item in value.items())
        return f"{type(value).__name__}{{{', '.join(pairs)}}}"
    return f"{type(value).__name__} {value!r}"
