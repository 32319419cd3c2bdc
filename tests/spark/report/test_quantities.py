"""Values as people read them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_tarantool.report.quantities import duration, label_of, moment, number, size, text_of

GAP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (1e-9, "< 1 µs"),
        (0.000123, "0.123 ms"),
        (0.25, "250 ms"),
        (0.9996, "1 s"),
        (12.345, "12.3 s"),
        (59.99, "60 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (3599.9, "60 min"),
        (7322, "2 h 2 min"),
        (86400, "1 d"),
        (10**8, f"1{GAP}157 d 10 h"),
        (-90, "-1 min 30 s"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1 kB"),
        (1250, "1.25 kB"),
        (1_234_567, "1.23 MB"),
        (5e15, "5 PB"),
        (1e19, f"10{GAP}000 PB"),
    ],
)
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, f"1{GAP}234{GAP}567"),
        (-1234, f"-1{GAP}234"),
        (0.5, "0.5"),
        (2.0, "2"),
        (12.3456, "12.35"),
        (123.456, "123.5"),
        (12345.678, f"12{GAP}346"),
        (13620.4, f"13{GAP}620"),
        (1000.4, f"1{GAP}000"),
        (20000.3, f"20{GAP}000"),
        (0.00004, "4e-05"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (Decimal("18446744073709551615"), f"18{GAP}446{GAP}744{GAP}073{GAP}709{GAP}551{GAP}615"),
    ],
)
def test_numbers(value: float | Decimal, text: str) -> None:
    assert number(value) == text


_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}
_BYTES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}


def _precision(text: str) -> float:
    """Half of the last digit's value."""
    mantissa, _, exponent = text.partition("e")
    return 0.5001 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


@given(st.floats(-1e12, 1e12) | st.integers(-(2**64), 2**64) | st.floats(-1e5, 1e5))
def test_numbers_parse_back(value: float) -> None:
    """Thousands stay thousands, and zeros are only removed behind a point."""
    text = number(value).replace(GAP, "")
    if value == int(value):
        assert int(text) == value
    else:
        assert abs(float(text) - value) <= max(_precision(text), abs(value) * 0.0051)


@given(st.floats(-1e10, 1e10) | st.floats(-1, 1))
def test_durations_parse_back(seconds: float) -> None:
    text = duration(seconds)
    if text.removeprefix("-") == "< 1 µs":
        assert 0 < abs(seconds) < 1e-6
        return
    pieces = re.findall(r"([0-9.]+) (ms|min|s|h|d)", text.replace(GAP, ""))
    parsed = sum(float(amount) * _SECONDS[unit] for amount, unit in pieces)
    smallest = min(_SECONDS[unit] for _, unit in pieces)
    precision = abs(seconds) * 0.0051 if smallest < 60 and len(pieces) == 1 else smallest * 0.5001
    # `60 min` has no second unit: the rest is rounded away.
    precision = precision if len(pieces) == 2 or smallest < 60 else smallest / 24
    assert abs(math.copysign(parsed, seconds) - seconds) <= max(precision, 30 * (smallest == 3600), 5e-10)


@given(st.floats(0, 1e19) | st.integers(0, 5000))
def test_sizes_parse_back(count: float) -> None:
    amount, unit = size(count).replace(GAP, "").split(" ")
    assert abs(float(amount) * _BYTES[unit] - count) <= max(0.5001, count * 0.0051)


def test_moments_are_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert moment(datetime(2026, 1, 31, 21, tzinfo=tokyo)) == "2026-01-31 12:00:00 UTC"
    naive = datetime(2026, 1, 31, 12, tzinfo=UTC).astimezone().replace(tzinfo=None)
    assert moment(naive) == "2026-01-31 12:00:00 UTC", "Spark's rows have moments of the local zone"


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("age_p50_s", 90, "1 min 30 s"),
        ("payload_sum_bytes", 1250, "1.25 kB"),
        ("tasks", 1250, f"1{GAP}250"),
        ("queue", "mails", "mails"),
        ("age_p50_s", None, "–"),
        ("growing", True, "yes"),
        ("growing", False, "no"),
    ],
)
def test_a_columns_name_tells_the_unit(column: str, value: object, text: str) -> None:
    assert text_of(column, value) == text


def test_a_heading_has_no_unit() -> None:
    assert [label_of(name) for name in ("age_p50_s", "payload_sum_bytes", "half_ready")] == [
        "age p50",
        "payload sum",
        "half ready",
    ]
