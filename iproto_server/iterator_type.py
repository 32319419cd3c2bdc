"""Iterator types, of requests and of indexes."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class IteratorType(IntEnum):
    """The order and the bounds of a walk through an index; the numbers are those of the protocol."""

    EQ = 0
    REQ = 1
    ALL = 2
    LT = 3
    LE = 4
    GE = 5
    GT = 6
    BITS_ALL_SET = 7
    BITS_ANY_SET = 8
    BITS_ALL_NOT_SET = 9
    OVERLAPS = 10
    NEIGHBOR = 11


DESCENDING: Final = frozenset(map(int, (IteratorType.REQ, IteratorType.LT, IteratorType.LE)))
"""The numbers of descending iterators."""
