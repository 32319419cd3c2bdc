"""Values in any form that a client may pack, more than Python's values can express."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import msgpack

_DECIMAL, _UUID = 1, 2


class Packed:
    """A packed value in an unusual form.

    Parameters:
        raw: Its bytes.
        description: How to show it; None for its value in Python.
    """

    __slots__ = ("description", "raw")

    def __init__(self, raw: bytes, description: str | None = None) -> None:
        self.raw = raw
        self.description = description

    def __repr__(self) -> str:
        return readable(self.raw) if self.description is None else self.description


def float32(number: float) -> Packed:
    """Pack a number as a float of four bytes."""
    return Packed(b"\xca" + struct.pack(">f", number), f"float32({number})")


def int64(number: int) -> Packed:
    """Pack an integer as a signed one of eight bytes."""
    return Packed(b"\xd3" + struct.pack(">q", number), f"int64({number})")


def uint64(number: int) -> Packed:
    """Pack an integer as an unsigned one of eight bytes."""
    return Packed(b"\xcf" + struct.pack(">Q", number), f"uint64({number})")


def decimal(text: str) -> Packed:
    """A decimal as Tarantool writes it: the scale and two digits to a byte.

    Parameters:
        text: The number; its digits are kept as they are.
    """
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    nibbles = "".join(map(str, digits)) + ("d" if sign else "c")
    payload = msgpack.packb(-exponent) + bytes.fromhex(nibbles.zfill(len(nibbles) + len(nibbles) % 2))
    return Packed(msgpack.packb(msgpack.ExtType(_DECIMAL, payload)), f"decimal({text})")


def uuid(number: int) -> Packed:
    """Pack a UUID, given as a number."""
    raw = number.to_bytes(16, "big")
    return Packed(msgpack.packb(msgpack.ExtType(_UUID, raw)), f"uuid({raw.hex()})")


def pack(value: Any) -> bytes:
    """Pack a value.

    Parameters:
        value: Anything that msgpack packs, with `Packed` in it. Lone surrogates in a text are bytes.

    Returns:
        Its bytes.
    """
    match value:
        case Packed():
            return value.raw
        case list() | tuple():
            return _header(0x90, 0xDC, len(value)) + b"".join(map(pack, value))
        case dict():
            pairs = (pack(key) + pack(item) for key, item in value.items())
            return _header(0x80, 0xDE, len(value)) + b"".join(pairs)
    raw: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
    return raw


def _header(short: int, long: int, count: int) -> bytes:
    if count < 16:
        return bytes((short | count,))
    return bytes((long,)) + count.to_bytes(2, "big")


def readable(raw: bytes) -> str:
    """Show packed values in Python's notation, as far as they can be decoded."""
    unpacker = msgpack.Unpacker(
        strict_map_key=False, unicode_errors="surrogateescape", object_pairs_hook=_mapping
    )
    unpacker.feed(raw)
    values = []
    try:
        while unpacker.tell() < len(raw):
            values.append(str(unpacker.unpack()))
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        values.append("…")
    return " ".join(values)


def _mapping(pairs: list[tuple[Any, Any]]) -> object:
    """A map; shown as the list of its pairs if Python has no map with such keys."""
    try:
        return dict(pairs)
    except TypeError:
        return pairs
