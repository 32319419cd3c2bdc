"""Latencies and their percentiles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


class Latencies:
    """Latencies of answers.

    Attributes:
        together: pairs of seconds and the number of answers with that latency.
    """

    __slots__ = ("together",)

    def __init__(self) -> None:
        self.together: list[tuple[float, int]] = []

    def add(self, seconds: float, count: int = 1) -> None:
        """Add a number of answers with the same latency."""
        self.together.append((seconds, count))

    @classmethod
    def of_all(cls, parts: Iterable[Latencies]) -> Self:
        """Combine several."""
        whole = cls()
        for part in parts:
            whole.together += part.together
        return whole

    def __len__(self) -> int:
        return sum(count for _, count in self.together)

    def milliseconds(self, *shares: float) -> list[float]:
        """Return percentiles, the lowest first.

        Parameters:
            shares: 0.5 is the median.

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
