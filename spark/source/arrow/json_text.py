"""JSON texts of values, for fields of the types `any`, `scalar`, `array` and `map`.

Values that JSON lacks are written as follows:

- decimals are numbers with all their digits, integers too, however large they are;
- NaN and the infinities are the strings `"NaN"`, `"Infinity"` and `"-Infinity"`, which Spark's `from_json`
  reads as doubles;
- uuids, datetimes (ISO 8601) and intervals (ISO 8601) are strings;
- binary values are base64 strings, as in Spark's `to_json`; so are values of unknown extension
  types, with their MessagePack head;
- errors are their messages;
- map keys that are not strings are their JSON texts, as strings;
- strings that are not UTF-8 keep their bytes.

Compiled code writes common values, `orjson` most others, and a slower function the rest.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from math import isfinite, isnan
from typing import Any, Final
from uuid import UUID

import orjson
import pyarrow as pa

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Datetime, Interval
from iproto_server.errors import BoxError
from pyspark_tarantool.native import twin
from pyspark_tarantool.source.decode.packed import Cells, Offsets

_CYCLE_YEARS: Final = 400
_CYCLE_SECONDS: Final = 146_097 * 86_400
"""The calendar repeats after this many years."""

_FIRST_SECOND: Final = -62_135_596_800
"""The beginning of Python's datetimes, the year 1."""

_encode_text = json.encoder.encode_basestring


def json_text(value: object) -> bytes:
    """The JSON text of a value, in UTF-8 if its strings are.

    Parameters:
        value: A result of `codec.unpack`.

    Raises:
        ValueError: If it is nested too deep.
    """
    try:
        text = orjson.dumps(value, _plain, orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError:
        return _careful(value)
    # `orjson` writes NaN and infinities as null.
    return _careful(value) if b"null" in text and _has_unwritten(value) else text


def json_array(values: Sequence[object]) -> pa.Array:
    """The JSON texts of many values.

    Parameters:
        values: Results of `codec.unpack`; None for null.

    Returns:
        An Arrow array of strings.

    Raises:
        ValueError: If one is nested too deep.
    """
    try:
        texts = [
            None if value is None else orjson.dumps(value, _plain, orjson.OPT_PASSTHROUGH_DATACLASS)
            for value in values
        ]
    except orjson.JSONEncodeError:
        return strings([None if value is None else json_text(value) for value in values])
    array = strings(texts)
    buffer = array.buffers()[2]
    if buffer is None or b"null" not in buffer.to_pybytes():
        return array
    for place, text in enumerate(texts):
        if text is not None and b"null" in text and _has_unwritten(values[place]):
            texts[place] = _careful(values[place])
    return strings(texts)


def json_cells(cells: Cells) -> pa.Array:
    """The JSON texts of packed values.

    Parameters:
        cells: The values; missing ones and nil are null.

    Returns:
        An Arrow array of strings.

    Raises:
        ValueError: If one is malformed, or nested too deep.
    """
    quick = quick_json(cells.buffer.data, *cells.places)
    if quick is None:
        return json_array(cells.values())
    buffers = [None if each is None else pa.py_buffer(each) for each in quick]
    return pa.Array.from_buffers(pa.string(), len(cells), buffers)


@twin
def quick_json(data: bytes, start: Offsets, end: Offsets) -> tuple[bytes | None, bytes, bytes] | None:
    """Compiled conversion to a column of JSON texts.

    Parameters:
        data: The bytes of a buffer.
        start: The start offsets; negative for missing ones.
        end: The end offsets.

    Returns:
        The validity bitmap, the 32-bit offsets, and the texts; None if there are other values than integers,
        strings, booleans, nil, arrays and maps with different strings as keys, or without compiled code.
    """
    return None


def strings(texts: Sequence[bytes | None]) -> pa.Array:
    """An Arrow array of strings that need not be UTF-8."""
    return pa.array(texts, pa.binary()).cast(pa.string(), safe=False)


def datetime_text(moment: Datetime) -> str:
    """A datetime in ISO 8601, in its own zone.

    Parameters:
        moment: Of any year; years after 9999 have a plus sign and more digits, those before 0 a minus sign.
    """
    local = moment.seconds + moment.tzoffset * 60
    cycles, rest = divmod(local - _FIRST_SECOND, _CYCLE_SECONDS)
    day = datetime.fromordinal(1 + rest // 86_400)
    year = day.year + cycles * _CYCLE_YEARS
    years = f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"
    hours, seconds = divmod(rest % 86_400, 3600)
    text = f"{years}-{day.month:02}-{day.day:02}T{hours:02}:{seconds // 60:02}:{seconds % 60:02}"
    if moment.nsec:
        text += f".{moment.nsec:09}".rstrip("0")
    if not moment.tzoffset:
        return text + "Z"
    sign = "-" if moment.tzoffset < 0 else "+"
    return f"{text}{sign}{abs(moment.tzoffset) // 60:02}:{abs(moment.tzoffset) % 60:02}"


def interval_text(interval: Interval) -> str:
    """An interval in ISO 8601, each part with its own sign: `P1Y-2M3W4DT5H6M7.000000008S`."""
    dates = ((interval.year, "Y"), (interval.month, "M"), (interval.week, "W"), (interval.day, "D"))
    times = ((interval.hour, "H"), (interval.minute, "M"))
    before = "".join(f"{part}{unit}" for part, unit in dates if part)
    after = "".join(f"{part}{unit}" for part, unit in times if part)
    nanoseconds = interval.second * 1_000_000_000 + interval.nsec
    if nanoseconds or not before + after:
        whole, rest = divmod(abs(nanoseconds), 1_000_000_000)
        sign = "-" if nanoseconds < 0 else ""
        after += f"{sign}{whole}" + (f".{rest:09}".rstrip("0") if rest else "") + "S"
    return f"P{before}T{after}" if after else f"P{before}"


def decimal_text(number: Decimal) -> str:
    """A decimal with all its digits, and no exponent."""
    return format(number, "f")


def _plain(value: object) -> Any:
    """A replacement for a value that `orjson` does not support."""
    if isinstance(value, Decimal):
        return orjson.Fragment(decimal_text(value))
    if isinstance(value, Datetime):
        return datetime_text(value)
    if isinstance(value, Interval):
        return interval_text(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, BoxError):
        return value.message
    if isinstance(value, codec.ExtType | codec.Raw):
        return b64encode(codec.pack(value)).decode()
    raise TypeError(type(value).__name__)


def _has_unwritten(value: object) -> bool:
    """Whether a value is or contains a NaN or infinity."""
    if isinstance(value, float):
        return not isfinite(value)
    if isinstance(value, list):
        return any(map(_has_unwritten, value))
    return isinstance(value, dict) and any(map(_has_unwritten, value.values()))


def _careful(value: object) -> bytes:
    """The text of a value that `orjson` cannot write as required."""
    parts: list[str] = []
    try:
        _append(value, parts)
    except RecursionError:
        raise ValueError("nested too deep") from None
    return "".join(parts).encode("utf-8", "surrogateescape")


def _append(value: Any, parts: list[str]) -> None:
    if isinstance(value, str):
        parts.append(_encode_text(value))
    elif isinstance(value, list | tuple) and not isinstance(value, codec.ExtType):
        for number, item in enumerate(value):
            parts.append("," if number else "[")
            _append(item, parts)
        parts.append("]" if value else "[]")
    elif isinstance(value, dict):
        for number, (key, item) in enumerate(value.items()):
            parts.append("," if number else "{")
            parts.append(_encode_text(key if isinstance(key, str) else _key(key)))
            parts.append(":")
            _append(item, parts)
        parts.append("}" if value else "{}")
    else:
        parts.append(_scalar(value))


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if isfinite(value):
            return orjson.dumps(value).decode()
        return '"NaN"' if isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if isinstance(value, Decimal):
        return decimal_text(value)
    return _encode_text(str(value) if isinstance(value, UUID) else _plain(value))


def _key(key: object) -> str:
    """A map key as a string: its JSON text, without quotes."""
    parts: list[str] = []
    _append(key, parts)
    text = "".join(parts)
    return json.loads(text) if text.startswith('"') else text
