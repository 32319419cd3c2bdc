"""Triggers that change rows themselves, and truncation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from iproto_server import Box, BoxError, Space, Tuple
from tests.box.boxes import refused, rows, state
from tests.box.txn.listeners import Refusal, Told, attempt, fail, listener

NESTED_TOO_DEEPLY = (121, "Can not execute a nested statement: nesting limit reached")


def void(result: object) -> None:
    """Return nothing: a trigger's result may be stored."""


class TestNesting:
    """Statements of triggers, and failures of the statements that run them."""

    @pytest.fixture
    def log(self, box: Box) -> Space:
        log = box.schema.create_space("log")
        log.create_index("primary")
        return log

    def writing(self, log: Space, number: int) -> Callable[[Tuple | None, Tuple | None], None]:
        """A trigger that writes."""
        return lambda old, new: void(log.replace([number]))

    @pytest.fixture(params=["plain", "in a procedure", "in a procedure that catches", "in an atomic block"])
    def attempted(self, request: pytest.FixtureRequest, box: Box) -> Callable[[Callable[[], object]], None]:
        """Callers that make a refused change, in all kinds of transactions."""

        def caught(change: Callable[[], object]) -> None:
            with pytest.raises((BoxError, Refusal)):
                change()

        def attempt(change: Callable[[], object]) -> None:
            if request.param == "plain":
                caught(change)
            elif request.param == "in a procedure":
                caught(lambda: box.run(box.session.background, change))
            elif request.param == "in an atomic block":
                caught(lambda: box.atomic(change))
            else:
                box.run(box.session.background, caught, change)
            assert not box.is_in_txn()

        return attempt

    CHANGES: tuple[Callable[[Space], object], ...] = (
        lambda space: space.insert([4, "Ann", 40]),
        lambda space: space.replace([1, "Bob", 10]),
        lambda space: space.update(1, [("=", "name", "Bob")]),
        lambda space: space.upsert([1, "Ann", 10], [("=", "name", "Bob")]),
        lambda space: space.upsert([4, "Ann", 40], []),
    )

    @pytest.mark.parametrize("change", CHANGES)
    def test_writes_of_before_replace_are_undone_with_a_refused_row(
        self, attempted: Callable[..., None], space: Space, log: Space, change: Callable[[Space], object]
    ) -> None:
        before = state(space)
        space.before_replace(self.writing(log, 1))
        space.before_replace(self.writing(log, 2))
        attempted(lambda: change(space))
        assert (state(space), rows(log)) == (before, [])

    @pytest.mark.parametrize("change", [*CHANGES[:1], lambda space: space.delete(1)])
    @pytest.mark.parametrize("kind", ["before_replace", "on_replace"])
    def test_and_with_one_that_a_later_trigger_refuses(
        self,
        attempted: Callable[..., None],
        space: Space,
        log: Space,
        change: Callable[[Space], object],
        kind: str,
    ) -> None:
        before = state(space)
        space.on_replace(self.writing(log, 1))
        getattr(space, kind)(fail)
        getattr(space, kind)(self.writing(log, 2))
        space.before_replace(self.writing(log, 3))
        attempted(lambda: change(space))
        assert (state(space), rows(log)) == (before, [])

    def test_earlier_changes_of_the_transaction_stay(self, box: Box, space: Space, log: Space) -> None:
        def procedure() -> None:
            log.replace([7])
            with pytest.raises(BoxError):
                space.insert([4, "Ann", 40])
            space.delete(3)

        space.before_replace(self.writing(log, 1))
        box.run(box.session.background, procedure)
        assert ([row[0] for row in rows(space)], rows(log)) == ([1, 2], [[1], [7]])

    def test_a_trigger_may_catch_what_another_one_s_change_ends_in(
        self, box: Box, space: Space, log: Space
    ) -> None:
        def trigger(old: Tuple | None, new: Tuple | None) -> None:
            log.replace([2])
            with pytest.raises(Refusal):
                log.replace([3])

        log.on_replace(lambda old, new: fail(old, new) if new is not None and new[0] == 3 else None)
        log.before_replace(lambda old, new: void(new is not None and new[0] == 3 and log.replace([30])))
        space.before_replace(trigger)
        space.delete(1)
        assert (len(space), rows(log)) == (2, [[2]])

    def test_functions_for_the_end_of_a_transaction_are_undone_with_the_statement(
        self, box: Box, space: Space
    ) -> None:
        told: list[str] = []

        def trigger(old: Tuple | None, new: Tuple | None) -> None:
            box.on_commit(lambda: told.append("committed"))
            box.on_rollback(lambda: told.append("rolled back"))
            raise Refusal

        def procedure() -> None:
            for kind in (space.on_replace, space.before_replace):
                kind(trigger)
                with pytest.raises(Refusal):
                    space.delete(1)
                kind(None, trigger)
                assert told.pop() == "rolled back"

        box.run(box.session.background, procedure)
        assert told == []

    @pytest.mark.parametrize("kind", ["on_replace", "before_replace"])
    @pytest.mark.parametrize("depth", range(6))
    def test_three_levels_below_the_first_are_the_most(self, box: Box, kind: str, depth: int) -> None:
        spaces = [box.schema.create_space(f"level{number}") for number in range(6)]
        for each in spaces:
            each.create_index("primary")

        def write_into(target: Space) -> Callable[[Tuple | None, Tuple | None], None]:
            return lambda old, new: void(new is not None and new[1] and target.replace([1, new[1] - 1]))

        for each, following in pairwise(spaces):
            getattr(each, kind)(write_into(following))
        if depth < 4:
            spaces[0].replace([1, depth])
            assert [len(each) for each in spaces] == [1] * (depth + 1) + [0] * (5 - depth)
        else:
            assert refused(spaces[0].replace, [1, depth]) == NESTED_TOO_DEEPLY
            assert [len(each) for each in spaces] == [0] * 6

    def test_every_statement_is_refused_there_before_it_is_looked_at_and_nothing_else_is(
        self, box: Box, space: Space, log: Space
    ) -> None:
        changes: list[Callable[[], object]] = [
            lambda: space.insert(["no id"]),
            lambda: space.replace([4, "Dan", 40]),
            lambda: space.update("no id", []),
            lambda: space.update(1, [("=", "balance", 1)]),
            lambda: space.delete(99),
            lambda: space.upsert([4, "Dan", 40], []),
            lambda: space.truncate(),
            lambda: box.schema.create_space("new"),
        ]

        def trigger(old: Tuple | None, new: Tuple | None) -> None:
            assert new is not None
            if new[0] < 4:
                log.replace([new[0] + 1])
                return
            for change in changes:
                assert refused(change) == NESTED_TOO_DEEPLY
            assert space.get(1) == [1, "Ann", 10]

        log.on_replace(trigger)
        log.replace([1])
        assert (len(log), len(space)) == (4, 3)
        assert refused(log.replace, [0]) == NESTED_TOO_DEEPLY

    def test_one_that_sets_itself_off_is_refused_with_all_that_it_did(self, space: Space) -> None:
        before = state(space)
        space.on_replace(
            lambda old, new: void(new is not None and space.replace([new[0] + 1, str(new[0]), 1]))
        )
        assert refused(space.replace, [10, "Eve", 1]) == NESTED_TOO_DEEPLY
        assert state(space) == before
        space.on_replace(None, space.on_replace()[0])  # type: ignore[index]
        space.replace([10, "Eve", 1])

    def test_undo_functions_cannot_change_rows(
        self, box: Box, space: Space, log: Space, caplog: pytest.LogCaptureFixture
    ) -> None:
        def procedure() -> None:
            space.delete(1)
            raise Refusal

        before = state(space)
        space.on_replace(lambda old, new: None, undo=self.writing(log, 1))
        with caplog.at_level(logging.ERROR, "iproto_server.trigger"):
            attempt(box, procedure)
        assert (state(space), rows(log)) == (before, [])
        [record] = caplog.records
        assert "nesting limit reached" in str(record.exc_info and record.exc_info[1])
        log.replace([1])

    def test_savepoints_of_another_level_are_none(self, box: Box, space: Space, log: Space) -> None:
        kept: list[Any] = []

        def trigger(old: Tuple | None, new: Tuple | None) -> None:
            assert refused(box.rollback_to_savepoint, kept[0])[0] == 61
            kept.append(box.savepoint())
            log.replace([1])
            box.rollback_to_savepoint(kept[1])
            log.replace([2])

        space.on_replace(trigger)
        box.begin()
        kept.append(box.savepoint())
        space.delete(1)
        assert refused(box.rollback_to_savepoint, kept[1])[0] == 61
        assert rows(log) == [[2]]
        box.rollback_to_savepoint(kept[0])
        box.commit()
        assert (len(space), len(log)) == (3, 0)


class TestTruncation:
    def test_it_is_a_change_of_a_system_space(self, box: Box, space: Space) -> None:
        told: Told = []
        box.space["_truncate"].on_replace(listener(told))
        space.truncate()
        space.truncate()
        assert told == [(None, [space.id, 1]), ([space.id, 1], [space.id, 2])]
        assert len(space) == 0

    def test_a_trigger_that_raises_there_refuses_it(self, box: Box, space: Space) -> None:
        before = state(space)
        box.space["_truncate"].on_replace(fail)
        with pytest.raises(Refusal):
            space.truncate()
        assert state(space) == before

    def test_its_undo_is_told(self, box: Box, space: Space) -> None:
        told: Told = []
        box.space["_truncate"].on_replace(lambda old, new: None, undo=listener(told))

        def procedure() -> None:
            space.truncate()
            raise Refusal

        attempt(box, procedure)
        assert (told, len(space)) == ([(None, [space.id, 1])], 3)

    def test_triggers_stay_with_the_space(self, space: Space) -> None:
        told: Told = []
        space.on_replace(listener(told))
        space.truncate()
        space.insert([1, "Ann", 1])
        space.rename("people")
        space.delete(1)
        assert told == [(None, [1, "Ann", 1]), ([1, "Ann", 1], None)]


def test_definitions_can_be_refused_by_triggers_of_the_system_spaces(box: Box) -> None:
    box.space["_space"].on_replace(fail)
    before = len(box.space["_space"])
    attempt(box, box.schema.create_space, "s")
    assert (len(box.space["_space"]), "s" in box.space) == (before, False)
