"""Runs one microbenchmark: rounds of many calls, with calibrations of the machine's speed between them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, Final

from pytest_benchmark.fixture import BenchmarkFixture

from bench.lib import calibration

COUNT: Final = 5_000
ROUNDS: Final = 11


def measure(
    benchmark: BenchmarkFixture,
    target: Callable[..., object],
    setup: Callable[[], tuple[Any, ...]],
    *,
    count: int = COUNT,
    rounds: int = ROUNDS,
) -> None:
    """Run a microbenchmark, with a calibration before each round.

    Parameters:
        benchmark: the fixture.
        target: makes `count` calls.
        setup: creates the arguments of a round; its time does not count.
        count: the number of calls in a round, by which times are divided for comparison.
        rounds: the number of rounds.
    """
    times: list[float] = []

    def prepared() -> tuple[tuple[Any, ...], dict[str, object]]:
        arguments = setup()
        gc.collect()  # otherwise this round would pay for garbage of the previous one
        times.append(calibration.measure())
        return arguments, {}

    # Exclude existing objects from collections.
    gc.collect()
    gc.freeze()
    try:
        benchmark.pedantic(target, setup=prepared, rounds=rounds)  # type: ignore[no-untyped-call]
    finally:
        gc.unfreeze()
    benchmark.extra_info.update(count=count, calibration=min(times))
