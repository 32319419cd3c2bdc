"""Moments and times as they are stored, as microseconds, and as timestamps."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

MICROSECONDS: Final = 1_000_000
NEVER: Final = 10**16
"""Microseconds from which on a moment does not come: those of the year 2286. Queues store 2^64-1, or the end
of a time of a hundred years, where somebody has not said when. Sums of hundreds of them fit into 64 bits."""


def microseconds(stored: Column, units: int) -> Column:
    """What is stored, as microseconds.

    Args:
        stored: A number as text.
        units: How many of its units are a second: 1, or a million.

    Returns:
        A bigint, `NEVER` at most; null if it is no number.
    """
    if units == MICROSECONDS:
        number = stored.try_cast("decimal(20,0)")
    else:
        number = sql.round(stored.try_cast("decimal(26,9)") * sql.lit(MICROSECONDS // units), 0)
    return sql.when(number < NEVER, number).when(number.isNotNull(), NEVER).cast("bigint")


def moment(micros: Column) -> Column:
    """A moment in microseconds since 1970 as a timestamp; null if it is none, or does not come."""
    return sql.when((micros > 0) & (micros < NEVER), sql.timestamp_micros(micros))


def seconds_between(begin: Column, end: Column) -> Column:
    """How many seconds are between two timestamps, a double that is exact to the microsecond."""
    return (sql.unix_micros(end) - sql.unix_micros(begin)) / MICROSECONDS
