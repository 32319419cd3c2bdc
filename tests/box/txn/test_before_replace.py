"""Triggers before a replace, which may change or refuse the new row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import NIL, Space, Tuple
from iproto_server.codec import msgpack as codec
from tests.box.boxes import refused, rows, state
from tests.box.txn.listeners import Refusal, Told, fail, listener


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
        assert space.update(2, [("=", "balance", 1)]) == [2, "Bob", 20]
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
