"""Waiting calls and wait queues."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from iproto_server import STILL_WAITING, Box, BoxError, ErrorCode, ManualClock, Space, Waiter, WaitQueue
from iproto_server.box.access.session import Session
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.box.txn.statement import Statement
from tests.box.boxes import new_box, refused


class Counter:
    """A counter in a space: callers wait until they can take something away from it.

    Attributes:
        answers: the callers' names and what they got, in the order of the answers.
    """

    def __init__(self) -> None:
        self.box, self.clock = new_box()
        self.space: Space = self.box.schema.create_space("counter")
        self.space.create_index("primary")
        self.space.insert([1, 0])
        self.line = WaitQueue(self.box)
        self.answers: list[tuple[str, object]] = []

    @property
    def value(self) -> int:
        """The value of the counter."""
        row = self.space.get(1)
        assert row is not None
        value: int = row[1]
        return value

    def session(self, name: str) -> Session:
        """A caller with the privileges to take."""
        return self.box.session.open("binary", name, user="admin")

    def take(self) -> object:
        """Decrement the counter, or find nothing."""
        return self.space.update(1, [("-", 1, 1)])[1] if self.value else STILL_WAITING  # type: ignore[index]

    def add(self, count: int = 1, wakes: int | None = None) -> None:
        """Add to the counter and wake as many waiters, in one transaction."""

        def procedure() -> None:
            self.space.update(1, [("+", 1, count)])
            self.line.wake(count if wakes is None else wakes)

        self.box.run(self.box.session.background, procedure)

    def wait(
        self,
        name: str,
        timeout: float = 60,
        resume: Callable[[], object] | None = None,
        session: Session | None = None,
    ) -> Waiter:
        """Let a caller wait in a session of its own; return its waiter."""
        session = session or self.session(name)
        waiter = self.box.run(session, self.line.park, timeout, resume or self.take)
        waiter.on_done(lambda done: self.answers.append((name, done.error or done.result)))
        return waiter

    def let_wait(self, name: str, timeout: float = 60, resume: Callable[[], object] | None = None) -> None:
        """Let a caller wait whose result is added to `answers`."""
        _ = self.wait(name, timeout, resume)


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


class TestSessions:
    def test_a_closed_session_leaves_the_queue(self, counter: Counter) -> None:
        leaving = counter.wait("a")
        counter.let_wait("b")
        counter.box.session.close(leaving.session)
        assert (leaving.is_done, leaving.result, len(counter.line), counter.clock.pending) == (
            True,
            None,
            1,
            1,
        )
        counter.add()
        assert counter.answers == [("a", None), ("b", 0)]

    def test_one_session_may_wait_several_times(self, counter: Counter) -> None:
        session = counter.session("a")
        waiters = [counter.wait(name, session=session) for name in "abc"]
        counter.add()
        counter.box.session.close(session)
        assert [waiter.result for waiter in waiters] == [0, None, None]
        assert (len(counter.line), session.on_close) == (0, {})

    def test_a_closed_session_does_not_wait(self, counter: Counter) -> None:
        session = counter.session("a")
        counter.box.session.close(session)
        waiter = counter.wait("a", session=session)
        assert (waiter.is_done, waiter.result, len(counter.line), counter.clock.pending) == (True, None, 0, 0)

    def test_answered_calls_leave_nothing_with_the_session(self, counter: Counter) -> None:
        waiter = counter.wait("a")
        counter.add()
        assert waiter.session.on_close == {}


class TestProceduresThatFail:
    def test_the_place_is_lost(self, counter: Counter) -> None:
        parked: list[Waiter] = []

        def procedure() -> None:
            parked.append(counter.line.park(60, counter.take))
            raise KeyError

        session = counter.session("a")
        with pytest.raises(KeyError):
            counter.box.run(session, procedure)
        assert (parked[0].is_done, len(counter.line), counter.clock.pending) == (True, 0, 0)
        counter.add()
        assert counter.value == 1

    def test_a_part_that_is_undone_loses_its_place(self, counter: Counter) -> None:
        def part() -> None:
            _ = counter.line.park(60, counter.take)
            raise KeyError

        def procedure() -> None:
            with pytest.raises(KeyError):
                counter.box.atomic(part)
            assert len(counter.line) == 0

        counter.box.run(counter.box.session.background, procedure)


class TestWhatAnswersRestOn:
    """Responses to the request and to waiters that wait for rows in the log."""

    class Journal(MemoryJournal):
        """A journal that accepts transactions as written or unwritten, or refuses them."""

        def __init__(self) -> None:
            super().__init__()
            self.answers: list[bool | BoxError] = []

        def append(self, statements: Sequence[Statement]) -> bool:
            answer = self.answers.pop(0)
            if isinstance(answer, BoxError):
                raise answer
            return answer

    @pytest.fixture
    def journal(self, counter: Counter) -> Journal:
        counter.box.transactions.journal = journal = self.Journal()
        return journal

    def waiting(self, counter: Counter, name: str, told: dict[str, bool]) -> None:
        def done(waiter: Waiter) -> None:
            told[name] = counter.box.transactions.has_logged

        counter.wait(name).on_done(done)

    @pytest.mark.parametrize(
        ("answers", "expected"),
        [
            ([False, False, False], {"add": False, "a": False, "b": False}),
            ([False, True, True], {"add": False, "a": True, "b": True}),
            ([False, BoxError(ErrorCode.WAL_IO), True], {"add": False, "a": False, "b": True}),
            ([True, True, True], {"add": True, "a": True, "b": True}),
        ],
    )
    def test_each_rests_on_its_own_transaction(
        self,
        counter: Counter,
        journal: Journal,
        answers: list[bool | BoxError],
        expected: dict[str, bool],
    ) -> None:
        transactions = counter.box.transactions
        told: dict[str, bool] = {}
        for name in ("a", "b"):
            self.waiting(counter, name, told)
        journal.answers = answers
        transactions.has_logged = False
        counter.add(2)
        told["add"] = transactions.has_logged
        assert told == expected
        assert journal.answers == []

    def test_answers_after_a_commit_depend_on_their_own_rows(
        self, counter: Counter, journal: Journal
    ) -> None:
        box = counter.box
        journal.answers = [False, True]
        box.transactions.has_logged = False

        def procedure() -> None:
            counter.space.update(1, [("+", 1, 1)])
            box.on_commit(lambda: counter.space.update(1, [("+", 1, 1)]))

        box.run(box.session.background, procedure)
        assert box.transactions.has_logged is False
        assert len(box.transactions.unwritten) == 1

    def test_one_that_times_out_rests_on_nothing(self, counter: Counter, journal: Journal) -> None:
        told: dict[str, bool] = {}
        self.waiting(counter, "a", told)
        journal.answers = [True]
        counter.add(1, wakes=0)
        assert counter.box.transactions.has_logged
        counter.clock.advance(100)
        assert told == {"a": False}


class TestWaiter:
    def waiter(self) -> Waiter:
        box = Box(clock=ManualClock())
        return Waiter(box.session.background, lambda: None)

    def test_only_the_first_answer_counts(self) -> None:
        waiter = self.waiter()
        answers: list[object] = []
        waiter.on_done(lambda done: answers.append(done.result))
        waiter.finish("first")
        waiter.finish("second")
        waiter.finish(error=KeyError())
        assert (answers, waiter.result, waiter.error) == (["first"], "first", None)

    def test_a_late_callback_runs_at_once(self) -> None:
        waiter = self.waiter()
        waiter.finish("done")
        answers: list[object] = []
        waiter.on_done(lambda done: answers.append(done.result))
        assert answers == ["done"]


class TestAwaiting:
    def test_a_coroutine_yields_the_waiter_and_resumes_after_it(self, counter: Counter) -> None:
        waiter = counter.wait("a")

        async def procedure() -> object:
            return await waiter

        coroutine = procedure()
        assert coroutine.send(None) is waiter
        counter.add()
        with pytest.raises(StopIteration) as stopped:
            coroutine.send(None)
        assert stopped.value.value == waiter.result

    def test_one_that_is_done_is_not_waited_for_and_its_error_is_raised(self, counter: Counter) -> None:
        waiter = counter.wait("a")
        waiter.finish(error=BoxError.procedure("no more"))

        async def procedure() -> object:
            return await waiter

        with pytest.raises(BoxError, match="no more"):
            procedure().send(None)
