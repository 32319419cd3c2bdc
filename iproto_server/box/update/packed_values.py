"""Packed values, read without decoding more than a request needs: their types, sizes and contents."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from iproto_server.codec import msgpack as codec

# The first byte of a value tells its type.
ARRAYS: Final = frozenset([*range(0x90, 0xA0), 0xDC, 0xDD])
"""First bytes of packed arrays."""
_MAPS: Final = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
_STRING_HEADS: Final = {0xD9: 2, 0xDA: 3, 0xDB: 5} | dict.fromkeys(range(160, 192), 1)
_UNSIGNEDS: Final = frozenset([*range(0x80), *range(0xCC, 0xD0)])
INTEGERS: Final = _UNSIGNEDS | {*range(0xD0, 0xD4), *range(0xE0, 0x100)}
"""First bytes of packed integers."""
_NUMBERS: Final = INTEGERS | {0xCA, 0xCB, *range(0xC7, 0xCA), *range(0xD4, 0xD9)}


def _sizes() -> tuple[int, ...]:
    sizes = [0] * 256
    sizes[:0x80] = [1] * 0x80
    sizes[0xA0:0xC0] = range(1, 0x21)
    sizes[0xE0:] = [1] * 0x20
    fixed = {0xC0: 1, 0xC2: 1, 0xC3: 1, 0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9}
    fixed |= {0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9, 0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18}
    for first, size in fixed.items():
        sizes[first] = size
    return tuple(sizes)


SIZES: Final = _sizes()
"""Sizes of packed values in bytes, by their first byte; 0 if that byte does not determine the size."""


def is_array(raw: bytes) -> bool:
    """Tell whether a packed value is an array."""
    return raw[0] in ARRAYS


def is_map(raw: bytes) -> bool:
    """Tell whether a packed value is a map."""
    return raw[0] in _MAPS


def string_content(raw: bytes) -> bytes | None:
    """Return the bytes of a packed string without its header, or None if the value is not a string."""
    head = _STRING_HEADS.get(raw[0])
    return None if head is None else raw[head:]


def read_unsigned(raw: bytes) -> int | None:
    """Return the number if it is packed as unsigned, else None; a positive number may be packed as signed."""
    if raw[0] not in _UNSIGNEDS:
        return None
    number = codec.unpack(raw)
    assert isinstance(number, int)
    return number


def read_number(raw: bytes) -> int | float | Decimal | None:
    """Return the packed number, or None if the value is not a number."""
    if raw[0] not in _NUMBERS:
        return None
    number = codec.unpack(raw)
    return number if isinstance(number, int | float | Decimal) else None
