"""Tarantool 1.5's protocol: requests from a stream, split at any position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.protocol.framing import FrameTooLargeError, FramingError
from iproto_server.protocol.tarantool15 import FrameDecoder15
from tests.protocol.tarantool15.box15_client import PING, frame, u32

FRAMES = [frame(PING, b"", 1), frame(17, b"x" * 70, 2), frame(13, b"", 3), frame(0xFFFFFFFF, b"y", 4)]


def test_a_request_is_its_header_and_its_body() -> None:
    assert FrameDecoder15(100).feed(b"".join(FRAMES)) == FRAMES


@given(st.lists(st.integers(1, 40), min_size=1))
def test_it_does_not_matter_how_the_stream_was_cut(sizes: list[int]) -> None:
    stream = b"".join(FRAMES) * 3
    decoder = FrameDecoder15(100)
    frames: list[bytes] = []
    position = 0
    while position < len(stream):
        size = sizes[position % len(sizes)]
        frames += decoder.feed(stream[position : position + size])
        position += size
    assert frames == FRAMES * 3
    assert decoder.buffered == 0


@pytest.mark.parametrize("size", range(1, 12))
def test_of_half_a_header_nothing_is_known(size: int) -> None:
    decoder = FrameDecoder15(100)
    assert decoder.feed(FRAMES[1][:size]) == []
    assert decoder.feed(FRAMES[1][size:]) == [FRAMES[1]]


def test_a_body_of_the_greatest_length_is_taken() -> None:
    assert FrameDecoder15(70).feed(FRAMES[1]) == [FRAMES[1]]


@pytest.mark.parametrize("length", [71, 2**31, 2**31 + 1, 2**32 - 1])
def test_a_longer_one_ends_the_stream_before_its_body_has_come(length: int) -> None:
    with pytest.raises(FramingError) as raised:
        FrameDecoder15(70).feed(FRAMES[0] + u32(17, length, 5))
    assert raised.value.frames == [FRAMES[0]]


def test_no_body_is_longer_than_the_protocol_allows() -> None:
    assert FrameDecoder15(2**32).feed(u32(17, 2**31, 0)) == []
    with pytest.raises(FramingError):
        FrameDecoder15(2**32).feed(u32(17, 2**31 + 1, 0))


def test_announced_bytes_that_never_come_take_no_memory() -> None:
    decoder = FrameDecoder15(2**31)
    decoder.feed(u32(17, 2**31, 0) + b"some")
    assert decoder.buffered == 16


def test_many_requests_are_cut_out_a_part_at_a_time() -> None:
    decoder = FrameDecoder15(100, at_once=24)
    assert decoder.feed(FRAMES[0] * 5) == FRAMES[:1] * 2
    assert decoder.has_more
    assert decoder.more() + decoder.more() == FRAMES[:1] * 3
    assert not decoder.has_more


def test_a_request_above_the_limit_waits_until_those_before_it_are_taken() -> None:
    decoder = FrameDecoder15(100)
    decoder.limit_to(4)
    first, large = u32(17, 4, 1) + bytes(4), u32(17, 5, 2) + bytes(5)
    assert decoder.feed(first + large + first) == [first]
    assert decoder.has_more
    with pytest.raises(FrameTooLargeError) as raised:
        decoder.more()
    assert raised.value.size == 5
    decoder = FrameDecoder15(100)
    decoder.limit_to(4)
    decoder.feed(first + large + first)
    decoder.limit_to(1000)
    assert decoder.more() == [large, first]
