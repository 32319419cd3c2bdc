"""Arithmetic of decimals for `decimal.lua`.

A decimal is the bytes of Tarantool's `decimal_t`: the number of digits, the exponent, flags with the sign,
and the coefficient in units of three digits, the lowest first. A function returns None where the operation
fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import (
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Clamped,
    Context,
    Decimal,
    Inexact,
    Rounded,
    Subnormal,
    Underflow,
)
from struct import Struct
from typing import Any, Final

PRECISION: Final = 38
LARGEST_EXPONENT: Final = PRECISION - 1
SMALLEST_EXPONENT: Final = -1

_LAYOUT: Final = Struct("=iiBx13H")
_NEGATIVE: Final = 0x80
_NUMBER: Final = re.compile(rb"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_FAR_EXPONENT: Final = 10**9
"""No exponent beyond it changes a result."""

_HARMLESS: Final = frozenset({Clamped, Inexact, Rounded, Subnormal, Underflow})

_CONTEXT: Final = Context(
    prec=PRECISION, rounding=ROUND_HALF_UP, Emin=SMALLEST_EXPONENT, Emax=LARGEST_EXPONENT, clamp=0, traps=[]
)
_WIDE: Final = Context(
    prec=PRECISION + 2, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999, clamp=0, traps=[]
)
"""Results that are rounded a second time, to a decimal's digits."""

_POWER_DIGITS: Final = 10
"""More digits for a power of a fraction's intermediate results."""


def _unpacked(packed: bytes) -> Decimal:
    digits, exponent, bits, *units = _LAYOUT.unpack(packed)
    coefficient = "".join(f"{unit:03d}" for unit in reversed(units[: (digits + 2) // 3])) or "0"
    return Decimal(f"{'-' if bits & _NEGATIVE else ''}{coefficient}E{exponent}")


def _packed(number: Decimal) -> bytes:
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    units = [int(text[max(0, end - 3) : end]) for end in range(len(text), 0, -3)]
    units += [0] * (13 - len(units))
    return _LAYOUT.pack(len(text), exponent, _NEGATIVE if sign else 0, *units)


def _checked(number: Decimal, context: Context) -> bytes | None:
    """A result, unless the operation in this context failed."""
    failed = any(raised and flag not in _HARMLESS for flag, raised in context.flags.items())
    return None if failed or not number.is_finite() else _packed(number)


def decimal_parse(text: bytes) -> bytes | None:
    """The decimal of a text up to its first NUL."""
    found = _NUMBER.fullmatch(text.partition(b"\0")[0])
    if not found:
        return None
    sign, whole, fraction, exponent = (part.decode() if part else "" for part in found.groups())
    if not whole and not fraction:
        return None
    limited = max(-_FAR_EXPONENT, min(_FAR_EXPONENT, int(exponent[:12] or 0)))
    context = _CONTEXT.copy()
    context.clear_flags()
    digits = f"{whole}{fraction}"
    return _checked(context.create_decimal(f"{sign}{digits}E{limited - len(fraction)}"), context)


def decimal_text(packed: bytes) -> bytes:
    """A decimal as text, without an exponent."""
    number = _unpacked(packed)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    if exponent >= 0:
        text += "0" * exponent
    else:
        text = text.rjust(1 - exponent, "0")
        text = f"{text[:exponent]}.{text[exponent:]}"
    return f"{'-' if sign else ''}{text}".encode()


def decimal_compare(left: bytes, right: bytes) -> int:
    """Negative, 0 or positive, as the left decimal is less than, equal to or greater than the right one."""
    one, other = _unpacked(left), _unpacked(right)
    return (one > other) - (one < other)


def _operation(calculate: Callable[..., Decimal]) -> Callable[..., bytes | None]:
    def operate(*operands: bytes) -> bytes | None:
        context = _CONTEXT.copy()
        context.clear_flags()
        return _checked(calculate(context, *map(_unpacked, operands)), context)

    return operate


def _exponential(context: Context, number: Decimal) -> Decimal:
    if number < 0 and number.adjusted() >= 8:
        return Decimal("0E-11")  # which has fewer digits than other results that are too small
    return context.plus(_WIDE.copy().exp(number))


def _logarithm(context: Context, number: Decimal) -> Decimal:
    """ln, with at most 37 digits behind the point."""
    if number == 1:
        return Decimal("-0" if len(number.as_tuple().digits) == PRECISION else 0)
    result = _WIDE.copy().ln(number)
    if not result.is_finite():
        return result
    finest = Decimal((0, (1,), -LARGEST_EXPONENT))
    return context.quantize(result, finest) if result.adjusted() < 0 else context.plus(result)


def _logarithm10(context: Context, number: Decimal) -> Decimal:
    """log10, whose exponent has no limit."""
    wide = _WIDE.copy()
    wide.prec = PRECISION
    return wide.log10(number)


def _power(context: Context, base: Decimal, power: Decimal) -> Decimal:
    if power.is_zero() or base.is_zero() or (base == 1 and power == power.to_integral_value()):
        if base.is_zero():
            if power <= 0:
                return Decimal("NaN")
            odd = power == power.to_integral_value() and int(power) % 2 == 1
            return Decimal("-0") if base.is_signed() and odd else Decimal(0)
        if power.is_zero():
            return Decimal(1)
    if power == power.to_integral_value() and abs(power) <= 999_999_999:
        return _integer_power(context, base, power)
    if base == 1 and power == power.to_integral_value():
        return Decimal(1)
    if base.is_signed():
        return Decimal("NaN")
    wide = Context(
        prec=PRECISION + _POWER_DIGITS, rounding=ROUND_HALF_EVEN, Emin=-(10**9), Emax=10**9, clamp=0, traps=[]
    )
    product = wide.multiply(wide.ln(base), power)
    result = wide.exp(product)
    if result == 1:
        result = wide.quantize(result, Decimal(1).scaleb(-LARGEST_EXPONENT))
    return context.plus(result)


def _integer_power(context: Context, base: Decimal, power: Decimal) -> Decimal:
    """Power by squaring, with as many more digits as the power has."""
    inner = context.copy()
    inner.rounding = ROUND_HALF_EVEN
    inner.prec = PRECISION + power.adjusted() + 2
    remaining = int(abs(power))
    if power.is_signed():
        base = inner.divide(Decimal(1), base)
    result = Decimal(1)
    for bit in f"{remaining:b}":
        result = inner.multiply(result, result)
        if bit == "1":
            result = inner.multiply(result, base)
        if not result.is_finite():
            return result
        if result.is_zero():
            break
    odd = remaining % 2 == 1
    return context.plus(result).copy_sign(Decimal(-1 if base.is_signed() and odd else 1))


def decimal_rescale(packed: bytes, scale: int) -> bytes | None:
    """A decimal with this many digits behind the point.

    It is unchanged if these are negative or too many. As in Tarantool, it has one digit less if rounding
    carries to a new first digit: 9.96 with one digit is 10.
    """
    number = _unpacked(packed)
    digits, exponent, *_ = _LAYOUT.unpack(packed)
    if not 0 <= scale <= PRECISION or scale == max(-exponent, 0) or digits + exponent + scale > PRECISION:
        return packed
    context = _CONTEXT.copy()
    context.clear_flags()
    result = context.quantize(number, Decimal((0, (1,), -scale)))
    if result.is_nan():
        return packed
    dropped = -exponent - scale
    if number.is_zero() and dropped > 0:
        result = result.copy_abs()
    elif dropped > 0 and len(result.as_tuple().digits) > max(1, max(digits, -exponent) - dropped):
        result = result.quantize(Decimal((0, (1,), 1 - scale)))
    return _checked(result, context)


def decimal_round(packed: bytes, scale: int) -> bytes | None:
    """A decimal with at most this many digits behind the point."""
    exponent: int = _LAYOUT.unpack(packed)[1]
    return packed if scale < 0 or scale >= -exponent else decimal_rescale(packed, scale)


def decimal_trim(packed: bytes) -> bytes:
    """A decimal without zeros at the end of its fraction."""
    number = _unpacked(packed)
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if number.is_zero():
        return _packed(Decimal((sign, (0,), 0)))
    kept = list(digits)
    while exponent < 0 and kept[-1] == 0:
        del kept[-1]
        exponent += 1
    return _packed(Decimal((sign, tuple(kept), exponent)))


def decimal_pack(packed: bytes) -> bytes:
    """The payload of a decimal in MessagePack."""
    from iproto_server.codec.extensions import encode_decimal

    return encode_decimal(_unpacked(packed))


def decimal_unpack(payload: bytes) -> bytes | None:
    """The decimal of a payload in MessagePack; None if it is none."""
    from iproto_server.codec.extensions import decode_decimal

    number = decode_decimal(payload)
    return None if number is None else _packed(number)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "decimal_absolute": _operation(Context.abs),
    "decimal_add": _operation(Context.add),
    "decimal_compare": decimal_compare,
    "decimal_divide": _operation(Context.divide),
    "decimal_exponential": _operation(_exponential),
    "decimal_logarithm": _operation(_logarithm),
    "decimal_logarithm10": _operation(_logarithm10),
    "decimal_minus": _operation(Context.minus),
    "decimal_multiply": _operation(Context.multiply),
    "decimal_pack": decimal_pack,
    "decimal_parse": decimal_parse,
    "decimal_power": _operation(_power),
    "decimal_remainder": _operation(Context.remainder),
    "decimal_rescale": decimal_rescale,
    "decimal_round": decimal_round,
    "decimal_square_root": _operation(Context.sqrt),
    "decimal_subtract": _operation(Context.subtract),
    "decimal_text": decimal_text,
    "decimal_trim": decimal_trim,
    "decimal_unpack": decimal_unpack,
}
