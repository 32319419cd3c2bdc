"""Texts for values that JSON, YAML and Lua cannot express, in the formats of `cat`."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError


def as_integer(value: float) -> int | None:
    """The integer that Tarantool shows for a double; None if it has a fraction or is out of range."""
    if value.is_integer() and -(2.0**63) <= value < 2.0**64:
        return int(value)
    return None


def shown_double(value: float) -> str:
    """A double as Tarantool shows it: 14 digits."""
    return "nan" if math.isnan(value) else f"{value:.14g}"


def shown_decimal(value: Decimal) -> str:
    """A decimal as Tarantool shows it: without exponent."""
    return f"{value:f}"


def extension_text(value: object) -> str:
    """The text of a value of an extension type that Tarantool 2.6 does not know."""
    if isinstance(value, codec.Datetime):
        return _datetime_text(value)
    if isinstance(value, codec.Interval):
        units = ("year", "month", "week", "day", "hour", "minute", "second", "nsec")
        parts = [f"{getattr(value, unit):+d} {unit}s" for unit in units if getattr(value, unit)]
        return ", ".join(parts).replace("nsecs", "nanoseconds") or "0 seconds"
    if isinstance(value, BoxError):
        return value.message
    if isinstance(value, codec.ExtType):
        return f"ext({value.code}, {value.data.hex()})"
    if isinstance(value, codec.Raw):
        return f"ext({value.raw.hex()})"
    raise TypeError(f"no value of a tuple: {type(value).__name__}")


def _datetime_text(value: codec.Datetime) -> str:
    """As in `2024-02-29T12:00:00.5+0300`, the zone's offset being Z where it is 0."""
    shift = value.seconds + value.tzoffset * 60
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=shift)
    except OverflowError:
        return f"{value.seconds}.{value.nsec:09d}"
    fraction = f".{value.nsec:09d}".rstrip("0") if value.nsec else ""
    hours, minutes = divmod(abs(value.tzoffset), 60)
    sign = "-" if value.tzoffset < 0 else "+"
    zone = f"{sign}{hours:02d}{minutes:02d}" if value.tzoffset else "Z"
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"
