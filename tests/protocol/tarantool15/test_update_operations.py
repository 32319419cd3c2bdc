"""Tarantool 1.5's protocol: the operations of an UPDATE."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.tarantool15 import apply_operations, decode_operations
from tests.protocol.tarantool15.box15_client import operation, splice, u32, u64

SET, ADD, AND, XOR, OR, SPLICE, DELETE, INSERT, SUBTRACT, DELETE_MANY = range(10)
ROW = [b"key", u32(100), b"hello", u64(2**40)]
LAST = 2**32 - 1


def after(*operations: bytes, row: list[bytes] | None = None) -> list[bytes]:
    """The row, after operations."""
    old = ROW if row is None else row
    fields = apply_operations(
        len(old), old.__getitem__, decode_operations(u32(len(operations)) + b"".join(operations))
    )
    new = []
    for field in fields:
        if field.data is None:
            assert field.origin is not None
            new.append(old[field.origin])
        else:
            new.append(field.data)
    return new


def refusal(*operations: bytes) -> tuple[int, str]:
    with pytest.raises(BoxError) as raised:
        after(*operations)
    return raised.value.code, raised.value.message


def i32(number: int) -> bytes:
    return struct.pack("<i", number)


class TestSet:
    def test_it_takes_any_length(self) -> None:
        assert after(operation(1, SET, b"new")) == [b"key", b"new", *ROW[2:]]

    @pytest.mark.parametrize("number", [4, LAST])
    def test_behind_the_last_field_it_adds_one(self, number: int) -> None:
        assert after(operation(number, SET, b"new")) == [*ROW, b"new"]

    def test_farther_behind_there_is_no_field(self) -> None:
        assert refusal(operation(5, SET, b"new")) == (
            ErrorCode.NO_SUCH_FIELD_NO,
            "Field 5 was not found in the tuple",
        )


class TestArithmetic:
    @pytest.mark.parametrize(
        ("code", "argument", "result"),
        [
            (ADD, i32(5), u32(105)),
            (ADD, i32(-101), i32(-1)),
            (SUBTRACT, i32(1), u32(99)),
            (AND, u32(0x64), u32(0x64)),
            (XOR, u32(0xFFFFFFFF), u32(0xFFFFFFFF - 100)),
            (OR, u32(3), u32(103)),
        ],
    )
    def test_four_bytes(self, code: int, argument: bytes, result: bytes) -> None:
        assert after(operation(1, code, argument))[1] == result

    def test_it_goes_round(self) -> None:
        assert after(operation(1, ADD, u32(2**32 - 1)))[1] == u32(99)
        assert after(operation(3, ADD, u64(2**64 - 1)))[3] == u64(2**40 - 1)

    def test_an_argument_of_four_bytes_is_signed_where_the_field_has_eight(self) -> None:
        assert after(operation(3, ADD, i32(-1)))[3] == u64(2**40 - 1)
        assert after(operation(3, AND, u32(0xFFFFFFFF)))[3] == u64(2**40)

    def test_several_on_one_field_see_each_other(self) -> None:
        operations = [operation(1, ADD, i32(1)), operation(1, OR, u32(8)), operation(1, SUBTRACT, i32(9))]
        assert after(*operations)[1] == u32((101 | 8) - 9)

    def test_they_see_what_was_set(self) -> None:
        assert after(operation(0, SET, u64(1)), operation(0, ADD, u64(2)))[0] == u64(3)

    @pytest.mark.parametrize(
        ("field", "argument", "code", "message"),
        [
            (0, i32(1), ErrorCode.FIELD_TYPE, "expected a 32-bit or 64-bit int"),
            (1, u64(1), ErrorCode.UPDATE_ARG_TYPE, "field 1 does not match field type: expected a NUM"),
            (1, b"x", ErrorCode.UPDATE_ARG_TYPE, "expected a NUM"),
            (3, b"xx", ErrorCode.UPDATE_ARG_TYPE, "expected a NUM or NUM64"),
            (4, i32(1), ErrorCode.NO_SUCH_FIELD_NO, "Field 4 was not found in the tuple"),
            (LAST, i32(1), ErrorCode.NO_SUCH_FIELD_NO, f"Field {LAST} was not found in the tuple"),
        ],
    )
    def test_invalid_operations(self, field: int, argument: bytes, code: int, message: str) -> None:
        found, text = refusal(operation(field, ADD, argument))
        assert found == code
        assert text.endswith(message)


class TestSplice:
    @pytest.mark.parametrize(
        ("offset", "length", "paste", "result"),
        [
            (0, 0, b"oh ", b"oh hello"),
            (0, 1, b"j", b"jello"),
            (1, 3, b"", b"ho"),
            (5, 0, b"!", b"hello!"),
            (99, 5, b"!", b"hello!"),
            (0x7FFFFFFF, 0, b"!", b"hello!"),
            (-2, 2, b"", b"hel"),
            (-5, 99, b"", b""),
            (1, -1, b"", b"ho"),
            (1, -4, b"", b"hello"),
            (1, -99, b"", b"hello"),
            (0, -(2**31), b"", b"hello"),
        ],
    )
    def test_it_is_perl_s(self, offset: int, length: int, paste: bytes, result: bytes) -> None:
        assert after(operation(2, SPLICE, splice(offset, length, paste)))[2] == result

    @pytest.mark.parametrize("offset", [-6, -(2**31)])
    def test_before_the_beginning_there_is_nothing(self, offset: int) -> None:
        refused = refusal(operation(2, SPLICE, splice(offset, 0, b"")))
        assert refused == (ErrorCode.UPDATE_SPLICE, "Field SPLICE error: offset is out of bound")

    @pytest.mark.parametrize(
        "argument",
        [
            b"",
            b"\0\0\0",
            b"\x04\0\0\0\0\0\0",
            splice(0, 0, b"x")[:-1],
            splice(0, 0, b"x") + b"\0",
            b"\x08" + bytes(8) + splice(0, 0, b""),
        ],
    )
    def test_an_argument_that_is_no_three_fields(self, argument: bytes) -> None:
        assert refusal(operation(2, SPLICE, argument))[0] == ErrorCode.ILLEGAL_PARAMS


class TestFields:
    @pytest.mark.parametrize(("number", "place"), [(0, 0), (2, 2), (4, 4), (LAST, 4)])
    def test_one_is_inserted_before_another(self, number: int, place: int) -> None:
        assert after(operation(number, INSERT, b"new")) == [*ROW[:place], b"new", *ROW[place:]]

    def test_none_is_inserted_farther_behind(self) -> None:
        assert refusal(operation(5, INSERT, b"new"))[0] == ErrorCode.NO_SUCH_FIELD_NO

    @pytest.mark.parametrize(("number", "place"), [(0, 0), (3, 3), (LAST, 3)])
    def test_one_is_deleted_whatever_the_argument(self, number: int, place: int) -> None:
        assert after(operation(number, DELETE, b"any")) == ROW[:place] + ROW[place + 1 :]

    def test_one_that_is_not_there_is_not_deleted(self) -> None:
        assert refusal(operation(4, DELETE, b""))[0] == ErrorCode.NO_SUCH_FIELD_NO

    def test_numbers_count_what_earlier_operations_have_left(self) -> None:
        operations = [operation(0, DELETE, b""), operation(0, ADD, i32(1)), operation(1, INSERT, b"new")]
        assert after(*operations) == [u32(101), b"new", *ROW[2:]]

    def test_in_an_empty_row_nothing_can_be_deleted_or_changed(self) -> None:
        deletions = [operation(0, DELETE, b"")] * 4
        assert after(*deletions) == []
        for code in (DELETE, DELETE_MANY, ADD, SPLICE):
            assert refusal(*deletions, operation(LAST, code, b""))[0] == ErrorCode.NO_SUCH_FIELD_NO
        assert after(*deletions, operation(0, SET, b"x")) == [b"x"]

    @pytest.mark.parametrize(
        ("argument", "left"), [(b"", 3), (u32(1), 3), (u32(2), 2), (u32(99), 1), (u32(LAST), 1)]
    )
    def test_several_are_deleted(self, argument: bytes, left: int) -> None:
        assert after(operation(1, DELETE_MANY, argument)) == [ROW[0], *ROW[len(ROW) + 1 - left :]]

    def test_the_number_of_those_to_delete_is_a_number_and_not_zero(self) -> None:
        assert refusal(operation(1, DELETE_MANY, b"x"))[0] == ErrorCode.UPDATE_ARG_TYPE
        assert refusal(operation(1, DELETE_MANY, u32(0))) == (
            ErrorCode.UPDATE_FIELD,
            "Field 1 UPDATE error: cannot delete 0 fields",
        )


class TestDecoding:
    @pytest.mark.parametrize(
        ("packed", "code", "message"),
        [
            (b"", ErrorCode.ILLEGAL_PARAMS, "packet too short (expected 32 bits)"),
            (u32(0), ErrorCode.ILLEGAL_PARAMS, "no operations for update"),
            (u32(4001), ErrorCode.ILLEGAL_PARAMS, "too many operations for update"),
            (u32(1, 0), ErrorCode.ILLEGAL_PARAMS, "packet too short (expected 8 bits)"),
            (u32(1) + operation(0, 10, b""), ErrorCode.UNKNOWN_UPDATE_OP, "Unknown UPDATE operation"),
            (u32(1) + operation(0, 255, b""), ErrorCode.UNKNOWN_UPDATE_OP, "Unknown UPDATE operation"),
            (u32(2) + operation(0, 0, b""), ErrorCode.ILLEGAL_PARAMS, "packet too short (expected 32 bits)"),
            (
                u32(1) + operation(0, 0, b"") + b"x",
                ErrorCode.ILLEGAL_PARAMS,
                "can't unpack update operations",
            ),
        ],
    )
    def test_refused_operations(self, packed: bytes, code: int, message: str) -> None:
        with pytest.raises(BoxError) as raised:
            decode_operations(packed)
        assert (raised.value.code, raised.value.message) == (code, message)

    def test_four_thousand_are_not_too_many(self) -> None:
        assert len(decode_operations(u32(4000) + operation(0, 0, b"") * 4000)) == 4000


FIELDS = st.one_of(st.binary(max_size=12), st.sampled_from([u32(0), u32(2**31), u64(2**63)]))
ARGUMENTS = st.one_of(
    FIELDS,
    st.builds(splice, st.integers(-9, 9), st.integers(-9, 9), st.binary(max_size=3)),
)
OPERATIONS = st.builds(operation, st.sampled_from([0, 1, 2, 3, LAST]), st.integers(0, 9), ARGUMENTS)


@given(st.lists(FIELDS, max_size=3), st.lists(OPERATIONS, min_size=1, max_size=5))
def test_any_operations_change_a_row_or_are_refused(row: list[bytes], operations: list[bytes]) -> None:
    try:
        new = after(*operations, row=row)
    except BoxError:
        return
    assert all(type(field) is bytes for field in new)
    assert len(new) <= len(row) + len(operations)


@given(st.binary())
@example(u32(1) + b"\0\0\0\0\0\xff\xff\xff\xff\xff")
def test_garbage_is_understood_or_refused(packed: bytes) -> None:
    code = 0
    try:
        decode_operations(packed)
    except BoxError as error:
        code = error.code
    assert code in (0, ErrorCode.ILLEGAL_PARAMS, ErrorCode.UNKNOWN_UPDATE_OP)
