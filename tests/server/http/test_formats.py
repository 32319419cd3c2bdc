"""The dashboard's values parse back to what they were, within the digits shown: its own code, run by Node."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import pytest

import iproto_server.server.http

_STATIC = Path(iproto_server.server.http.__file__).parent / "static"
_SHOW = """
import { readFileSync } from "node:fs";
const format = await import(process.argv[1]);
const [name, values] = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(values.map((value) => format[name](value))));
"""
_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}
_BYTES = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}


def _shown(name: str, values: list[float | None]) -> list[str]:
    """The texts that a function of format.js returns."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing: apt-get install nodejs")
    asked = json.dumps([name, values])
    module = (_STATIC / "format.js").as_uri()
    done = subprocess.run(
        [node, "--input-type=module", "--eval", _SHOW, module],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"TZ": "UTC"},
    )
    texts: list[str] = json.loads(done.stdout)
    return texts


def _values(low: float, high: float) -> list[float]:
    """Many values of all magnitudes, and those around powers of ten and of 1024."""
    chance = random.Random(20)
    spread = [10 ** chance.uniform(-5, 12) for _ in range(3000)]
    edges = [
        base**power * near
        for base in (10, 1024, 60)
        for power in range(-2, 6)
        for near in (0.99999, 1, 1.00001)
    ]
    return [value for value in (0, *spread, *edges) if low <= value <= high]


def test_counts_parse_back() -> None:
    values = [int(value) for value in _values(0, 1e12)]
    assert [int(text.replace(",", "")) for text in _shown("count", list(values))] == values


def test_durations_parse_back() -> None:
    values = _values(0, 1e10)
    values += [-value for value in values if value]
    for value, text in zip(values, _shown("duration", list(values)), strict=True):
        if text == "0":
            assert abs(value) < 0.0005
            continue
        match = re.fullmatch(r"(-?)([0-9.]+) (ms|s|min|h|d)", text)
        assert match is not None, text
        unit = _SECONDS[match[3]]
        parsed = float(match[1] + match[2]) * unit
        # Fractions have two or three digits; whole units are complete ones.
        precision = max(abs(value) * 0.051, 1e-9) if match[3] in ("ms", "s") else unit
        assert abs(parsed - value) <= precision, text


def test_sizes_parse_back() -> None:
    values = [int(value) for value in _values(0, 1e15)]
    for value, text in zip(values, _shown("size", list(values)), strict=True):
        number, unit = text.split(" ")
        assert abs(float(number) * _BYTES[unit] - value) <= (0 if unit == "B" else 0.0501 * _BYTES[unit]), (
            text
        )


def test_rates_parse_back() -> None:
    values = _values(0, 1e9)
    for value, text in zip(values, _shown("rate", list(values)), strict=True):
        assert text.endswith("/s")
        assert abs(float(text[:-2]) - value) <= (0.0501 if value < 10 else 0.501), text


def test_times_parse_back() -> None:
    values = [int(value) for value in _values(1e8, 4e9)]
    for value, text in zip(values, _shown("time", list(values)), strict=True):
        assert datetime.fromisoformat(f"{text}+00:00").timestamp() == value


@pytest.mark.parametrize("name", ["count", "duration", "size", "rate", "time"])
def test_a_missing_value_is_a_dash(name: str) -> None:
    assert _shown(name, [None]) == ["–"]
