"""Values as byte strings that sort as the values do.

Goals: comparing two index keys is one comparison of bytes, whatever the types of their parts; a key of
several parts is the parts' encodings joined, so that the keys that start with some values are those whose
bytes start with theirs; and a key costs little more memory than the values.

For that every encoding is prefix-free within its type: no value's bytes are the beginning of another's.

    boolean, unsigned, integer, double, uuid, datetime   fixed width, big-endian
    string, varbinary    the bytes with 00 written as 00 01, then 00 00
    string, a collation  ICU's sort key, which has no 00 but at its end
    number, decimal      see below
    scalar               a byte for the class (bool, number, string, varbinary, uuid, datetime), the value
    nullable part        00 for nil; 01 and the value otherwise

Numbers of every kind share one exact order (2**53 and 2**53 + 1 differ though they are one double; 1, 1.0 and
Decimal("1.00") are the same key). A number x >= 0 is written as an 80-bit integer: a one for the sign, then
the 63 bits (exponent, mantissa) of the largest double <= x, then 16 bits of what is left of x in units of
that double's last place. Any 64-bit integer is exact by now. A decimal may have a rest: its decimal digits
follow in ASCII (the fraction is finite, its denominator is a product of twos and tens). A byte 00 ends it.
A negative number has every bit of its absolute value's encoding inverted, the end byte too. NaN, which
Tarantool sorts below everything, is all zeros.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from iproto_server.box.types.field_type import FieldType
from iproto_server.codec.msgpack import Datetime
from iproto_server.errors import BoxError, ErrorCode

Encoder = Callable[[Any], bytes]

NIL: Final = b"\x00"
NOT_NIL: Final = b"\x01"

_INVERT: Final = bytes(255 - byte for byte in range(256))
_ZERO: Final = b"\x80" + bytes(10)
_NAN: Final = bytes(11)
_INFINITY: Final = b"\xff\xf0" + bytes(9)
_END: Final = b"\x00"
_pack_double = struct.Struct(">d").pack
_unpack_bits = struct.Struct(">Q").unpack
_pack_unsigned = struct.Struct(">Q").pack
_pack_datetime = struct.Struct(">QI").pack
_SIGN_BIT_64: Final = 1 << 63

# For a positive integer of bit length b <= 64: the exponent's place in the 88 bits (with the sign bit, and
# less the one that the leading bit of the number itself will add), and how far the number moves left to
# join it.
_EXPONENTS: Final = tuple(((length + 3069) << 76, 77 - length) for length in range(65))


def encode_number(value: Any) -> bytes:
    """Encode an int, float or Decimal; the order is that of the exact values, NaN first."""
    if type(value) is int and value > 0:
        try:
            exponent, shift = _EXPONENTS[value.bit_length()]
        except IndexError:
            return _encode_fraction(value, 1)
        return (exponent + (value << shift)).to_bytes(11, "big")
    return _encode_other_number(value)


def _encode_other_number(value: Any) -> bytes:
    """Encode what is not a positive integer."""
    if not value:
        return _ZERO
    kind = type(value)
    if kind is int:
        return encode_number(-value).translate(_INVERT)
    if kind is float:
        if value > 0:
            # Of -value the double has the sign bit set, which is how a positive number starts.
            return _pack_double(-value) + b"\x00\x00\x00"
        if value < 0:
            return (_pack_double(value) + b"\x00\x00\x00").translate(_INVERT)
        return _NAN
    if not value.is_finite():
        return _NAN if value.is_nan() else _encode_other_number(float(value))
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1:
        return encode_number(numerator)
    return _encode_fraction(numerator, denominator)


def _encode_fraction(numerator: int, denominator: int) -> bytes:
    """Encode a finite number that is neither zero nor (in general) a double or a 64-bit integer."""
    from fractions import Fraction

    if numerator < 0:
        return _encode_fraction(-numerator, denominator).translate(_INVERT)
    value = Fraction(numerator, denominator)
    try:
        floor = numerator / denominator
    except OverflowError:
        floor = math.inf
    if floor == math.inf:
        raise BoxError(ErrorCode.ILLEGAL_PARAMS, "number is too large for an index")
    if Fraction(floor) > value:
        floor = math.nextafter(floor, 0.0)
    rest = (value - Fraction(floor)) / Fraction(math.ulp(floor)) * 65536
    extra = int(rest)
    rest -= extra
    (bits,) = _unpack_bits(_pack_double(floor))
    head = ((_SIGN_BIT_64 | bits) << 16 | extra).to_bytes(10, "big")
    digits = bytearray()
    while rest:
        rest *= 10
        digit = int(rest)
        digits.append(0x30 + digit)
        rest -= digit
    return b"".join((head, digits, _END))


def encode_unsigned(value: Any) -> bytes:
    """Encode an int 0 <= value < 2**64 in 8 bytes."""
    return _pack_unsigned(value)


def encode_integer(value: Any) -> bytes:
    """Encode an int -2**63 <= value < 2**64 in 9 bytes."""
    return (value + _SIGN_BIT_64).to_bytes(9, "big")  # type: ignore[no-any-return]


def encode_double(value: Any) -> bytes:
    """Encode a float in 8 bytes; NaN first, and one zero."""
    if value > 0:
        return _pack_double(-value)
    if value < 0:
        return _pack_double(value).translate(_INVERT)
    return _ZERO[:8] if value == 0 else _NAN[:8]


def encode_boolean(value: Any) -> bytes:
    """Encode a bool in one byte; false first."""
    return b"\x01" if value else b"\x00"


def encode_string(value: Any) -> bytes:
    """Encode a str in the order of its UTF-8 bytes."""
    try:
        data = value.encode()
    except UnicodeEncodeError:
        data = value.encode("utf-8", "surrogateescape")
    if b"\x00" in data:
        data = data.replace(b"\x00", b"\x00\x01")
    return data + b"\x00\x00"  # type: ignore[no-any-return]


def encode_varbinary(value: Any) -> bytes:
    """Encode bytes in their own order."""
    return value.replace(b"\x00", b"\x00\x01") + b"\x00\x00"  # type: ignore[no-any-return]


def encode_uuid(value: Any) -> bytes:
    """Encode a UUID in 16 bytes."""
    return value.bytes  # type: ignore[no-any-return]


def encode_datetime(value: Any) -> bytes:
    """Encode a moment in 12 bytes; the time zone does not take part in the order."""
    return _pack_datetime(value.seconds + _SIGN_BIT_64, value.nsec)


def encode_scalar(value: Any) -> bytes:
    """Encode a value of any scalar class; classes come first in the order, then values."""
    prefix, encoder = _SCALAR_CLASSES[type(value)]
    return prefix + encoder(value)


def scalar_encoder(encode_text: Encoder) -> Encoder:
    """The encoding of scalars of which the texts are encoded in another way."""
    prefix = _SCALAR_CLASSES[str][0]

    def encode(value: Any) -> bytes:
        return prefix + encode_text(value) if type(value) is str else encode_scalar(value)

    return encode


_SCALAR_CLASSES: Final[dict[type, tuple[bytes, Encoder]]] = {
    bool: (b"\x01", encode_boolean),
    int: (b"\x02", encode_number),
    float: (b"\x02", encode_number),
    Decimal: (b"\x02", encode_number),
    str: (b"\x03", encode_string),
    bytes: (b"\x04", encode_varbinary),
    uuid.UUID: (b"\x05", encode_uuid),
    Datetime: (b"\x06", encode_datetime),
}

ENCODERS: Final[dict[FieldType, Encoder]] = {
    FieldType.UNSIGNED: encode_unsigned,
    FieldType.STRING: encode_string,
    FieldType.NUMBER: encode_number,
    FieldType.DOUBLE: encode_double,
    FieldType.INTEGER: encode_integer,
    FieldType.BOOLEAN: encode_boolean,
    FieldType.VARBINARY: encode_varbinary,
    FieldType.SCALAR: encode_scalar,
    FieldType.DECIMAL: encode_number,
    FieldType.UUID: encode_uuid,
    FieldType.DATETIME: encode_datetime,
}


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the least byte string above all those that start with `prefix`; None when there is none."""
    stripped = prefix.rstrip(b"\xff")
    if not stripped:
        return None
    return stripped[:-1] + _BYTES[stripped[-1] + 1]


def just_below(key: bytes) -> bytes:
    """Return a bound below the full key `key` and not below any smaller key of the same index.

    It need not be a key. It is right because of how keys end: in the 00 that ends a string or a number >= 0
    (without it the string is less than the key and is no key itself, keys being prefix-free), or in a type
    of fixed width (one less in the last byte, where only a value of the same width can be), or in the FF
    that ends a number < 0 (digits, when there are any in that place, are below FE).
    """
    last = key[-1]
    return key[:-1] if last == 0 else key[:-1] + _BYTES[last - 1]


_BYTES: Final = tuple(bytes((byte,)) for byte in range(256))
