"""Structured values from bytes: any bytes give a value, request or log, and similar bytes give similar ones.

Mutating packed bytes finds faults in decoding; mutating these finds faults in later processing, which most
random bytes would never reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, TypeVar

from iproto_server.codec.msgpack import Datetime, ExtType, Interval, Raw

T = TypeVar("T")

EDGES: Final = (
    *(0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 127, 128, 255, 256, 32767, 65535, 65536, 2**31 - 1, 2**31),
    *(2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1),
    *(-1, -2, -3, -5, -32, -33, -128, -129, -(2**31), -(2**31) - 1, -(2**53) - 1, -(2**63)),
)
"""Integers at limits."""

_FLOATS: Final = (0.0, -0.0, 0.5, 1.5, 0.1, 1e15, 2.0**53, 2.0**64, 3.5e38, 1e300, 5e-324, float("inf"))
_TEXTS: Final = ("", "a", "ab", "b", "R", "T", "x y", "é", "\udcff", "id", "m", "text" * 9)
_KEYS: Final[tuple[str | int, ...]] = ("a", "ab", "b", "x y", "", "m", 0, 1, 2, 3, -1, 2**40)
_MISC: Final[tuple[object, ...]] = (
    Decimal("0"),
    Decimal("1.5"),
    Decimal("-1E-38"),
    Decimal("9" * 38),
    Datetime(1_600_000_000, 5, 60),
    Interval(year=1, adjust=2),
    ExtType(1, b""),
    ExtType(3, b"\x80"),
    Raw(b"\xd6\xff\0\0\0\1"),
    ExtType(77, b"x" * 16),
    float("nan"),
    float("-inf"),
)


class Draw:
    """Draws values from bytes; after the last byte, from zeros.

    Parameters:
        data: the bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def is_used_up(self) -> bool:
        """Whether all bytes are used."""
        return self._position >= len(self._data)

    def byte(self) -> int:
        """Return the next byte."""
        if self.is_used_up:
            return 0
        self._position += 1
        return self._data[self._position - 1]

    def pick(self, choices: Sequence[T]) -> T:
        """Choose one of at most 256 things."""
        return choices[self.byte() % len(choices)]

    def chunk(self) -> bytes:
        """Draw at most 255 bytes."""
        size = self.byte()
        start = self._position
        self._position = min(start + size, len(self._data))
        return self._data[start : self._position]

    def rest(self) -> bytes:
        """Return the remaining bytes."""
        start, self._position = self._position, len(self._data)
        return self._data[start:]

    def integer(self) -> int:
        """Draw an integer in MessagePack's range."""
        first = self.byte()
        return first - 0x50 if first < 0xA0 else EDGES[first % len(EDGES)]

    def scalar(self) -> object:
        """Draw a value without elements."""
        kind = self.byte() % 8
        if kind < 3:
            return self.integer()
        if kind == 3:
            return self.pick(_TEXTS)
        if kind == 4:
            return self.pick(_FLOATS)
        if kind == 5:
            return self.pick((None, True, False))
        if kind == 6:
            return self.pick(_MISC)
        return self.chunk() if self.byte() % 2 else self.chunk().decode("utf-8", "surrogateescape")

    def key(self) -> str | int:
        """Draw a key of a map."""
        return self.pick(_KEYS)

    def value(self, depth: int = 3) -> object:
        """Draw any value, nested up to a depth."""
        kind = self.byte() % 8
        if kind < 4 or not depth:
            return self.scalar()
        count = self.byte() % 5
        if kind < 6:
            return [self.value(depth - 1) for _ in range(count)]
        return {self.key(): self.value(depth - 1) for _ in range(count)}

    def values(self, most: int, depth: int = 2) -> list[object]:
        """Draw some values."""
        return [self.value(depth) for _ in range(self.byte() % (most + 1))]
