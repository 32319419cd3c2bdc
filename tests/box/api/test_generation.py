"""Reload of code: triggers, watchers, kept objects and waiters."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from iproto_server import Box, Space, Waiter, WaitQueue
from iproto_server.box.access.session import Session
from iproto_server.box.api.generation import CodeGeneration
from iproto_server.box.txn.trigger import TriggerList
from tests.box.boxes import accounts, new_box


class Refusal(Exception):
    """The error that functions of these tests raise."""


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.fixture
def space(box: Box) -> Space:
    return accounts(box)


def one() -> None:
    """A trigger of the first generation."""


def another_one() -> None:
    """Another trigger of the first generation."""


def two() -> None:
    """A trigger of the second generation."""


def another_two() -> None:
    """Another trigger of the second generation."""


def refer_to(*things: object) -> None:
    """Ignore the arguments."""


class TestTriggers:
    def test_the_first_new_one_takes_the_place_of_all_old_ones(self) -> None:
        triggers = TriggerList()
        triggers.set(one)
        triggers.set(another_one)
        triggers.start_replacement()
        assert triggers.set() == [another_one, one]
        triggers.set(two)
        assert triggers.set() == [two]
        triggers.set(another_two)
        triggers.finish_replacement()
        assert triggers.set() == [another_two, two]

    def test_without_new_ones_the_old_ones_go_in_the_end(self) -> None:
        triggers = TriggerList()
        triggers.set(one)
        triggers.start_replacement()
        triggers.finish_replacement()
        assert not triggers

    def test_a_new_one_may_name_the_old_one_that_it_replaces(self) -> None:
        triggers = TriggerList()
        triggers.set(one)
        triggers.set(another_one)
        triggers.start_replacement()
        triggers.set(two, one)
        triggers.set(another_two, another_one)
        triggers.finish_replacement()
        assert triggers.set() == [another_two, two]

    def test_an_old_one_may_be_deleted_before_and_after_a_new_one_is_set(self) -> None:
        triggers = TriggerList()
        triggers.set(one)
        triggers.set(another_one)
        triggers.start_replacement()
        triggers.set(None, one)
        assert triggers.set() == [another_one]
        triggers.set(two)
        assert triggers.set(None, another_one) is None
        assert triggers.set() == [two]

    def test_the_same_function_may_be_set_again(self) -> None:
        triggers = TriggerList()
        triggers.set(one)
        triggers.start_replacement()
        triggers.set(one)
        triggers.set(two, one)
        triggers.finish_replacement()
        assert triggers.set() == [two]

    def test_after_the_handover_the_old_ones_are_unknown(self) -> None:
        triggers = TriggerList()
        triggers.set(one)
        triggers.start_replacement()
        triggers.finish_replacement()
        with pytest.raises(ValueError, match="the trigger to replace is not set"):
            triggers.set(two, one)

    @pytest.mark.parametrize("is_complete", [False, True])
    def test_all_is_put_back_with_its_undo(self, *, is_complete: bool) -> None:
        triggers = TriggerList()
        undone: list[str] = []
        triggers.set(one, undo=lambda: undone.append("one"))
        put_back = triggers.start_replacement()
        triggers.set(two, undo=lambda: undone.append("two"))
        if is_complete:
            triggers.finish_replacement()
        put_back()
        assert triggers.set() == [one]
        triggers.undo(triggers.functions)
        assert undone == ["one"]

    def test_a_change_is_seen_by_the_old_or_by_the_new_ones(self, box: Box, space: Space) -> None:
        seen: list[tuple[str, int]] = []

        def trigger(name: str) -> Callable[..., None]:
            return lambda old, new: seen.append((name, new[0]))

        space.on_replace(trigger("old"))
        generation = CodeGeneration(box)
        space.replace([10, "Ten", 0])
        space.on_replace(trigger("new"))
        space.replace([11, "Eleven", 0])
        generation.complete()
        space.replace([12, "Twelve", 0])
        assert seen == [("old", 10), ("new", 11), ("new", 12)]

    @pytest.mark.parametrize("is_complete", [False, True])
    def test_lists_that_new_code_does_not_change_are_put_back_as_well(
        self, box: Box, space: Space, *, is_complete: bool
    ) -> None:
        other = box.schema.create_space("other")
        triggers = [each.core().on_replace for each in (space, other)]
        for each in triggers:
            each.set(one)
        generation = CodeGeneration(box)
        space.on_replace(two)
        if is_complete:
            generation.complete()
            assert [each.set() for each in triggers] == [[two], []]
        generation.revert()
        assert [each.set() for each in triggers] == [[one], [one]]

    def test_a_generation_begins_without_looking_at_all_spaces(
        self, box: Box, space: Space, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun: list[TriggerList] = []
        start = TriggerList.start_replacement

        def noted(triggers: TriggerList) -> Callable[[], None]:
            begun.append(triggers)
            return start(triggers)

        monkeypatch.setattr(TriggerList, "start_replacement", noted)
        for number in range(10):
            box.schema.create_space(f"space{number}").on_replace(one)
        generation = CodeGeneration(box)
        space.on_replace(two)
        space.on_replace(another_two)
        assert begun == [space.core().on_replace]
        generation.complete()
        assert begun == [space.core().on_replace]


class TestWatchers:
    def test_the_old_ones_are_told_until_the_handover_is_complete(self, box: Box) -> None:
        told: list[tuple[str, object]] = []
        box.watch("key", lambda key, value: told.append(("old", value)))
        generation = CodeGeneration(box)
        box.watch("key", lambda key, value: told.append(("new", value)))
        generation.complete()
        del told[:]
        box.broadcast("key", 1)
        assert told == [("new", 1)]

    @pytest.mark.parametrize("is_complete", [False, True])
    def test_the_old_ones_go_on_when_it_is_reverted(self, box: Box, *, is_complete: bool) -> None:
        told: list[tuple[str, object]] = []
        box.watch("key", lambda key, value: told.append(("old", value)))
        generation = CodeGeneration(box)
        box.watch("key", lambda key, value: told.append(("new", value)))
        if is_complete:
            generation.complete()
        generation.revert()
        generation.revert()
        del told[:]
        box.broadcast("key", 1)
        assert told == [("old", 1)]

    def test_one_that_is_unregistered_meanwhile_stays_so(self, box: Box) -> None:
        told: list[object] = []
        watcher = box.watch("key", lambda key, value: told.append(value))
        generation = CodeGeneration(box)
        watcher.unregister()
        generation.revert()
        del told[:]
        box.broadcast("key", 1)
        assert told == []


class TestKeep:
    def test_makes_an_object_once(self, box: Box) -> None:
        first: object = box.keep("list", list)
        assert box.keep("list", object) is first
        assert box.keep("other", list) is not box.keep("list", list)

    def test_forgets_it_with_the_transaction_in_which_it_was_made(self, box: Box) -> None:
        def procedure() -> None:
            box.keep("number", lambda: 1)
            raise Refusal

        with pytest.raises(Refusal):
            box.run(box.session.background, procedure)
        assert box.keep("number", lambda: 2) == 2

    def test_a_factory_that_raises_leaves_nothing(self, box: Box) -> None:
        with pytest.raises(ZeroDivisionError):
            box.keep("number", lambda: 1 // 0)
        assert box.keep("number", lambda: 2) == 2

    def test_the_generation_is_counted(self, box: Box) -> None:
        assert box.generation == 1
        first = CodeGeneration(box)
        first.complete()
        assert box.generation == 2
        CodeGeneration(box).revert()
        assert box.generation == 2


class TestWhoWaits:
    @pytest.fixture
    def session(self, box: Box) -> Session:
        return box.session.open("binary", "peer", user="admin")

    def test_resumes_with_what_the_line_has_when_it_is_woken(self, box: Box, session: Session) -> None:
        line = WaitQueue(box, lambda name: f"{name} by old")
        waiter = box.run(session, line.park, 10, None, ("ann",))
        own = box.run(session, line.park, 10, lambda: "own")
        line.resume_with(lambda name: f"{name} by new")
        line.wake(2)
        assert (waiter.result, own.result) == ("ann by new", "own")

    def test_with_the_old_where_the_transaction_that_changed_it_is_undone(
        self, box: Box, session: Session
    ) -> None:
        line = WaitQueue(box, lambda: "old")
        waiter = box.run(session, line.park, 10)

        def procedure() -> None:
            line.resume_with(lambda: "new")
            raise Refusal

        with pytest.raises(Refusal):
            box.run(box.session.background, procedure)
        line.wake()
        assert waiter.result == "old"

    def test_cannot_be_parked_where_there_is_nothing_to_resume_with(self, box: Box, session: Session) -> None:
        with pytest.raises(TypeError, match="no function to resume with"):
            _ = box.run(session, WaitQueue(box).park, 10)

    def test_is_forgotten_when_it_was_answered(self, box: Box, session: Session) -> None:
        line = WaitQueue(box, lambda: "answer")

        class Mark:
            """An object referenced by the callback, as is the waiter."""

        def park() -> weakref.ref[Mark]:
            mark = Mark()
            waiter: Waiter = box.run(session, line.park, 10)
            waiter.on_done(lambda done: refer_to(waiter, mark))
            return weakref.ref(mark)

        forgotten = park()
        gc.disable()
        try:
            line.wake()
            assert forgotten() is None
        finally:
            gc.enable()
