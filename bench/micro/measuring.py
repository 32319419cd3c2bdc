"""How each of the pieces is measured: rounds of many calls, with the machine's own speed beside them."""

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
    """Measure a piece. Before each round the speed of the machine is measured, too.

    Parameters:
        benchmark: the test's.
        target: does the piece `count` times.
        setup: makes the arguments for one round; its time does not count.
        count: how many there are in a round, by which its time is divided where times are compared.
        rounds: how many there are.
    """
    times: list[float] = []

    def prepared() -> tuple[tuple[Any, ...], dict[str, object]]:
        arguments = setup()
        gc.collect()  # Otherwise what the round before has left is cleared up in this one's time.
        times.append(calibration.measure())
        return arguments, {}

    # What was there before is not looked at again and again.
    gc.collect()
    gc.freeze()
    try:
        benchmark.pedantic(target, setup=prepared, rounds=rounds)  # type: ignore[no-untyped-call]
    finally:
        gc.unfreeze()
    benchmark.extra_info.update(count=count, calibration=min(times))
