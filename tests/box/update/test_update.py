"""Effects and refusals of update operations on fields of a tuple."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgpack
import pytest

from iproto_server.box.update import apply_update, operations_from_python, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from tests.box.update.update_requests import NAMES, raw, refusal, update, updated
from tests.memory_peak import memory_peak

NO_COUNT = "Argument type in operation '#' on field 2 does not match field type: expected a positive integer"
NO_INT32 = "Argument type in operation '+' on field 1 does not match field type: expected an integer"


class TestFields:
    """Fields of operations, by number and name."""

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
    """`!` inserts a field."""

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

    def test_an_inserted_field_can_be_changed_at_once(self) -> None:
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
    def test_invalid_numbers_of_fields(self, count: object, expected: tuple[int, str]) -> None:
        assert refusal([1, 2], ["#", 1, count]) == expected


class TestMalformed:
    """Refusals that do not depend on the tuple."""

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

    @pytest.mark.parametrize(
        ("packed", "expected"),
        [
            (
                b"\xdd\x00\x0f\x42\x40" + b"\x93\xa1=\x01\x05" * 1_000_000,
                (1, "Illegal parameters, too many operations for update"),
            ),
            (
                b"\x91\xdd\x00\x0f\x42\x40\xa1=" + b"\x90" * 999_999,
                (28, "Unknown UPDATE operation #1: wrong number of arguments, expected 3, got 1000000"),
            ),
            (
                b"\x92\xdd\x00\x0f\x42\x40\xa1?" + b"\x90" * 999_999 + b"\x01",
                (28, 'Unknown UPDATE operation #1: "?"'),
            ),
        ],
        ids=["operations", "arguments of an operation", "arguments of an unknown operation"],
    )
    def test_millions_are_counted_before_they_are_cut(self, packed: bytes, expected: tuple[int, str]) -> None:
        with memory_peak() as peak, pytest.raises(BoxError) as raised:
            parse_update(packed, NAMES)
        assert (raised.value.code, raised.value.message) == expected
        assert peak.size < 8 * len(packed)

    def test_as_many_operations_as_there_may_be(self) -> None:
        assert updated([1, 2], *[["=", 1, 1]] * 4000) == [1, 1]


class TestGivenInPython:
    """Operations given as Python values."""

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


def test_an_index_base_of_32_bits_is_a_signed_number() -> None:
    row, operations = codec.pack([1, 2, 3]), codec.pack([["=", 1, "x"]])
    assert apply_update(parse_update(operations, {}, 2**32 - 1), row) == codec.pack([1, 2, "x"])


@pytest.mark.parametrize(
    "operation",
    [
        ["=", 2, "x"],
        ["+", 2, 1],
        ["!", 2, 1],
    ],
)
def test_a_field_number_that_leaves_32_bits_names_no_field(operation: list[object]) -> None:
    with pytest.raises(BoxError) as caught:
        apply_update(parse_update(codec.pack([operation]), {}, 2**31), codec.pack([1, 2, 3]))
    assert (caught.value.code, caught.value.message) == (37, "Field 2 was not found in the tuple")


def test_a_splice_does_not_begin_beyond_32_bits() -> None:
    with pytest.raises(BoxError) as caught:
        apply_update(parse_update(codec.pack([[":", -1, 2, 0, "x"]]), {}, 2**31), codec.pack(["text"]))
    assert caught.value.code == ErrorCode.UPDATE_SPLICE
