"""Values as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

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
        (1e19, "1e+04 PB"),
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
        (Decimal("18446744073709551615"), f"18{GAP}446{GAP}744{GAP}073{GAP}709{GAP}551{GAP}615"),
    ],
)
def test_numbers(value: float | Decimal, text: str) -> None:
    assert number(value) == text


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
