"""Encoded values sort exactly as the values, and no encoding is a prefix of another."""

from __future__ import annotations

import math
import uuid
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.key.key_encoding import ENCODERS, encode_number, just_below, prefix_end
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec.msgpack import Datetime
from iproto_server.errors import BoxError

HARD_INTEGERS = sorted(
    {
        sign * number + shift
        for sign in (1, -1)
        for number in (0, 1, 2**31, 2**32, 2**53, 2**54, 2**63, 10**18)
        for shift in (-2, -1, 0, 1, 2)
        if sign * number + shift >= -(2**63)
    }
    | {2**64 - 1, 2**64 - 2, 2**64 - 1024, 2**64 - 1025, 1700000000123456789}
)
HARD_FLOATS = [
    *(
        sign * number
        for sign in (1.0, -1.0)
        for number in (0.0, 0.5, 1.0, 1.5, 5e-324, 2.2250738585072014e-308)
    ),
    *(
        sign * number
        for sign in (1.0, -1.0)
        for number in (2.0**53, 2.0**63, 2.0**64, 1e18, 1.7976931348623157e308)
    ),
    *(
        math.nextafter(2.0**63, 0),
        math.nextafter(2.0**53, math.inf),
        0.1,
        1 / 3,
        math.inf,
        -math.inf,
        math.nan,
    ),
]
HARD_DECIMALS = [
    *(
        Decimal(text)
        for text in ("0", "-0", "0.00", "1.00", "0.1", "-0.1", "0.3333333333333333", "0.5", "-1.5")
    ),
    *(
        Decimal(text)
        for text in ("9007199254740993", "9007199254740992.5", "9007199254740992.0000000000000000001")
    ),
    *(Decimal(text) for text in ("18446744073709551615.5", "18446744073709551616", "-9223372036854775809")),
    *(Decimal(text) for text in ("1E-38", "-1E-38", "99999999999999999999999999999999999999")),
    *(Decimal(text) for text in ("9.9999999999999999999999999999999999999E+74", "1E+37", "-1E+37")),
    Decimal("0.1000000000000000055511151231257827021"),
]

integers = st.integers(-(2**63), 2**64 - 1) | st.sampled_from(HARD_INTEGERS)
floats = st.floats() | st.floats(width=32) | st.sampled_from(HARD_FLOATS)
decimals = st.sampled_from(HARD_DECIMALS) | st.builds(
    lambda digits, scale: Decimal((digits < 0, tuple(map(int, str(abs(digits)))), -scale)),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-37, 38),
)
# Neighbours are numbers that differ the least.
near = st.builds(
    lambda base, step: base + step,
    integers.filter(lambda number: abs(number) < 2**63),
    st.sampled_from([-1, 0, 1]),
) | st.builds(lambda number: Decimal(number) + Decimal("0.000001"), st.integers(-(2**64), 2**64))
numbers = integers | floats | decimals | near

texts = st.text() | st.text(alphabet="\0\x01a\x7f\x80\xff\u0100\uffff\U0010ffff", max_size=4)
undecodable = st.binary(max_size=4).map(lambda data: data.decode("utf-8", "surrogateescape"))
binaries = st.binary() | st.lists(st.sampled_from([b"\0", b"\x01", b"\xff"]), max_size=4).map(b"".join)
datetimes = st.builds(
    Datetime, st.integers(-(2**40), 2**40), st.integers(0, 999_999_999), tzoffset=st.integers(-720, 840)
)

CLASSES: list[type | tuple[type, ...]] = [bool, (int, float, Decimal), str, bytes, uuid.UUID, Datetime]


def exact(value: Any) -> tuple[Any, ...]:
    """A key that Python compares as Tarantool compares the value, without rounding anything."""
    number = next(number for number, kinds in enumerate(CLASSES) if isinstance(value, kinds))
    if isinstance(value, bool):
        return number, value
    if isinstance(value, float) and math.isnan(value):
        return number, 0, 0
    if isinstance(value, float) and math.isinf(value):
        return number, 1 if value < 0 else 3, 0
    if isinstance(value, int | float | Decimal):
        return number, 2, Fraction(value)
    if isinstance(value, str):
        return number, value.encode("utf-8", "surrogateescape")
    return number, value.bytes if isinstance(value, uuid.UUID) else value


VALUES: dict[FieldType, st.SearchStrategy[Any]] = {
    FieldType.UNSIGNED: st.integers(0, 2**64 - 1) | st.sampled_from([n for n in HARD_INTEGERS if n >= 0]),
    FieldType.INTEGER: integers,
    FieldType.NUMBER: numbers,
    FieldType.DOUBLE: floats,
    FieldType.DECIMAL: decimals,
    FieldType.BOOLEAN: st.booleans(),
    FieldType.STRING: texts | undecodable,
    FieldType.VARBINARY: binaries,
    FieldType.UUID: st.uuids(),
    FieldType.DATETIME: datetimes,
    FieldType.SCALAR: st.booleans() | numbers | texts | binaries | st.uuids() | datetimes,
}


def test_every_type_that_an_index_may_have_is_tested_here() -> None:
    assert set(VALUES) == set(ENCODERS) == {each for each in FieldType if each.is_indexable}


@pytest.mark.parametrize("field_type", list(VALUES))
@given(data=st.data())
def test_encodings_sort_as_the_values_do(field_type: FieldType, data: st.DataObject) -> None:
    encode = ENCODERS[field_type]
    one, other = data.draw(VALUES[field_type]), data.draw(VALUES[field_type])
    assert (encode(one) < encode(other)) == (exact(one) < exact(other))
    assert (encode(one) == encode(other)) == (exact(one) == exact(other))


@pytest.mark.parametrize("field_type", list(VALUES))
@given(data=st.data())
def test_no_encoding_begins_another(field_type: FieldType, data: st.DataObject) -> None:
    encode = ENCODERS[field_type]
    one, other = encode(data.draw(VALUES[field_type])), encode(data.draw(VALUES[field_type]))
    assert one == other or not other.startswith(one)


def test_hard_numbers_are_in_order_all_together() -> None:
    hard = [*HARD_INTEGERS, *HARD_FLOATS, *HARD_DECIMALS]
    ordered = sorted(hard, key=encode_number)
    assert [exact(value) for value in ordered] == sorted(map(exact, hard))


@pytest.mark.parametrize(
    "same",
    [
        (1, 1.0, Decimal(1), Decimal("1.000")),
        (0, 0.0, -0.0, Decimal("-0.00")),
        (2**63, 2.0**63, Decimal(2**63)),
        (0.5, Decimal("0.5")),
        (-(2**63), -(2.0**63)),
        (math.nan, -math.nan),
    ],
)
def test_equal_numbers_are_one_key_whatever_their_kind(same: tuple[Any, ...]) -> None:
    assert len({encode_number(value) for value in same}) == 1


@pytest.mark.parametrize(
    ("less", "greater"),
    [
        (2.0**53, 2**53 + 1),
        (2**64 - 1, 2.0**64),
        (math.nan, -math.inf),
        (-math.inf, -(2**63)),
        (Decimal("0.1"), 0.1),
        (Decimal("18446744073709551614.9"), 2**64 - 1),
        (0, 5e-324),
    ],
)
def test_numbers_differ_by_the_least_amount(less: Any, greater: Any) -> None:
    assert encode_number(less) < encode_number(greater)
    if not math.isnan(less):
        assert encode_number(-greater) < encode_number(-less)


@given(st.integers(-(2**64) + 1, 2**64 - 1))
def test_an_integer_of_64_bits_takes_eleven_bytes(value: int) -> None:
    assert len(encode_number(value)) == 11


def test_a_number_that_no_tuple_can_hold_is_refused() -> None:
    with pytest.raises(BoxError, match="too large"):
        encode_number(Decimal("1E+400"))


def test_a_moment_is_one_key_in_every_time_zone() -> None:
    encode = ENCODERS[FieldType.DATETIME]
    assert encode(Datetime(5, 7, tzoffset=180, tzindex=3)) == encode(Datetime(5, 7))


bounds = st.lists(st.sampled_from([0, 1, 0xFE, 0xFF]), min_size=1, max_size=4).map(bytes)


@given(bounds, bounds)
def test_prefix_end_is_between_what_has_the_prefix_and_what_follows(prefix: bytes, other: bytes) -> None:
    end = prefix_end(prefix)
    if end is None:
        assert set(prefix) == {0xFF}
    else:
        assert prefix + other < end
        assert other < prefix or other.startswith(prefix) or end <= other


def test_everything_starts_with_the_empty_prefix() -> None:
    assert prefix_end(b"") is None


@pytest.mark.parametrize("field_type", list(VALUES))
@given(data=st.data())
def test_just_below_a_key_is_between_it_and_every_smaller_one(
    field_type: FieldType, data: st.DataObject
) -> None:
    encode = ENCODERS[field_type]
    keys = sorted(
        {encode(value) for value in data.draw(st.lists(VALUES[field_type], min_size=2, max_size=6))}
    )
    for smaller, key in pairwise(keys):
        assert smaller <= just_below(key) < key
