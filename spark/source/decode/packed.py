"""Locates many packed values at once with numpy instead of a Python loop.

A buffer contains MessagePack, and an array of offsets has the starts of values in it. Each step processes one
head per value, for all values together. The cost is tens of nanoseconds per field; only values that Arrow
cannot take from the buffer are unpacked to Python objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from pyspark_tarantool.native import twin

Offsets = npt.NDArray[np.int64]
Octets = npt.NDArray[np.uint8]

NIL: Final = 0xC0
_PADDING: Final = 16
_STEPS: Final = 64
"""Values with more nested heads are skipped individually."""

_TOO_LARGE: Final = 1 << 40


def _heads() -> tuple[Offsets, Offsets, Offsets]:
    """Tables indexed by first bytes.

    Returns:
        The sizes in bytes, without that of a variable-length part; the number of nested values, if fixed; and
        the width of the length in bytes.
    """
    sizes, children, widths = np.ones(256, np.int64), np.zeros(256, np.int64), np.zeros(256, np.int64)
    for number in range(16):
        children[0x80 + number], children[0x90 + number] = 2 * number, number
    sizes[0xA0:0xC0] += np.arange(32)
    sizes[0xC1] = _TOO_LARGE
    for first, more in ((0xC4, 0), (0xC7, 1), (0xD9, 0)):
        for number in range(3):
            widths[first + number] = 1 << number
            sizes[first + number] += (1 << number) + more
    for number in range(4):
        for first in (0xCC, 0xD0):
            sizes[first + number] += 1 << number
    sizes[0xCA], sizes[0xCB] = 5, 9
    sizes[0xD4:0xD9] = [3, 4, 6, 10, 18]
    for number in range(2):
        for first in (0xDC, 0xDE):
            widths[first + number] = 2 << number
            sizes[first + number] += 2 << number
    return sizes, children, widths


_SIZES, _CHILDREN, _WIDTHS = _heads()
_LENGTH_HEADS: Final = frozenset(np.flatnonzero(_WIDTHS).tolist())


def forms_of(first: Octets) -> set[int]:
    """The distinct values of an array of bytes, which are often all the same."""
    if not first.size:
        return set()
    low = int(first.min())
    if low == int(first.max()):
        return {low}
    return set(np.flatnonzero(np.bincount(first, minlength=256)).tolist())


class Buffer:
    """Bytes with packed values.

    Parameters:
        pieces: The bytes, in any number of pieces.

    Attributes:
        data: The bytes, padded with zeros, so that reads slightly past the end are valid.
        octets: The same as an array.
        size: The number of bytes without the padding.
    """

    def __init__(self, *pieces: bytes) -> None:
        self.data = b"".join((*pieces, bytes(_PADDING)))
        self.size = len(self.data) - _PADDING
        self.octets: Octets = np.frombuffer(self.data, np.uint8)

    def unsigned(self, at: Offsets, width: int) -> npt.NDArray[np.uint64]:
        """The unsigned integers of the given width at offsets."""
        if width == 1:
            return self.octets.take(at).astype(np.uint64)
        return self._everywhere(f">u{width}")[at].astype(np.uint64)

    def find(self, pattern: bytes) -> Offsets:
        """The offsets of a byte string.

        Parameters:
            pattern: The byte string, not empty.
        """
        # Large bytes are rare: texts and small numbers have none.
        rarest = pattern.index(max(pattern))
        found = np.flatnonzero(self.octets[: self.size] == pattern[rarest]) - rarest
        found = found[(found >= 0) & (found + len(pattern) <= self.size)]
        for place, octet in enumerate(pattern):
            found = found[self.octets.take(found + place) == octet]
        return found

    def _everywhere(self, kind: str) -> npt.NDArray[Any]:
        """A view of the numbers of a type at every offset of the buffer."""
        dtype = np.dtype(kind)
        return np.ndarray((len(self.octets) - dtype.itemsize,), dtype, self.octets.data, strides=(1,))

    def heads(self, at: Offsets) -> tuple[Offsets, Offsets]:
        """The sizes in bytes of the values at offsets, and the numbers of nested values.

        The size of an array or map is that of its head.
        """
        first = self.octets.take(at)
        forms = forms_of(first)
        sizes, children = _SIZES.take(first), _CHILDREN.take(first)
        for head in forms & _LENGTH_HEADS:
            where: Any = slice(None) if len(forms) == 1 else np.flatnonzero(first == head)
            lengths = self.unsigned(at[where] + 1, int(_WIDTHS[head])).view(np.int64)
            if head >= 0xDC:
                children[where] = lengths if head < 0xDE else 2 * lengths
            else:
                sizes[where] += lengths
        return sizes, children

    def skip(self, at: Offsets) -> Offsets:
        """The end offsets of the values at offsets.

        Raises:
            ValueError: If one exceeds the buffer, or is malformed.
        """
        sizes, left = self.heads(at)
        ends = at + sizes
        self._check(ends)
        where = np.flatnonzero(left)
        left = left[where]
        for _ in range(_STEPS):
            if not where.size:
                return ends
            sizes, children = self.heads(ends[where])
            ends[where] += sizes
            self._check(ends[where])
            left += children - 1
            going = np.flatnonzero(left)
            where, left = where[going], left[going]
        for row in where.tolist():
            try:
                ends[row] = codec.skip(self.data, int(at[row]))
            except BoxError as error:
                raise ValueError(f"malformed value at {at[row]}: {error}") from None
        self._check(ends)
        return ends

    def _check(self, ends: Offsets) -> None:
        if ends.size and int(ends.max()) > self.size:
            raise ValueError("a value ends behind its buffer")


class Cells:
    """Packed values in a buffer, one per row; some may be missing.

    Parameters:
        buffer: The buffer.
        start: Their start offsets, ascending except for missing ones, which are negative.
        end: Their end offsets.
    """

    def __init__(self, buffer: Buffer, start: Offsets, end: Offsets) -> None:
        self.buffer = buffer
        self.start = start
        self.end = end

    @cached_property
    def first(self) -> Octets:
        """The first byte of each; nil for missing ones."""
        first: Octets = self.buffer.octets.take(self.start, mode="wrap")
        missing = self.start < 0
        return np.where(missing, np.uint8(NIL), first) if missing.any() else first

    def __len__(self) -> int:
        return len(self.start)

    @property
    def are_missing(self) -> bool:
        """Whether all of them are missing."""
        return int(self.start.max(initial=-1)) < 0

    @property
    def places(self) -> tuple[Offsets, Offsets]:
        """The start and end offsets, contiguous for compiled code."""
        return np.ascontiguousarray(self.start), np.ascontiguousarray(self.end)

    def forms(self) -> set[int]:
        """The first bytes that occur."""
        return forms_of(self.first)

    def take(self, rows: npt.NDArray[Any] | slice) -> Cells:
        """Some of the cells, by indexes, a mask or a slice."""
        return Cells(self.buffer, self.start[rows], self.end[rows])

    def where(self, mask: npt.NDArray[np.bool_], others: Cells) -> Cells:
        """These cells where a mask is true, and others of the same buffer elsewhere."""
        start = np.where(mask, self.start, others.start)
        return Cells(self.buffer, start, np.where(mask, self.end, others.end))

    def none(self) -> Cells:
        """As many cells, all of them missing."""
        nothing = np.full(len(self), -1, np.int64)
        return Cells(self.buffer, nothing, nothing)

    def raws(self) -> list[bytes | None]:
        """The packed values; None for missing ones."""
        data = self.buffer.data
        quick = quick_raws(data, *self.places)
        if quick is not None:
            return quick
        places = zip(self.start.tolist(), self.end.tolist(), strict=True)
        return [None if start < 0 else data[start:end] for start, end in places]

    def values(self) -> list[Any]:
        """The unpacked values; None for missing ones, too.

        Raises:
            ValueError: If one is malformed.
        """
        return unpack_some(self.raws())


@twin
def quick_raws(data: bytes, start: Offsets, end: Offsets) -> list[bytes | None] | None:
    """Compiled extraction of packed values.

    Parameters:
        data: The buffer.
        start: Their start offsets; negative for missing ones.
        end: Their end offsets.

    Returns:
        Their bytes, None for missing ones; None instead of the list if one is outside of the buffer, or
        without compiled code.
    """
    return None


def unpack_some(raws: Sequence[bytes | None]) -> list[Any]:
    """Unpack values.

    Parameters:
        raws: Packed values; None for missing ones.

    Raises:
        ValueError: If one is malformed.
    """
    there = [raw for raw in raws if raw is not None]
    try:
        values = list(map(codec.unpack, there))
    except BoxError as error:
        raise ValueError(error.message) from None
    if len(there) == len(raws):
        return values
    rest = iter(values)
    return [None if raw is None else next(rest) for raw in raws]
