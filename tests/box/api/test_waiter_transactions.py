"""Calls that wait: sessions, failures, and the transactions that answers rest on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from iproto_server import Box, BoxError, ErrorCode, ManualClock, Waiter
from iproto_server.box.txn.journal import MemoryJournal
from iproto_server.box.txn.statement import Statement
from tests.box.api.waiting_counter import Counter


@pytest.fixture
def counter() -> Counter:
    return Counter()


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
