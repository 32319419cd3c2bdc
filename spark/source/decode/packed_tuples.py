"""Many packed tuples at once, and the cells of their fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pyspark_tarantool.source.decode.packed import Buffer, Cells, Offsets


class Tuples:
    """Packed arrays in a buffer, one per row, and the cells of their items; some may be missing.

    Parameters:
        buffer: The buffer.
        start: Their start offsets, ascending except for missing ones, which are negative.
        wanted: The number of items of each to make cells of.
        end: Their end offsets, if known.

    Attributes:
        wanted: As given.
        counts: The number of items of each.
        cells: The arrays themselves.

    Raises:
        ValueError: If one is not an array, or malformed.
    """

    def __init__(self, buffer: Buffer, start: Offsets, wanted: int, end: Offsets | None = None) -> None:
        self.buffer = buffer
        self.wanted = wanted
        there = np.flatnonzero(start >= 0)
        at = start[there]
        first = buffer.octets.take(at)
        if not ((first >> 4 == 9) | (first == 0xDC) | (first == 0xDD)).all():
            raise ValueError("no array")
        sizes, counts = buffer.heads(at)
        self.counts: Offsets = np.zeros(len(start), np.int64)
        self.counts[there] = counts
        self._items: list[Cells] = []
        at = at + sizes
        ends_of = start.copy()
        going, left = there, counts
        number = 0
        while True:
            done = left == number
            if done.any():
                ends_of[going[done]] = at[done]
                kept = ~done
                going, left, at = going[kept], left[kept], at[kept]
            if not going.size:
                break
            if number >= wanted:
                ends_of[going] = buffer.skip(start[going]) if end is None else end[going]
                break
            ends = buffer.skip(at)
            self._items.append(
                Cells(buffer, _spread(at, going, len(start)), _spread(ends, going, len(start)))
            )
            at = ends
            number += 1
        self.cells = Cells(buffer, start, ends_of)

    @classmethod
    def of(cls, raws: Sequence[bytes | None], wanted: int) -> Self:
        """Create from individually packed tuples.

        Parameters:
            raws: The tuples; None for missing ones.
            wanted: The number of items of each to make cells of.

        Raises:
            ValueError: If one is not an array, or malformed.
        """
        there = [raw for raw in raws if raw is not None]
        ends = np.cumsum([0, *map(len, there)])
        start = ends[:-1]
        if len(there) < len(raws):
            places = np.array([place for place, raw in enumerate(raws) if raw is not None], np.int64)
            start = _spread(start, places, len(raws))
        tuples = cls(Buffer(*there), start, wanted)
        if not (tuples.cells.end[start >= 0] == ends[1:]).all():
            raise ValueError("malformed tuple")
        return tuples

    @classmethod
    def found(cls, cells: Cells, counts: Offsets, items: Sequence[Cells]) -> Self:
        """Create from tuples whose items were located.

        Parameters:
            cells: The tuples.
            counts: The number of items of each.
            items: The wanted items.
        """
        made = cls.__new__(cls)
        made.buffer, made.wanted, made.counts = cells.buffer, len(items), counts
        made.cells, made._items = cells, list(items)
        return made

    @classmethod
    def of_columns(cls, buffer: Buffer, columns: Offsets) -> Self:
        """Create from the columns of compiled code.

        Parameters:
            buffer: The buffer.
            columns: Start, end and number of items of each tuple; then start and end of each wanted item.
        """
        items = [Cells(buffer, start, end) for start, end in zip(columns[3::2], columns[4::2], strict=True)]
        return cls.found(Cells(buffer, columns[0], columns[1]), columns[2], items)

    def __len__(self) -> int:
        return len(self.counts)

    def take(self, rows: npt.NDArray[Any]) -> Tuples:
        """Some of the tuples, by indexes or by a mask."""
        return self._made(self.counts[rows], lambda cells: cells.take(rows))

    def only(self, mask: npt.NDArray[np.bool_]) -> Tuples:
        """These tuples where a mask is true; elsewhere missing ones."""
        if mask.all():
            return self
        none = self.cells.none()
        return self._made(np.where(mask, self.counts, 0), lambda cells: cells.where(mask, none))

    def item(self, number: int) -> Cells:
        """The cells of the items with an index, from 0."""
        if number < len(self._items):
            return self._items[number]
        return self.cells.none()

    def _made(self, counts: Offsets, of: Callable[[Cells], Cells]) -> Tuples:
        """Tuples derived from these."""
        made = Tuples.found(of(self.cells), counts, list(map(of, self._items)))
        made.wanted = self.wanted
        return made


def _spread(values: Offsets, places: Offsets, count: int) -> Offsets:
    """Values at the given indexes, and -1 elsewhere."""
    if len(places) == count:
        return values
    spread = np.full(count, -1, np.int64)
    spread[places] = values
    return spread
