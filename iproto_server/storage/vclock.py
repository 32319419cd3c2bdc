"""Vector clocks: the last known log sequence number of each replica set member."""

from __future__ import annotations

import re
from typing import Self

VCLOCK_MAX = 32
"""Member ids are below this; id 0 counts the rows of spaces that are not replicated."""

_TEXT = re.compile(r"\{\s*(?:\d+\s*:\s*\d+\s*(?:,\s*\d+\s*:\s*\d+\s*)*)?\}")
_COMPONENT = re.compile(r"(\d+)\s*:\s*(\d+)")


class VClock(dict[int, int]):
    """The last log sequence number (LSN) of each member, by its id; a member without rows has no entry."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the text of a file's header.

        Parameters:
            text: For example `{0: 3, 1: 430}`.

        Returns:
            The clock.

        Raises:
            ValueError: The text is not a vector clock.
        """
        if _TEXT.fullmatch(text) is None:
            raise ValueError(f"not a vector clock: {text!r}")
        clock = cls()
        for member, lsn in _COMPONENT.findall(text):
            if int(member) >= VCLOCK_MAX or int(member) in clock or not 0 <= int(lsn) < 2**63:
                raise ValueError(f"not a vector clock: {text!r}")
            clock[int(member)] = int(lsn)
        return clock

    def __str__(self) -> str:
        """The text of a file's header."""
        return "{" + ", ".join(f"{member}: {self[member]}" for member in sorted(self)) + "}"

    @property
    def signature(self) -> int:
        """The sum of its components; file names are made of it."""
        return sum(self.values())

    def covers(self, other: dict[int, int]) -> bool:
        """Whether no component of `other` is greater than its counterpart here."""
        return all(self.get(member, 0) >= lsn for member, lsn in other.items())

    def same_as(self, other: dict[int, int]) -> bool:
        """Whether both clocks are equal; a missing member has the LSN 0."""
        return self.covers(other) and all(other.get(member, 0) >= lsn for member, lsn in self.items())

    def copy(self) -> VClock:
        """An independent copy."""
        return VClock(self)
