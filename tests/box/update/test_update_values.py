"""Update operations that compute a field's new value from its old one."""

from __future__ import annotations

import struct
from decimal import Decimal

import pytest

from iproto_server.errors import ErrorCode
from tests.box.update.update_requests import raw, refusal, update, updated

INF = float("inf")


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

    def test_fields_of_type_double_are_placed_in_the_new_tuple(self) -> None:
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
    """`:` replaces bytes of a string."""

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
    def test_its_offset_and_length(self, offset: int, length: int, new: str) -> None:
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
    def test_invalid_strings_and_lengths(self, operation: list[object], expected: str) -> None:
        code, text = refusal([1, "abc"], operation)
        assert code == ErrorCode.UPDATE_ARG_TYPE
        assert text.endswith(f"does not match field type: expected {expected}")
