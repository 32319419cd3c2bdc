"""Values in the tables of the operators' commands parse back to what they were, within the digits shown."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.tools.operators.shown import duration, rate, size

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_BYTES = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}


@given(st.floats(-1e9, 1e9))
def test_durations_parse_back(seconds: float) -> None:
    text = duration(seconds)
    pieces = re.findall(r"([0-9.]+)([dhms])", text)
    assert "-" * text.startswith("-") + "".join(map("".join, pieces)) == text
    parsed = math.copysign(sum(float(number) * _SECONDS[unit] for number, unit in pieces), seconds)
    precision = 0.1 if "." in text else _SECONDS[pieces[-1][1]]
    assert abs(parsed - seconds) <= precision * 1.001


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (-0.01, "0.0s"),
        (-5.0, "-5.0s"),
        (-125, "-2m5s"),
        (3605, "1h0m"),
        (math.inf, "∞"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@given(st.integers(0, 2**60))
def test_sizes_parse_back(octets: int) -> None:
    number, unit = size(octets).split(" ")
    precision = 0 if unit == "B" else 0.0501 * _BYTES[unit]
    assert abs(float(number) * _BYTES[unit] - octets) <= precision


@given(st.floats(0, 1e9))
def test_rates_parse_back(per_second: float) -> None:
    text = rate(per_second)
    assert abs(float(text) - per_second) <= (0.0501 if "." in text else 0.501)
