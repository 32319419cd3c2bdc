"""The growing pause between two attempts at work that fails."""

from __future__ import annotations

from typing import Final

FIRST_PAUSE: Final = 1.0
"""Seconds before the second attempt."""
LONGEST_PAUSE: Final = 30.0
"""The default of the longest pause, in seconds."""


def pause_after(failures: int, longest: float = LONGEST_PAUSE) -> float:
    """Return the seconds before the next attempt: each pause is twice as long as the one before.

    Parameters:
        failures: the number of attempts that have failed one after another, at least 1.
        longest: the longest pause, in seconds.
    """
    return min(longest, FIRST_PAUSE * 2.0 ** min(failures - 1, 30))
