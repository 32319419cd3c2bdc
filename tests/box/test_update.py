"""What each update operation does to a tuple, and what it refuses."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgpack
import pytest

from iproto_server import codec
from iproto_server.box.update import NO_DOUBLES, Doubles, apply_update, operations_from_python, parse_update
from iproto_server.errors import BoxError, ErrorCode

NAMES = {"id": 0, "status": 1, "data": 2, "a.b": 3}

INF = float("inf")
NO_COUNT = "Argument type in operation '#' on field 2 does not match field type: expected a positive integer"
NO_INT32 = "Argument type in operation '+' on field 1 does not match field type: expected an integer"


def raw(value: object) -> bytes:
    return codec.pack(value)


def update(
    row: object, *operations: Sequence[object], index_base: int = 0, doubles: Doubles = NO_DOUBLES
) -> bytes:
    """Apply operations to a row, both given as values or already packed; answer bytes."""
    parsed = parse_update(raw(list(operations)), NAMES, index_base)
    return apply_update(parsed, row if isinstance(row, bytes) else raw(row), doubles)


def updated(row: object, *operations: Sequence[object], index_base: int = 0) -> Any:
    """As `update`; answer values."""
    return codec.unpack(update(row, *operations, index_base=index_base))


def refusal(row: object, *operations: Sequence[object], index_base: int = 0) -> tuple[int, str]:
    """The number and text of the error that operations end in."""
    with pytest.raises(BoxError) as raised:
        update(row, *operations, index_base=index_base)
    return raised.value.code, raised.value.message


class TestFields:
    """How an operation names its field."""

    def test_by_number_from_zero(self) -> None:
        assert updated([1, "R"], ["=", 1, "T"]) == [1, "T"]

    def test_by_number_from_the_request_s_index_base(self) -> None:
        assert updated([1, "R"], ["=", 2, "T"], index_base=1) == [1, "T"]

    def test_by_negative_number_from_the_end_whatever_the_index_base(self) -> None:
        assert updated([1, 2, 3], ["=", -1, "last"]) == [1, 2, "last"]
        assert updated([1, 2, 3], ["=", -1, "last"], index_base=1) == [1, 2, "last"]

    def test_by_name(self) -> None:
        assert updated([1, "R"], ["=", "status", "T"]) == [1, "T"]

    def test_a_name_that_looks_like_a_path_is_a_name(self) -> None:
        assert updated([1, 2, 3, 4], ["=", "a.b", "T"]) == [1, 2, 3, "T"]

    def test_by_path_that_begins_with_a_number_from_one(self) -> None:
        assert updated([1, "R"], ["=", "[2]", "T"]) == [1, "T"]
        assert updated([1, "R"], ["=", "[2]", "T"], index_base=1) == [1, "T"]

    def test_a_field_right_behind_the_end_is_appended_and_one_further_is_not(self) -> None:
        assert updated([1, "R"], ["=", 2, "x"], ["=", 3, "y"]) == [1, "R", "x", "y"]
        assert refusal([1, "R"], ["=", 3, "x"]) == (37, "Field 4 was not found in the tuple")

    @pytest.mark.parametrize(
        ("field", "index_base", "expected"),
        [
            (7, 0, (37, "Field 8 was not found in the tuple")),
            (7, 1, (37, "Field 7 was not found in the tuple")),
            (-4, 0, (37, "Field -4 was not found in the tuple")),
            (0, 1, (37, "Field 0 was not found in the tuple")),
            ("nosuch", 0, (201, "Field 'nosuch' was not found in the tuple")),
            ("nosuch.x", 0, (201, "Field 'nosuch.x' was not found in the tuple")),
            ("", 0, (201, "Field '' was not found in the tuple")),
            ("a.b", 0, (201, "Field ''a.b'' was not found in the tuple")),
            ("[*]", 0, (201, "Field '[*]' was not found in the tuple")),
            ("[0]", 0, (29, "Field '[0]' UPDATE error: invalid JSON in position 2")),
            (2**31, 0, (26, NO_INT32)),
            (None, 0, (1, "Illegal parameters, field id must be a number or a string")),
            (1.0, 0, (1, "Illegal parameters, field id must be a number or a string")),
        ],
    )
    def test_a_field_that_is_not_there(
        self, field: object, index_base: int, expected: tuple[int, str]
    ) -> None:
        assert refusal([1, "R", 3], ["+", field, 1], index_base=index_base) == expected

    def test_numbers_follow_the_operations_before(self) -> None:
        assert updated([1, 2, 3, 4], ["#", 1, 1], ["=", 1, "third"]) == [1, "third", 4]
        assert updated([1, 2, 3], ["!", 1, "new"], ["=", 2, "second"]) == [1, "new", "second", 3]


class TestPaths:
    """How an operation names a field inside a field."""

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


class TestAssign:
    """`=` replaces a field."""

    def test_the_value_is_copied_byte_for_byte(self) -> None:
        odd = b"\xcd\x00\x05"  # Five, in two bytes.
        operations = b"\x91\x93\xa1=\x01" + odd
        assert apply_update(parse_update(operations, NAMES), b"\x92\x01\x02") == b"\x92\x01" + odd

    def test_everything_else_is_copied_byte_for_byte(self) -> None:
        odd = b"\xcd\x00\x05\xd9\x01x\xca\x3f\x80\x00\x00\xc7\x02\x4d\x01\x02\xdc\x00\x01\xcc\x01"
        row = b"\x97\x01R" + odd
        assert update(row, ["=", 1, "T"]) == b"\x97\x01\xa1T" + odd

    def test_a_header_longer_than_needed_is_shortened(self) -> None:
        assert update(b"\xdc\x00\x02\x01\x02", ["=", 1, 3]) == b"\x92\x01\x03"

    def test_a_field_may_be_assigned_twice(self) -> None:
        assert updated([1, 2], ["=", 1, 3], ["=", 1, 4]) == [1, 4]

    def test_a_missing_key_of_a_map_is_added_in_front(self) -> None:
        result = updated([1, "R", {"a": 1}], ["=", "data.b", 2])
        assert list(result[2].items()) == [("b", 2), ("a", 1)]

    def test_an_element_right_behind_the_end_of_an_inner_array_is_appended(self) -> None:
        assert updated([1, "R", [1]], ["=", "data[2]", 2]) == [1, "R", [1, 2]]

    def test_no_operations_change_nothing(self) -> None:
        assert updated([1, 2]) == [1, 2]


class TestInsert:
    """`!` puts a new field before one."""

    def test_into_the_tuple(self) -> None:
        assert updated([1, 2], ["!", 1, "new"]) == [1, "new", 2]

    def test_at_the_end(self) -> None:
        assert updated([1, 2], ["!", 2, "new"]) == [1, 2, "new"]
        assert updated([1, 2], ["!", -1, "new"]) == [1, 2, "new"]
        assert updated([1, 2], ["!", -2, "new"]) == [1, "new", 2]

    def test_into_an_inner_array(self) -> None:
        assert updated([1, "R", [1, 2]], ["!", "data[1]", 0], ["!", "data[4]", 3]) == [1, "R", [0, 1, 2, 3]]

    def test_into_a_map_only_a_new_key(self) -> None:
        assert updated([1, "R", {}], ["!", "data.k", 1]) == [1, "R", {"k": 1}]
        assert refusal([1, "R", {"k": 1}], ["!", "data.k", 1]) == (
            29,
            "Field 'data.k' UPDATE error: the key exists already",
        )

    def test_what_was_inserted_can_be_changed_at_once(self) -> None:
        assert updated([1], ["!", 1, 5], ["+", 1, 1]) == [1, 6]
        assert updated([1], ["!", 1, {"k": 5}], ["+", "[2].k", 1]) == [1, {"k": 6}]


class TestDelete:
    """`#` removes fields."""

    def test_several_from_the_tuple(self) -> None:
        assert updated([1, 2, 3, 4], ["#", 1, 2]) == [1, 4]
        assert updated([1, 2, 3, 4], ["#", -2, 1]) == [1, 2, 4]

    def test_no_more_than_there_are(self) -> None:
        assert updated([1, 2, 3], ["#", 1, 100]) == [1]
        assert updated([1, "R", [1, 2, 3]], ["#", "data[2]", 2**32 - 1]) == [1, "R", [1]]

    def test_one_key_of_a_map(self) -> None:
        assert updated([1, "R", {"a": 1, "b": 2}], ["#", "data.a", 1]) == [1, "R", {"b": 2}]
        assert refusal([1, "R", {"a": 1, "b": 2}], ["#", "data.a", 2]) == (
            29,
            "Field 'data.a' UPDATE error: can delete only 1 field from a map in a row",
        )

    def test_an_integer_key_of_a_map(self) -> None:
        assert updated([1, "R", {300: 1, "b": 2}], ["#", "data[300]", 1]) == [1, "R", {"b": 2}]

    def test_a_key_whose_header_is_longer_than_needed(self) -> None:
        assert update(b"\x93\x01\x02\x81\xd9\x01k\x05", ["#", "data.k", 1]) == b"\x93\x01\x02\x80"

    @pytest.mark.parametrize(
        ("count", "expected"),
        [
            (0, (29, "Field 2 UPDATE error: cannot delete 0 fields")),
            (2**32, (29, "Field 2 UPDATE error: cannot delete 0 fields")),
            (-1, (26, NO_COUNT)),
            ("1", (26, NO_COUNT)),
        ],
    )
    def test_what_is_no_number_of_fields(self, count: object, expected: tuple[int, str]) -> None:
        assert refusal([1, 2], ["#", 1, count]) == expected


class TestArithmetic:
    """`+` and `-`."""

    @pytest.mark.parametrize(
        ("old", "opcode", "argument", "new"),
        [
            (1, "+", 2, 3),
            (1, "-", 2, -1),
            (2**63, "+", 2**63 - 1, 2**64 - 1),
            (-(2**63) + 1, "-", 1, -(2**63)),
            (2**64 - 1, "-", 2**64 - 1, 0),
            (-5, "-", -(2**63), 2**63 - 5),
        ],
    )
    def test_integers_stay_integers(self, old: int, opcode: str, argument: int, new: int) -> None:
        assert update([1, old], [opcode, 1, argument]) == raw([1, new])

    @pytest.mark.parametrize(
        ("old", "opcode", "argument"),
        [(2**64 - 1, "+", 1), (-(2**63), "-", 1), (0, "-", 2**64 - 1), (-1, "+", -(2**63))],
    )
    def test_integers_that_leave_64_bits_are_refused(self, old: int, opcode: str, argument: int) -> None:
        assert refusal([1, old], [opcode, 1, argument]) == (
            95,
            f"Integer overflow when performing '{opcode}' operation on field 2",
        )

    @pytest.mark.parametrize(
        ("old", "argument", "new"),
        [(1.5, 1, 2.5), (1, 0.5, 1.5), (2**53 + 1, 0.0, 2.0**53), (INF, 1, INF)],
    )
    def test_with_a_float_the_result_is_a_float(self, old: float, argument: float, new: float) -> None:
        assert updated([1, old], ["+", 1, argument]) == [1, new]

    def test_a_float_is_stored_in_four_bytes_where_that_is_exact(self) -> None:
        assert update([1, 1.0], ["+", 1, 0.5]) == b"\x92\x01\xca" + struct.pack(">f", 1.5)
        assert update([1, 1.0], ["+", 1, 0.1]) == b"\x92\x01\xcb" + struct.pack(">d", 1.1)
        assert update([1, 0.0], ["-", 1, 1e300]) == b"\x92\x01\xcb" + struct.pack(">d", -1e300)

    def test_in_a_field_of_type_double_it_is_always_stored_in_eight(self) -> None:
        double = b"\xcb" + struct.pack(">d", 1.5)
        cases: list[tuple[tuple[int | str, ...], object, object, bytes]] = [
            ((1,), [1, 1.0], 1, b"\x92\x01" + double),
            ((1, "d"), [1, {"d": 1.0}], "[2].d", b"\x92\x01\x81\xa1d" + double),
            ((1, 0), [1, [1.0]], "[2][1]", b"\x92\x01\x91" + double),
        ]
        for place, row, path, expected in cases:
            doubles = frozenset({place})
            assert update(row, ["+", path, 0.5], doubles=doubles) == expected
            more = update(row, ["+", path, 0.5], ["!", 2, "x"], doubles=doubles)
            assert more == b"\x93" + expected[1:] + b"\xa1x"

    def test_where_a_field_of_type_double_is_counts_in_the_new_tuple(self) -> None:
        double = b"\xcb" + struct.pack(">d", 1.5)
        assert (
            update([1, 1.0], ["!", 1, "x"], ["+", 2, 0.5], doubles=frozenset({(2,)}))
            == b"\x93\x01\xa1x" + double
        )

    @pytest.mark.parametrize(
        ("old", "argument", "new"),
        [
            (Decimal("1.50"), 1, "2.50"),
            (1, Decimal("0.25"), "1.25"),
            (Decimal("1.0"), Decimal("2.000"), "3.000"),
            (Decimal(0), 0.1, "0.1"),
            (Decimal(0), 1 / 3, "0.333333333333333"),
            (2**64 - 1, Decimal(1), "18446744073709551616"),
            (Decimal("0." + "9" * 38), Decimal("9.5"), "10.500000000000000000000000000000000000"),
        ],
    )
    def test_with_a_decimal_the_result_is_a_decimal(self, old: object, argument: object, new: str) -> None:
        (_, result) = updated([1, old], ["+", 1, argument])
        assert isinstance(result, Decimal)
        assert str(result) == new

    def test_decimals_that_leave_38_digits_are_refused(self) -> None:
        assert refusal([1, Decimal("9" * 38)], ["+", 1, 1]) == (
            160,
            "Decimal overflow when performing operation '+' on field 2",
        )

    @pytest.mark.parametrize("number", [INF, -INF, float("nan"), 1e38])
    def test_a_float_that_is_no_decimal_does_not_go_with_one(self, number: float) -> None:
        text = "Argument type in operation '+' on field 2 does not match field type: expected a number"
        assert refusal([1, Decimal(1)], ["+", 1, number]) == (26, f"{text} convertible to decimal")

    @pytest.mark.parametrize("other", ["1", None, True, [1], b"1"])
    def test_only_numbers(self, other: object) -> None:
        text = "Argument type in operation '-' on field 2 does not match field type: expected a number"
        assert refusal([1, other], ["-", 1, 1]) == (26, text)
        assert refusal([1, 1], ["-", 1, other]) == (26, text)

    def test_a_field_is_computed_once_only(self) -> None:
        text = "Field 2 UPDATE error: double update of the same field"
        assert refusal([1, 1], ["+", 1, 1], ["+", 1, 1]) == (29, text)
        assert refusal([1, 1], ["=", 1, 5], ["+", 1, 1]) == (29, text)
        assert updated([1, 1], ["+", 1, 1], ["=", 1, 5]) == [1, 5]


class TestBits:
    """`&`, `|` and `^`."""

    @pytest.mark.parametrize(("opcode", "new"), [("&", 0b1000), ("|", 0b1110), ("^", 0b0110)])
    def test_combine_unsigned_integers(self, opcode: str, new: int) -> None:
        assert updated([1, 0b1100], [opcode, 1, 0b1010]) == [1, new]

    @pytest.mark.parametrize("other", [-1, 1.0, "1", Decimal(1)])
    def test_only_unsigned_integers(self, other: object) -> None:
        text = (
            "Argument type in operation '|' on field 2 does not match field type: expected a positive integer"
        )
        assert refusal([1, other], ["|", 1, 1]) == (26, text)
        assert refusal([1, 1], ["|", 1, other]) == (26, text)

    def test_a_positive_integer_that_is_packed_as_a_signed_one_is_none(self) -> None:
        assert refusal(b"\x92\x01\xd0\x05", ["&", 1, 1])[0] == ErrorCode.UPDATE_ARG_TYPE


class TestSplice:
    """`:` cuts bytes out of a string and puts others there."""

    @pytest.mark.parametrize(
        ("offset", "length", "new"),
        [
            (0, 0, "-abcdef"),
            (2, 2, "ab-ef"),
            (2, 100, "ab-"),
            (100, 1, "abcdef-"),
            (-1, 0, "abcdef-"),
            (-2, 1, "abcde-"),
            (-7, 1, "-bcdef"),
            (1, -2, "a-ef"),
            (1, -100, "a-bcdef"),
            (0, -(2**31), "-abcdef"),
        ],
    )
    def test_where_it_cuts(self, offset: int, length: int, new: str) -> None:
        assert updated([1, "abcdef"], [":", 1, offset, length, "-"]) == [1, new]

    def test_offsets_count_from_the_index_base_too(self) -> None:
        assert updated([1, "abcdef"], [":", 2, 1, 1, "-"], index_base=1) == [1, "-bcdef"]

    @pytest.mark.parametrize(("offset", "index_base"), [(-8, 0), (-(2**31), 0), (0, 1)])
    def test_an_offset_before_the_string(self, offset: int, index_base: int) -> None:
        assert refusal([1, "abcdef"], [":", "status", offset, 1, "-"], index_base=index_base) == (
            25,
            "SPLICE error on field 'status': offset is out of bound",
        )

    def test_it_counts_bytes_even_within_a_letter(self) -> None:
        assert update([1, "é"], [":", 1, 1, 1, ""]) == b"\x92\x01\xa1\xc3"

    @pytest.mark.parametrize(
        ("operation", "expected"),
        [
            ([":", 1, 2**31, 0, ""], "an integer"),
            ([":", 1, 0.0, 0, ""], "an integer"),
            ([":", 1, 0, None, ""], "an integer"),
            ([":", 1, 0, 0, 5], "a string"),
            ([":", 1, 0, 0, b"bytes"], "a string"),
            ([":", 0, 0, 0, ""], "a string"),
        ],
    )
    def test_what_is_no_string_and_no_length(self, operation: list[object], expected: str) -> None:
        code, text = refusal([1, "abc"], operation)
        assert code == ErrorCode.UPDATE_ARG_TYPE
        assert text.endswith(f"does not match field type: expected {expected}")


class TestMalformed:
    """What is refused before a tuple is looked at."""

    @pytest.mark.parametrize(
        ("operations", "expected"),
        [
            (5, (1, "Illegal parameters, update operations must be an array {{op,..}, {op,..}}")),
            ([5], (1, "Illegal parameters, update operation must be an array {op,..}")),
            ([[]], (1, "Illegal parameters, update operation must be an array {op,..}, got empty array")),
            ([[5, 1, 1]], (1, "Illegal parameters, update operation name must be a string")),
            ([["?", 1, 1]], (28, 'Unknown UPDATE operation #1: "?"')),
            ([["=", 1, 1], ["==", 1, 1]], (28, 'Unknown UPDATE operation #2: "=="')),
            ([["=", 1]], (28, "Unknown UPDATE operation #1: wrong number of arguments, expected 3, got 2")),
            (
                [[":", 1, 1]],
                (28, "Unknown UPDATE operation #1: wrong number of arguments, expected 5, got 3"),
            ),
            ([["=", 1, 1]] * 4001, (1, "Illegal parameters, too many operations for update")),
            ([["=", "nosuch", 1]], (201, "Field 'nosuch' was not found in the tuple")),
        ],
    )
    def test_is_told(self, operations: object, expected: tuple[int, str]) -> None:
        with pytest.raises(BoxError) as raised:
            parse_update(raw(operations), NAMES)
        assert (raised.value.code, raised.value.message) == expected

    def test_is_told_later_if_asked_for(self) -> None:
        operations = parse_update(raw([["?", 1, 1]]), NAMES, deferred=True)
        with pytest.raises(BoxError, match="Unknown UPDATE operation"):
            operations.check()
        with pytest.raises(BoxError, match="Unknown UPDATE operation"):
            apply_update(operations, raw([1, 2]))

    def test_as_many_operations_as_there_may_be(self) -> None:
        assert updated([1, 2], *[["=", 1, 1]] * 4000) == [1, 1]


class TestInsideOfWhatWasReplaced:
    """Where Tarantool 2.6.0 reads memory that is not its own, this is a double update."""

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


class TestGivenInPython:
    """Operations as procedures give them."""

    @pytest.mark.parametrize(
        "operations",
        [
            [("=", "status", "T")],
            [("=", 1, "T")],
            [["=", 1, {"a": [1, 2.5]}]],
            [("=", -1, "T")],
            [("=", 3, "T")],
            [("+", 0, 1)],
            [("+", 0, 1.5), ("=", "status", b"bytes")],
            [("-", 0, Decimal("1.5"))],
            [("!", 1, None), ("#", 2, 1)],
            [(":", "status", 0, 1, "xyz")],
            [("=", "data.k", 1), ("=", "[3].m", 2)],
            [("|", 0, 6), ("-", 0, 2**63)],
            [],
        ],
    )
    def test_do_what_the_same_request_does(self, operations: list[Sequence[object]]) -> None:
        row = raw([1, "R", {"k": 0}])

        def outcome(python: bool) -> object:
            try:
                if python:
                    return apply_update(operations_from_python(operations, NAMES), row)
                return apply_update(parse_update(raw(operations), NAMES), row)
            except BoxError as error:
                return error.code, error.message

        assert outcome(python=True) == outcome(python=False)

    @pytest.mark.parametrize(
        ("operation", "code"),
        [
            (("?", 1, 1), ErrorCode.UNKNOWN_UPDATE_OP),
            (("=", 1), ErrorCode.UNKNOWN_UPDATE_OP),
            ("=", ErrorCode.ILLEGAL_PARAMS),
            ((), ErrorCode.ILLEGAL_PARAMS),
            (("=", None, 1), ErrorCode.ILLEGAL_PARAMS),
            (("=", "nosuch", 1), ErrorCode.NO_SUCH_FIELD_NAME),
            (("=", 1, object()), ErrorCode.PROC_LUA),
            (("=", 1, 2**64), ErrorCode.PROC_LUA),
            (("=", 2**70, 1), ErrorCode.PROC_LUA),
            (("+", 1, 2**64), ErrorCode.PROC_LUA),
        ],
    )
    def test_are_refused_alike(self, operation: Any, code: ErrorCode) -> None:
        with pytest.raises(BoxError) as raised:
            operations_from_python([operation], NAMES)
        assert raised.value.code == code

    def test_count_fields_from_the_index_base_if_one_is_given(self) -> None:
        operations = operations_from_python([("=", 2, "T")], NAMES, 1)
        assert apply_update(operations, raw([1, "R"])) == raw([1, "T"])

    def test_copy_packed_values(self) -> None:
        operations = operations_from_python([("=", 1, codec.Raw(b"\xcd\x00\x05"))], NAMES)
        assert apply_update(operations, raw([1, "R"])) == b"\x92\x01\xcd\x00\x05"


def test_the_same_request_may_mean_other_fields_in_another_space() -> None:
    request = msgpack.packb([["=", "name", "T"]])
    assert apply_update(parse_update(request, {"name": 0}), raw([1, 2])) == raw(["T", 2])
    assert apply_update(parse_update(request, {"name": 1}), raw([1, 2])) == raw([1, "T"])
    with pytest.raises(BoxError, match="was not found"):
        parse_update(request, {})
    again = msgpack.packb([["=", 1, "T"]])
    names: dict[str, int] = {}
    assert apply_update(parse_update(again, names, 0), raw([1, 2])) == raw([1, "T"])
    assert apply_update(parse_update(again, names, 1), raw([1, 2])) == raw(["T", 2])
