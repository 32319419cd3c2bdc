"""Computes new values from old ones: arithmetic, bit operations and splices."""

from __future__ import annotations

import struct
from decimal import ROUND_HALF_UP, Clamped, Context, Decimal, Inexact, Rounded, Subnormal, Underflow
from typing import Final, NamedTuple

from iproto_server.box.update.errors import argument_type_error, splice_error
from iproto_server.box.update.operation import Argument
from iproto_server.box.update.packed_values import read_number, read_unsigned, string_content
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode

_INTEGER_RANGE: Final = range(-(2**63), 2**64)
_LARGEST_FLOAT32: Final = struct.unpack(">f", b"\x7f\x7f\xff\xff")[0]
_FLOAT32: Final = struct.Struct(">f")
_FLOAT64: Final = struct.Struct(">d")

# Tarantool's decimals: 38 digits, up to 38 of them after the point.
_DECIMALS: Final = Context(prec=38, rounding=ROUND_HALF_UP, Emin=-1, Emax=37, clamp=0, traps=[])
_HARMLESS: Final = (Inexact, Rounded, Underflow, Subnormal, Clamped)


class Computed(NamedTuple):
    """A computed value, packed.

    Attributes:
        raw: the value as it is stored in most fields.
        as_double: the value as it is stored in a field of type `double`, which accepts no shorter form.
    """

    raw: bytes
    as_double: bytes


def compute(opcode: str, argument: Argument, old: bytes, field: str) -> Computed:
    """Compute the result of `+ - & | ^ :` on a field.

    Args:
        opcode: the operation.
        argument: its argument; see `Operation`.
        old: the field's packed value.
        field: the field, for messages.

    Returns:
        The new value. A sum of floats is stored in the shortest form that is exact, float32 or double.

    Raises:
        BoxError: the old value has the wrong type, the offset of a splice lies before the string, or the
            result is too large for an integer or a decimal.
    """
    if opcode == ":":
        return _splice(argument, old, field)
    if opcode in "+-":
        return _add(opcode, argument, old, field)
    unsigned = read_unsigned(old)
    if unsigned is None:
        raise argument_type_error(opcode, field, "a positive integer")
    assert isinstance(argument, int)
    if opcode == "&":
        unsigned &= argument
    elif opcode == "|":
        unsigned |= argument
    else:
        unsigned ^= argument
    return _plain(codec.pack(unsigned))


def _plain(raw: bytes) -> Computed:
    return Computed(raw, raw)


def _add(opcode: str, argument: Argument, old: bytes, field: str) -> Computed:
    number = read_number(old)
    if number is None:
        raise argument_type_error(opcode, field, "a number")
    assert isinstance(argument, int | float | Decimal)
    if isinstance(number, Decimal) or isinstance(argument, Decimal):
        return _plain(codec.pack(_add_decimals(opcode, number, argument, field)))
    if isinstance(number, float) or isinstance(argument, float):
        return _shortest_float(
            float(number) + float(argument) if opcode == "+" else float(number) - float(argument)
        )
    integer = number + argument if opcode == "+" else number - argument
    if integer not in _INTEGER_RANGE:
        raise BoxError(ErrorCode.UPDATE_INTEGER_OVERFLOW, opcode, field)
    return _plain(codec.pack(integer))


def _shortest_float(number: float) -> Computed:
    double = b"\xcb" + _FLOAT64.pack(number)
    if -_LARGEST_FLOAT32 <= number <= _LARGEST_FLOAT32:
        packed = _FLOAT32.pack(number)
        if _FLOAT32.unpack(packed)[0] == number:
            return Computed(b"\xca" + packed, double)
    return Computed(double, double)


def _add_decimals(opcode: str, left: float | Decimal, right: float | Decimal, field: str) -> Decimal:
    first, second = _to_decimal(left), _to_decimal(right)
    if first is None or second is None:
        raise argument_type_error(opcode, field, "a number convertible to decimal")
    result = _DECIMALS.add(first, second) if opcode == "+" else _DECIMALS.subtract(first, second)
    if not _is_exact_enough():
        raise BoxError(ErrorCode.UPDATE_DECIMAL_OVERFLOW, opcode, field)
    return result


def _to_decimal(number: float | Decimal) -> Decimal | None:
    if isinstance(number, Decimal):
        return number
    if isinstance(number, int):
        return Decimal(number)
    # A double has 15 reliable digits; more would turn 0.1 into 0.1000000000000000055…
    result = _DECIMALS.create_decimal(f"{number:.15g}")
    return result if _is_exact_enough() and result.is_finite() else None


def _is_exact_enough() -> bool:
    """Tell whether the last decimal operation succeeded, possibly with rounding, and reset its flags."""
    flags = _DECIMALS.flags
    failed = any(raised and flag not in _HARMLESS for flag, raised in flags.items())
    _DECIMALS.clear_flags()
    return not failed


def _splice(argument: Argument, old: bytes, field: str) -> Computed:
    text = string_content(old)
    if text is None:
        raise argument_type_error(":", field, "a string")
    assert isinstance(argument, tuple)
    offset, cut_length, paste = argument
    length = len(text)
    if offset < 0:
        # -1 is the position after the last byte.
        offset += length + 1
        if offset < 0:
            raise splice_error(field)
    offset = min(offset, length)
    # A negative length is the number of bytes to keep at the end.
    end = length + cut_length if cut_length < 0 else offset + cut_length
    end = max(offset, min(end, length))
    spliced = text[:offset] + paste + text[end:]
    return _plain(codec.pack(spliced.decode("utf-8", "surrogateescape")))
