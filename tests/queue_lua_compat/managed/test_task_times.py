"""Durations that are counted many at a time are counted like single ones."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Box, Histogram
from iproto_server.managed_queue import BOUNDS
from queue_lua_compat.task_times import EARLIEST, TaskTimes

ON_BOUNDS = st.sampled_from([round(bound * 1e9) + shift for bound in BOUNDS for shift in (-1, 0, 1)])
DURATIONS = st.lists(ON_BOUNDS | st.integers(0, 10**13))


@given(DURATIONS, DURATIONS)
def test_many_at_a_time_are_like_single_ones(waited: list[int], served: list[int]) -> None:
    times = TaskTimes(Box(), {})
    for durations, pending, name in ((waited, times.waited, "waits"), (served, times.served, "services")):
        pending += durations
        expected = Histogram()
        for duration in durations:
            expected.observe(duration / 1e9)
        found: Histogram = getattr(times, name)
        assert found.counts == expected.counts
        assert found.sum == pytest.approx(expected.sum)
    assert times.numbers == {"take": len(waited), "ack": len(served)}


def test_a_clock_that_steps_back_and_ids_that_are_no_times() -> None:
    times = TaskTimes(Box(), {})
    now = times.now()
    times.waited += [-5, now - 7, Decimal(now) - 3, 2.5e9, now - EARLIEST + 1]
    assert times.waits.count == 2
    assert times.waits.sum == pytest.approx(2.5)
    assert times.numbers["take"] == 5


def test_a_batch_is_counted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_lua_compat.task_times._BATCH", 3)
    times = TaskTimes(Box(), {})
    for _ in range(3):
        times.taken(1, times.now() - 10**9, times.now())
    assert times.waited == []
    for _ in range(4):
        times.acknowledged(times.now() - 10**9)
    times.acknowledged(None)
    assert len(times.served) == 1
    assert (times.waits.count, times.services.count, times.services.sum) == (3, 4, 4.0)
