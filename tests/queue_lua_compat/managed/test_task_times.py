"""The durations of tasks are counted in histograms."""

from __future__ import annotations

from typing import Any

import pytest

from iproto_server import Box, ManualClock
from iproto_server.managed_queue import BOUNDS
from queue_lua_compat.task_times import EARLIEST, TaskTimes


def test_durations_are_counted_by_intervals() -> None:
    clock = ManualClock()
    times = TaskTimes(Box(clock=clock), {})
    begun = clock.time_ns()
    for bound in (*BOUNDS, 2 * BOUNDS[-1]):
        clock.set_wall_clock(begun + round(bound * 1e9))
        assert times.taken(1, begun) == clock.time_ns()
    times.acknowledged(begun)
    assert times.waits.counts == [1] * (len(BOUNDS) + 1)
    assert times.waits.sum == pytest.approx(sum(BOUNDS) + 2 * BOUNDS[-1])
    assert (times.services.counts[-1], times.services.count) == (1, 1)
    assert times.numbers == {"take": len(BOUNDS) + 1, "ack": 1}


def test_what_is_looked_at_does_not_change_later() -> None:
    times = TaskTimes(Box(), {})
    found = times.waits
    times.taken(1, times.now())
    assert (found.count, times.waits.count) == (0, 1)


def test_a_clock_that_steps_back_and_ids_that_are_no_times() -> None:
    times = TaskTimes(Box(clock=ManualClock()), {})
    for since in (times.now() + 5, times.now() - 2_500_000_000, 7, EARLIEST, 2.5e18, "id", None):
        times.taken(since, since)  # type: ignore[arg-type]
    assert times.waits.count == 2
    assert times.waits.counts[0] == 1
    assert times.waits.sum == pytest.approx(2.5)
    assert times.numbers["take"] == 7


def test_a_task_that_has_become_ready_again_waits_from_then_on() -> None:
    clock = ManualClock()
    times = TaskTimes(Box(clock=clock), {})
    begun = clock.time_ns()
    clock.advance(5)
    times.became_ready(1)
    clock.advance(2)
    times.taken(1, begun)
    times.taken(1, begun)
    assert times.waits.sum == pytest.approx(2 + 7)


def test_durations_survive_new_code() -> None:
    kept: dict[str, Any] = {}
    box = Box()
    for _ in range(2):
        times = TaskTimes(box, kept)
        times.taken(1, times.now())
        times.acknowledged(None)
    assert times.numbers == {"take": 2, "ack": 2}
    assert (times.waits.count, times.services.count) == (2, 0)
