"""Requests that are encoded before a measurement, as one block of bytes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self


@dataclass(frozen=True, slots=True)
class Requests:
    """Encoded requests.

    Attributes:
        data: their bytes.
        bounds: the offset of each request in `data`, and the end of the last one.
    """

    data: bytes
    bounds: Sequence[int]

    @classmethod
    def alike(cls, frame: bytes, count: int) -> Self:
        """The same request several times."""
        return cls(frame * count, range(0, count * len(frame) + 1, len(frame)))

    @classmethod
    def between(cls, before: bytes, middles: Iterable[bytes], after: bytes) -> Self:
        """Requests that differ in a middle part only."""
        return cls.of(before + middle + after for middle in middles)

    @classmethod
    def of(cls, frames: Iterable[bytes]) -> Self:
        """Any requests."""
        every = list(frames)
        return cls(b"".join(every), [0, *accumulate(map(len, every))])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def span(self, first: int, end: int) -> bytes:
        """Return the bytes of the requests from `first` up to, not including, `end`."""
        last = len(self.bounds) - 1
        return self.data[self.bounds[min(first, last)] : self.bounds[min(end, last)]]


def payloads(count: int, size: int) -> list[bytes]:
    """Generate the data of tasks: different hexadecimal digits, which compress like text.

    Parameters:
        count: the number of tasks.
        size: bytes of each, an even number.
    """
    digits = os.urandom(count * size // 2).hex().encode()
    return [digits[start : start + size] for start in range(0, len(digits), size)]
