"""Facades of spaces and indexes for procedures, and errors of wrong uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from iproto_server import Box, ErrorCode, Space, Tuple
from iproto_server.box.update import operations_from_python
from tests.box.boxes import accounts, new_box, refused, rows, state


@pytest.fixture
def box() -> Box:
    return new_box()[0]


@pytest.fixture
def space(box: Box) -> Space:
    return accounts(box)


def ids(found: Sequence[Tuple]) -> list[int]:
    return [row[0] for row in found]


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


class TestKeys:
    @pytest.mark.parametrize("key", [1, [1], (1,)])
    def test_one_part_may_stand_alone(self, space: Space, key: object) -> None:
        assert space.get(key) == [1, "Ann", 10]
        assert ids(space.select(key)) == [1]

    def test_a_row_of_an_index_on_all_its_fields(self, box: Box) -> None:
        pairs = box.schema.create_space("pairs")
        pairs.create_index("primary", parts=[(0, "unsigned"), (1, "string")])
        stored = pairs.insert([1, "a"])
        assert pairs.get(stored) == pairs.get((1, "a")) == stored
        assert pairs.delete(stored) == stored

    @pytest.mark.parametrize("key", [None, [], [1, 2]])
    def test_a_key_that_is_not_whole(self, space: Space, key: Any) -> None:
        count = len(key or [])
        expected = (19, f"Invalid key part count in an exact match (expected 1, got {count})")
        assert refused(space.get, key) == refused(space.delete, key) == expected
        assert refused(space.update, key, [("=", "note", "")]) == expected

    @pytest.mark.parametrize("key", ["1", -1, 1.0, 1.5, b"1", {}, True, [None], [[1]], 2**64, object()])
    def test_a_key_of_another_type(self, space: Space, key: object) -> None:
        expected = (18, "Supplied key type of part 0 does not match index part type: expected unsigned")
        assert refused(space.get, key) == refused(space.select, key) == refused(space.delete, key) == expected

    def test_more_parts_than_the_index_has(self, space: Space) -> None:
        assert refused(space.select, [1, 2]) == (31, "Invalid key part count (expected [0..1], got 2)")

    def test_a_get_by_a_key_that_many_may_have(self, space: Space) -> None:
        assert refused(space.index.balance.get, 20)[0] == ErrorCode.MORE_THAN_ONE_TUPLE


class TestSelect:
    @pytest.mark.parametrize(
        ("iterator", "found"),
        [
            ("EQ", [2, 3]),
            ("REQ", [3, 2]),
            ("GE", [2, 3, 4]),
            ("ALL", [2, 3, 4]),
            ("GT", [4]),
            ("LT", [1]),
            ("LE", [3, 2, 1]),
            ("le", [3, 2, 1]),
            (None, [2, 3]),
            (0, [2, 3]),
            (4, [3, 2, 1]),
        ],
    )
    def test_iterators_by_name_or_number(
        self, space: Space, iterator: str | int | None, found: list[int]
    ) -> None:
        space.insert([4, "Dan", 40])
        index = space.index.balance
        assert ids(index.select(20, iterator=iterator)) == found
        assert ids(list(index.pairs(20, iterator=iterator))) == found
        assert index.count(20, iterator=iterator) == len(found)

    def test_all(self, space: Space) -> None:
        everything = [1, 2, 3]
        assert ids(space.select()) == ids(space.select([])) == ids(list(space.pairs())) == everything
        assert space.count() == space.len() == len(space) == space.index.name.len() == 3
        assert ids(space.select(iterator="REQ")) == [3, 2, 1]
        assert space.count(iterator="LT") == 3

    def test_offset_and_limit(self, space: Space) -> None:
        assert ids(space.select(offset=1)) == [2, 3]
        assert ids(space.select(limit=2)) == [1, 2]
        assert ids(space.select(offset=1, limit=1)) == [2]
        assert space.select(limit=0) == space.select(offset=3) == space.select(1, offset=1) == []
        assert ids(space.index.balance.select(20, iterator="REQ", offset=1, limit=5)) == [2]
        assert ids(space.select(offset=2**40, limit=2**70)) == []

    @pytest.mark.parametrize("options", [{"offset": -1}, {"limit": -1}])
    @pytest.mark.parametrize("key", [None, 1])
    def test_less_than_nothing(self, space: Space, key: object, options: dict[str, int]) -> None:
        assert refused(space.select, key, **options) == (
            1,
            "Illegal parameters, offset and limit must not be negative",
        )

    @pytest.mark.parametrize("key", [None, 1])
    @pytest.mark.parametrize(
        ("iterator", "code"),
        [("BOGUS", 72), ("", 72), (1.5, 72), ([], 72), (77, 1), (-1, 1), ("OVERLAPS", 112)],
    )
    def test_iterators_there_are_not_are_refused_at_once(
        self, space: Space, key: object, iterator: Any, code: int
    ) -> None:
        uses: list[Callable[..., object]] = [space.select, space.pairs, space.count]
        assert [refused(use, key, iterator=iterator)[0] for use in uses] == [code] * 3

    def test_the_first_and_the_last(self, space: Space) -> None:
        index = space.index.balance
        assert index.first() == index.min() == [1, "Ann", 10]
        assert index.first(20) == index.min(20) == [2, "Bob", 20]
        assert index.max() == index.max(20) == [3, "Cid", 20]
        assert (index.first(5), index.min(5), index.max(5)) == (None, None, None)
        space.truncate()
        assert (index.first(), index.min(), index.max()) == (None, None, None)

    def test_a_part_of_a_key(self, space: Space) -> None:
        index = space.create_index("both", parts=["balance", "name"])
        assert ids(index.select(20)) == ids(index.select([20])) == [2, 3]
        assert ids(index.select([20, "Bob"])) == [2]
        assert ids(index.select([20, "Bob"], iterator="GT")) == [3]
        assert index.count(20) == 2
        assert index.first(20) == [2, "Bob", 20]
        assert refused(index.get, 20)[0] == ErrorCode.EXACT_MATCH

    def test_pairs_while_the_space_changes(self, space: Space) -> None:
        for row in space.index.balance.pairs():
            space.delete(row["id"])
        assert len(space) == 0
        space.insert([1, "Ann", 0])
        for row in space.pairs():
            if row["id"] < 5:
                space.insert([row["id"] + 1, f"{row['name']}'", 0])
        assert ids(space.select()) == [1, 2, 3, 4, 5]

    def test_pairs_of_a_space_that_is_truncated_on_the_way(self, space: Space) -> None:
        seen = []
        for row in space.index.name.pairs():
            seen.append(row["name"])
            space.truncate()
        assert seen[0] == "Ann"
        assert len(space) == 0

    def test_the_right_to_read_is_asked_for_by_pairs_itself(self, box: Box, space: Space) -> None:
        with box.session.su("guest"):
            assert refused(space.pairs)[0] == ErrorCode.ACCESS_DENIED
        with box.session.su("admin"):
            walk = space.pairs()
        with box.session.su("guest"):
            assert ids(list(walk)) == [1, 2, 3]


class TestNullableParts:
    @pytest.fixture
    def notes(self, space: Space) -> Space:
        space.create_index("note", parts=[{"field": "note", "type": "string", "is_nullable": True}])
        return space

    def test_nil_is_less_than_anything_and_never_a_duplicate(self, notes: Space) -> None:
        notes.update(2, [("=", "note", "b")])
        assert ids(notes.index.note.select()) == [1, 3, 2]
        assert refused(notes.insert, [4, "Dan", 0, "b"])[0] == ErrorCode.TUPLE_FOUND
        notes.insert([4, "Dan", 0, None])
        assert ids(notes.index.note.select([None])) == [1, 3, 4]
        assert ids(notes.index.note.select([None], iterator="GT")) == [2]

    def test_one_row_cannot_be_found_by_nil(self, notes: Space) -> None:
        assert refused(notes.index.note.get, [None])[0] == ErrorCode.KEY_PART_TYPE
        assert refused(notes.index.note.delete, [None])[0] == ErrorCode.KEY_PART_TYPE
        notes.update(2, [("=", "note", "b")])
        assert notes.index.note.get("b") == [2, "Bob", 20, "b"]

    def test_a_field_may_become_nil_and_back(self, notes: Space) -> None:
        for note in ("a", None, "b", None):
            notes.update(1, [("=", "note", note)])
            assert len(notes.index.note.tree) == 3
        notes.delete(1)
        assert ids(notes.index.note.select()) == [2, 3]


class TestHash:
    @pytest.fixture
    def hashed(self, box: Box) -> Space:
        space = box.schema.create_space("hashed")
        space.create_index("primary", type="HASH", parts=[(0, "string"), (1, "unsigned")])
        for row in (["a", 1], ["b", 2], ["b", 1]):
            space.insert(row)
        return space

    def test_whole_keys_and_everything(self, hashed: Space) -> None:
        assert hashed.get(["b", 1]) == ["b", 1]
        assert hashed.select(["b", 2]) == [["b", 2]]
        assert sorted(map(list, hashed.select())) == [["a", 1], ["b", 1], ["b", 2]]
        assert hashed.update(["a", 1], [("=", 2, "x")]) == ["a", 1, "x"]
        assert hashed.delete(["a", 1]) == ["a", 1, "x"]
        assert hashed.count() == 2
        assert hashed.index.primary.type == "HASH"

    def test_unsupported_uses(self, hashed: Space) -> None:
        code, text = refused(hashed.select, "b")
        assert code == 136
        assert "partial key (expected 2 parts, got 1)" in text
        text = "Index 'primary' (HASH) of space 'hashed' (memtx) does not support "
        assert refused(hashed.select, ["b", 1], iterator="GE") == (112, text + "requested iterator type")
        assert refused(hashed.index.primary.min) == (112, text + "min()")
        assert refused(hashed.index.primary.max) == (112, text + "max()")


class TestFormats:
    @pytest.mark.parametrize(
        "field",
        ["id", ("id", "any"), ["id"], {"name": "id"}, {"name": "id", "type": "any"}, {1: "id", 2: "any"}],
    )
    def test_fields_by_name_pair_or_mapping(self, box: Box, field: Any) -> None:
        assert box.schema.create_space("s", format=[field]).format() == [{"name": "id", "type": "any"}]

    def test_it_can_be_changed_while_the_rows_fit(self, space: Space) -> None:
        new = ["number", ("who", "string"), {"name": "balance", "type": "integer", "note": "kept"}]
        space.format(new)
        assert space.format()[2] == {"name": "balance", "type": "integer", "note": "kept"}
        ann = space.get(1)
        assert ann is not None
        assert ann.tomap() == {"number": 1, "who": "Ann", "balance": 10}
        assert space.update(1, [("=", "who", "Eve")]) == [1, "Eve", 10]

    @pytest.mark.parametrize(
        ("wrong", "code"),
        [
            ([("id", "string")], 27),
            (["id", "name", "balance", "note", "more"], 39),
            (["id", "id"], 149),
            ([("id", "number?")], 12),
            ([5], 1),
            ([{}], 1),
            ([{"name": 5}], 1),
            ([[]], 1),
        ],
    )
    def test_one_that_does_not_fit(self, space: Space, wrong: Any, code: int) -> None:
        before = space.format()
        assert refused(space.format, wrong)[0] == code
        assert space.format() == before
        assert space.update(1, [("=", "name", "Eve")]) == [1, "Eve", 10]


class TestIndexes:
    @pytest.mark.parametrize(
        ("parts", "stored"),
        [
            (["name"], [[1, "string"]]),
            ([1], [[1, "string"]]),
            ([("name", "string")], [[1, "string"]]),
            ([{"field": "name"}], [[1, "string"]]),
            (["balance", (0, "unsigned")], [[2, "integer"], [0, "unsigned"]]),
            ([("note", "scalar")], [{"field": 3, "type": "scalar", "is_nullable": True}]),
            (None, [[0, "unsigned"]]),
        ],
    )
    def test_parts(self, box: Box, space: Space, parts: Any, stored: list[Any]) -> None:
        index = space.create_index("new", parts=parts)
        row = box.space["_index"].get([space.id, index.id])
        assert row is not None
        assert row["parts"] == stored
        assert ids(index.select(limit=1)) == [1]

    @pytest.mark.parametrize(
        ("parts", "code"),
        [
            (["nobody"], 1),
            ([], 1),
            ("name", 1),
            ([[]], 1),
            ([None], 1),
            ([-1], 1),
            ([True], 1),
            ([("name", "unsigned")], 24),
            ([("name", "bogus")], 107),
            ([(9, "unsigned")], 39),
            ([{"field": 1, "type": "string", "collation": "bogus"}], 1),
        ],
    )
    def test_parts_that_do_not_fit(self, space: Space, parts: Any, code: int) -> None:
        before = state(space)
        assert refused(space.create_index, "new", parts=parts)[0] == code
        assert (state(space), "new" in space.index) == (before, False)

    def test_a_unique_index_on_what_is_not(self, space: Space) -> None:
        assert refused(space.create_index, "new", parts=["balance"]) == (
            3,
            "Duplicate key exists in unique index 'new' in space 'accounts'",
        )
        assert "new" not in space.index

    def test_a_name_that_is_taken(self, space: Space) -> None:
        assert refused(space.create_index, "name") == (85, "Index 'name' already exists")
        assert space.create_index("name", parts=[0], if_not_exists=True).id == 1

    def test_numbers(self, space: Space) -> None:
        assert space.create_index("far", id=9).id == 9
        assert space.create_index("next").id == 10
        assert refused(space.create_index, "again", id=9)[0] == ErrorCode.TUPLE_FOUND

    def test_dropping(self, space: Space) -> None:
        dropped = space.index.name
        dropped.drop()
        assert refused(dropped.select)[0] == ErrorCode.NO_SUCH_INDEX_ID
        assert repr(dropped) == "<index 1 of space accounts>"
        space.insert([4, "Ann", 40])
        assert refused(space.index.primary.drop)[0] == ErrorCode.DROP_PRIMARY_KEY
        space.index.balance.drop()
        space.index.primary.drop()
        assert (len(space), space.bsize(), len(space.index)) == (0, 0, 0)

    def test_renaming(self, space: Space) -> None:
        index = space.index.name
        index.rename("who")
        assert (index.name, "name" in space.index) == ("who", False)
        assert index.get("Ann") == [1, "Ann", 10]
        assert refused(index.rename, "balance")[0] == ErrorCode.TUPLE_FOUND
        assert refused(index.rename, "")[0] == ErrorCode.IDENTIFIER


class TestDropAndRename:
    def test_a_dropped_space_is_of_no_use(self, box: Box, space: Space) -> None:
        index = space.index.name
        space.truncate()
        space.drop()
        uses: list[Callable[[], object]] = [
            lambda: space.insert([1, "Ann", 1]),
            lambda: space.select(),
            lambda: space.len(),
            lambda: space.drop(),
            lambda: space.truncate(),
            lambda: space.format(),
            lambda: space.create_index("new"),
            lambda: space.on_replace(print),
            lambda: index.get("Ann"),
            lambda: box.space.accounts,
        ]
        assert [refused(use)[0] for use in uses] == [ErrorCode.NO_SUCH_SPACE] * len(uses)
        assert repr(space) == "<space accounts>"

    def test_another_of_its_name_is_another(self, box: Box, space: Space) -> None:
        space.drop()
        again = accounts(box)
        assert again.id != space.id
        assert refused(space.select)[0] == ErrorCode.NO_SUCH_SPACE
        assert len(again) == 3

    def test_renaming(self, box: Box, space: Space) -> None:
        space.rename("people")
        assert (space.name, "accounts" in box.space) == ("people", False)
        assert box.space.people.get(1) == [1, "Ann", 10]
        assert refused(space.insert, [1, "Ann", 1])[1].endswith("in space 'people'")

    @pytest.mark.parametrize(("name", "code"), [("_space", 3), ("", 70), ("a\n", 70)])
    def test_a_name_that_cannot_be(self, space: Space, name: str, code: int) -> None:
        assert refused(space.rename, name)[0] == code
        assert space.name == "accounts"

    def test_creating_one_that_is_there(self, box: Box, space: Space) -> None:
        assert refused(box.schema.create_space, "accounts") == (10, "Space 'accounts' already exists")
        assert box.schema.create_space("accounts", if_not_exists=True).id == space.id

    @pytest.mark.parametrize(
        ("name", "options", "code"),
        [
            ("", {}, 70),
            ("s", {"engine": "vinyl"}, 57),
            ("s", {"id": 280}, 3),
            ("s", {"format": [5]}, 1),
            (5, {}, 1),
        ],
    )
    def test_one_that_cannot_be(self, box: Box, name: Any, options: dict[str, Any], code: int) -> None:
        before = len(box.space["_space"])
        assert refused(box.schema.create_space, name, **options)[0] == code
        assert len(box.space["_space"]) == before


def test_its_use_needs_a_privilege(box: Box, space: Space) -> None:
    box.schema.user.create("ann")
    box.schema.user.grant("ann", "read", "space", "accounts")
    before = state(space)
    with box.session.su("ann"):
        assert space.get(1) == [1, "Ann", 10]
        uses: list[Callable[[], object]] = [
            lambda: space.insert([4, "Dan", 40]),
            lambda: space.replace([1, "Dan", 40]),
            lambda: space.upsert([1, "Dan", 40], []),
            lambda: space.update(1, [("=", "note", "")]),
            lambda: space.index.name.delete("Ann"),
            lambda: space.truncate(),
        ]
        for use in uses:
            assert refused(use) == (42, "Write access to space 'accounts' is denied for user 'ann'")
        assert refused(space.drop)[0] == ErrorCode.ACCESS_DENIED
    assert state(space) == before
