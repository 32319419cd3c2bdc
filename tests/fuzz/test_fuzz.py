"""All targets for a minute in total, and inputs that once revealed faults.

The inputs are always the same; `make fuzz` has new ones, for any time.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.fuzz.campaign import fuzz, has_atheris, mutate
from tests.fuzz.memory import needs_little
from tests.fuzz.mutate import mutations
from tests.fuzz.target import TARGETS, target
from tests.fuzz.unguided import INPUT_MAX
from tests.programs import missing

SEED = 2026
INPUTS = {
    "frames": 150_000,
    "frames15": 60_000,
    "requests": 100_000,
    "service": 4_000,
    "service15": 4_000,
    "values": 150_000,
    "paths": 200_000,
    "updates": 60_000,
    "rows": 60_000,
    "logs": 20_000,
    "recovery": 50,
    "options": 100_000,
    "messages": 20_000,
    "keys": 10_000,
    "answers": 2_000,
    "connections": 2_000,
    "replay": 100,
    "spark_rows": 3_000,
    "lua_values": 5_000,
    "lua_tuples": 1_000,
}
"""The number of inputs for each target, for some seconds in all."""

MEASURED = 20
"""The number of inputs, the longest ones, whose memory is measured, which is slow."""

CASES = [
    pytest.param(name, data, id=f"{name}: {what}")
    for name in TARGETS
    for what, data in target(name).cases.items()
]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_in_order_and_need_little_memory(name: str) -> None:
    tested = target(name)
    for data in tested.seeds:
        tested.check(data)
    for data in sorted(tested.seeds, key=len)[-5:]:
        assert needs_little(tested, data)


@pytest.mark.parametrize(("name", "data"), CASES)
def test_what_was_found_once_is_not_found_again(name: str, data: bytes) -> None:
    assert needs_little(target(name), data)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name: str) -> None:
    tested = target(name)
    inputs = list(islice(mutations([*tested.seeds, *tested.cases.values()], SEED, INPUT_MAX), INPUTS[name]))
    for data in inputs:
        try:
            tested.check(data)
        except BaseException as error:
            error.add_note(f"found by {data!r}")
            raise
    for data in sorted(inputs, key=len)[-MEASURED:]:
        assert needs_little(tested, data), data


def test_the_guided_fuzzer_finds_what_is_wrong(tmp_path: Path) -> None:
    if not has_atheris():
        missing("atheris is not installed: pip install atheris, on Linux on x86_64")
    report = fuzz("planted", tmp_path, seconds=60, seed=SEED)
    assert report.found is not None, str(report)
    assert report.found[2] >= 200
    assert "FOUND" in str(report)


def test_mutations_without_guidance_find_what_is_wrong(tmp_path: Path) -> None:
    report = mutate("planted", tmp_path, seconds=60, seed=SEED)
    assert report.found is not None, str(report)
    assert report.found[2] >= 200
    assert "AssertionError" in report.output


def test_mutations_without_guidance_end_in_time(tmp_path: Path) -> None:
    report = mutate("paths", tmp_path, seconds=0, seed=0)
    assert report.found is None, str(report)
    assert report.runs
    assert report.seed
