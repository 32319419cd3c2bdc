"""Timers for moments of the wall clock, on a loop that knows steady time only; both are under control."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from iproto_server.server.loop_clock import STEP_CHECK, LoopClock

START = 1_600_000_000
SECOND = 1_000_000_000


class Handle:
    """A timer of the loop."""

    def __init__(self, at_ns: int, function: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.at_ns = at_ns
        self.function = function
        self.args = args
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Machine:
    """A loop with its steady time, and a wall clock that may step."""

    def __init__(self) -> None:
        self.steady = 0
        self.step = START * SECOND
        self.handles: list[Handle] = []
        self.clock = LoopClock(
            cast("asyncio.AbstractEventLoop", self), lambda: self.step + self.steady, lambda: self.steady
        )

    def call_later(self, delay: float, function: Callable[..., object], *args: Any) -> Handle:
        """What an event loop has."""
        self.handles.append(Handle(self.steady + round(delay * SECOND), function, args))
        return self.handles[-1]

    @property
    def pending(self) -> list[Handle]:
        return [handle for handle in self.handles if not handle.is_cancelled]

    def pass_time(self, seconds: float) -> None:
        """Let steady time pass, and the wall clock with it."""
        end = self.steady + round(seconds * SECOND)
        while due := [handle for handle in self.pending if handle.at_ns <= end]:
            handle = min(due, key=lambda each: each.at_ns)
            self.handles.remove(handle)
            self.steady = max(handle.at_ns, self.steady)
            handle.function(*handle.args)
        self.steady = end


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def rung(machine: Machine) -> list[float]:
    """At which seconds of steady time a timer for a thousand seconds after the start has called."""
    rung: list[float] = []
    machine.clock.call_at(START + 1000, lambda: rung.append(machine.steady / SECOND))
    return rung


def test_it_calls_at_the_moment(machine: Machine, rung: list[float]) -> None:
    machine.pass_time(999)
    assert rung == []
    machine.pass_time(1)
    assert rung == [1000]
    machine.pass_time(2000)
    assert rung == [1000]


def test_it_calls_soon_after_the_wall_clock_has_stepped_over_the_moment(
    machine: Machine, rung: list[float]
) -> None:
    machine.pass_time(5)
    machine.step += 86_400 * SECOND
    machine.pass_time(STEP_CHECK)
    assert rung == [pytest.approx(5 + STEP_CHECK, abs=STEP_CHECK)]


def test_it_calls_earlier_when_the_wall_clock_has_stepped_closer(machine: Machine, rung: list[float]) -> None:
    machine.pass_time(5)
    machine.step += 900 * SECOND
    machine.pass_time(94.9)
    assert rung == []
    machine.pass_time(0.2)
    assert rung == [pytest.approx(100, abs=1e-3)]


def test_it_calls_later_when_the_wall_clock_has_stepped_back(machine: Machine, rung: list[float]) -> None:
    machine.pass_time(500)
    machine.step -= 400 * SECOND
    machine.pass_time(899.9)
    assert rung == []
    machine.pass_time(0.2)
    assert rung == [pytest.approx(1400, abs=1e-3)]


def test_a_moment_that_is_over_is_called_for_at_once(machine: Machine) -> None:
    rung: list[int] = []
    machine.clock.call_at(START - 1, lambda: rung.append(machine.steady))
    assert rung == []
    machine.pass_time(0)
    assert rung == [0]


def test_what_is_cancelled_does_not_call_even_after_a_step(machine: Machine) -> None:
    timer = machine.clock.call_at(START + 10, lambda: pytest.fail("it was cancelled"))
    machine.pass_time(1)
    timer.cancel()
    machine.step += 86_400 * SECOND
    machine.pass_time(100)
    timer.cancel()


def test_nothing_calls_after_the_stop(machine: Machine, rung: list[float]) -> None:
    machine.clock.stop()
    machine.step += 86_400 * SECOND
    machine.pass_time(2000)
    assert rung == []


def test_nobody_looks_at_the_clock_when_no_timer_is_set(machine: Machine, rung: list[float]) -> None:
    machine.pass_time(1001)
    assert rung == [1000]
    assert machine.pending == []


def test_a_moment_that_never_comes_is_no_error(machine: Machine) -> None:
    machine.clock.call_at(float("inf"), lambda: pytest.fail("too early"))
    machine.pass_time(10)
