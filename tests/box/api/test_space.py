"""Facades of spaces for procedures: finding and changing rows, and errors of wrong uses."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from iproto_server import Box, ErrorCode, Space
from iproto_server.box.update import operations_from_python
from tests.box.api.ids import ids
from tests.box.boxes import refused, rows, state


class TestFinding:
    def test_by_name_or_number(self, box: Box, space: Space) -> None:
        assert box.space.accounts is box.space["accounts"] is box.space[space.id]
        assert ("accounts" in box.space, "nobody" in box.space, 5 in box.space) == (True, False, False)
        assert "accounts" in [each.name for each in box.space]
        assert repr(space) == "<space accounts>"

    @pytest.mark.parametrize("which", ["nobody", "", 9999, None, 1.5])
    def test_one_there_is_not(self, box: Box, which: Any) -> None:
        assert refused(lambda: box.space[which]) == (36, f"Space '{which}' does not exist")

    def test_its_properties(self, box: Box, space: Space) -> None:
        assert (space.id, space.name, space.field_count, space.temporary) == (512, "accounts", 0, False)
        other = box.schema.create_space("other", id=700, field_count=2, temporary=True)
        assert (other.id, other.field_count, other.temporary) == (700, 2, True)

    def test_indexes_by_name_or_number(self, space: Space) -> None:
        assert space.index.name.id == space.index["name"].id == space.index[1].id == 1
        assert [index.name for index in space.index] == ["primary", "name", "balance"]
        assert ("name" in space.index, "nobody" in space.index, len(space.index)) == (True, False, 3)
        index = space.index.balance
        assert (index.id, index.name, index.type, index.unique) == (2, "balance", "TREE", False)

    def test_an_index_there_is_not(self, space: Space) -> None:
        assert refused(lambda: space.index.nobody) == (
            148,
            "No index 'nobody' is defined in space 'accounts'",
        )
        assert refused(lambda: space.index[7]) == (35, "No index #7 is defined in space 'accounts'")

    def test_private_names_are_no_spaces(self, box: Box, space: Space) -> None:
        assert not hasattr(box.space, "__wrapped__")
        assert not hasattr(space.index, "__wrapped__")


class TestInsertAndReplace:
    def test_lists_tuples_and_rows(self, space: Space) -> None:
        assert space.insert([4, "Dan", 40]) == [4, "Dan", 40]
        assert space.insert((5, "Eve", 50, "note"))["note"] == "note"
        assert space.replace(space.insert([6, "Fay", 60]))["name"] == "Fay"
        assert space.put([6, "Fay", 61]) == [6, "Fay", 61]
        assert len(space) == 6

    def test_enumerations_are_stored_as_their_values(self, space: Space) -> None:
        class Name(StrEnum):
            DAN = "Dan"

        class Number(IntEnum):
            FOUR = 4

        stored = space.insert([Number.FOUR, Name.DAN, 40])
        assert [type(value) for value in stored] == [int, str, int]
        assert space.get(4) == [4, "Dan", 40]

    def test_the_row_of_another_space(self, box: Box, space: Space) -> None:
        other = box.schema.create_space("other", format=[("number", "unsigned"), "who"])
        other.create_index("primary", parts=["number"])
        ann = space.get(1)
        assert ann is not None
        assert other.insert(ann)["who"] == "Ann"

    def test_a_key_that_is_there(self, space: Space) -> None:
        before = state(space)
        text = "Duplicate key exists in unique index '%s' in space 'accounts'"
        assert refused(space.insert, [1, "Dan", 40]) == (3, text % "primary")
        assert refused(space.insert, [4, "Ann", 40]) == (3, text % "name")
        assert refused(space.replace, [1, "Bob", 40]) == (3, text % "name")
        assert refused(space.update, 1, [("=", "name", "Bob")]) == (3, text % "name")
        assert refused(space.upsert, [4, "Ann", 40], []) == (3, text % "name")
        assert state(space) == before

    @pytest.mark.parametrize(
        ("values", "code", "text"),
        [
            ([], 39, "Tuple field 1 required by space format is missing"),
            ([4, "Dan"], 39, "Tuple field 3 required by space format is missing"),
            (
                ["4", "Dan", 1],
                23,
                "Tuple field 1 type does not match one required by operation: expected unsigned",
            ),
            (
                [-4, "Dan", 1],
                23,
                "Tuple field 1 type does not match one required by operation: expected unsigned",
            ),
            (
                [4, None, 1],
                23,
                "Tuple field 2 type does not match one required by operation: expected string",
            ),
            (5, 22, "Tuple/Key must be MsgPack array"),
            (None, 22, "Tuple/Key must be MsgPack array"),
            ("row", 22, "Tuple/Key must be MsgPack array"),
            ({"id": 4}, 22, "Tuple/Key must be MsgPack array"),
            ([2**64, "Dan", 1], 32, "integer 18446744073709551616 does not fit 64 bits"),
            ([object(), "Dan", 1], 32, "unsupported Python type 'object'"),
        ],
    )
    def test_rows_that_do_not_fit(self, space: Space, values: Any, code: int, text: str) -> None:
        before = state(space)
        assert refused(space.insert, values) == (code, text)
        assert refused(space.replace, values) == (code, text)
        assert refused(space.upsert, values, []) == (code, text)
        assert state(space) == before

    def test_a_fixed_count_of_fields(self, box: Box) -> None:
        pairs = box.schema.create_space("pairs", field_count=2)
        pairs.create_index("primary")
        assert refused(pairs.insert, [1]) == (38, "Tuple field count 1 does not match space field count 2")
        assert refused(pairs.insert, [1, 2, 3])[0] == 38
        assert pairs.insert([1, 2]) == [1, 2]

    def test_without_a_primary_index_there_are_no_rows(self, box: Box) -> None:
        bare = box.schema.create_space("bare")
        expected = (35, "No index #0 is defined in space 'bare'")
        uses: list[Callable[[], object]] = [
            lambda: bare.insert([1]),
            lambda: bare.replace([1]),
            lambda: bare.upsert([1], []),
            lambda: bare.update(1, []),
            lambda: bare.delete(1),
            lambda: bare.get(1),
            lambda: bare.select(),
            lambda: bare.pairs(),
        ]
        assert [refused(use) for use in uses] == [expected] * len(uses)
        core = box.catalog.space(bare.id)
        nothing = operations_from_python([], {})
        for use in (lambda: core.delete(1, [1]), lambda: core.update(1, [1], nothing)):
            assert refused(use) == (35, "No index #1 is defined in space 'bare'")
        assert (len(bare), bare.bsize()) == (0, 0)

    def test_size_in_bytes(self, box: Box) -> None:
        space = box.schema.create_space("s")
        space.create_index("primary")
        space.insert([1, "four"])
        assert space.bsize() == 7
        space.replace([1, "fourteen"])
        assert space.bsize() == 11
        space.update(1, [("#", 1, 1)])
        assert space.bsize() == 2
        space.delete(1)
        assert space.bsize() == 0


class TestUpdateAndUpsert:
    def test_by_name_or_number_from_0(self, space: Space) -> None:
        assert space.update(1, [("+", "balance", 5), ("=", 3, "note")]) == [1, "Ann", 15, "note"]
        assert space.update(1, [("#", 3, 1), ("-", 2, 5)]) == [1, "Ann", 10]

    def test_an_assignment_reaches_every_index_of_the_field(self, space: Space) -> None:
        space.create_index("both", parts=["balance", "name"])
        space.update(1, [("=", "balance", 99)])
        assert ids(space.index.balance.select()) == ids(space.index.both.select()) == [2, 3, 1]
        space.update(1, [("=", "name", "Zoe")])
        assert ids(space.index.name.select()) == [2, 3, 1]
        assert space.index.both.get([99, "Zoe"]) == [1, "Zoe", 99]
        assert space.index.both.get([99, "Ann"]) is None

    def test_an_assigned_value_is_the_rows_own(self, space: Space) -> None:
        note = {"since": [2020]}
        updated = space.update(1, [("=", "note", note)])
        note["since"].append(2021)
        assert updated == [1, "Ann", 10, {"since": [2020]}] == space.get(1)

    def test_by_the_key_of_a_unique_index(self, space: Space) -> None:
        assert space.index.name.update("Bob", [("=", "balance", 0)]) == [2, "Bob", 0]
        assert (
            refused(space.index.balance.update, 20, [("=", "note", "")])[0] == ErrorCode.MORE_THAN_ONE_TUPLE
        )

    def test_nobody_to_update(self, space: Space) -> None:
        assert (space.update(9, [("=", "balance", 0)]), space.index.name.update("?", [])) == (None, None)

    def test_no_operations(self, space: Space) -> None:
        assert space.update(1, []) == [1, "Ann", 10]

    def test_the_primary_key_stays(self, space: Space) -> None:
        assert space.update(1, [("=", "id", 1)]) == [1, "Ann", 10]
        assert refused(space.update, 1, [("=", "id", 9)]) == (
            94,
            "Attempt to modify a tuple field which is part of index 'primary' in space 'accounts'",
        )
        assert refused(space.update, 1, [("+", "id", 8), ("=", "note", "")])[0] == 94

    @pytest.mark.parametrize(
        ("operations", "code"),
        [
            ([("=", "balance", "much")], 23),
            ([("=", "nobody", 1)], 201),
            ([("?", "balance", 1)], 28),
            ([("=", "balance")], 28),
            (["="], 1),
            ([5], 1),
            ([("+", "name", 1)], 26),
            ([("=", 9, 1)], 37),
            ([("#", "balance", 1)], 39),
        ],
    )
    def test_operations_that_do_not_fit(self, space: Space, operations: Any, code: int) -> None:
        before = state(space)
        assert refused(space.update, 1, operations)[0] == code
        assert state(space) == before

    @pytest.mark.parametrize("operations", [None, 5])
    def test_invalid_operations(self, space: Space, operations: Any) -> None:
        with pytest.raises(TypeError):
            space.update(1, operations)
        with pytest.raises(TypeError):
            space.upsert([1, "Ann", 1], operations)

    def test_upsert(self, space: Space) -> None:
        space.upsert([4, "Dan", 40], [("+", "balance", 1)])
        space.upsert([4, "Eve", 0], [("+", "balance", 1)])
        assert space.get(4) == [4, "Dan", 41]

    def test_operations_that_upsert_skips(self, space: Space) -> None:
        before = state(space)
        space.upsert([1, "?", 0], [("=", "id", 9)])
        space.upsert([1, "?", 0], [("=", 9, 9)])
        assert state(space) == before


class TestDelete:
    def test_it_answers_the_row_that_was(self, space: Space) -> None:
        assert space.delete(1) == [1, "Ann", 10]
        assert space.delete(1) is None
        assert space.index.name.delete("Bob") == [2, "Bob", 20]
        assert [len(index.tree) for index in space.index] == [1, 1, 1]

    def test_by_a_key_that_many_may_have(self, space: Space) -> None:
        assert refused(space.index.balance.delete, 20) == (
            41,
            "Get() doesn't support partial keys and non-unique indexes",
        )

    def test_truncate(self, space: Space) -> None:
        space.truncate()
        assert (len(space), space.bsize(), rows(space, 2)) == (0, 0, [])
        space.insert([1, "Ann", 10])
        assert space.index.name.get("Ann") == [1, "Ann", 10]

    @pytest.mark.parametrize("name", ["_space", "_user", "_vspace"])
    def test_system_spaces_are_not_truncated(self, box: Box, name: str) -> None:
        assert refused(box.space[name].truncate) == (137, f"Can't truncate a system space, space '{name}'")

    def test_views_are_read_only(self, box: Box) -> None:
        view = box.space["_vspace"]
        uses: list[Callable[[], object]] = [
            lambda: view.insert([1]),
            lambda: view.replace([1]),
            lambda: view.upsert([1], []),
            lambda: view.update(280, [("=", 2, "s")]),
            lambda: view.delete(280),
        ]
        assert [refused(use) for use in uses] == [(113, "View '_vspace' is read-only")] * len(uses)
        assert view.get(280) == box.space["_space"].get(280)
        assert len(view) == view.count() == len(view.select()) == len(box.space["_space"])
