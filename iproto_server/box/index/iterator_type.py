"""The ways to walk through an index."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class IteratorType(IntEnum):
    """The order and the end of a walk through an index; the numbers are the wire's."""

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
"""The numbers of those that go down."""
