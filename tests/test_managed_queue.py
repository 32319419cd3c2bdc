"""What queues show to operators: the parts that all dialects share."""

from __future__ import annotations

import math

import pytest

from iproto_server import Histogram, TaskInfo, TaskState
from iproto_server.managed_queue import BOUNDS


def test_a_histogram_counts_durations_up_to_each_bound() -> None:
    histogram = Histogram((0.1, 1.0))
    for seconds in (0.0, 0.1, 0.11, 1.0, 5.0):
        histogram.observe(seconds)
    assert histogram.counts == [2, 2, 1]
    assert histogram.cumulated() == [(0.1, 2), (1.0, 4), (math.inf, 5)]
    assert histogram.count == 5
    assert histogram.sum == pytest.approx(6.21)


def test_a_new_histogram_is_empty_and_its_bounds_rise() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))
    histogram = Histogram()
    assert (histogram.count, histogram.sum, histogram.cumulated()[-1]) == (0, 0.0, (math.inf, 0))


def test_a_task_needs_no_more_than_id_state_and_data() -> None:
    task = TaskInfo(1, TaskState.READY, "data")
    assert (task.created, task.session, task.details) == (None, None, {})
    assert f"{task.state}" == "ready"
