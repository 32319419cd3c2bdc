"""Responses: their bytes, which some clients read at fixed offsets."""

import re
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol import (
    Feature,
    FrameDecoder,
    Key,
    encode_error,
    encode_id,
    encode_ok,
    encode_tuples,
)
from iproto_server.protocol.response import encode_result
from tests.codec.odd_values import odd_values

syncs = st.integers(0, 2**64 - 1)
schema_versions = st.integers(0, 2**32 - 1)


def split(response: bytes) -> tuple[bytes, bytes]:
    """Split a response into header and body."""
    assert response[0] == 0xCE
    (frame,) = FrameDecoder(2**31).feed(response)
    assert len(frame) == int.from_bytes(response[1:5], "big")
    return frame[:23], frame[23:]


@given(syncs, schema_versions)
def test_the_header_is_23_bytes_whatever_is_in_it(sync: int, schema_version: int) -> None:
    error = BoxError(ErrorCode.NO_SUCH_PROC, "f")
    for response, number in (
        (encode_ok(sync, schema_version), 0),
        (encode_tuples(sync, schema_version, []), 0),
        (encode_error(sync, schema_version, error), 0x8000 + 33),
        (encode_id(sync, schema_version, 5, [], "chap-sha1"), 0),
    ):
        header, _ = split(response)
        expected = b"\x83\x00\xce%b\x01\xcf%b\x05\xce%b" % (
            number.to_bytes(4, "big"),
            sync.to_bytes(8, "big"),
            schema_version.to_bytes(4, "big"),
        )
        assert header == expected
        assert codec.unpack(header) == {
            Key.REQUEST_TYPE: number,
            Key.SYNC: sync,
            Key.SCHEMA_VERSION: schema_version,
        }


def test_a_call_that_returned_nothing_is_answered_byte_for_byte_as_tarantool_does() -> None:
    expected = "ce0000001e8300ce0000000001cf000000000000000705ce000000518130dd00000000"
    assert encode_tuples(7, 81, []).hex() == expected


def test_ok_has_an_empty_map() -> None:
    assert split(encode_ok(1, 2))[1] == b"\x80"
    assert split(encode_ok(1, 2, b"\x81\x01\x02"))[1] == b"\x81\x01\x02"


@given(st.lists(st.lists(st.integers(0, 2**64 - 1) | st.text(max_size=5), max_size=4), max_size=20))
def test_rows_are_joined_as_they_are(rows: list[list[object]]) -> None:
    raws = [codec.pack(row) for row in rows]
    _, joined = split(encode_tuples(1, 2, raws))
    assert codec.unpack(joined) == {Key.DATA: rows}
    assert joined.endswith(b"".join(raws))


def test_an_error_has_its_text_for_old_clients_and_its_stack_for_new_ones() -> None:
    cause = BoxError(ErrorCode.NO_SUCH_SPACE, "t")
    error = BoxError(ErrorCode.ACCESS_DENIED, "Read", "space", "t", "guest", previous=cause)
    _, body = split(encode_error(1, 2, error))
    text = "Read access to space 't' is denied for user 'guest'"
    fields = {"access_type": "Read", "object_type": "space", "object_name": "t"}
    assert codec.unpack(body) == {
        Key.ERROR_24: text,
        Key.ERROR: {
            0: [
                {0: "AccessDeniedError", 1: "iproto_server", 2: 0, 3: text, 4: 0, 5: 42, 6: fields},
                {0: "ClientError", 1: "iproto_server", 2: 0, 3: "Space 't' does not exist", 4: 0, 5: 36},
            ]
        },
    }


@pytest.mark.parametrize(
    "error",
    [
        BoxError.procedure("lone \ud800 surrogate"),
        BoxError.with_message(5, "odd detail", fields={"what": object()}),
        BoxError.with_message(2**40, "odd number"),
        BoxError.with_message(-1, "odd number"),
        BoxError.with_message(5, "odd cause", previous=BoxError.procedure("\ud800")),
    ],
)
def test_an_error_is_answered_whatever_is_in_it(error: BoxError) -> None:
    _, body = split(encode_error(1, 2, error))
    unpacked = codec.unpack(body)
    assert (
        unpacked[Key.ERROR_24] == unpacked[Key.ERROR][0][0][3] == error.message.replace("\ud800", r"\ud800")
    )


def test_a_text_of_any_bytes_is_sent_as_it_is() -> None:
    _, body = split(encode_error(1, 2, BoxError.procedure("\udcff")))
    assert b"\xa1\xff" in body


def test_id_tells_version_features_and_method() -> None:
    response = encode_id(1, 2, 5, [Feature.ERROR_EXTENSION, Feature.SPACE_AND_INDEX_NAMES], "chap-sha1")
    assert codec.unpack(split(response)[1]) == {
        Key.VERSION: 5,
        Key.FEATURES: [2, 5],
        Key.AUTH_TYPE: "chap-sha1",
    }


def test_the_texts_of_an_error_end_at_a_zero_byte_as_in_tarantool() -> None:
    cause = BoxError.with_message(1000, "one\0x", type="Kind\0of")
    cause.file = "a.py\0b"
    error = BoxError.with_message(1001, "two\0y", previous=cause)
    _, body = split(encode_error(7, 1, error))
    told = codec.unpack(body)
    assert told[Key.ERROR_24] == "two"
    effect, reason = told[Key.ERROR][0]
    assert effect[3] == "two"
    assert (reason[0], reason[1], reason[3]) == ("Kind", "a.py", "one")
    assert error.message == "two\0y"  # application code sees the whole text


@given(syncs, schema_versions, st.lists(st.binary(max_size=9), max_size=4), st.sampled_from([list, tuple]))
def test_packed_values_are_copied(sync: int, version: int, raws: list[bytes], kind: type) -> None:
    header, body = split(encode_tuples(sync, version, kind(raws)))
    assert header == split(encode_ok(sync, version))[0]
    assert body == b"\x81\x30\xdd" + len(raws).to_bytes(4, "big") + b"".join(raws)


@pytest.mark.parametrize(
    ("numbers", "raised"),
    [
        ((-1, 0), OverflowError),
        ((2**64, 0), OverflowError),
        ((0, 2**32), OverflowError),
        ((None, 0), TypeError),
    ],
)
def test_numbers_that_do_not_fit(numbers: tuple[int, int], raised: type[Exception]) -> None:
    encoders: list[tuple[Any, object]] = [(encode_tuples, []), (encode_result, None), (encode_ok, b"\x80")]
    for encode, value in encoders:
        with pytest.raises(raised):
            encode(*numbers, value)


class Pair(NamedTuple):
    """A tuple that is more than that."""

    first: object
    second: object


@given(odd_values | st.builds(Pair, odd_values, odd_values) | st.lists(odd_values, max_size=3).map(tuple))
def test_the_result_of_a_procedure_is_none_one_or_several_values(result: object) -> None:
    values = [] if result is None else [*result] if isinstance(result, tuple) else [result]
    try:
        raws = [codec.pack(value) for value in values]
    except BoxError as error:
        with pytest.raises(BoxError, match=re.escape(error.message)):
            encode_result(7, 81, result)
    else:
        assert encode_result(7, 81, result) == encode_tuples(7, 81, raws)


@pytest.mark.parametrize("raws", [["text"], [b"x", None], None, 5])
def test_only_bytes_are_packed_values(raws: Any) -> None:
    with pytest.raises(TypeError):
        encode_tuples(7, 81, raws)
