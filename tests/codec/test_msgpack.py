"""The codec: packing, unpacking, and splitting bytes without unpacking."""

import datetime
import math
import threading
import tracemalloc
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Datetime, ExtType, Interval, IntervalAdjust, Raw
from iproto_server.errors import BoxError, ErrorCode

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
decimals = st.builds(
    lambda sign, digits, scale: Decimal((sign, tuple(map(int, str(digits))), -scale)),
    st.integers(0, 1),
    st.integers(0, 10**38 - 1),
    st.integers(-37, 38),
).filter(lambda value: value.adjusted() <= 37)
moments = st.builds(
    Datetime,
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 999_999_999),
    st.integers(-720, 840),
    st.integers(0, 1000),
)
spans = st.builds(Interval, *[st.integers(-(2**31), 2**31 - 1)] * 8, st.sampled_from(IntervalAdjust))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    texts,
    st.binary(max_size=20),
    decimals,
    st.uuids(),
    moments,
    spans,
    st.builds(ExtType, st.integers(7, 127), st.binary(max_size=40)),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(texts | st.integers(0, 2**64 - 1), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(values)
def test_packed_values_unpack_to_themselves(value: Any) -> None:
    assert codec.unpack(codec.pack(value)) == value


@given(decimals)
def test_a_decimal_keeps_its_scale_and_the_sign_of_its_zero(value: Decimal) -> None:
    unpacked = codec.unpack(codec.pack(value))
    assert unpacked.as_tuple() == value.as_tuple()


@given(st.binary(max_size=20))
def test_a_string_of_any_bytes_survives(raw: bytes) -> None:
    packed = b"\xd9" + bytes((len(raw),)) + raw
    text = codec.unpack(packed)
    assert isinstance(text, str)
    assert codec.unpack(codec.pack(text)) == text
    assert codec.pack(text)[-len(raw) :] == raw if raw else codec.pack(text) == b"\xa0"


@pytest.mark.parametrize(
    ("value", "packed"),
    [
        (None, "c0"),
        ("text", "a474657874"),
        (b"bin", "c40362696e"),
        ([1, -1, True], "9301ffc3"),
        ((1, 2), "920102"),
        ({"a": 1}, "81a16101"),
        (1.5, "cb3ff8000000000000"),
        (2**64 - 1, "cfffffffffffffffff"),
        (Decimal("-12.34"), "d6010201234d"),
        (Decimal("1.10"), "c7030102110c"),
        (Decimal("-0.00"), "d501020d"),
        (Decimal("1E+3"), "d501fd1c"),
        (Decimal("1E+37"), "c70301d0db1c"),
        (Decimal("9" * 38), "c71501000" + "9" * 38 + "c"),
        (uuid.UUID("f81d4fae-7dec-11d0-a765-00a0c91e6bf6"), "d802f81d4fae7dec11d0a76500a0c91e6bf6"),
        (Datetime(1_700_000_000), "d70400f1536500000000"),
        (Datetime(-1, 5, 180, 947), "d804ffffffffffffffff05000000b400b303"),
        (Interval(year=1, day=-2), "c7070603000103fe0801"),
        (Interval(adjust=IntervalAdjust.EXCESS), "d40600"),
        (ExtType(77, b"zz"), "d54d7a7a"),
    ],
)
def test_values_have_tarantools_bytes(value: object, packed: str) -> None:
    assert codec.pack(value).hex() == packed
    if not isinstance(value, tuple) or isinstance(value, ExtType):
        assert codec.unpack(bytes.fromhex(packed)) == value


@pytest.mark.parametrize(
    "packed",
    [
        "d5010010",  # a decimal without a sign
        "c70101" + "02",  # without digits
        "d501" + "271c",  # scale 39
        "d501" + "a11c",  # scale of a wrong type
        "c7150100" + "9" * 39 + "c",  # 39 digits
        "d501" + "da1c",  # scale -38
        "d502" + "0000",  # a uuid of two bytes
        "d604" + "00000000",  # half a datetime
        "d804" + "0000000000000000" + "00ca9a3b" + "00000000",  # 10**9 nanoseconds
        "d506" + "0100",  # a truncated interval
        "c70306" + "010901",  # an interval with an unknown unit
        "d503" + "8000",  # an invalid error
    ],
)
def test_an_extension_that_is_malformed_inside_stays_as_it_came(packed: str) -> None:
    raw = bytes.fromhex(packed)
    value = codec.unpack(raw)
    assert isinstance(value, ExtType)
    assert codec.unpack(codec.pack(value)) == value


@pytest.mark.parametrize("packed", ["d4ff01", "c700ff", "d58001f0", "c70380010203"])
def test_an_extension_below_zero_stays_packed(packed: str) -> None:
    raw = bytes.fromhex(packed)
    value = codec.unpack(b"\x92" + raw + b"\x07")
    assert isinstance(value[0], Raw)
    assert codec.pack(value) == b"\x92" + raw + b"\x07"


def test_an_error_travels_with_its_causes_and_details() -> None:
    cause = BoxError(ErrorCode.NO_SUCH_SPACE, "t")
    error = BoxError(ErrorCode.ACCESS_DENIED, "Read", "space", "t", "guest", previous=cause)
    error.errno = 13
    received = codec.unpack(codec.pack([error]))[0]
    assert isinstance(received, BoxError)
    assert received.previous is not None
    for ours, theirs in ((error, received), (cause, received.previous)):
        assert (ours.code, ours.message, ours.type) == (theirs.code, theirs.message, theirs.type)
        assert (ours.fields, ours.errno, ours.file) == (theirs.fields, theirs.errno, theirs.file)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1, 2}, "unsupported Python type 'set'"),
        ([object()], "unsupported Python type 'object'"),
        (2**64, "integer 18446744073709551616 does not fit 64 bits"),
        ([-(2**63) - 1], "integer -9223372036854775809 does not fit 64 bits"),
        ("\ud800", "a string that has no UTF-8 form cannot be packed"),
        (Decimal("NaN"), "decimal 'NaN' is out of range"),
        (Decimal("12E+37"), "decimal '1.2E+38' is out of range"),
        (datetime.datetime(2024, 1, 1), "unsupported Python type 'datetime'"),
        ([Raw(b"\x01"), {1}], "unsupported Python type 'set'"),
        ([Raw(b"\x01"), "\ud800"], "a string that has no UTF-8 form cannot be packed"),
    ],
)
def test_errors_name_values_that_cannot_be_packed(value: object, reason: str) -> None:
    with pytest.raises(BoxError) as raised:
        codec.pack(value)
    assert (raised.value.code, raised.value.message) == (ErrorCode.PROC_LUA, reason)


def test_a_value_that_contains_itself_is_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    for value in (circle, [Raw(b"\x01"), circle], [circle, Raw(b"\x01")]):
        with pytest.raises(BoxError, match="nested too deep"):
            codec.pack(value)


@given(st.lists(values, max_size=4), values)
def test_packed_values_are_spliced_in_where_they_stand(items: list[Any], plain: Any) -> None:
    mixed = [Raw(codec.pack(item)) for item in items]
    assert codec.pack(mixed) == codec.pack(items)
    assert codec.pack([plain, *mixed]) == codec.pack([plain, *items])
    assert codec.pack({"a": mixed, "b": (plain, mixed)}) == codec.pack({"a": items, "b": (plain, items)})


def test_a_packed_value_alone_is_its_bytes() -> None:
    assert codec.pack(Raw(b"\xca\x3f\x80\x00\x00")) == b"\xca\x3f\x80\x00\x00"
    assert repr(Raw(b"\x01")) == "Raw(b'\\x01')"


@pytest.mark.parametrize(
    ("packed", "value"),
    [
        ("819001", {(): 1}),
        ("8192019102c0", {(1, (2,)): None}),
        ("8181a16101c3", {(("a", 1),): True}),
        ("9181d9016101", [{"a": 1}]),
    ],
)
def test_keys_that_a_dict_cannot_have_become_tuples(packed: str, value: object) -> None:
    assert codec.unpack(bytes.fromhex(packed)) == value


@given(st.binary(max_size=60))
def test_any_bytes_either_unpack_or_are_a_box_error(raw: bytes) -> None:
    assert codec.is_valid(raw) == _unpacks(codec.unpack, raw)
    for read in (codec.split_array, codec.split_map):
        assert codec.is_valid(raw) or not _unpacks(read, raw)


def _unpacks(read: Callable[[bytes], object], raw: bytes) -> bool:
    try:
        read(raw)
    except BoxError as error:
        return error.code != ErrorCode.INVALID_MSGPACK
    return True


@pytest.mark.parametrize("claim", [b"\xdd\x7f\xff\xff\xff", b"\xdf\x7f\xff\xff\xff", b"\xdd\x00\x00\xff\xff"])
def test_claims_of_enormous_arrays_reserve_no_memory(claim: bytes) -> None:
    for raw in (claim, claim * 500, claim * 10_000):
        tracemalloc.start()
        with pytest.raises(BoxError):
            codec.unpack(raw)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 * 2**20


def test_nesting_is_limited() -> None:
    assert codec.unpack(b"\x91" * 500 + b"\x01") != []
    for raw in (b"\x91" * 5000 + b"\x01", b"\x81\x90" * 5000 + b"\x01"):
        with pytest.raises(BoxError):
            codec.unpack(raw)


def test_two_threads_do_not_disturb_each_other() -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        value = [number, Decimal(number), "x" * number]
        packed = codec.pack(value)
        wrong.extend(1 for _ in range(300) if codec.unpack(codec.pack(value)) != value)
        wrong.extend(1 for _ in range(300) if len(codec.split_array(packed)) != 3)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@given(
    st.datetimes(min_value=datetime.datetime(2, 1, 1), max_value=datetime.datetime(9998, 1, 1)),
    st.integers(-720, 840),
)
def test_python_datetimes_become_moments_and_come_back(naive: datetime.datetime, minutes: int) -> None:
    aware = naive.replace(tzinfo=datetime.timezone(datetime.timedelta(minutes=minutes)))
    moment = codec.unpack(codec.pack(aware))
    assert moment == Datetime.from_datetime(aware)
    assert moment.to_datetime() == aware
    assert moment.to_datetime().utcoffset() == aware.utcoffset()


def test_a_datetime_without_a_zone_is_no_moment() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Datetime.from_datetime(datetime.datetime(2024, 1, 1))


def test_moments_are_ordered_and_equal_as_moments() -> None:
    assert Datetime(5, 1) < Datetime(5, 2) < Datetime(6)
    assert Datetime(5, 1, 60) == Datetime(5, 1, -60)
    assert len({Datetime(5, 1, 60), Datetime(5, 1, -60)}) == 1


def test_nan_and_infinities_pass() -> None:
    assert codec.unpack(codec.pack(math.inf)) == math.inf
    assert math.isnan(codec.unpack(codec.pack(math.nan)))


@pytest.mark.parametrize(
    "odd",
    [
        b"\xd4\xff\0",  # an invalid timestamp
        b"\xd4\xfe\0",
        b"\x81\x91\1\2",  # a map whose key is an array
    ],
)
def test_errors_inside_each_other_are_read_and_packed_once_whatever_is_odd_in_them(odd: bytes) -> None:
    """With retries on each level, this would take too long."""
    raw = b"\xc0"
    for _ in range(60):
        fields = b"\x82\xa1a" + raw + b"\xa1b" + odd
        entry = b"\x87\0\xa1T\1\xa1f\2\1\3\xa1m\4\0\5\0\6" + fields
        raw = codec.pack(ExtType(3, b"\x81\0\x91" + entry))
    error = codec.unpack(raw)
    assert isinstance(error, BoxError)
    assert isinstance(error.fields["a"], BoxError)
    assert codec.unpack(codec.pack(error)).fields["a"].fields.keys() == error.fields.keys()


def test_errors_deep_inside_each_other_stay_packed() -> None:
    raw = b"\xc0"
    for _ in range(1000):
        fields = b"\x81\xa1a" + raw
        raw = codec.pack(ExtType(3, b"\x81\0\x91\x87\0\xa1T\1\xa1f\2\1\3\xa1m\4\0\5\0\6" + fields))
    for packed in (raw, b"\x92" + raw + b"\xd4\xff\0"):
        value = codec.unpack(packed)
        error = value[0] if isinstance(value, list) else value
        depth = 0
        while isinstance(error, BoxError):
            depth += 1
            error = error.fields["a"]
        assert depth == 8
        assert isinstance(error, ExtType)
        assert codec.unpack(codec.pack(value)) is not None


def test_errors_too_deep_inside_each_other_cannot_be_packed() -> None:
    error = BoxError.with_message(0, "m")
    for _ in range(5000):
        error = BoxError.with_message(0, "m", fields={"a": error})
    with pytest.raises(BoxError) as caught:
        codec.pack(error)
    assert caught.value.message == "a value that is nested too deep or is too large cannot be packed"
