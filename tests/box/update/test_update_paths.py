"""Update operations on values inside fields."""

from __future__ import annotations

import pytest

from iproto_server.errors import ErrorCode
from tests.box.update.update_requests import refusal, updated


class TestPaths:
    """Paths of operations to values inside fields."""

    ROW = (1, "R", {"x": 1, "list": [1, {"y": 2}], "имя": 3, "with space": 4, 7: "seven"})

    @pytest.mark.parametrize(
        "path",
        [
            "data.list[2].y",
            'data["list"][2]["y"]',
            "data['list'][2].y",
            "[3].list[2].y",
            '["data"].list[2].y',
        ],
    )
    def test_ways_to_spell_one(self, path: str) -> None:
        assert updated(self.ROW, ["=", path, 0])[2]["list"] == [1, {"y": 0}]

    def test_any_letters_make_a_name(self) -> None:
        assert updated(self.ROW, ["+", "data.имя", 1])[2]["имя"] == 4

    def test_quotes_make_any_text_a_key(self) -> None:
        assert updated(self.ROW, ["+", 'data["with space"]', 1])[2]["with space"] == 5

    def test_a_number_in_a_map_is_an_integer_key(self) -> None:
        assert updated(self.ROW, ["=", "data[7]", "sept"])[2][7] == "sept"

    @pytest.mark.parametrize(
        ("operation", "expected"),
        [
            (["+", "data.z", 1], (201, "Field ''data.z'' was not found in the tuple")),
            (["=", "data.z.z", 1], (201, "Field ''data.z.z'' was not found in the tuple")),
            (["=", "data.list[4]", 1], (201, "Field ''data.list[4]'' was not found in the tuple")),
            (
                ["=", "data.x.z", 1],
                (29, "Field 'data.x.z' UPDATE error: can not access by key a non-map field"),
            ),
            (
                ["=", "data.x[1]", 1],
                (29, "Field 'data.x[1]' UPDATE error: can not access by index a non-array field"),
            ),
            (
                ["=", "data[8]", 1],
                (29, "Field 'data[8]' UPDATE error: can not access by index a non-array field"),
            ),
            (
                ["=", "data.list[*]", 1],
                (29, "Field 'data.list[*]' UPDATE error: invalid JSON in position 11"),
            ),
            (
                ["=", "data.list[0]", 1],
                (29, "Field 'data.list[0]' UPDATE error: invalid JSON in position 11"),
            ),
            (["=", "data.", 1], (29, "Field 'data.' UPDATE error: invalid JSON in position 6")),
            (["=", "data x", 1], (29, "Field 'data x' UPDATE error: invalid JSON in position 5")),
        ],
    )
    def test_ones_that_lead_nowhere(self, operation: list[object], expected: tuple[int, str]) -> None:
        assert refusal(self.ROW, operation) == expected

    def test_a_fault_behind_a_missing_field_is_not_seen(self) -> None:
        assert refusal(self.ROW, ["+", "data.z[", 1])[0] == ErrorCode.NO_SUCH_FIELD_NAME

    def test_several_in_one_map_bring_its_changed_keys_to_the_front_the_latest_first(self) -> None:
        row = [1, "R", {"a": 1, "b": 2, "c": 3, "d": 4}]
        result = updated(row, ["=", "data.b", 20], ["=", "data.d", 40])
        assert list(result[2].items()) == [("d", 40), ("b", 20), ("c", 3), ("a", 1)]

    def test_one_in_a_map_leaves_the_order_of_its_keys(self) -> None:
        result = updated([1, "R", {"a": 1, "b": 2, "c": 3}], ["=", "data.b", 20])
        assert list(result[2].items()) == [("a", 1), ("b", 20), ("c", 3)]

    def test_a_longer_name_that_begins_alike_is_another_way(self) -> None:
        row = [1, "R", {"a": {"x": 1, "y": 2}, "ab": {"z": 3}}]
        result = updated(row, ["=", "data.a.x", 10], ["=", "data.a.y", 20], ["=", "data.ab.z", 30])
        assert result[2] == {"a": {"x": 10, "y": 20}, "ab": {"z": 30}}

    def test_one_way_may_be_spelled_in_several_ways(self) -> None:
        row = [1, "R", {"a": {"x": 1, "y": 2, "z": 3}}]
        result = updated(row, ["=", "data.a.x", 10], ["=", "data.a.y", 20], ["=", 'data["a"].z', 30])
        assert result[2] == {"a": {"x": 10, "y": 20, "z": 30}}


class TestInsideOfWhatWasReplaced:
    """A double update, for which Tarantool 2.6.0 reads invalid memory."""

    @pytest.mark.parametrize(
        "operations",
        [
            [["=", "data.m", {"k": 5}], ["=", "data.m.k", 6]],
            [["=", "data.new", {"k": 5}], ["=", "data.new.k", 6]],
            [["=", 2, {"k": 5}], ["=", "data.k", 6]],
            [["#", "data.m", 1], ["=", "data.m.k", 6]],
            [["=", "data.m", {}], ["=", "data.o", 1], ["=", "data.m.k", 6]],
        ],
    )
    def test_is_refused(self, operations: list[list[object]]) -> None:
        code, text = refusal([1, "R", {"m": {"k": 1}}], *operations)
        assert code == ErrorCode.UPDATE_FIELD
        assert text.endswith("UPDATE error: double update of the same field")

    def test_so_is_going_on_in_a_map_beside_an_integer_key(self) -> None:
        row = [1, "R", {1: {"k": 1}, "a": 2}]
        assert refusal(row, ["=", "data[1].k", 2], ["=", "data.a", 3]) == (
            29,
            "Field 'data.a' UPDATE error: can not update map by non-string key",
        )
