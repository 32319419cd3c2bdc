"""Structure from bytes: any bytes are some value, request or log, and near bytes are near ones.

Mutating packed bytes finds what is wrong with reading; mutating these finds what is wrong with what is done
afterwards, where most bytes would never get.
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
"""Whole numbers at which something may change."""

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
    """Draws what it is asked for from bytes; when they are used up, from zeros.

    Parameters:
        data: the bytes.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def is_used_up(self) -> bool:
        """Whether there are no more bytes."""
        return self._position >= len(self._data)

    def byte(self) -> int:
        """The next byte."""
        if self.is_used_up:
            return 0
        self._position += 1
        return self._data[self._position - 1]

    def pick(self, choices: Sequence[T]) -> T:
        """One of at most 256 things."""
        return choices[self.byte() % len(choices)]

    def chunk(self) -> bytes:
        """At most 255 bytes."""
        size = self.byte()
        start = self._position
        self._position = min(start + size, len(self._data))
        return self._data[start : self._position]

    def rest(self) -> bytes:
        """All bytes that are left."""
        start, self._position = self._position, len(self._data)
        return self._data[start:]

    def integer(self) -> int:
        """A whole number that MessagePack has."""
        first = self.byte()
        return first - 0x50 if first < 0xA0 else EDGES[first % len(EDGES)]

    def scalar(self) -> object:
        """A value that holds no others."""
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
        """A key of a map."""
        return self.pick(_KEYS)

    def value(self, depth: int = 3) -> object:
        """Any value; nested at most so deep."""
        kind = self.byte() % 8
        if kind < 4 or not depth:
            return self.scalar()
        count = self.byte() % 5
        if kind < 6:
            return [self.value(depth - 1) for _ in range(count)]
        return {self.key(): self.value(depth - 1) for _ in range(count)}

    def values(self, most: int, depth: int = 2) -> list[object]:
        """Some values."""
        return [self.value(depth) for _ in range(self.byte() % (most + 1))]
