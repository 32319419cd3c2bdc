"""Times and durations as stored in the rows of tubes: microseconds, times since 1970."""

from __future__ import annotations

import math
from typing import Final

from iproto_server import Box
from queue_lua_compat.tubes.arguments import number

MICROSECONDS: Final = 1_000_000
LONGEST: Final = 365 * 86400 * 100
"""Seconds of the longest duration, a hundred years; longer ones are unlimited."""

NEVER: Final = 2**64 - 1
"""The time that is never reached, and the unlimited duration."""


def now(box: Box) -> int:
    """Return the current time."""
    return box.clock.time_ns() // 1000


def span(seconds: object, name: str = "the time") -> int:
    """Convert a duration to microseconds.

    Parameters:
        seconds: the client's value; negative values count as zero.
        name: the name of the argument or option, for the error.

    Raises:
        BoxError: it is not a number.
    """
    given = number(seconds, name)
    if given <= 0:
        return 0
    # Without min() and, for most values, floor(): every put of a task with times comes through here.
    if given > NEVER:
        return NEVER
    microseconds = given * MICROSECONDS if type(given) is int else math.floor(given * MICROSECONDS)
    return microseconds if microseconds < NEVER else NEVER


def moment_after(box: Box, seconds: object, name: str = "the time") -> int:
    """Return the time after a number of seconds from now; `NEVER` after more than a hundred years.

    Parameters:
        box: the box.
        seconds, name: as for `span`.

    Raises:
        BoxError: it is not a number.
    """
    given = number(seconds, name)
    return NEVER if given > LONGEST else now(box) + span(given)


def in_seconds(moment: int) -> float:
    """Convert a time for `DueTimer`: seconds since 1970."""
    return moment / MICROSECONDS
