"""Moments and spans as they stand in the rows of tubes: microseconds, moments since 1970."""

from __future__ import annotations

import math
from typing import Final

from iproto_server import Box
from queue_lua_compat.tubes.arguments import number

MICROSECONDS: Final = 1_000_000
LONGEST: Final = 365 * 86400 * 100
"""Seconds of the longest span, a hundred years; what is longer is for ever."""

NEVER: Final = 2**64 - 1
"""The moment that does not come, and the span that does not end."""


def now(box: Box) -> int:
    """This moment."""
    return box.clock.time_ns() // 1000


def span(seconds: object) -> int:
    """A span, as many microseconds.

    Parameters:
        seconds: as a client gives it; what is below zero is none.

    Raises:
        BoxError: it is no number.
    """
    given = number(seconds)
    if given <= 0:
        return 0
    return min(math.floor(given * MICROSECONDS), NEVER) if given != math.inf else NEVER


def moment_after(box: Box, seconds: object) -> int:
    """The moment that many seconds from now; `NEVER` when that is more than a hundred years.

    Raises:
        BoxError: it is no number.
    """
    given = number(seconds)
    return NEVER if given > LONGEST else now(box) + span(given)


def in_seconds(moment: int) -> float:
    """A moment as `DueTimer` has it: seconds since 1970."""
    return moment / MICROSECONDS
