"""Measuring how late the event loop is."""

from __future__ import annotations

import asyncio

from iproto_server.metrics.loop_lag import WINDOW, LoopLag


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.read = asyncio.Event()

    def __call__(self) -> float:
        self.read.set()
        return self.now


async def measured(clock: Clock) -> None:
    """Wait until the lag has been measured once more."""
    clock.read.clear()
    async with asyncio.timeout(10):
        await clock.read.wait()


def test_the_lag_is_how_late_the_timer_runs() -> None:
    async def scenario() -> None:
        clock = Clock()
        lag = LoopLag(period=0.001, clock=clock)
        lag.start()
        clock.now += 0.251
        await measured(clock)
        assert round(lag.last, 6) == round(lag.max, 6) == 0.25
        clock.now += 0.011
        await measured(clock)
        assert round(lag.last, 6) == 0.01
        assert round(lag.max, 6) == 0.25
        lag.stop()

    asyncio.run(scenario())


def test_max_begins_anew_when_it_is_taken() -> None:
    async def scenario() -> None:
        clock = Clock()
        lag = LoopLag(period=0.001, clock=clock)
        lag.start()
        clock.now += 0.501
        await measured(clock)
        lag.stop()
        last, highest = lag.take()
        assert round(last, 6) == round(highest, 6) == 0.5
        assert lag.take() == (last, 0.0)

    asyncio.run(scenario())


def test_a_timer_that_runs_early_is_no_negative_lag() -> None:
    async def scenario() -> None:
        clock = Clock()
        lag = LoopLag(period=0.001, clock=clock)
        lag.start()
        await measured(clock)
        assert lag.last == lag.max == 0.0
        lag.stop()

    asyncio.run(scenario())


def test_recent_is_the_largest_of_the_last_two_windows_for_all_readers() -> None:
    async def scenario() -> None:
        clock = Clock()
        lag = LoopLag(period=0.001, clock=clock)
        lag.start()
        clock.now += 0.251
        await measured(clock)
        for _ in range(2):
            assert round(lag.recent, 6) == 0.25
        clock.now += 1.001
        lag.take()
        await measured(clock)
        assert round(lag.recent, 6) == 1.0
        lag._due = clock.now + WINDOW
        clock.now += WINDOW
        await measured(clock)
        assert round(lag.recent, 6) == 1.0
        lag._due = clock.now + WINDOW
        clock.now += WINDOW
        await measured(clock)
        assert lag.recent == 0.0
        lag.stop()
        assert lag.measured.count >= 4
        assert round(lag.measured.sum, 6) == 1.25

    asyncio.run(scenario())
