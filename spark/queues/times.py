"""Moments and times as they are stored, as microseconds, and as timestamps."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

MICROSECONDS: Final = 1_000_000
NEVER: Final = 10**16
"""Microseconds from which on a moment does not come: those of the year 2286. Queues store 2^64-1, or the end
of a time of a hundred years, where somebody has not said when. Sums of hundreds of them fit into 64 bits."""


def microseconds(stored: str, units: int) -> Column:
    """What is stored, as microseconds.

    Parameters:
        stored: A number as text, in SQL.
        units: How many of its units are a second: 1, or a million.

    Returns:
        A bigint, `NEVER` at most; null if it is no number.
    """
    number = f"try_cast({stored} as decimal(20, 0))"
    if units != MICROSECONDS:
        number = f"round(try_cast({stored} as decimal(26, 9)) * {MICROSECONDS // units}, 0)"
    # Not least(…), which passes over null.
    capped = f"case when {number} < {NEVER} then {number} when {number} >= {NEVER} then {NEVER} end"
    return sql.expr(f"cast({capped} as bigint)")


def moment(micros: Column) -> Column:
    """A moment in microseconds since 1970 as a timestamp; null if it is none, or does not come."""
    return sql.when((micros > 0) & (micros < NEVER), sql.timestamp_micros(micros))


def seconds_between(begin: Column, end: Column) -> Column:
    """How many seconds are between two timestamps, a double that is exact to the microsecond."""
    return (sql.unix_micros(end) - sql.unix_micros(begin)) / MICROSECONDS
