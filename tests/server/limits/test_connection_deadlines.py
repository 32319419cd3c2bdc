"""One timer for the deadlines of all connections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from iproto_server import ManualClock
from iproto_server.server.limits.connection_deadlines import AT_ONCE, ConnectionDeadlines, DeadlineQueue


class Lines:
    """Two queues with their clock.

    Attributes:
        passed: the connections whose time is over, in their order.
    """

    def __init__(self, **seconds: float) -> None:
        self.clock = ManualClock()
        self.deadlines = ConnectionDeadlines(self.clock)
        self.seconds = SimpleNamespace(**seconds)
        self.passed: list[Any] = []

    def queue(self, name: str) -> DeadlineQueue:
        return self.deadlines.queue(lambda: getattr(self.seconds, name), self.passed.append)


def connections(count: int) -> list[Any]:
    """Something that can stand in a queue."""
    return [object() for _ in range(count)]


@pytest.mark.parametrize("seconds", [1, 2.5, 60])
def test_a_deadline_passes_never_early_and_up_to_two_ticks_late(seconds: float) -> None:
    lines = Lines(login=seconds)
    queue = lines.queue("login")
    first, second = connections(2)
    queue.begin(first)
    lines.clock.advance(0.5)
    queue.begin(second)
    lines.clock.advance(seconds - 0.5)
    assert lines.passed == []
    lines.clock.advance(2)
    assert lines.passed == [first, second]
    assert len(queue) == 0


def test_who_has_done_it_has_no_deadline() -> None:
    lines = Lines(login=10)
    queue = lines.queue("login")
    first, second = connections(2)
    queue.begin(first)
    queue.begin(second)
    queue.end(first)
    queue.end(first)
    assert (first in queue, second in queue) == (False, True)
    lines.clock.advance(100)
    assert lines.passed == [second]


def test_others_have_their_turn_between_many_whose_time_is_over() -> None:
    lines = Lines(login=10)
    queue = lines.queue("login")
    for connection in (many := connections(3 * AT_ONCE + 1)):
        queue.begin(connection)
    steps: list[int] = []

    def step() -> None:
        steps.append(len(lines.passed))
        if len(steps) < 5:
            lines.clock.call_later(0, step)

    lines.clock.advance(10)
    lines.clock.call_later(1, step)
    lines.clock.advance(1)
    assert steps == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE, 3 * AT_ONCE + 1, 3 * AT_ONCE + 1]
    assert lines.passed == many


def test_a_deadline_that_begins_again_is_behind_the_others() -> None:
    lines = Lines(frame=10)
    queue = lines.queue("frame")
    first, second = connections(2)
    queue.begin(first)
    queue.begin(second)
    lines.clock.advance(8)
    queue.begin(first)
    lines.clock.advance(4)
    assert lines.passed == [second]
    lines.clock.advance(8)
    assert lines.passed == [second, first]


def test_there_is_one_timer_and_none_while_nobody_has_a_deadline() -> None:
    lines = Lines(login=5, frame=7)
    login, frame = lines.queue("login"), lines.queue("frame")
    assert lines.clock.pending == 0
    for connection in connections(100):
        login.begin(connection)
        frame.begin(connection)
    assert lines.clock.pending == 1
    lines.clock.advance(100)
    assert (len(lines.passed), lines.clock.pending) == (200, 0)
    login.begin(lines.passed[0])
    assert lines.clock.pending == 1
    login.end(lines.passed[0])
    lines.clock.advance(1)
    assert lines.clock.pending == 0


def test_a_time_that_changes_holds_for_those_who_wait_already() -> None:
    lines = Lines(login=0)
    queue = lines.queue("login")
    (only,) = connections(1)
    queue.begin(only)
    lines.clock.advance(1000)
    assert lines.passed == []
    lines.seconds.login = 1000
    lines.clock.advance(3)
    assert lines.passed == [only]


def test_a_step_of_the_wall_clock_changes_nothing() -> None:
    lines = Lines(login=10)
    queue = lines.queue("login")
    queue.begin(connections(1)[0])
    lines.clock.set_wall_clock(lines.clock.time_ns() + 10**15)
    lines.clock.advance(5)
    assert lines.passed == []


def test_after_the_stop_no_deadline_passes() -> None:
    lines = Lines(login=10)
    queue = lines.queue("login")
    queue.begin(connections(1)[0])
    lines.deadlines.stop()
    lines.clock.advance(100)
    assert (lines.passed, lines.clock.pending, len(queue)) == ([], 0, 0)
