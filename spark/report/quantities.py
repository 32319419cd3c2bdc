"""Formats values for tables on the terminal and in reports."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400

NOTHING: Final = "–"
"""The text for a missing value."""


def is_number(value: object) -> bool:
    """Whether a value is a number, which tables align to the right."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def label_of(column: str) -> str:
    """The heading of a column: `age_p50_s` becomes `age p50`, since each value has its unit.

    Parameters:
        column: The column's name.
    """
    for suffix in ("_s", "_bytes"):
        column = column.removesuffix(suffix)
    return column.replace("_", " ").strip()


def text_of(column: str, value: object) -> str:
    """A value with its unit.

    Parameters:
        column: The column's name: the endings `_s` and `_bytes` mark seconds and bytes.
        value: The value.
    """
    if value is None:
        return NOTHING
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float | Decimal):
        return str(value)
    if column.endswith("_s"):
        return duration(float(value))
    if column.endswith("_bytes"):
        return size(float(value))
    return number(value)


def number(value: float | Decimal) -> str:
    """A number with separated thousands: `12 345`, `0.25`."""
    if value % 1 == 0:
        return f"{int(value):,}".replace(",", "\N{NO-BREAK SPACE}")
    value = float(value)
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".").replace(",", "\N{NO-BREAK SPACE}")


def duration(seconds: float) -> str:
    """A duration in at most two units: `850 ms`, `12.3 s`, `4 min 5 s`, `3 h 20 min`, `12 d 4 h`."""
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.9995:
        return "0 s" if seconds == 0 else f"{seconds * 1e3:.3g} ms" if seconds >= 5e-7 else "< 1 µs"
    if seconds < _MINUTE:
        return f"{seconds:.3g} s"
    for unit, name, smaller, smaller_name in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", 1, "s"),
    ):
        if seconds >= unit:
            whole, rest = divmod(round(seconds / smaller), unit // smaller)
            days = f"{whole:,}".replace(",", "\N{NO-BREAK SPACE}")
            return f"{days} {name} {rest} {smaller_name}" if rest else f"{days} {name}"
    raise AssertionError(seconds)


def size(count: float) -> str:
    """A number of bytes: `512 B`, `1.25 kB`, `3.4 MB`; a kilobyte has 1000 bytes."""
    step = 0
    while abs(count) >= 999.5 and step < len(_UNITS) - 1:
        count /= 1000
        step += 1
    return f"{count:.0f} B" if step == 0 else f"{count:.3g} {_UNITS[step]}"


def moment(value: datetime) -> str:
    """A time in UTC: `2026-01-31 12:00:00 UTC`; Spark's rows have local times, possibly naive."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
