"""Triggers before and on a replace, and the undo of what they saw."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, BoxError, Space, Tuple
from iproto_server.box.txn.trigger import TriggerList
from tests.box.boxes import refused, rows, state
from tests.box.txn.listeners import Refusal, Told, attempt, fail, listener


class TestList:
    def test_the_newest_is_first(self) -> None:
        triggers = TriggerList()
        assert (triggers.set(fail), triggers.set(listener), triggers.set()) == (
            fail,
            listener,
            [listener, fail],
        )

    def test_replacing_keeps_the_place(self) -> None:
        triggers = TriggerList()
        for function in (print, len, max):
            triggers.set(function)
        assert triggers.set(min, len) is min
        assert triggers.set() == [max, min, print]

    def test_deleting(self) -> None:
        triggers = TriggerList()
        triggers.set(print)
        assert triggers.set(None, print) is None
        assert (triggers.set(), bool(triggers)) == ([], False)

    def test_a_method_is_found_again(self) -> None:
        class Counter:
            def count(self) -> None:
                """Do nothing."""

        counter, triggers = Counter(), TriggerList()
        triggers.set(counter.count)
        triggers.set(None, counter.count)
        assert triggers.set() == []

    @pytest.mark.parametrize("new", [None, print])
    def test_an_unset_trigger_cannot_be_replaced(self, new: Any) -> None:
        triggers = TriggerList()
        triggers.set(len)
        with pytest.raises(ValueError, match="not set"):
            triggers.set(new, max)
        assert triggers.set() == [len]

    @pytest.mark.parametrize("wrong", [5, "print", []])
    def test_only_functions(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match="must be callable"):
            TriggerList().set(wrong)


class TestOnReplace:
    def test_it_is_told_of_every_change(self, space: Space) -> None:
        told: Told = []
        space.on_replace(listener(told))
        space.insert([4, "Dan", 40])
        space.replace([4, "Dan", 41])
        space.update(4, [("=", "balance", 42)])
        space.upsert([4, "Dan", 0], [("=", "balance", 43)])
        space.upsert([5, "Eve", 50], [("=", "balance", 51)])
        space.delete(4)
        assert told == [
            (None, [4, "Dan", 40]),
            ([4, "Dan", 40], [4, "Dan", 41]),
            ([4, "Dan", 41], [4, "Dan", 42]),
            ([4, "Dan", 42], [4, "Dan", 43]),
            (None, [5, "Eve", 50]),
            ([4, "Dan", 43], None),
        ]

    def test_it_is_not_told_of_what_changes_nothing(self, space: Space) -> None:
        told: Told = []
        space.on_replace(listener(told))
        space.delete(9)
        space.update(9, [("=", "balance", 1)])
        refused(space.insert, [1, "Ann", 1])
        refused(space.insert, [4, "Ann", 1])
        space.truncate()
        assert told == []

    def test_fields_by_name_and_what_it_returns_is_ignored(self, space: Space) -> None:
        space.on_replace(lambda old, new: [9, new["name"], old["balance"]])
        assert space.replace([1, "Ann", 11]) == [1, "Ann", 11]

    def test_the_change_is_done_when_it_runs(self, space: Space) -> None:
        seen: list[object] = []
        space.on_replace(
            lambda old, new: seen.append((space.get(4), space.index.name.get("Dan"), len(space)))
        )
        space.insert([4, "Dan", 40])
        assert seen == [([4, "Dan", 40], [4, "Dan", 40], 4)]

    def test_the_newest_runs_first(self, space: Space) -> None:
        ran: list[str] = []
        space.on_replace(lambda old, new: ran.append("older"))
        space.on_replace(lambda old, new: ran.append("newer"))
        space.delete(1)
        assert ran == ["newer", "older"]

    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_one_that_raises_undoes_the_change_wherever_it_stands(self, space: Space, place: int) -> None:
        before = state(space)
        told: list[Told] = [[], [], []]
        triggers: list[Callable[[Any, Any], object]] = [listener(each) for each in told]
        triggers[place] = fail
        for trigger in reversed(triggers):
            space.on_replace(trigger)
        changes: list[Callable[[], object]] = [
            lambda: space.insert([4, "Dan", 40]),
            lambda: space.replace([1, "Ann", 11]),
            lambda: space.update(1, [("=", "name", "Eve")]),
            lambda: space.delete(1),
        ]
        for change in changes:
            with pytest.raises(Refusal):
                change()
            assert state(space) == before
        assert [len(each) for each in told] == [4] * place + [0] * (3 - place)

    def test_a_procedure_may_survive_it(self, box: Box, space: Space) -> None:
        space.on_replace(fail)

        def procedure() -> None:
            with pytest.raises(Refusal):
                space.insert([4, "Dan", 40])
            space.on_replace(None, fail)
            space.insert([5, "Eve", 50])

        box.run(box.session.background, procedure)
        assert [row[0] for row in rows(space)] == [1, 2, 3, 5]

    def test_it_may_write_to_another_space(self, box: Box, space: Space) -> None:
        log = box.schema.create_space("log")
        log.create_index("primary")
        space.on_replace(lambda old, new: log.insert([len(log), new]))
        space.insert([4, "Dan", 40])
        assert rows(log) == [[0, [4, "Dan", 40]]]
        with pytest.raises(Refusal):
            box.atomic(self._insert_and_raise, space)
        assert len(log) == 1

    @staticmethod
    def _insert_and_raise(space: Space) -> None:
        space.insert([5, "Eve", 50])
        raise Refusal

    def test_its_writes_elsewhere_are_undone_with_the_change(self, box: Box, space: Space) -> None:
        log = box.schema.create_space("log")
        log.create_index("primary")

        def trigger(old: Tuple | None, new: Tuple | None) -> None:
            log.insert([len(log), old, new])
            if old is None:
                space.update(2, [("=", "balance", 0)])
                assert len(log) == 2
                raise Refusal

        space.on_replace(trigger)

        def procedure() -> None:
            with pytest.raises(Refusal):
                space.insert([4, "Dan", 40])

        before = state(space)
        box.run(box.session.background, procedure)
        assert (rows(log), state(space)) == ([], before)

    def test_it_may_change_the_same_row_again(self, space: Space) -> None:
        def trigger(old: Tuple | None, new: Tuple | None) -> None:
            if new is not None and new["balance"] < 0:
                space.update(new["id"], [("=", "balance", 0)])

        space.on_replace(trigger)
        space.update(1, [("-", "balance", 50)])
        assert space.get(1) == [1, "Ann", 0]
        assert [row["id"] for row in space.index.balance.select(0)] == [1]

    def test_it_may_delete_itself(self, space: Space) -> None:
        told: Told = []

        def once(old: Tuple | None, new: Tuple | None) -> None:
            told.append((old, new))
            space.on_replace(None, once)

        space.on_replace(once)
        space.delete(1)
        space.delete(2)
        assert len(told) == 1

    @pytest.mark.parametrize(
        ("end", "error"),
        [
            ("commit", (122, "Can not commit transaction in a nested statement")),
            ("rollback", (123, "Rollback called in a nested statement")),
        ],
    )
    @pytest.mark.parametrize("kind", ["on_replace", "before_replace"])
    def test_one_cannot_end_the_transaction(
        self, box: Box, space: Space, end: str, error: tuple[int, str], kind: str
    ) -> None:
        before = state(space)
        getattr(space, kind)(lambda old, new: getattr(box, end)())
        assert refused(space.delete, 1) == error
        assert (state(space), box.is_in_txn()) == (before, False)


class TestUndo:
    def test_it_is_told_of_what_is_rolled_back_newest_first(self, box: Box, space: Space) -> None:
        told: Told = []
        space.on_replace(lambda old, new: None, undo=listener(told))

        def procedure() -> None:
            space.insert([4, "Dan", 40])
            space.delete(1)
            raise Refusal

        attempt(box, procedure)
        assert told == [([1, "Ann", 10], None), (None, [4, "Dan", 40])]

    def test_it_is_not_told_of_what_is_kept(self, box: Box, space: Space) -> None:
        space.on_replace(lambda old, new: None, undo=fail)
        box.run(box.session.background, space.delete, 1)
        assert len(space) == 2

    def test_those_before_the_one_that_raised_are_told(self, space: Space) -> None:
        told: list[str] = []
        space.on_replace(lambda old, new: None, undo=lambda old, new: told.append("not reached"))
        space.on_replace(fail, undo=lambda old, new: told.append("raised"))
        space.on_replace(lambda old, new: None, undo=lambda old, new: told.append("second"))
        space.on_replace(lambda old, new: None, undo=lambda old, new: told.append("first"))
        with pytest.raises(Refusal):
            space.delete(1)
        assert told == ["second", "first"]

    def test_a_counter_stays_true(self, box: Box, space: Space) -> None:
        counted = {"rows": len(space)}

        def count(old: Tuple | None, new: Tuple | None) -> None:
            counted["rows"] += (new is not None) - (old is not None)

        def uncount(old: Tuple | None, new: Tuple | None) -> None:
            count(new, old)

        space.on_replace(count, undo=uncount)

        def procedure() -> None:
            space.delete(1)
            with pytest.raises(BoxError):
                box.atomic(lambda: [space.delete(2), space.insert([3, "Cid", 1])])
            assert counted["rows"] == len(space) == 2
            space.insert([4, "Dan", 40])
            raise Refusal

        attempt(box, procedure)
        assert counted["rows"] == len(space) == 3

    def test_one_that_raises_stops_neither_the_rollback_nor_the_others(
        self, box: Box, space: Space, caplog: pytest.LogCaptureFixture
    ) -> None:
        told: Told = []
        before = state(space)
        space.on_replace(lambda old, new: None, undo=listener(told))
        space.on_replace(lambda old, new: None, undo=fail)
        space.on_replace(lambda old, new: None, undo=listener(told))
        with caplog.at_level(logging.ERROR):
            attempt(box, lambda: [space.delete(1), space.delete(2), fail(None, None)])
        assert (len(told), state(space)) == (4, before)
        assert "undo failed" in caplog.text

    def test_one_that_raises_when_a_later_trigger_has_raised(self, box: Box, space: Space) -> None:
        space.on_replace(fail)
        space.on_replace(lambda old, new: None, undo=fail)

        def procedure() -> None:
            with pytest.raises(Refusal):
                space.delete(1)

        before = state(space)
        box.run(box.session.background, procedure)
        assert state(space) == before

    def test_a_deleted_trigger_is_not_told(self, box: Box, space: Space) -> None:
        told: Told = []
        trigger = listener([])
        space.on_replace(trigger, undo=listener(told))
        space.on_replace(None, trigger)
        attempt(box, lambda: [space.delete(1), fail(None, None)])
        assert told == []
