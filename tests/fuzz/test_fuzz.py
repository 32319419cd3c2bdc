"""All targets for a minute in all, and what was found before. `make fuzz` runs them for as long as asked."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom

import pytest

from tests.fuzz.campaign import fuzz, has_atheris
from tests.fuzz.target import TARGETS, target
from tests.programs import missing

SECONDS = 4
"""For each target; starting takes about one more."""

MEMORY_PER_BYTE = 1000
MEASURED = 5
"""So many inputs, the longest ones, are measured: that is slow."""

CASES = [
    pytest.param(name, data, id=f"{name}: {what}")
    for name in TARGETS
    for what, data in target(name).cases.items()
]


def most_memory(check: Callable[[bytes], None], data: bytes) -> int:
    """How much more memory than before an input needs at most, in bytes, when it is not the first one."""
    tracemalloc.start()
    try:
        check(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_in_order_and_need_little_memory(name: str) -> None:
    tested = target(name)
    for data in tested.seeds:
        tested.check(data)
    for data in sorted(tested.seeds, key=len)[-MEASURED:]:
        assert most_memory(tested.check, data) < tested.memory + MEMORY_PER_BYTE * len(data)


@pytest.mark.parametrize(("name", "data"), CASES)
def test_what_was_found_once_is_not_found_again(name: str, data: bytes) -> None:
    target(name).check(data)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    if not has_atheris():
        missing("atheris is not installed: pip install atheris, on Linux on x86_64")
    report = fuzz(name, tmp_path, seconds=SECONDS, seed=SystemRandom().randrange(1, 10**6))
    assert report.found is None, str(report)
    assert report.runs > 0
    tested = target(name)
    for path in sorted((tmp_path / name).iterdir(), key=lambda path: path.stat().st_size)[-MEASURED:]:
        data = path.read_bytes()
        tested.check(data)  # what is kept for all inputs is there from now on
        assert most_memory(tested.check, data) < tested.memory + MEMORY_PER_BYTE * len(data)
