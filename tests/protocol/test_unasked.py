"""Unsolicited messages: events, and messages before a response."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.protocol.response import encode_chunk, encode_event, encode_tuples
from tests.protocol.test_response import schema_versions, split, syncs


@given(syncs, schema_versions, st.binary())
def test_a_message_has_the_header_of_an_answer_but_another_type(
    sync: int, version: int, payload: bytes
) -> None:
    frame = encode_chunk(sync, version, codec.pack(payload))
    header, body = split(frame)
    answer, answer_body = split(encode_tuples(sync, version, [codec.pack(payload)]))
    assert header == answer.replace(b"\xce\0\0\0\0\x01", b"\xce\0\0\0\x80\x01", 1)
    assert body == answer_body


@given(st.text(), st.none() | st.integers() | st.lists(st.binary()))
def test_an_event_has_a_type_a_key_and_perhaps_a_value(key: str, value: object) -> None:
    try:
        data = None if value is None else codec.pack(value)
        frame = encode_event(key, data)
    except BoxError:
        return  # a number of more than 64 bits, or half of a pair of surrogates
    assert frame[0] == 0xCE
    assert int.from_bytes(frame[1:5], "big") == len(frame) - 5
    assert frame[5:8] == b"\x81\x00\x4c"
    body = {0x57: key} if value is None else {0x57: key, 0x58: value}
    assert codec.unpack(frame[8:]) == body


def test_nil_as_a_value_is_sent_too() -> None:
    assert encode_event("key", b"\xc0")[8:] == b"\x82\x57\xa3key\x58\xc0"
