"""Durations: how long ago moments were, counted by intervals."""

from __future__ import annotations

import gc
import time
import weakref
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import Durations, IncrementalDict

EARLIEST = 10**18
NOW = 1_600_000_000_000_000_000

numbers = st.integers(-(2**63), 2**63 - 1)
times = st.integers(EARLIEST, 2 * 10**18) | numbers
bounds = st.lists(st.integers(0, 10**13), max_size=64, unique=True).map(sorted).map(tuple)
moments = times | st.integers(-(2**70), 2**70) | st.sampled_from([None, True, 1.5e18, "id"])


def noting(moments: Mapping[Any, int] | None = None) -> IncrementalDict[Any, int]:
    noted: IncrementalDict[Any, int] = IncrementalDict()
    noted.update(moments or {})
    return noted


class Model:
    """The same in Python."""

    def __init__(self, limits: tuple[int, ...], earliest: int) -> None:
        self.limits, self.earliest = limits, earliest
        self.calls, self.counts, self.sum = 0, [0] * (len(limits) + 1), 0.0

    def add(self, now: int, moment: object) -> None:
        self.calls += 1
        if type(moment) is int and moment > self.earliest:
            self.counts[bisect_left(self.limits, max(now - moment, -1))] += 1
            self.sum += max(now - moment, 0)


def _figures(durations: Durations | Model) -> tuple[int, list[int], float]:
    return durations.calls, durations.counts, durations.sum


@given(bounds, st.lists(st.tuples(times, moments), max_size=30), st.sampled_from([0, 7, EARLIEST]))
def test_they_are_counted(limits: tuple[int, ...], steps: list[tuple[int, Any]], earliest: int) -> None:
    now = 0
    durations, model = Durations(lambda: now, limits, earliest, noting()), Model(limits, earliest)
    for now, moment in steps:
        assert durations.since(moment, 1) == now
        model.add(now, moment)
        assert _figures(durations) == _figures(model)


@given(bounds, st.lists(st.integers(0, 64), max_size=20), st.integers(-1, 1))
def test_bounds_belong_to_the_interval_below(limits: tuple[int, ...], places: list[int], shift: int) -> None:
    durations, model = Durations(lambda: NOW, limits, EARLIEST, noting()), Model(limits, EARLIEST)
    for place in places:
        if place < len(limits):
            durations.since(NOW - limits[place] - shift, 1)
            model.add(NOW, NOW - limits[place] - shift)
    assert _figures(durations) == _figures(model)


@given(st.dictionaries(st.integers(0, 5), moments), st.lists(st.tuples(st.integers(0, 5), moments)))
def test_noted_moments_count_instead(noted: dict[int, Any], steps: list[tuple[int, Any]]) -> None:
    left = noting(noted)
    durations, model = Durations(lambda: NOW, (10**9,), EARLIEST, left), Model((10**9,), EARLIEST)
    for key, moment in steps:
        assert durations.since(moment, key) == NOW
        model.add(NOW, noted.pop(key, moment))
        assert _figures(durations) == _figures(model)
        assert noted == left


def test_the_clock_of_the_system_is_read_itself() -> None:
    durations = Durations(time.time_ns, (10**9, 10**12), EARLIEST, noting())
    before = time.time_ns()
    now = durations.since(before - 10**10, 1)
    assert before <= now <= time.time_ns()
    assert _figures(durations) == (1, [0, 1, 0], 10**10 + now - before)


class TestWrongInput:
    @pytest.mark.parametrize(
        ("limits", "earliest", "text"),
        [
            (tuple(range(65)), 0, "there may be 64 bounds, not 65"),
            ((), -1, "the earliest moment must not be negative"),
        ],
    )
    def test_it_is_refused(self, limits: tuple[int, ...], earliest: int, text: str) -> None:
        with pytest.raises(ValueError, match=text):
            Durations(time.time_ns, limits, earliest, noting())

    def test_a_clock_that_fails_changes_nothing(self) -> None:
        durations = Durations(lambda: 1 // 0, (), 0, noting({5: 5}))
        with pytest.raises(ZeroDivisionError):
            durations.since(5, 1)
        assert _figures(durations) == (0, [0], 0.0)

    def test_keys_must_be_hashable(self) -> None:
        durations = Durations(time.time_ns, (), 0, noting({5: 5}))
        with pytest.raises(TypeError, match="unhashable"):
            durations.since(5, [])
        assert _figures(durations) == (0, [0], 0.0)

    @pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3)])
    def test_a_wrong_number_of_arguments_is_refused(self, arguments: tuple[int, ...]) -> None:
        with pytest.raises(TypeError):
            Durations(time.time_ns, (), 0, noting()).since(*arguments)


def test_a_clock_without_numbers_is_refused() -> None:
    with pytest.raises(TypeError):
        Durations(lambda: "soon", (), 0, noting()).since(5, 1)  # type: ignore[arg-type, return-value]
    with pytest.raises(OverflowError):
        Durations(lambda: 2**64, (), 0, noting()).since(5, 1)


@pytest.mark.parametrize("limits", [[1, 2], (1, "2"), (2**64,)])
def test_bounds_must_be_a_tuple_of_integers(limits: Any) -> None:
    with pytest.raises((TypeError, OverflowError)):
        Durations(time.time_ns, limits, 0, noting())


def test_it_may_be_part_of_a_cycle() -> None:
    class Noted(IncrementalDict[Any, int]):
        pass

    noted = Noted()
    noted["durations"] = Durations(time.time_ns, (), 0, noted)  # type: ignore[assignment]
    seen = weakref.ref(noted)
    del noted
    gc.collect()
    assert seen() is None


def test_the_clock_is_let_go() -> None:
    class Clock:
        def now(self) -> int:
            return NOW

    clock = Clock()
    durations = Durations(clock.now, (), 0, noting())
    seen = weakref.ref(clock)
    del clock
    assert durations.since(NOW, 1) == NOW
    del durations
    gc.collect()
    assert seen() is None
