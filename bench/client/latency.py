"""How long answers took, and within which time a share of them had come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


class Latencies:
    """Times of answers.

    Attributes:
        together: seconds, and how many answers took so long: those that come together are noted together.
    """

    __slots__ = ("together",)

    def __init__(self) -> None:
        self.together: list[tuple[float, int]] = []

    def add(self, seconds: float, count: int = 1) -> None:
        """Note that so many answers took so long."""
        self.together.append((seconds, count))

    @classmethod
    def of_all(cls, parts: Iterable[Latencies]) -> Self:
        """All of several."""
        whole = cls()
        for part in parts:
            whole.together += part.together
        return whole

    def __len__(self) -> int:
        return sum(count for _, count in self.together)

    def milliseconds(self, *shares: float) -> list[float]:
        """The times within which shares of the answers came, the smallest share first.

        Parameters:
            shares: 0.5 asks for the median.

        Raises:
            ValueError: There are no answers.
        """
        total = len(self)
        if not total:
            raise ValueError("there are no answers")
        ordered = sorted(self.together)
        found: list[float] = []
        passed, number = 0, -1
        for share in sorted(shares):
            wanted = min(int(total * share), total - 1)
            while passed <= wanted:
                number += 1
                passed += ordered[number][1]
            found.append(ordered[number][0] * 1000)
        return found
