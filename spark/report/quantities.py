"""Formats values for tables on the terminal and in reports."""

from __future__ import annotations

import math
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
    """A number with separated thousands and three or more significant digits: `12 345`, `0.25`."""
    if not math.isfinite(value):
        return _unlimited(float(value))
    if value % 1 == 0:
        return _grouped(int(value), 0)
    value = float(value)
    if abs(value) < 0.001:
        return f"{value:.3g}"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    text = _grouped(value, digits)
    return text.rstrip("0").rstrip(".") if digits else text


def _grouped(value: float, digits: int) -> str:
    # An integer has all its digits: as a float, it would lose some.
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"
    return text.replace(",", "\N{NO-BREAK SPACE}")


def _unlimited(value: float) -> str:
    return NOTHING if math.isnan(value) else "∞" if value > 0 else "-∞"


def duration(seconds: float) -> str:
    """A duration in at most two units: `850 ms`, `12.3 s`, `4 min 5 s`, `3 h 20 min`, `12 d 4 h`."""
    if not math.isfinite(seconds):
        return _unlimited(seconds)
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
            return (
                f"{_grouped(whole, 0)} {name} {rest} {smaller_name}"
                if rest
                else f"{_grouped(whole, 0)} {name}"
            )
    raise AssertionError(seconds)


def size(count: float) -> str:
    """A number of bytes: `512 B`, `1.25 kB`, `3.4 MB`; a kilobyte has 1000 bytes."""
    if not math.isfinite(count):
        return _unlimited(count)
    step = 0
    while abs(count) >= 999.5 and step < len(_UNITS) - 1:
        count /= 1000
        step += 1
    amount = f"{count:.3g}" if step and abs(count) < 999.5 else _grouped(count, 0)
    return f"{amount} {_UNITS[step]}"


def moment(value: datetime) -> str:
    """A time in UTC: `2026-01-31 12:00:00 UTC`; Spark's rows have local times, possibly naive."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
