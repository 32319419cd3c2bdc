"""Primary keys as canonical byte strings, cut out of packed tuples if possible.

Most keys are one number, string or UUID in the first field. Their packed bytes are the key if they have the
shortest encoding, as nearly all have, so nothing is unpacked. Equal values with another encoding (1.0 in a
field of the type `number`) are packed again. Other keys are those of the server's indexes, which also handle
collations; a prefix byte that begins no packed value distinguishes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from enum import IntEnum
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt

from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.decode.packed import Cells
from pyspark_tarantool.source.decode.packed_tuples import Tuples

KeyFunction = Callable[[bytes], bytes]
"""Maps a packed array to a key."""


class Cut(IntEnum):
    """The kinds of keys that are cut out of packed tuples, if they have the shortest encoding."""

    NUMBERS = 1
    STRINGS = 2


_OTHER: Final = b"\xc1"
_NUMBERS: Final = frozenset({FieldType.UNSIGNED, FieldType.INTEGER, FieldType.NUMBER})
_UINT64_END: Final = 2**64
_FIXED_NUMBERS: Final = frozenset(range(0x80))
_FIXED_STRINGS: Final = frozenset(range(0xA0, 0xC0))
_LEAST_NUMBERS: Final = {0xCC: (1, 0x80), 0xCD: (2, 0x100), 0xCE: (4, 0x10000), 0xCF: (8, 0x100000000)}
_LEAST_LENGTHS: Final = {0xD9: (1, 32), 0xDA: (2, 0x100), 0xDB: (4, 0x10000)}
"""The number of bytes after the first byte, and the least number without a shorter encoding."""

_SHORTEST: Final = {
    Cut.NUMBERS: (_FIXED_NUMBERS, _LEAST_NUMBERS),
    Cut.STRINGS: (_FIXED_STRINGS, _LEAST_LENGTHS),
}
"""The shortest encodings by kind."""

_SHARED: Final = 8
_SPREAD: Final = 0x9E3779B97F4A7C15
"""A multiplicative hash: the middle bits of the product with a key's last bytes look random."""

_UUID_HEAD: Final = b"\xd8\x02"


class PackedKeys:
    """The primary keys of a space.

    Parameters:
        primary: The space's primary key.

    Attributes:
        cut: The kind of keys that are cut out of the first field; None if none are.
        of_row: Returns the key of a packed tuple.
        of_key: Returns the key of a packed key, which has the key's fields only.
    """

    def __init__(self, primary: KeyDef) -> None:
        # Keys in logs were validated when they were logged.
        alone = KeyDef(
            [replace(part, field_no=number, path=None) for number, part in enumerate(primary.parts)]
        )
        self.of_row = _key_function(primary)
        # A key of the first field has the same position in rows.
        are_alike = alone == primary
        self.of_key = self.of_row if are_alike else _key_function(alone, may_cut=False)
        self.cut = _cut(primary) if are_alike else None

    def are_cut(self, tuples: Tuples) -> bool:
        """Whether the keys of these tuples, or packed keys, are their first items as packed."""
        if self.cut is None:
            return False
        fixed, least = _SHORTEST[self.cut]
        return _are_shortest(tuples.item(0), fixed, least)

    def of_rows(self, tuples: Tuples) -> list[bytes]:
        """The keys of many tuples."""
        if self.are_cut(tuples):
            return tuples.item(0).raws()  # type: ignore[return-value]  # no key is missing
        return [self.of_row(raw or b"") for raw in tuples.cells.raws()]


def share_of(key: bytes) -> int:
    """A hash that assigns a key to one of several tasks, evenly and the same in all processes.

    Parameters:
        key: The key, from `PackedKeys`.
    """
    return (int.from_bytes(key[-_SHARED:], "big") * _SPREAD & _UINT64_END - 1) >> 32


def shares_of(cells: Cells) -> npt.NDArray[np.uint64]:
    """`share_of` for many keys.

    Parameters:
        cells: Keys that were cut out, none of them missing.
    """
    last = cells.end - _SHARED
    if (last < 0).any():
        return np.array([share_of(raw or b"") for raw in cells.raws()], np.uint64)
    # Bytes before a shorter key are shifted out.
    beyond = (8 * np.maximum(cells.start - last, 0)).astype(np.uint64)
    numbers = cells.buffer.unsigned(last, _SHARED) << beyond >> beyond
    shares: npt.NDArray[np.uint64] = numbers * np.uint64(_SPREAD) >> np.uint64(32)
    return shares


def _key_function(key_def: KeyDef, *, may_cut: bool = True) -> KeyFunction:
    part = key_def.parts[0]
    is_first = key_def.part_count == 1 and not part.field_no and part.path is None and not part.is_nullable
    if is_first and may_cut:
        if part.type in _NUMBERS:
            return _number_key(_slowly(key_def))
        if part.type is FieldType.STRING and part.collation is None:
            return _string_key(_slowly(key_def))
        if part.type is FieldType.UUID:
            return _uuid_key(_slowly(key_def))
    extract = key_def.extract
    return lambda raw: extract(codec.unpack(raw))


def _cut(key_def: KeyDef) -> Cut | None:
    """The kind of keys that can be cut out; None if none can."""
    part = key_def.parts[0]
    if key_def.part_count > 1 or part.is_nullable or part.path is not None:
        return None
    if part.type in _NUMBERS:
        return Cut.NUMBERS
    if part.type is FieldType.STRING and part.collation is None:
        return Cut.STRINGS
    return None


def _are_shortest(cells: Cells, fixed: frozenset[int], least: Mapping[int, tuple[int, int]]) -> bool:
    """Whether all cells have the shortest encoding."""
    forms = cells.forms() - fixed
    if not forms <= least.keys():
        return False
    for head in forms:
        width, value = least[head]
        at = cells.start[cells.first == head] + 1
        if (cells.buffer.unsigned(at, width) < value).any():
            return False
    return True


def _slowly(key_def: KeyDef) -> KeyFunction:
    """A function for keys without the shortest encoding, or of another type."""
    extract = key_def.extract
    part: KeyPart = key_def.parts[0]

    def key(raw: bytes) -> bytes:
        fields = codec.unpack(raw)
        value: Any = fields[0]
        if part.type is FieldType.STRING and isinstance(value, str):
            return codec.pack(value)
        if part.type is FieldType.UUID and isinstance(value, UUID):
            return _UUID_HEAD + value.bytes
        if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
            value = int(value)
        if type(value) is int and 0 <= value < _UINT64_END:
            return codec.pack(value)
        return _OTHER + extract(fields)

    return key


def _number_key(slowly: KeyFunction) -> KeyFunction:
    def key(raw: bytes) -> bytes:
        if 0x90 < raw[0] < 0xA0:
            head = raw[1]
            if head < 0x80:
                return raw[1:2]
            if head == 0xCE:
                if raw[2] or raw[3]:
                    return raw[1:6]
            elif head == 0xCD:
                if raw[2]:
                    return raw[1:4]
            elif head == 0xCC:
                if raw[2] >= 0x80:
                    return raw[1:3]
            elif head == 0xCF and raw[2:6] != b"\0\0\0\0":
                return raw[1:10]
        return slowly(raw)

    return key


def _string_key(slowly: KeyFunction) -> KeyFunction:
    def key(raw: bytes) -> bytes:
        if 0x90 < raw[0] < 0xA0:
            head = raw[1]
            if 0xA0 <= head < 0xC0:
                return raw[1 : head - 0x9E]
            if head == 0xD9 and raw[2] > 31:
                return raw[1 : raw[2] + 3]
        return slowly(raw)

    return key


def _uuid_key(slowly: KeyFunction) -> KeyFunction:
    def key(raw: bytes) -> bytes:
        if 0x90 < raw[0] < 0xA0 and raw[1:3] == _UUID_HEAD:
            return raw[1:19]
        return slowly(raw)

    return key
