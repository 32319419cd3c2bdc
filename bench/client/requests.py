"""Requests that are made before the clock runs, one behind the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self


@dataclass(frozen=True, slots=True)
class Requests:
    """Some requests.

    Attributes:
        data: their bytes.
        bounds: where each begins in them, and where the last one ends.
    """

    data: bytes
    bounds: Sequence[int]

    @classmethod
    def alike(cls, frame: bytes, count: int) -> Self:
        """The same request, so many times."""
        return cls(frame * count, range(0, count * len(frame) + 1, len(frame)))

    @classmethod
    def between(cls, before: bytes, middles: Iterable[bytes], after: bytes) -> Self:
        """Requests that differ in the middle only."""
        return cls.of(before + middle + after for middle in middles)

    @classmethod
    def of(cls, frames: Iterable[bytes]) -> Self:
        """Requests, each by itself."""
        every = list(frames)
        return cls(b"".join(every), [0, *accumulate(map(len, every))])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def span(self, first: int, end: int) -> bytes:
        """The bytes of the requests from one to another, without that."""
        last = len(self.bounds) - 1
        return self.data[self.bounds[min(first, last)] : self.bounds[min(end, last)]]


def payloads(count: int, size: int) -> list[bytes]:
    """Tasks' data: hexadecimal digits, so that it compresses as text does, and each is another.

    Parameters:
        count: how many.
        size: the bytes of each, an even number.
    """
    digits = os.urandom(count * size // 2).hex().encode()
    return [digits[start : start + size] for start in range(0, len(digits), size)]
