"""Values as msgpack bytes, in any of the possible forms."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgpack

_DECIMAL, _UUID = 1, 2


class Packed(bytes):
    """The bytes of a value, to be sent unchanged."""


def pack(value: Any) -> bytes:
    """Return the bytes of a value.

    Parameters:
        value: Any value that msgpack knows, decimals, UUIDs, and `Packed` anywhere in lists and maps.
    """
    if isinstance(value, Packed):
        return bytes(value)
    if isinstance(value, list | tuple):
        size: bytes = msgpack.Packer().pack_array_header(len(value))
        return size + b"".join(map(pack, value))
    if isinstance(value, dict):
        header: bytes = msgpack.Packer().pack_map_header(len(value))
        return header + b"".join(pack(part) for item in value.items() for part in item)
    if isinstance(value, Decimal):
        return _extension(_DECIMAL, _decimal(value))
    if isinstance(value, UUID):
        return _extension(_UUID, value.bytes)
    packed: bytes = msgpack.packb(value)
    return packed


def float32(value: float) -> Packed:
    """A number of single precision."""
    return Packed(b"\xca" + struct.pack(">f", value))


def long_form(value: int) -> Packed:
    """An unsigned integer in nine bytes, however small it is."""
    return Packed(b"\xcf" + value.to_bytes(8, "big"))


def extension(kind: int, data: bytes) -> Packed:
    """A value of an extension type."""
    return Packed(_extension(kind, data))


def rows_of(packed: bytes) -> list[bytes]:
    """The bytes of each element of an array."""
    unpacker = msgpack.Unpacker(max_buffer_size=2**31 - 1)
    unpacker.feed(packed)
    rows = []
    for _ in range(unpacker.read_array_header()):
        begin = unpacker.tell()
        unpacker.skip()
        rows.append(packed[begin : unpacker.tell()])
    return rows


def _extension(kind: int, data: bytes) -> bytes:
    packed: bytes = msgpack.packb(msgpack.ExtType(kind, data))
    return packed


def _decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    nibbles = "".join(map(str, digits)) + ("d" if sign else "c")
    scale: bytes = msgpack.packb(-exponent)
    return scale + bytes.fromhex(nibbles if len(nibbles) % 2 == 0 else "0" + nibbles)
