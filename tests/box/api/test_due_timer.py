"""The timer of many deadlines: passes over what is due, and growing pauses after failures."""

from __future__ import annotations

import logging

import pytest

from iproto_server import Box, BoxError, DueTimer, ManualClock, Tuple
from iproto_server.box.api.due_timer import FAILING_MAX, PASS_SIZE
from iproto_server.box.backoff import FIRST_PAUSE, LONGEST_PAUSE, pause_after
from tests.queue_lua_compat.slow_journal import SlowJournal

DEADLINE = 1


class Items:
    """Rows with deadlines, removed when they are due.

    Attributes:
        clock: the clock.
        journal: the log.
        failing: the ids of rows that cannot be removed.
        attempts: the ids of all attempts, in order.
        passes: the number of passes.
    """

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.journal = SlowJournal()
        self.box = box = Box(self.journal, self.clock)
        self.space = box.schema.create_space("items", format=[("id", "unsigned"), ("due", "number")])
        self.space.create_index("primary", parts=["id"])
        self.space.create_index("due", parts=["due"], unique=False)
        self.failing: set[int] = set()
        self.attempts: list[int] = []
        self.passes = 0
        self.fails_as_a_whole = False
        self.timer = DueTimer(box, self._process, "items")
        self.space.on_replace(self._changed, undo=self._undone)
        self.timer.begin()
        self.passes = 0

    def add(self, *ids: int, after: float = 1.0) -> None:
        """Store rows that are due after so many seconds."""
        for item in ids:
            self.space.insert([item, self.timer.now() + after])

    @property
    def left(self) -> list[int]:
        """The ids of the rows that have not been removed."""
        return [row[0] for row in self.space.select()]

    def _process(self) -> float:
        self.passes += 1
        moment = self.timer.process(self.space.index["due"].pairs(), lambda row: row[DEADLINE], self._remove)
        if self.fails_as_a_whole:
            raise BoxError.procedure("sabotage")
        return moment

    def _remove(self, row: Tuple) -> None:
        self.attempts.append(row[0])
        self.space.delete(row[0])
        if row[0] in self.failing:
            raise BoxError.procedure(f"sabotage of {row[0]}")

    def _changed(self, old: Tuple | None, new: Tuple | None) -> None:
        if new is not None:
            self.timer.schedule(new[DEADLINE])

    def _undone(self, old: Tuple | None, new: Tuple | None) -> None:
        if old is not None:
            self.timer.schedule_immediately(old[DEADLINE])


@pytest.fixture
def items() -> Items:
    return Items()


def test_pauses_grow_up_to_a_limit() -> None:
    assert [pause_after(number) for number in (1, 2, 3, 4, 5, 6, 7, 10_000)] == [
        *(FIRST_PAUSE * factor for factor in (1, 2, 4, 8, 16)),
        *[LONGEST_PAUSE] * 3,
    ]
    assert pause_after(100, 600.0) == 600.0


class TestAnItemThatFails:
    def test_it_is_attempted_after_growing_pauses(self, items: Items) -> None:
        items.failing = {1}
        items.add(1)
        items.clock.advance(1 + 1 + 2 + 4 + 8 + 16 + 30 + 30 + 1)
        assert items.attempts == [1] * 8
        assert items.passes == 8

    def test_others_go_ahead_and_do_not_lead_to_attempts(self, items: Items) -> None:
        items.failing = {1}
        items.add(1)
        for item in range(2, 102):
            items.add(item, after=1 + item / 100)
        items.clock.advance(3)
        assert items.left == [1]
        assert items.attempts.count(1) == 2

    def test_it_is_processed_when_it_can_be(self, items: Items) -> None:
        items.failing = {1}
        items.add(1)
        items.clock.advance(1.5)
        items.failing.clear()
        items.clock.advance(1)
        assert items.left == []
        assert items.clock.pending == 0

    def test_a_clock_that_steps_back_does_not_delay_it(self, items: Items) -> None:
        items.failing = {1}
        items.add(1)
        items.clock.advance(1)
        items.clock.set_wall_clock(items.clock.time_ns() - 1)
        items.failing.clear()
        items.clock.advance(1)
        assert items.left == []

    def test_its_row_may_be_removed_meanwhile(self, items: Items) -> None:
        items.failing = {1}
        items.add(1)
        items.clock.advance(1)
        items.space.delete(1)
        items.clock.advance(1000)
        assert items.attempts == [1]
        assert items.clock.pending == 0

    def test_the_log_has_a_line_for_each_attempt(
        self, items: Items, caplog: pytest.LogCaptureFixture
    ) -> None:
        items.failing = {1, 2}
        items.add(1, 2)
        items.clock.advance(2)
        texts = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
        assert texts == ["cannot process some of items, trying again: 2"] * 2


class TestManyItems:
    def test_a_pass_has_a_limit(self, items: Items) -> None:
        items.add(*range(3 * PASS_SIZE))
        items.passes = 0
        items.clock.advance(1)
        assert items.passes == 3
        assert items.left == []

    def test_failing_ones_do_not_use_up_a_pass(self, items: Items) -> None:
        items.failing = set(range(2 * PASS_SIZE))
        items.add(*range(2 * PASS_SIZE))
        items.add(*range(FAILING_MAX, FAILING_MAX + 10), after=1.1)
        items.clock.advance(1.5)
        assert items.left == list(range(2 * PASS_SIZE))
        assert len(items.attempts) == 2 * PASS_SIZE + 10

    def test_too_many_failing_ones_pause_all(self, items: Items) -> None:
        items.failing = set(range(FAILING_MAX + PASS_SIZE))
        items.add(*items.failing)
        items.clock.advance(1)
        attempts = len(items.attempts)
        assert FAILING_MAX < attempts <= FAILING_MAX + PASS_SIZE
        items.clock.advance(0.9)
        assert len(items.attempts) == attempts
        items.failing.clear()
        items.clock.advance(2 * LONGEST_PAUSE)
        assert items.left == []


class TestAPassThatFails:
    def test_it_is_repeated_after_growing_pauses(self, items: Items) -> None:
        items.fails_as_a_whole = True
        items.add(1)
        items.clock.advance(1 + 1 + 2 + 4 + 8 + 0.5)
        assert items.passes == 5
        items.fails_as_a_whole = False
        items.clock.advance(16)
        assert items.left == []
        assert items.clock.pending == 0

    def test_new_deadlines_wait_for_the_end_of_the_pause(self, items: Items) -> None:
        items.fails_as_a_whole = True
        items.add(1)
        items.clock.advance(2)
        for item in range(2, 100):
            items.add(item, after=item / 100)
        items.clock.advance(1.5)
        assert items.passes == 2
        items.fails_as_a_whole = False
        items.clock.advance(0.5)
        assert items.left == []

    def test_what_cannot_be_written_is_attempted_after_growing_pauses(self, items: Items) -> None:
        items.add(1)
        for _ in range(5):
            before = items.passes
            items.journal.is_slow = True
            while items.passes == before:
                items.clock.advance(0.5)
            assert items.left == []
            items.journal.lose(items.box)
            assert items.left == [1]
        assert items.clock.time_ns() >= 1_600_000_000_000_000_000 + (1 + 1 + 2 + 4 + 8) * 10**9
        items.clock.advance(16)
        assert items.left == []

    def test_a_pass_that_could_not_begin_is_repeated(self, items: Items) -> None:
        items.add(1)
        with items.box.in_transaction():
            items.clock.advance(1)
        assert items.passes == 0
        items.clock.advance(1)
        assert items.left == []

    def test_after_stop_nothing_follows(self, items: Items) -> None:
        items.fails_as_a_whole = True
        items.add(1)
        items.clock.advance(1)
        items.timer.stop()
        items.clock.advance(1000)
        assert items.passes == 1
        assert items.clock.pending == 0


class TestABoxThatBecomesWritable:
    def test_what_is_due_is_processed_without_a_pause(self, items: Items) -> None:
        items.add(1)
        items.box.cfg(read_only=True)
        items.clock.advance(100)
        assert items.left == [1]
        assert items.passes <= 8
        items.box.cfg(read_only=False)
        items.clock.advance(0.001)
        assert items.left == []
        assert items.clock.pending == 0

    def test_a_stopped_timer_does_not_go_on(self, items: Items) -> None:
        items.add(1)
        items.box.cfg(read_only=True)
        items.clock.advance(1)
        items.timer.stop()
        items.box.cfg(read_only=False)
        items.clock.advance(100)
        assert items.left == [1]
