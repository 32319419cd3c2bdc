"""Cutting packed values without unpacking them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.codec.msgpack import Kind
from iproto_server.errors import BoxError
from tests.codec.test_msgpack import texts, values


@given(values, values)
def test_exactly_one_value_is_valid(one: Any, other: Any) -> None:
    packed = codec.pack(one)
    assert codec.is_valid(packed)
    assert not codec.is_valid(packed[:-1])
    assert not codec.is_valid(packed + codec.pack(other))
    for cut in (packed[:-1], packed + codec.pack(other)):
        with pytest.raises(BoxError):
            codec.unpack(cut)


@given(st.lists(values, max_size=6))
def test_an_array_is_cut_into_its_items(items: list[Any]) -> None:
    assert codec.split_array(codec.pack(items)) == [codec.pack(item) for item in items]


@given(st.dictionaries(texts, values, max_size=6))
def test_a_map_is_cut_into_its_pairs(items: dict[str, Any]) -> None:
    assert codec.split_map(codec.pack(items)) == [
        (codec.pack(key), codec.pack(item)) for key, item in items.items()
    ]


def test_a_key_that_is_repeated_is_repeated_in_the_pairs() -> None:
    assert codec.split_map(b"\x82\x01\x02\x01\x03") == [(b"\x01", b"\x02"), (b"\x01", b"\x03")]


@given(values, st.binary(max_size=10), st.binary(max_size=10))
def test_skip_finds_the_end_of_a_value_among_others(value: Any, before: bytes, after: bytes) -> None:
    packed = codec.pack(value)
    assert codec.skip(before + packed + after, len(before)) == len(before) + len(packed)


def test_skip_needs_a_value() -> None:
    for raw, start in ((b"", 0), (b"\x01", 1), (b"\x92\x01", 0)):
        with pytest.raises(BoxError):
            codec.skip(raw, start)


ENDLESS = b"\xc9\xff\xff\xff\xff"
"""The head of an extension of 4 GiB less one byte."""


@pytest.mark.parametrize("rest", [b"", b"\x07", b"\x07" + b"x" * 40])
def test_an_extension_of_four_gigabytes_is_not_there_because_its_head_is(rest: bytes) -> None:
    for raw in (ENDLESS + rest, b"\x91" + ENDLESS + rest, b"\x81\x01\x92\x02" + ENDLESS + rest):
        assert not codec.is_valid(raw)
        with pytest.raises(BoxError):
            codec.skip(raw, 0)
        with pytest.raises(BoxError):
            codec.unpack(raw)


@given(values, values)
def test_bytes_like_its_head_inside_other_values_are_harmless(one: Any, other: Any) -> None:
    packed = codec.pack([one, ENDLESS, {1: "x" * 40, ENDLESS: other}, [-1, -100, 1.5, 2**40, None]])
    assert codec.is_valid(packed)
    assert not codec.is_valid(packed[:-1])
    assert not codec.is_valid(packed + b"\x01")
    assert not codec.is_valid(packed[:1] + b"\xc1" + packed[1:])
    assert codec.skip(ENDLESS + packed + b"\xc1", len(ENDLESS)) == len(ENDLESS) + len(packed)
    for deep, is_valid in ((1023, True), (1024, False)):
        assert codec.is_valid(b"\x91" * deep + b"\x91" + codec.pack(ENDLESS)) is is_valid


@pytest.mark.parametrize("count", [0, 1, 15, 16, 63, 64, 65535, 65536])
def test_headers_are_as_short_as_the_library_makes_them(count: int) -> None:
    assert codec.array_header(count) == codec.pack([None] * count)[: -count or None]
    assert codec.map_header(count) == codec.pack(dict.fromkeys(range(count)))[: len(codec.map_header(count))]


@pytest.mark.parametrize(
    ("packed", "kind"),
    [
        ("7f", Kind.UINT),
        ("cf0000000000000000", Kind.UINT),
        ("ff", Kind.INT),
        ("d0ff", Kind.INT),
        ("ca00000000", Kind.FLOAT),
        ("cb0000000000000000", Kind.DOUBLE),
        ("a0", Kind.STR),
        ("d900", Kind.STR),
        ("c400", Kind.BIN),
        ("90", Kind.ARRAY),
        ("dd00000000", Kind.ARRAY),
        ("80", Kind.MAP),
        ("df00000000", Kind.MAP),
        ("c0", Kind.NIL),
        ("c2", Kind.BOOL),
        ("d40100", Kind.EXT),
        ("c700ff", Kind.EXT),
    ],
)
def test_the_first_byte_tells_the_kind(packed: str, kind: Kind) -> None:
    assert codec.kind(bytes.fromhex("c0" + packed), 1) is kind


@given(st.lists(values, max_size=6), st.integers(-1, 8))
def test_the_first_items_of_an_array(items: list[Any], count: int) -> None:
    packed = codec.pack(items)
    assert codec.first_items(packed + b"\xc1", count) == [codec.pack(item) for item in items[: max(count, 0)]]
    assert codec.array_count(packed) == len(items)


def test_heads_tell_how_many_values_there_should_be() -> None:
    for count in (0, 1, 15, 16, 65535, 65536, 2**32 - 1):
        assert codec.array_count(codec.array_header(count)) == count
        assert codec.map_count(codec.map_header(count)) == count
    for make in (codec.array_header, codec.map_header):
        with pytest.raises(OverflowError):
            make(2**32)
        with pytest.raises(OverflowError):
            make(-1)


@pytest.mark.parametrize("raw", [b"", b"\x01", b"\xc1", b"\xdc\x00", b"\xde\x00"])
def test_what_is_no_array_or_map(raw: bytes) -> None:
    for read in (codec.split_array, codec.array_count, lambda raw: codec.first_items(raw, 1)):
        with pytest.raises(BoxError, match="malformed array"):
            read(raw)
    for read_map in (codec.split_map, codec.map_count):
        with pytest.raises(BoxError, match="malformed map"):
            read_map(raw)


def test_items_that_are_not_there() -> None:
    for raw in (b"\x92\x01", b"\xdd\x7f\xff\xff\xff\x01", b"\x92\x01\xc1"):
        assert codec.first_items(raw, 1) == [b"\x01"]
        for read in (codec.split_array, lambda raw: codec.first_items(raw, 2)):
            with pytest.raises(BoxError, match="malformed array"):
                read(raw)
    with pytest.raises(BoxError, match="bytes after an array"):
        codec.split_array(b"\x91\x01\x01")
    with pytest.raises(BoxError, match="bytes after a map"):
        codec.split_map(b"\x81\x01\x01\x01")
    for start in (-1, 2, 2**70):
        with pytest.raises((BoxError, IndexError)):
            codec.skip(b"\x01\x01", start)
