"""Triggers: notifications, changed rows, and failures."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from iproto_server import NIL, Box, BoxError, Space, Tuple
from iproto_server.box.txn.trigger import TriggerList
from iproto_server.codec import msgpack as codec
from tests.box.boxes import accounts, new_box, refused, rows, state

NESTED_TOO_DEEPLY = (121, "Can not execute a nested statement: nesting limit reached")

Told = list[tuple[Any, Any]]


class Refusal(Exception):
    """The error that triggers of these tests raise."""


def listener(told: Told) -> Callable[[Any, Any], None]:
    """A trigger that records its arguments."""

    def trigger(old: Tuple | None, new: Tuple | None) -> None:
        told.append((None if old is None else list(old), None if new is None else list(new)))

    return trigger


def fail(old: Tuple | None, new: Tuple | None) -> object:
    """A trigger that raises."""
    raise Refusal


def void(result: object) -> None:
    """Return nothing: a trigger's result may be stored."""


def attempt(box: Box, function: Callable[..., object], *arguments: object) -> None:
    """Run a procedure that a trigger refuses."""
    with pytest.raises(Refusal):
        box.run(box.session.background, function, *arguments)


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.fixture
def space(box: Box) -> Space:
    return accounts(box)


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


class TestBeforeReplace:
    def test_none_lets_the_change_pass(self, space: Space) -> None:
        told: Told = []
        space.before_replace(listener(told))
        assert space.insert([4, "Dan", 40]) == [4, "Dan", 40]
        assert space.update(4, [("=", "balance", 1)]) == [4, "Dan", 1]
        assert space.delete(4) == [4, "Dan", 1]
        assert refused(space.insert, [1, "Ann", 10])[0] == 3
        assert told[:3] == [(None, [4, "Dan", 40]), ([4, "Dan", 40], [4, "Dan", 1]), ([4, "Dan", 1], None)]

    @pytest.mark.parametrize("kind", [list, tuple, lambda values: Tuple(codec.pack(values))])
    def test_another_tuple_is_stored_instead(self, space: Space, kind: Callable[[list[Any]], Any]) -> None:
        space.before_replace(lambda old, new: kind([new["id"], new["name"].upper(), new["balance"]]))
        assert space.insert([4, "Dan", 40]) == [4, "DAN", 40]
        assert space.index.name.get("DAN") == [4, "DAN", 40]
        assert space.update(1, [("=", "balance", 1)]) == [1, "ANN", 1]

    def test_the_old_tuple_keeps_what_is_there(self, space: Space) -> None:
        space.before_replace(lambda old, new: old)
        told: Told = []
        space.on_replace(listener(told))
        before = state(space)
        changes: list[Callable[[], object]] = [
            lambda: space.insert([1, "Eve", 11]),
            lambda: space.replace([1, "Eve", 11]),
            lambda: space.update(1, [("=", "balance", 11)]),
            lambda: space.delete(1),
        ]
        for change in changes:
            change()
        assert (state(space), told) == (before, [])

    def test_nil_stores_nothing(self, space: Space) -> None:
        space.before_replace(lambda old, new: NIL)
        space.insert([4, "Dan", 40])
        space.upsert([5, "Eve", 50], [])
        space.delete(9)
        assert [row[0] for row in rows(space)] == [1, 2, 3]

    def test_nil_deletes_the_old_row(self, space: Space) -> None:
        space.before_replace(lambda old, new: NIL)
        told: Told = []
        space.on_replace(listener(told))
        space.insert([1, "Ann", 11])
        assert space.update(2, [("=", "balance", 1)]) is None
        assert space.delete(3) == [3, "Cid", 20]
        assert told == [([1, "Ann", 10], None), ([2, "Bob", 20], None), ([3, "Cid", 20], None)]
        assert [len(index.tree) for index in space.index] == [0, 0, 0]

    def test_a_deletion_may_become_an_update(self, space: Space) -> None:
        space.before_replace(lambda old, new: [*old[:3], "deleted"] if new is None else None)
        assert space.delete(1) == [1, "Ann", 10, "deleted"]
        assert space.get(1) == [1, "Ann", 10, "deleted"]

    def test_an_insertion_of_a_row_that_is_there_may_become_a_replacement(self, space: Space) -> None:
        space.before_replace(lambda old, new: [*new[:3], "again"])
        assert space.insert([1, "Ann", 11]) == [1, "Ann", 11, "again"]

    @pytest.mark.parametrize(("wrong", "name"), [(5, "int"), (False, "bool"), ("row", "str"), ({}, "dict")])
    def test_invalid_tuples(self, space: Space, wrong: object, name: str) -> None:
        before = state(space)
        space.before_replace(lambda old, new: wrong)
        assert refused(space.insert, [4, "Dan", 40]) == (
            53,
            f"Invalid return value of space:before_replace trigger: expected tuple or nil, got {name}",
        )
        assert state(space) == before

    def test_a_tuple_that_does_not_fit(self, space: Space) -> None:
        before = state(space)
        space.before_replace(lambda old, new: [4, 5])
        assert refused(space.insert, [4, "Dan", 40])[0] == 23
        space.before_replace(lambda old, new: [4, "Ann", 40])
        space.before_replace(None, space.before_replace()[1])  # type: ignore[index]
        assert refused(space.insert, [4, "Dan", 40]) == (
            3,
            "Duplicate key exists in unique index 'name' in space 'accounts'",
        )
        assert state(space) == before

    def test_another_primary_key(self, space: Space) -> None:
        before = state(space)
        space.before_replace(lambda old, new: [9, "Zoe", 9])
        changes: list[Callable[[], object]] = [
            lambda: space.insert([4, "Dan", 40]),
            lambda: space.update(1, [("=", "balance", 1)]),
            lambda: space.delete(1),
        ]
        for change in changes:
            assert refused(change) == (
                94,
                "Attempt to modify a tuple field which is part of index 'primary' in space 'accounts'",
            )
        assert state(space) == before

    def test_the_next_is_told_what_the_one_before_chose(self, space: Space) -> None:
        told: Told = []
        space.before_replace(listener(told))
        space.before_replace(lambda old, new: [new["id"], "second", 2])
        space.before_replace(lambda old, new: NIL if old is None else [old["id"], "first", 1])
        space.replace([1, "Ann", 11])
        assert told == [([1, "Ann", 10], [1, "second", 2])]

    def test_one_may_store_after_all_what_another_refused(self, space: Space) -> None:
        space.before_replace(lambda old, new: [4, "Dan", 44] if new is None else None)
        space.before_replace(lambda old, new: NIL)
        assert space.insert([4, "Dan", 40]) == [4, "Dan", 44]

    def test_it_runs_before_the_check_of_secondary_indexes(self, space: Space) -> None:
        space.before_replace(lambda old, new: [new["id"], f"{new['name']} {new['id']}", 0])
        assert space.insert([4, "Ann", 40]) == [4, "Ann 4", 0]

    def test_it_does_not_run_for_what_changes_nothing_or_fits_no_format(self, space: Space) -> None:
        space.before_replace(fail)
        space.delete(9)
        space.update(9, [("=", "balance", 1)])
        assert refused(space.insert, ["x"])[0] == 23
        assert refused(space.update, 1, [("=", "id", 2)])[0] == 3

    def test_its_errors_propagate(self, space: Space) -> None:
        before = state(space)
        space.before_replace(fail)
        with pytest.raises(Refusal):
            space.insert([4, "Dan", 40])
        assert state(space) == before

    def nested(self, space: Space, change: Callable[[], object]) -> None:
        """Set a trigger that makes a change of its own, once."""
        pending = [change]

        def trigger(old: Tuple | None, new: Tuple | None) -> None:
            if pending:
                pending.pop()()

        space.before_replace(trigger)

    def sound(self, space: Space) -> None:
        """Check that every index holds every row."""
        everything = rows(space)
        assert space.bsize() == sum(len(codec.pack(row)) for row in everything)
        for index in space.index:
            assert sorted(rows(space, index.id)) == everything

    def test_it_may_insert_the_same_row_first(self, space: Space) -> None:
        self.nested(space, lambda: space.replace([4, "Eve", 1]))
        assert refused(space.insert, [4, "Dan", 40])[0] == 3
        self.sound(space)

    def test_it_may_replace_the_same_row_first(self, space: Space) -> None:
        self.nested(space, lambda: space.replace([1, "Eve", 1]))
        assert space.replace([1, "Ann", 11]) == [1, "Ann", 11]
        assert space.index.name.get("Eve") is None
        self.sound(space)

    @pytest.mark.parametrize("change", ["delete", "truncate"])
    def test_it_may_delete_the_same_row_first(self, space: Space, change: str) -> None:
        remove = space.truncate if change == "truncate" else lambda: space.delete(1)
        self.nested(space, remove)
        space.delete(1)
        assert space.get(1) is None
        self.sound(space)
        self.nested(space, remove)
        space.replace([1, "Ann", 12])
        self.sound(space)


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
