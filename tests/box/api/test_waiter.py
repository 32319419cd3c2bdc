"""Waiting calls and wait queues."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import STILL_WAITING, BoxError, ErrorCode, Waiter, WaitQueue
from tests.box.api.waiting_counter import Counter
from tests.box.boxes import refused


@pytest.fixture
def counter() -> Counter:
    return Counter()


class TestOrder:
    def test_first_come_first_served(self, counter: Counter) -> None:
        for name in "abc":
            counter.let_wait(name)
        assert len(counter.line) == 3
        counter.add()
        counter.add()
        assert (counter.answers, len(counter.line)) == ([("a", 0), ("b", 0)], 1)

    def test_several_at_once(self, counter: Counter) -> None:
        for name in "abc":
            counter.let_wait(name)
        counter.add(2)
        assert counter.answers == [("a", 1), ("b", 0)]

    def test_nobody_is_woken_beyond_the_count(self, counter: Counter) -> None:
        for name in "abc":
            counter.let_wait(name)
        counter.add(3, wakes=1)
        assert counter.answers == [("a", 2)]
        assert (counter.line.wake(5), counter.value) == (2, 0)

    def test_a_waiter_that_finds_nothing_keeps_its_place(self, counter: Counter) -> None:
        counter.let_wait("a")
        counter.let_wait("b")
        assert counter.line.wake(2) == 0
        counter.add()
        assert counter.answers == [("a", 0)]

    def test_an_empty_line(self, counter: Counter) -> None:
        assert (counter.line.wake(), len(counter.line)) == (0, 0)
        counter.add()
        assert counter.value == 1

    @pytest.mark.parametrize("count", [0, -1])
    def test_a_count_of_nobody(self, counter: Counter, count: int) -> None:
        counter.let_wait("a")
        counter.add(1, wakes=0)
        assert (counter.line.wake(count), counter.answers) == (0, [])
        assert counter.line.wake() == 1

    def test_a_wake_inside_a_transaction_waits_for_its_commit(self, counter: Counter) -> None:
        counter.let_wait("a")

        def procedure() -> None:
            counter.space.update(1, [("+", 1, 1)])
            assert counter.line.wake() == 0
            assert counter.answers == []

        counter.box.run(counter.box.session.background, procedure)
        assert counter.answers == [("a", 0)]

    def test_a_wake_that_is_rolled_back_wakes_nobody(self, counter: Counter) -> None:
        counter.let_wait("a")

        def procedure() -> None:
            counter.space.update(1, [("+", 1, 1)])
            counter.line.wake()
            raise KeyError

        with pytest.raises(KeyError):
            counter.box.run(counter.box.session.background, procedure)
        assert (counter.answers, counter.value) == ([], 0)

    def test_lines_do_not_know_each_other(self, counter: Counter) -> None:
        other = WaitQueue(counter.box)
        counter.let_wait("a")
        assert (other.wake(), len(other), len(counter.line)) == (0, 0, 1)


class TestResuming:
    def test_as_the_session_that_waits_and_in_a_transaction(self, counter: Counter) -> None:
        box = counter.box
        waiter = counter.wait("a", resume=lambda: (box.session.id(), box.session.peer(), box.is_in_txn()))
        counter.line.wake()
        assert waiter.result == (waiter.session.id, "a", True)
        assert box.session.current is box.session.background

    def test_none_is_an_answer(self, counter: Counter) -> None:
        waiter = counter.wait("a", resume=lambda: None)
        assert (counter.line.wake(), waiter.is_done, waiter.result) == (1, True, None)

    def test_an_error_of_resume_is_the_answer_and_undoes_its_changes(self, counter: Counter) -> None:
        def resume() -> object:
            counter.take()
            raise BoxError.procedure("no")

        waiter = counter.wait("a", resume=resume)
        counter.let_wait("b")
        counter.add()
        assert isinstance(waiter.error, BoxError)
        assert (waiter.error.message, waiter.result) == ("no", None)
        # The next waiter is served in place of the failed one.
        assert (counter.answers[1:], counter.value, len(counter.line)) == ([("b", 0)], 0, 0)

    def test_all_of_them_raise(self, counter: Counter) -> None:
        def resume() -> object:
            raise ValueError("no")

        for name in "abc":
            counter.let_wait(name, resume=resume)
        assert counter.line.wake() == 0
        assert [(name, str(error)) for name, error in counter.answers] == [
            ("a", "no"),
            ("b", "no"),
            ("c", "no"),
        ]

    def test_one_that_finds_nothing_keeps_what_it_changed(self, counter: Counter) -> None:
        def resume() -> object:
            counter.space.insert([2, "tried"])
            return STILL_WAITING

        counter.let_wait("a", resume=resume)
        assert (counter.line.wake(), len(counter.line), len(counter.space)) == (0, 1, 2)

    def test_a_wake_from_within_comes_after_the_running_one(self, counter: Counter) -> None:
        order: list[str] = []

        def resume(name: str) -> Callable[[], object]:
            def run() -> str:
                order.append(f"{name} begins")
                counter.line.wake()
                order.append(f"{name} ends")
                return name

            return run

        for name in "abc":
            counter.let_wait(name, resume=resume(name))
        assert counter.line.wake() == 3
        assert order == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]
        assert [name for name, _ in counter.answers] == ["a", "b", "c"]

    def test_a_wake_by_an_answer_comes_after_it(self, counter: Counter) -> None:
        first, second = counter.wait("a", resume=lambda: 1), counter.wait("b", resume=lambda: 2)

        def answered(done: Waiter) -> None:
            counter.line.wake()

        first.on_done(answered)
        assert (counter.line.wake(), second.result, len(counter.line)) == (2, 2, 0)

    def test_a_second_wait_goes_to_the_end(self, counter: Counter) -> None:
        def resume() -> object:
            return counter.line.park(60, counter.take)

        waiter = counter.wait("a", resume=resume)
        counter.let_wait("b")
        counter.add(2)
        assert isinstance(waiter.result, Waiter)
        assert (counter.answers[1], waiter.result.is_done, counter.value) == (("b", 1), False, 1)

    def test_lines_may_wake_each_other(self, counter: Counter) -> None:
        other = WaitQueue(counter.box)
        passed: list[str] = []

        def passing(name: str, line: WaitQueue) -> Callable[[], object]:
            def resume() -> int:
                passed.append(name)
                return line.wake()

            return resume

        counter.let_wait("a", resume=passing("a", other))
        _ = counter.box.run(counter.session("b"), other.park, 60, passing("b", counter.line))
        counter.let_wait("c", resume=passing("c", other))
        counter.line.wake()
        assert passed == ["a", "b", "c"]

    def test_it_may_close_its_own_session(self, counter: Counter) -> None:
        box = counter.box
        waiter = counter.wait("a", resume=lambda: box.session.close(box.session.current))
        counter.let_wait("b", resume=lambda: "served")
        counter.line.wake(2)
        assert (waiter.is_done, waiter.result, counter.answers) == (
            True,
            None,
            [("a", None), ("b", "served")],
        )


class TestTimeouts:
    def test_it_answers_without_a_value(self, counter: Counter) -> None:
        waiter = counter.wait("a", 5)
        counter.let_wait("b", 10)
        counter.clock.advance(4.9)
        assert not waiter.is_done
        counter.clock.advance(0.1)
        assert (counter.answers, len(counter.line)) == ([("a", None)], 1)
        counter.add()
        assert counter.answers == [("a", None), ("b", 0)]

    def test_they_run_out_in_their_own_order(self, counter: Counter) -> None:
        for name, timeout in (("a", 3), ("b", 1), ("c", 2)):
            counter.let_wait(name, timeout)
        counter.clock.advance(5)
        assert [name for name, _ in counter.answers] == ["b", "c", "a"]

    def test_an_answered_waiter_has_no_timer_left(self, counter: Counter) -> None:
        counter.let_wait("a")
        counter.add()
        assert counter.clock.pending == 0

    @pytest.mark.parametrize("timeout", [0, -1])
    def test_no_time_at_all(self, counter: Counter, timeout: float) -> None:
        waiter = counter.wait("a", timeout)
        assert not waiter.is_done
        counter.clock.advance(0)
        assert (waiter.is_done, waiter.result) == (True, None)

    @pytest.mark.parametrize("timeout", [1e300, math.inf])
    def test_practically_for_ever(self, counter: Counter, timeout: float) -> None:
        waiter = counter.wait("a", timeout)
        counter.clock.advance(365 * 86400)
        assert not waiter.is_done

    @pytest.mark.parametrize("timeout", [None, "soon", math.nan, [], {}])
    def test_invalid_timeouts(self, counter: Counter, timeout: Any) -> None:
        assert refused(counter.wait, "a", timeout) == (
            ErrorCode.ILLEGAL_PARAMS,
            "Illegal parameters, timeout must be a number of seconds",
        )
        assert (len(counter.line), counter.clock.pending) == (0, 0)
