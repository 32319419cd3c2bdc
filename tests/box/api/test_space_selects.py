"""Facades of spaces and indexes for procedures: selects, keys and formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from iproto_server import Box, ErrorCode, Space
from tests.box.api.ids import ids
from tests.box.boxes import refused


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
