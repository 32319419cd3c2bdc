"""ManualClock, the clock of tests."""

from __future__ import annotations

import math

import pytest

from iproto_server import ManualClock

SECOND = 1_000_000_000


def test_it_stands_still() -> None:
    clock = ManualClock(5 * SECOND)
    assert (clock.time_ns(), clock.time_ns()) == (5 * SECOND, 5 * SECOND)


def test_it_moves_when_told() -> None:
    clock = ManualClock(0)
    clock.advance(1.5)
    clock.advance(0)
    assert clock.time_ns() == 3 * SECOND // 2


def test_it_does_not_go_back_by_advancing() -> None:
    clock = ManualClock(5 * SECOND)
    clock.advance(-1)
    assert clock.time_ns() == 5 * SECOND


def test_timers_run_in_the_order_of_their_time_each_at_its_own_moment() -> None:
    clock = ManualClock(0)
    ran: list[tuple[str, int]] = []
    for name, delay in (("late", 3.0), ("first", 1.0), ("second", 1.0), ("never", 9.0)):
        clock.call_later(delay, lambda name=name: ran.append((name, clock.time_ns())))  # type: ignore[misc]
    clock.advance(0.5)
    assert ran == []
    clock.advance(4.5)
    assert ran == [("first", SECOND), ("second", SECOND), ("late", 3 * SECOND)]
    assert (clock.time_ns(), clock.pending) == (5 * SECOND, 1)


@pytest.mark.parametrize("delay", [0, -1])
def test_a_timer_without_delay_waits_for_the_next_move(delay: float) -> None:
    clock = ManualClock(0)
    ran: list[int] = []
    clock.call_later(delay, lambda: ran.append(clock.time_ns()))
    assert ran == []
    clock.advance(0)
    assert ran == [0]


def test_a_timer_for_infinity_waits_a_lifetime() -> None:
    clock = ManualClock(0)
    clock.call_later(math.inf, lambda: pytest.fail("too early"))
    clock.advance(50 * 365 * 86400)
    assert clock.pending == 1


def test_a_cancelled_timer_does_not_run() -> None:
    clock = ManualClock()
    timer = clock.call_later(1, lambda: pytest.fail("cancelled"))
    timer.cancel()
    timer.cancel()
    clock.advance(2)
    assert clock.pending == 0


def test_cancelling_after_it_ran_is_harmless() -> None:
    clock = ManualClock()
    timer = clock.call_later(1, lambda: None)
    clock.advance(1)
    timer.cancel()


def test_a_timer_may_set_and_cancel_others() -> None:
    clock = ManualClock(0)
    ran: list[str] = []
    doomed = clock.call_later(2, lambda: ran.append("doomed"))

    def first() -> None:
        doomed.cancel()
        clock.call_later(1, lambda: ran.append("second"))
        clock.call_later(8, lambda: ran.append("later"))

    clock.call_later(1, first)
    clock.advance(5)
    assert ran == ["second"]


def test_a_timer_may_let_time_pass_itself() -> None:
    clock = ManualClock(0)
    clock.call_later(1, lambda: clock.advance(10))
    clock.advance(2)
    assert clock.time_ns() == 11 * SECOND


def test_a_timer_that_raises_stops_the_clock_at_its_moment() -> None:
    clock = ManualClock(0)
    ran: list[int] = []
    clock.call_later(1, lambda: [][0])
    clock.call_later(2, lambda: ran.append(clock.time_ns()))
    with pytest.raises(IndexError):
        clock.advance(5)
    assert clock.time_ns() == SECOND
    clock.advance(4)
    assert (ran, clock.time_ns()) == ([2 * SECOND], 5 * SECOND)


def test_the_wall_clock_may_step_without_moving_timers() -> None:
    clock = ManualClock(100 * SECOND)
    ran: list[int] = []
    clock.call_later(2, lambda: ran.append(clock.time_ns()))
    clock.set_wall_clock(50 * SECOND)
    clock.advance(1)
    assert (ran, clock.time_ns()) == ([], 51 * SECOND)
    clock.advance(1)
    assert ran == [52 * SECOND]


class TestMomentsOfTheWallClock:
    def test_a_timer_calls_at_its_moment(self) -> None:
        clock = ManualClock(5 * SECOND)
        ran: list[int] = []
        clock.call_at(6.5, lambda: ran.append(clock.time_ns()))
        clock.advance(1)
        assert ran == []
        clock.advance(1)
        assert ran == [13 * SECOND // 2]

    @pytest.mark.parametrize(("step", "after"), [(2, 3), (-2, 7), (10, 0)])
    def test_a_timer_follows_the_steps_of_the_clock(self, step: int, after: int) -> None:
        clock = ManualClock(0)
        ran: list[int] = []
        clock.call_at(5, lambda: ran.append(clock.time_ns()))
        clock.call_later(5, lambda: ran.append(-1))
        clock.set_wall_clock(step * SECOND)
        assert ran == []
        clock.advance(after)
        assert ran[-1] == max(5, step) * SECOND
        assert ran.count(-1) == (after >= 5)

    def test_when_it_calls_the_moment_has_come_as_a_number_of_seconds(self) -> None:
        clock = ManualClock()
        for number in range(1000):
            moment = clock.time_ns() / SECOND + number * 0.000_123_4
            seen: list[float] = []
            clock.call_at(moment, lambda seen=seen: seen.append(clock.time_ns() / SECOND))  # type: ignore[misc]
            clock.advance(0.2)
            assert seen[0] >= moment

    def test_when_it_calls_the_moment_has_come_in_microseconds(self) -> None:
        clock = ManualClock()
        for number in range(1, 1000):
            moment = clock.time_ns() // 1000 + number * 17
            seen: list[int] = []
            clock.call_at(moment / 1e6, lambda seen=seen: seen.append(clock.time_ns() // 1000))  # type: ignore[misc]
            clock.advance(0.2)
            assert seen == [moment]
