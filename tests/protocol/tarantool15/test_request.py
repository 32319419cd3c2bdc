"""Tarantool 1.5's protocol: decoding of requests, and malformed ones."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol.tarantool15 import (
    Call,
    Delete,
    Header,
    Insert,
    Select,
    Update,
    decode_body,
    decode_header,
)
from iproto_server.protocol.tarantool15.request import FieldReader
from tests.protocol.tarantool15.box15_client import (
    CALL,
    DELETE,
    DELETE_1_3,
    INSERT,
    SELECT,
    UPDATE,
    call_body,
    delete_body,
    frame,
    insert_body,
    operation,
    packed_tuple,
    select_body,
    u32,
    update_body,
    varint,
)


def refusal(kind: int, body: bytes) -> str:
    with pytest.raises(BoxError) as raised:
        decode_body(frame(kind, body))
    assert raised.value.code == ErrorCode.ILLEGAL_PARAMS
    return raised.value.message


class TestHeader:
    def test_it_is_three_little_endian_numbers(self) -> None:
        assert decode_header(bytes.fromhex("00ff0000 04000000 01020304") + b"body") == Header(
            65280, 4, 0x04030201
        )


class TestBodies:
    def test_insert(self) -> None:
        body = bytes.fromhex("05000000 03000000 02000000") + b"\x01a\x04\x01\0\0\0"
        assert decode_body(frame(INSERT, body)) == Insert(5, 3, [b"a", b"\x01\0\0\0"])
        assert body == insert_body(5, b"a", b"\x01\0\0\0", flags=3)

    def test_select_with_keys_of_different_lengths(self) -> None:
        body = select_body(5, [b"a"], [], [b"b", b"c"], index=2, offset=3, limit=4)
        assert decode_body(frame(SELECT, body)) == Select(5, 2, 3, 4, [[b"a"], [], [b"b", b"c"]])

    def test_update_leaves_the_operations_packed(self) -> None:
        body = update_body(5, [b"key"], operation(1, 0, b"x"), flags=1)
        assert decode_body(frame(UPDATE, body)) == Update(5, 1, [b"key"], u32(1) + operation(1, 0, b"x"))

    def test_update_whose_operations_are_garbage(self) -> None:
        assert decode_body(frame(UPDATE, u32(5, 1) + packed_tuple(b"k") + b"??")) == Update(
            5, 1, [b"k"], b"??"
        )

    def test_delete(self) -> None:
        assert decode_body(frame(DELETE, delete_body(5, b"key", flags=1))) == Delete(5, 1, [b"key"])

    def test_the_old_delete_has_no_flags(self) -> None:
        assert decode_body(frame(DELETE_1_3, u32(5) + packed_tuple(b"key"))) == Delete(5, 0, [b"key"])

    def test_call_whose_flags_mean_nothing(self) -> None:
        body = call_body(b"queue.put", b"a", b"", flags=0xFFFFFFFF)
        assert decode_body(frame(CALL, body)) == Call(b"queue.put", [b"a", b""])

    def test_bytes_after_a_delete_or_a_call_are_ignored(self) -> None:
        assert decode_body(frame(DELETE, delete_body(5, b"key") + b"more")) == Delete(5, 0, [b"key"])
        assert decode_body(frame(CALL, call_body(b"f") + b"more")) == Call(b"f", [])


class TestRefusals:
    @pytest.mark.parametrize("kind", [0, 1, 12, 14, 15, 16, 18, 23, 64, 255, 65280, 2**32 - 1])
    def test_a_type_there_is_not(self, kind: int) -> None:
        assert refusal(kind, b"") == "unsupported command code, check the error log"

    def test_a_select_without_keys(self) -> None:
        assert refusal(SELECT, select_body(5)) == "tuple count must be positive"

    def test_a_select_with_something_behind_it(self) -> None:
        assert refusal(SELECT, select_body(5, [b"a"]) + b"x") == "can't unpack request"

    def test_an_insert_with_something_behind_it(self) -> None:
        message = refusal(INSERT, insert_body(5, b"a") + b"x")
        assert message == "during verifying tuple: incorrect tuple format"

    def test_a_field_that_is_not_all_there(self) -> None:
        message = refusal(INSERT, insert_body(5, b"abc")[:-1])
        assert message == "packet too short (expected a field)"

    def test_more_fields_than_there_are(self) -> None:
        assert "is too short" in refusal(INSERT, u32(5, 0, 2**32 - 1) + b"\x01a")

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            (INSERT, insert_body(5, b"a", b"bc")),
            (SELECT, select_body(5, [b"a"], [b"b", b"c"])),
            (UPDATE, update_body(5, [b"a"])[:-4]),
            (DELETE, delete_body(5, b"a")),
            (DELETE_1_3, u32(5) + packed_tuple(b"a")),
            (CALL, call_body(b"name", b"a", b"bc")),
        ],
    )
    def test_every_request_that_ends_early(self, kind: int, body: bytes) -> None:
        decode_body(frame(kind, body))
        for size in range(len(body)):
            assert "too short" in refusal(kind, body[:size])


class TestLengths:
    @pytest.mark.parametrize(
        ("number", "packed"),
        [
            (0, "00"),
            (127, "7f"),
            (128, "8100"),
            (16383, "ff7f"),
            (16384, "818000"),
            (2**21 - 1, "ffff7f"),
            (2**21, "81808000"),
            (2**28, "8180808000"),
            (2**32 - 1, "8fffffff7f"),
        ],
    )
    def test_seven_bits_in_each_byte_the_highest_first(self, number: int, packed: str) -> None:
        assert varint(number).hex() == packed
        reader = FieldReader(bytes.fromhex(packed) + b"rest")
        assert reader.length() == number
        assert reader.rest() == b"rest"

    def test_a_length_may_be_longer_than_it_needs_to_be(self) -> None:
        assert FieldReader(b"\x80\x80\x80\x80\x02ab").field() == b"ab"

    @pytest.mark.parametrize(
        ("packed", "message"),
        [
            (b"", "varint is too short (expected 1+ bytes)"),
            (b"\x80", "varint is too short (expected 2+ bytes)"),
            (b"\x80" * 2, "BER int is too short (expected 3+ bytes)"),
            (b"\x80" * 4, "BER int is too short (expected 5+ bytes)"),
            (b"\x80" * 5, "incorrect BER integer format"),
            (b"\xff" * 9, "incorrect BER integer format"),
        ],
    )
    def test_one_that_does_not_end(self, packed: bytes, message: str) -> None:
        with pytest.raises(
            BoxError, match="^" + message.replace("(", r"\(").replace(")", r"\)").replace("+", r"\+")
        ):
            FieldReader(packed).length()

    def test_a_field_as_long_as_the_protocol_can_say_is_not_waited_for(self) -> None:
        assert (
            refusal(INSERT, u32(5, 0, 1) + b"\x8f\xff\xff\xff\x7f" + b"x")
            == "packet too short (expected a field)"
        )


@given(st.sampled_from([INSERT, SELECT, UPDATE, DELETE_1_3, DELETE, CALL, 0, 99]), st.binary())
@example(SELECT, u32(0, 0, 0, 0, 2**32 - 1))
@example(SELECT, u32(0, 0, 0, 0, 1, 2**32 - 1))
@example(CALL, u32(0) + b"\xff\xff\xff\xff\x7f")
def test_garbage_is_understood_or_refused(kind: int, body: bytes) -> None:
    code = 0
    try:
        decode_body(frame(kind, body))
    except BoxError as error:
        code = error.code
    assert code in (0, ErrorCode.ILLEGAL_PARAMS)


@given(st.lists(st.binary(max_size=300)), st.integers(0, 2**32 - 1), st.integers(0, 7))
def test_packed_requests_are_decoded(fields: list[bytes], space: int, flags: int) -> None:
    decoded = decode_body(frame(INSERT, insert_body(space, *fields, flags=flags)))
    assert decoded == Insert(space, flags, fields)
