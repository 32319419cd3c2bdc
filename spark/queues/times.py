"""Converts stored times and durations to microseconds and timestamps."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

MICROSECONDS: Final = 1_000_000
NEVER: Final = 10**16
"""Times from here on, in microseconds (the year 2286), mean never. Queues store 2^64-1, or a time a hundred
years ahead, if no time was given. Sums of hundreds of them fit into 64 bits."""


def microseconds(stored: str, units: int) -> Column:
    """Convert a stored number to microseconds.

    Parameters:
        stored: A number as text, in SQL.
        units: The number of units per second: 1, or a million.

    Returns:
        A bigint, at most `NEVER`; null if it is not a number.
    """
    number = f"try_cast({stored} as decimal(20, 0))"
    if units != MICROSECONDS:
        number = f"round(try_cast({stored} as decimal(26, 9)) * {MICROSECONDS // units}, 0)"
    # Not least(…), which ignores null.
    capped = f"case when {number} < {NEVER} then {number} when {number} >= {NEVER} then {NEVER} end"
    return sql.expr(f"cast({capped} as bigint)")


def moment(micros: Column) -> Column:
    """Convert microseconds since 1970 to a timestamp; null for 0, negative values and `NEVER`."""
    return sql.when((micros > 0) & (micros < NEVER), sql.timestamp_micros(micros))


def seconds_between(begin: Column, end: Column) -> Column:
    """The seconds between two timestamps, a double exact to the microsecond."""
    return (sql.unix_micros(end) - sql.unix_micros(begin)) / MICROSECONDS
