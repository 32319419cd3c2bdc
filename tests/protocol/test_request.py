"""Requests: decoding of frames, and errors of malformed ones."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.protocol import Key, Request, RequestError, RequestType, decode_request
from tests.memory_peak import memory_peak
from tests.protocol.decoding import (
    parts,
)
from tests.protocol.probes import GOOD_BODIES, OUR_PROBES, PROBES, ROW_TYPES, SYNC, Probe, header

RAW_KEYS = (Key.KEY, Key.TUPLE, Key.OPS)


@pytest.mark.parametrize("probe", [*PROBES, *OUR_PROBES], ids=lambda probe: probe.name)
def test_every_frame_is_a_request_or_is_answered_as_the_real_one_answers(probe: Probe) -> None:
    if probe.code is None:
        assert decode_request(probe.frame).sync == probe.sync
        return
    with pytest.raises(RequestError) as raised:
        decode_request(probe.frame)
    assert (raised.value.sync, raised.value.code, raised.value.message) == (
        probe.sync,
        probe.code,
        probe.text,
    )


@pytest.mark.parametrize("number", ROW_TYPES)
def test_rows_keys_and_operations_stay_packed_and_the_rest_is_unpacked(number: RequestType) -> None:
    good = GOOD_BODIES[number]
    body = decode_request(header(number) + codec.pack(good)).body
    assert body == {key: codec.pack(value) if key in RAW_KEYS else value for key, value in good.items()}


def test_a_row_keeps_its_very_bytes() -> None:
    odd = bytes.fromhex("dc0003ca3f800000d90161cf0000000000000001")
    body = decode_request(header(RequestType.INSERT) + b"\x82\x10\xcd\x02\x00\x21" + odd).body
    assert body == {Key.SPACE_ID: 512, Key.TUPLE: odd}


@pytest.mark.parametrize(
    "number", [RequestType.CALL, RequestType.CALL_16, RequestType.EVAL, RequestType.AUTH, RequestType.EXECUTE]
)
def test_of_the_other_bodies_texts_are_unpacked_and_arguments_stay_packed(number: RequestType) -> None:
    good = GOOD_BODIES[number]
    body = decode_request(header(number) + codec.pack(good)).body
    is_sql = number == RequestType.EXECUTE
    assert body == {
        key: codec.pack(value) if is_sql or isinstance(value, list) else value for key, value in good.items()
    }


def test_a_call_without_arguments_has_none() -> None:
    decoded = decode_request(header(RequestType.CALL) + codec.pack({0x22: "f"}))
    assert decoded.body == {0x22: "f", 0x21: b"\x90"}


@pytest.mark.parametrize(
    "arguments",
    [
        codec.pack([None, -1, 1.5, "x", b"y", {"a": [1, {2: 3}]}, [], True]),
        b"\x91\x81\x91\x01\x02",
        b"\xdc\x00\x01\xd9\x01x",
    ],
    ids=["values", "a key that is an array", "long heads"],
)
@pytest.mark.parametrize("name_first", [True, False])
def test_arguments_may_be_anything_and_keep_their_very_bytes(arguments: bytes, name_first: bool) -> None:
    name = b"\x22\xa1f"
    packed = b"\x82" + (name + b"\x21" + arguments if name_first else b"\x21" + arguments + name)
    assert decode_request(header(RequestType.CALL) + packed).body == {0x22: "f", 0x21: arguments}


MANY = b"\xdd\x00\x0f\x42\x40" + b"\x80" * 1_000_000
"""A million maps."""


@pytest.mark.parametrize(
    "frame",
    [
        header(RequestType.CALL) + b"\x82\x22\xa1f\x21" + MANY,
        header(RequestType.CALL) + b"\x83\x22\xa1f\x21" + MANY + b"\x7f\xc0",
        header(RequestType.CALL_16) + b"\x82\x22\xa1f\x21" + MANY,
        header(RequestType.EVAL) + b"\x82\x27\xa1f\x21" + MANY,
        header(RequestType.AUTH) + b"\x82\x23\xa1u\x21" + MANY,
        header(RequestType.ID) + b"\x81\x55" + MANY.replace(b"\x80", b"\x01"),
        header(RequestType.EXECUTE) + b"\x82\x40\xa1x\x41" + MANY,
        header(RequestType.PREPARE) + b"\x82\x40" + MANY + b"\x7f\xc0",
        header(RequestType.SELECT) + b"\x83\x10\x01\x12\x01\x20" + MANY,
        header(RequestType.SELECT) + b"\x84\x10\x01\x12\x01\x20\x90\x2f" + MANY,
        header(RequestType.INSERT)
        + b"\x83\x10\x01\x21\x90\x2a"
        + MANY.replace(b"\xdd", b"\xdf")
        + b"\x80" * 1_000_000,
        header(RequestType.PING) + MANY,
    ],
    ids=lambda frame: repr(frame[:16]),
)
def test_contents_of_a_request_stay_packed(frame: bytes) -> None:
    with memory_peak() as peak:
        decode_request(frame)
    assert peak.size < 8 * len(frame)


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        (header(RequestType.CALL) + b"\xdf\x00\x0f\x42\x40" + b"\x7f\x01" * 1_000_000, "body"),
        (header(RequestType.INSERT) + b"\xde\x04\x01" + b"\x7f\x01" * 1025, "body"),
        (b"\xdf\x00\x0f\x42\x40" + b"\x00\x40" * 1_000_000, "header"),
        (b"\x83\x00\x0a\x01\x07\x02" + MANY, "header"),
        (b"\x83\x02" + b"\xdc\x0f\xff" + MANY[5:] * 4 + b"\x00\x0a\x01\x07", "header"),
    ],
    ids=[
        "keys of a body",
        "more keys than there are",
        "keys of a header",
        "a header's value",
        "nested there",
    ],
)
def test_more_keys_than_anybody_knows_are_refused_before_they_are_cut(frame: bytes, what: str) -> None:
    with memory_peak() as peak, pytest.raises(RequestError, match=f"packet {what}"):
        decode_request(frame)
    assert peak.size < max(8 * len(frame), 2**20)


def test_as_many_keys_as_there_may_be() -> None:
    packed = b"\xde\x04\x00\x22\xa1f" + b"\x7f\x01" * 1023
    assert decode_request(header(RequestType.CALL) + packed).body == {0x22: "f", 0x21: b"\x90"}
    packed = b"\xde\x04\x00\x00\x40" + b"\x01\x07" * 1023
    assert decode_request(packed).sync == 7


@pytest.mark.parametrize(
    ("features", "is_valid"),
    [
        (b"\x90", True),
        (b"\x95\x00\x7f\xcc\xff\xcd\xff\xff\xce\xff\xff\xff\xff", True),
        (b"\x91\xcf\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a", True),
        (b"\xdc\x00\x01\x05", True),
        (b"\xdd\x00\x00\x00\x01\x05", True),
        (b"\x91\xff", False),
        (b"\x92\x01\xa1\x01", False),
        (b"\x91\x91\x01", False),
        (b"\x91\xca\x00\x00\x00\x00", False),
        (b"\x91\xc0", False),
        (b"\x91\xd0\x01", False),
    ],
)
def test_the_features_of_an_id_are_numbers(features: bytes, is_valid: bool) -> None:
    frame = header(RequestType.ID) + b"\x81\x55" + features
    if is_valid:
        assert decode_request(frame).body == {Key.FEATURES: features}
        return
    with pytest.raises(RequestError, match="request body"):
        decode_request(frame)


@pytest.mark.parametrize("order", [(0, 1, 5, 10), (1, 0, 10, 5), (10, 5, 1, 0)])
def test_the_header_says_type_sync_schema_version_and_stream_in_any_order(order: tuple[int, ...]) -> None:
    values = {0: 64, 1: 2**63, 5: 81, 10: 3}
    frame = codec.pack({key: values[key] for key in order})
    assert parts(decode_request(frame)) == (64, 2**63, 81, 3, {})


def test_numbers_are_cut_as_tarantool_cuts_them() -> None:
    packed = codec.pack({0x10: 2**32 + 512, 0x12: 2**32 + 1, 0x20: []})
    request = decode_request(codec.pack({0: 256 + 1, 1: 2**64 - 1, 5: 2**32 + 81}) + packed)
    assert parts(request) == (1, 2**64 - 1, 81, 0, {0x10: 512, 0x12: 1, 0x20: b"\x90"})


@pytest.mark.parametrize(
    "number",
    [
        RequestType.ROLLBACK,
        RequestType.JOIN,
        RequestType.SUBSCRIBE,
        RequestType.VOTE,
        RequestType.VOTE_DEPRECATED,
        RequestType.FETCH_SNAPSHOT,
        RequestType.REGISTER,
        0,
        44,
        99,
        128,
        255,
    ],
)
@pytest.mark.parametrize("body", [b"", b"\x80", b"\x81\x57\xa1x", b"\xc0"])
def test_unsupported_requests_have_a_type_and_a_sync(number: int, body: bytes) -> None:
    assert parts(decode_request(header(number) + body)) == (number, SYNC, 0, 0, {})


@pytest.mark.parametrize(
    ("number", "body"),
    [
        (RequestType.BEGIN, {}),
        (RequestType.BEGIN, {Key.TIMEOUT: 1.5, Key.TXN_ISOLATION: 3}),
        (RequestType.COMMIT, {}),
        (RequestType.WATCH, {Key.EVENT_KEY: "box.status"}),
        (RequestType.UNWATCH, {Key.EVENT_KEY: ""}),
        (RequestType.WATCH_ONCE, {Key.EVENT_KEY: "key"}),
    ],
)
def test_transactions_and_watchers_have_bodies(number: RequestType, body: dict[Key, object]) -> None:
    assert decode_request(header(number) + codec.pack(body)).body == body


@pytest.mark.parametrize("number", [RequestType.BEGIN, RequestType.COMMIT, RequestType.ROLLBACK])
def test_a_transaction_begins_and_ends_without_a_body_too(number: RequestType) -> None:
    assert decode_request(header(number)).body == {}


@pytest.mark.parametrize(
    ("number", "body", "text"),
    [
        (RequestType.BEGIN, [], "Invalid MsgPack - request body"),
        (RequestType.BEGIN, {Key.TIMEOUT: 1}, "Invalid MsgPack - request body"),
        (RequestType.BEGIN, {Key.TXN_ISOLATION: -1}, "Invalid MsgPack - request body"),
        (RequestType.COMMIT, {"a": 1}, "Invalid MsgPack - request body"),
        (RequestType.WATCH, {Key.EVENT_KEY: 1}, "Invalid MsgPack - packet body"),
        (RequestType.UNWATCH, [], "Invalid MsgPack - packet body"),
        (RequestType.WATCH_ONCE, {}, "Missing mandatory field 'event key' in request"),
    ],
)
def test_bodies_of_transactions_and_watchers_are_checked(
    number: RequestType, body: object, text: str
) -> None:
    with pytest.raises(RequestError) as raised:
        decode_request(header(number) + codec.pack(body))
    assert (raised.value.sync, raised.value.message) == (SYNC, text)


def test_a_watch_needs_a_body() -> None:
    with pytest.raises(RequestError) as raised:
        decode_request(header(RequestType.WATCH))
    assert raised.value.message == "Invalid MsgPack - missing request body"


def test_a_select_may_ask_for_its_position_and_begin_behind_one() -> None:
    body = {Key.SPACE_ID: 512, Key.LIMIT: 1, Key.KEY: [], Key.FETCH_POSITION: True, Key.AFTER_POSITION: "kQE"}
    decoded = decode_request(header(RequestType.SELECT) + codec.pack(body)).body
    assert decoded == {**body, Key.KEY: b"\x90"}
    del body[Key.AFTER_POSITION]
    decoded = decode_request(header(RequestType.SELECT) + codec.pack(body | {Key.AFTER_TUPLE: [1]})).body
    assert decoded[Key.AFTER_TUPLE] == b"\x91\x01"


bodies = st.sampled_from(sorted(GOOD_BODIES)).flatmap(
    lambda number: st.tuples(
        st.just(number),
        st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(range(0x10, 0x16), st.integers(0, 2**64 - 1)),
                **dict.fromkeys(
                    (0x20, 0x21, 0x28), st.lists(st.integers() | st.text(max_size=3), max_size=3)
                ),
                **dict.fromkeys((0x22, 0x23, 0x27), st.text(max_size=3)),
            },
        ).map(lambda extra: {**GOOD_BODIES[number], **extra}),
    )
)


@given(bodies, st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_unknown_keys_change_nothing(
    request_parts: tuple[RequestType, dict[int, Any]], sync: int, schema_version: int
) -> None:
    number, body = request_parts
    if any(isinstance(value, list) and any(_too_wide(item) for item in value) for value in body.values()):
        return
    packed = codec.pack(body)
    plain = decode_request(codec.pack({0: number, 1: sync, 5: schema_version}) + packed)
    longer = decode_request(codec.pack({0: number, 1: sync, 5: schema_version, 2: 1}) + packed)
    assert parts(plain) == parts(longer)
    assert parts(plain)[:3] == (number, sync, schema_version)


def _too_wide(item: object) -> bool:
    return isinstance(item, int) and not -(2**63) <= item < 2**64


@given(
    st.binary(max_size=80) | st.builds(lambda tail: header(RequestType.CALL) + tail, st.binary(max_size=60))
)
def test_any_bytes_are_a_request_or_a_request_error(frame: bytes) -> None:
    _decode_or_refuse(frame)


@given(
    st.sampled_from(PROBES),
    st.integers(0, 2**16),
    st.integers(0, 255),
    st.sampled_from(["change", "cut", "insert"]),
)
def test_a_damaged_request_is_a_request_or_a_request_error(
    probe: Probe, at: int, byte: int, how: str
) -> None:
    frame = bytearray(probe.frame)
    at %= len(frame)
    if how == "cut":
        del frame[at:]
    elif how == "insert":
        frame.insert(at, byte)
    else:
        frame[at] = byte
    _decode_or_refuse(bytes(frame))


def _decode_or_refuse(frame: bytes) -> None:
    try:
        request = decode_request(frame)
    except RequestError as error:
        refused = error
    else:
        assert 0 <= request.type < 256
        assert all(type(part) is int and part >= 0 for part in parts(request)[:4])
        assert all(codec.is_valid(value) for value in _raw_values(request))
        return
    assert refused.code in (ErrorCode.INVALID_MSGPACK, ErrorCode.MISSING_REQUEST_FIELD)
    assert 0 <= refused.sync < 2**64


def _raw_values(request: Request) -> list[bytes]:
    if request.type not in ROW_TYPES:
        return []
    return [value for value in request.body.values() if isinstance(value, bytes)]


@pytest.mark.parametrize("number", [RequestType.CALL, RequestType.INSERT, RequestType.PING, RequestType.ID])
@pytest.mark.parametrize("claim", [b"\xdd\x7f\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xdd\x00\x00\x0f\xff"])
def test_claims_of_enormous_bodies_reserve_no_memory(number: RequestType, claim: bytes) -> None:
    start = header(number)
    frames = [
        claim,
        start + claim,
        start + b"\x82\x22\xa1f\x21" + claim * 900,
        start + b"\x82\x10\x01\x21" + claim,
    ]
    for frame in frames:
        tracemalloc.start()
        with pytest.raises(BoxError):
            decode_request(frame)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 64 * 2**20


def test_long_arrays_are_as_good_as_short_ones() -> None:
    arguments = list(range(100_000))
    frame = header(RequestType.CALL) + codec.pack({0x22: "f", 0x21: [arguments]})
    assert decode_request(frame).body[0x21] == codec.pack([arguments])
    row = codec.pack(arguments)
    frame = header(RequestType.INSERT) + b"\x82\x10\x01\x21" + row
    assert decode_request(frame).body[0x21] == row


def test_a_fault_leaves_nothing_behind_for_the_next_request() -> None:
    good = header(RequestType.CALL) + codec.pack(GOOD_BODIES[RequestType.CALL])
    body = decode_request(good).body
    for bad in (
        good[:-1],
        good + b"\x00",
        b"\x82\x00",
        b"",
        header(RequestType.INSERT) + b"\x82\x10\x01\x21\x92\x01",
    ):
        with pytest.raises(RequestError):
            decode_request(bad)
        assert decode_request(good).body == body


@pytest.mark.parametrize("number", [*ROW_TYPES, RequestType.CALL, RequestType.PING])
def test_an_extension_that_ends_with_its_head_is_malformed_whatever_the_request(number: RequestType) -> None:
    body = b"\x85\x10\x01\x12\x01\x20\x91\x01\x28\x90\x21\x91\xc9\xff\xff\xff\xff"
    with pytest.raises(RequestError) as raised:
        decode_request(header(number) + body)
    assert raised.value.code == ErrorCode.INVALID_MSGPACK
    text = codec.pack(b"\xc9\xff\xff\xff\xff")
    assert decode_request(header(number) + b"\x86\x22\xa1f" + body[1:-5] + text).type == number


def test_a_request_shows_itself_whole() -> None:
    assert (
        repr(Request(64, 7, 81, 0, {})) == "Request(type=64, sync=7, schema_version=81, stream_id=0, body={})"
    )
