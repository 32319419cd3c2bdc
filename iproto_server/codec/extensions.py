"""The values that MessagePack lacks and Tarantool adds: decimal, uuid, error, datetime, interval.

Each is a payload of bytes with a type number. A payload that is not what its type promises is kept as it came
(``msgpack.ExtType``) and not refused: a row must be readable whatever some client once stored in it.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Self
from uuid import UUID

from msgpack import ExtType

from iproto_server.errors import BoxError
from iproto_server.native._native import pack, set_hook, skip, unpack

_DECIMAL_DIGITS = 38
# A scale and 38 digits need 21 bytes at most; zeros in front are allowed, but not without end.
_DECIMAL_PAYLOAD = 64
_PLUS_NIBBLES = frozenset("acef")
_NEGATIVE_NIBBLES = frozenset("bd")
_DATETIME_TAIL = struct.Struct("<ihh")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class ExtensionType(IntEnum):
    """The extension types that Tarantool defines."""

    DECIMAL = 1
    UUID = 2
    ERROR = 3
    DATETIME = 4
    COMPRESSION = 5
    INTERVAL = 6


@dataclass(frozen=True, order=True, slots=True)
class Datetime:
    """A moment in time with a nanosecond's precision and the zone it was written in.

    Two moments are compared as moments: the zone does not count, as in Tarantool.

    Attributes:
        seconds: whole seconds since 1970-01-01 00:00 UTC; may be negative.
        nsec: nanoseconds after ``seconds``, 0 … 999 999 999.
        tzoffset: minutes east of UTC.
        tzindex: the zone's number in Tarantool's table of zone names, 0 when the zone has no name.
    """

    seconds: int
    nsec: int = 0
    tzoffset: int = field(default=0, compare=False)
    tzindex: int = field(default=0, compare=False)

    @classmethod
    def from_datetime(cls, moment: datetime) -> Self:
        """Convert Python's ``datetime``.

        Args:
            moment: must know its zone.

        Returns:
            The same moment, with the zone's offset in minutes and without its name.

        Raises:
            ValueError: ``moment`` has no zone, so that it does not say which moment it is.
        """
        offset = moment.utcoffset()
        if offset is None:
            raise ValueError("a datetime without a time zone is not a moment in time")
        microseconds = (moment - _EPOCH) // _MICROSECOND
        seconds, rest = divmod(microseconds, 1_000_000)
        return cls(seconds, rest * 1000, int(offset.total_seconds()) // 60)

    def to_datetime(self) -> datetime:
        """Convert to Python's ``datetime``, which is cut to microseconds.

        Raises:
            OverflowError: the year is not within 1 … 9999.
        """
        zone = timezone(timedelta(minutes=self.tzoffset)) if self.tzoffset else UTC
        return (_EPOCH + timedelta(seconds=self.seconds, microseconds=self.nsec // 1000)).astimezone(zone)


class IntervalAdjust(IntEnum):
    """How to add months if the resulting month lacks the day."""

    EXCESS = 0
    NONE = 1
    LAST = 2


@dataclass(frozen=True, slots=True)
class Interval:
    """A span in calendar units, each a whole number of either sign; none is converted into another."""

    year: int = 0
    month: int = 0
    week: int = 0
    day: int = 0
    hour: int = 0
    minute: int = 0
    second: int = 0
    nsec: int = 0
    adjust: int = IntervalAdjust.NONE


_INTERVAL_FIELDS = ("year", "month", "week", "day", "hour", "minute", "second", "nsec", "adjust")
# Their number, and for each of them its own and nine bytes at most.
_INTERVAL_PAYLOAD = 1 + 10 * len(_INTERVAL_FIELDS)


def _fits_decimal(digits: int, scale: int) -> bool:
    """Tell whether so many digits, so many of them behind the point, are within what a decimal holds."""
    return digits <= _DECIMAL_DIGITS and scale <= _DECIMAL_DIGITS and digits - scale <= _DECIMAL_DIGITS


def encode_decimal(value: Decimal) -> bytes:
    """Encode a decimal as its scale and its packed digits.

    Args:
        value: a finite number below 10**38 of at most 38 digits and a scale of at most 38.

    Returns:
        The payload; trailing zeros are kept.

    Raises:
        BoxError: PROC_LUA when the number does not fit Tarantool's decimal.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not _fits_decimal(len(digits), -exponent):
        raise BoxError.procedure(f"decimal '{value}' is out of range")
    nibbles = "".join(map(str, digits)) + ("d" if sign else "c")
    if len(nibbles) % 2:
        nibbles = "0" + nibbles
    return pack(-exponent) + bytes.fromhex(nibbles)


def decode_decimal(payload: bytes) -> Decimal | None:
    """Decode a decimal, scale included; None if the payload is not one that Tarantool understands."""
    if len(payload) > _DECIMAL_PAYLOAD:
        return None
    try:
        end = skip(payload, 0)
        scale = unpack(payload[:end])
    except BoxError:
        return None
    nibbles = payload[end:].hex()
    if type(scale) is not int or not nibbles:
        return None
    digits = nibbles[:-1].lstrip("0")
    sign = nibbles[-1]
    if not _fits_decimal(len(digits) or 1, scale) or (digits and not digits.isdecimal()):
        return None
    if sign in _PLUS_NIBBLES:
        return Decimal(f"{digits or 0}E{-scale}")
    if sign in _NEGATIVE_NIBBLES:
        return Decimal(f"-{digits or 0}E{-scale}")
    return None


def encode_datetime(value: Datetime) -> bytes:
    """Encode a moment; the half with nanoseconds and zone is left out when it is all zero.

    Raises:
        BoxError: PROC_LUA when a part does not fit its bytes.
    """
    try:
        payload = value.seconds.to_bytes(8, "little", signed=True)
        if value.nsec or value.tzoffset or value.tzindex:
            payload += _DATETIME_TAIL.pack(value.nsec, value.tzoffset, value.tzindex)
    except (OverflowError, struct.error):
        raise BoxError.procedure(f"{value!r} is out of range") from None
    return payload


def decode_datetime(payload: bytes) -> Datetime | None:
    """Decode a moment; None if the payload is not one."""
    if len(payload) == 8:
        return Datetime(int.from_bytes(payload, "little", signed=True))
    if len(payload) != 16:
        return None
    nsec, tzoffset, tzindex = _DATETIME_TAIL.unpack_from(payload, 8)
    if not 0 <= nsec < 1_000_000_000 or not -720 <= tzoffset <= 840:
        return None
    return Datetime(int.from_bytes(payload[:8], "little", signed=True), nsec, tzoffset, tzindex)


def encode_interval(value: Interval) -> bytes:
    """Encode a span: how many of its units are not zero, then each with its number.

    Raises:
        BoxError: PROC_LUA when a part does not fit 64 bits.
    """
    parts = [
        bytes((number,)) + pack(part)
        for number, name in enumerate(_INTERVAL_FIELDS)
        if (part := _interval_part(value, name))
    ]
    return bytes((len(parts),)) + b"".join(parts)


def _interval_part(value: Interval, name: str) -> int:
    part: int = getattr(value, name)
    if not -(2**63) <= part < 2**63:
        raise BoxError.procedure(f"{value!r} is out of range")
    return int(part)


def decode_interval(payload: bytes) -> Interval | None:
    """Decode a span; None if the payload is not one."""
    if len(payload) > _INTERVAL_PAYLOAD:
        return None
    parts: dict[str, int] = {"adjust": IntervalAdjust.EXCESS}
    try:
        end, numbers = 0, []
        while end < len(payload):
            start, end = end, skip(payload, end)
            numbers.append(unpack(payload[start:end]))
        count, *fields = numbers
        if type(count) is not int or len(fields) != 2 * count:
            return None
        for number, part in zip(fields[::2], fields[1::2], strict=True):
            if type(number) is not int or number < 0 or type(part) is not int:
                return None
            parts[_INTERVAL_FIELDS[number]] = part
    except (BoxError, ValueError, IndexError):
        return None
    return Interval(**parts) if 0 <= parts["adjust"] <= IntervalAdjust.LAST else None


def error_stack(error: BoxError) -> dict[int, object]:
    """Describe an error and its causes in the shape that clients know: the newest first.

    Args:
        error: the error.

    Returns:
        ``{0: [error, cause, …]}``, each a map of type 0, line 2, file 1, message 3, errno 4, code 5 and, if
        it has any, fields 6. Texts end at a zero byte.
    """
    stack: list[object] = []
    for entry in error.stack():
        described: dict[int, object] = {
            0: error_text(entry.type),
            2: entry.line,
            1: error_text(entry.file),
            3: error_text(entry.message),
            4: entry.errno,
            5: entry.code,
        }
        if entry.fields:
            described[6] = entry.fields
        stack.append(described)
    return {0: stack}


def error_text(text: object) -> object:
    """A text of an error as clients see it: in Tarantool it is a C string, which ends at a zero byte."""
    return text.partition("\0")[0] if isinstance(text, str) else text


def error_from_packed_stack(packed: bytes) -> BoxError | None:
    """Build the error that packed :func:`error_stack` describes; None if the description is not one."""
    return error_from_stack(unpack(packed))


def error_from_stack(described: object) -> BoxError | None:
    """Build the error that :func:`error_stack` describes; None if the description is not one."""
    if not isinstance(described, dict) or not isinstance(stack := described.get(0), list) or not stack:
        return None
    error: BoxError | None = None
    for entry in reversed(stack):
        if not isinstance(entry, dict):
            return None
        fields = entry.get(6, {})
        texts = [entry.get(key) for key in (0, 1, 3)]
        numbers = [entry.get(key, 0) for key in (2, 4, 5)]
        if not isinstance(fields, dict):
            return None
        if not all(isinstance(text, str) for text in texts) or not all(type(n) is int for n in numbers):
            return None
        error = BoxError.with_message(
            numbers[2], str(texts[2]), type=str(texts[0]), fields=fields, previous=error
        )
        error.file, error.line, error.errno = str(texts[1]), numbers[0], numbers[1]
    return error


def decode_uuid(payload: bytes) -> UUID | None:
    """Decode a uuid; None if the payload is not 16 bytes."""
    return UUID(bytes=payload) if len(payload) == 16 else None


_DECODERS: dict[int, Callable[[bytes], object]] = {
    ExtensionType.DECIMAL: decode_decimal,
    ExtensionType.UUID: decode_uuid,
    ExtensionType.DATETIME: decode_datetime,
    ExtensionType.INTERVAL: decode_interval,
}


def decode(number: int, payload: bytes, described: object) -> object:
    """Return the value of an extension that `unpack` has met.

    Parameters:
        number: Its type, not negative.
        payload: Its bytes.
        described: What the payload of an error describes; None for other types, and if that cannot be
            unpacked.
    """
    if number == ExtensionType.ERROR:
        value: object = error_from_stack(described)
    else:
        decoder = _DECODERS.get(number)
        value = None if decoder is None else decoder(payload)
    return ExtType(number, payload) if value is None else value


def encode(value: object) -> tuple[int, object] | None:
    """Return the extension that `pack` writes for a value that has no other form.

    Parameters:
        value: Of a type that MessagePack lacks, or an integer beyond 64 bits.

    Returns:
        The type, and the payload or what is packed as the payload; None for a tuple that is packed as an
        array.

    Raises:
        BoxError: PROC_LUA, the value has no form at all.
    """
    if isinstance(value, tuple):
        return (value.code, value.data) if isinstance(value, ExtType) else None
    if isinstance(value, Decimal):
        return ExtensionType.DECIMAL, encode_decimal(value)
    if isinstance(value, UUID):
        return ExtensionType.UUID, value.bytes
    if isinstance(value, Datetime):
        return ExtensionType.DATETIME, encode_datetime(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return ExtensionType.DATETIME, encode_datetime(Datetime.from_datetime(value))
    if isinstance(value, Interval):
        return ExtensionType.INTERVAL, encode_interval(value)
    if isinstance(value, BoxError):
        return ExtensionType.ERROR, error_stack(value)
    if isinstance(value, int):
        raise BoxError.procedure(_does_not_fit(value))
    raise BoxError.procedure(f"unsupported Python type '{type(value).__name__}'")


def _does_not_fit(number: int) -> str:
    try:
        return f"integer {number} does not fit 64 bits"
    except ValueError:  # Python refuses to convert numbers of thousands of digits
        return "a value that is nested too deep or is too large cannot be packed"


set_hook("decode_extension", decode)
set_hook("encode_extension", encode)
