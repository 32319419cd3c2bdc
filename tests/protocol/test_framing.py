"""Frames: the same for all splits of the stream."""

import itertools
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.errors import ErrorCode
from iproto_server.protocol import FrameDecoder, FramingError
from iproto_server.protocol.framing import Frames, FrameTooLargeError

MAX_FRAME = 1000

frame_bodies = st.binary(max_size=300)


def with_length(body: bytes, width: int) -> bytes:
    """Put a length before a frame in one of the five forms of an unsigned integer."""
    if width == 0:
        return bytes((len(body),)) + body
    code, form = {1: (0xCC, ">B"), 2: (0xCD, ">H"), 4: (0xCE, ">I"), 8: (0xCF, ">Q")}[width]
    return bytes((code,)) + struct.pack(form, len(body)) + body


framed = frame_bodies.flatmap(
    lambda body: st.sampled_from([w for w in (0, 1, 2, 4, 8) if len(body) < (128 if w == 0 else 256**w)]).map(
        lambda width: (body, with_length(body, width))
    )
)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in itertools.pairwise(bounds)]


@given(st.lists(framed, max_size=8), st.lists(st.integers(0, 10_000), max_size=20))
def test_any_cut_of_the_stream_gives_the_same_frames(
    frames: list[tuple[bytes, bytes]], places: list[int]
) -> None:
    stream = b"".join(packed for _, packed in frames)
    decoder = FrameDecoder(MAX_FRAME)
    found = [frame for chunk in cut(stream, places) for frame in decoder.feed(chunk)]
    assert found == [body for body, _ in frames]
    assert decoder.buffered == 0


@given(st.lists(framed, max_size=4))
def test_byte_by_byte_each_frame_comes_out_with_its_last_byte(frames: list[tuple[bytes, bytes]]) -> None:
    decoder = FrameDecoder(MAX_FRAME)
    for body, packed in frames:
        for position in range(len(packed) - 1):
            assert decoder.feed(packed[position : position + 1]) == []
        assert decoder.feed(packed[-1:]) == [body]


@given(st.lists(framed, max_size=8), st.integers(1, 400), st.lists(st.integers(0, 10_000), max_size=20))
def test_frames_that_are_left_are_the_next(
    frames: list[tuple[bytes, bytes]], at_once: int, places: list[int]
) -> None:
    decoder = FrameDecoder(MAX_FRAME, at_once)
    found: list[bytes] = []
    for number, chunk in enumerate(cut(b"".join(packed for _, packed in frames), places)):
        found += decoder.feed(chunk)
        while decoder.has_more and number % 2:
            found += decoder.more()
    while decoder.has_more:
        found += decoder.more()
    assert found == [body for body, _ in frames]
    assert decoder.buffered == 0


def test_a_fault_is_found_when_it_is_come_to() -> None:
    decoder = FrameDecoder(MAX_FRAME, at_once=1)
    assert decoder.feed(b"\x01x\x01y\xc1") == [b"x"]
    assert decoder.more() == [b"y"]
    with pytest.raises(FramingError):
        decoder.more()


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_any_bytes_are_frames_or_a_framing_error_and_no_more_is_kept_than_a_frame(
    chunks: list[bytes],
) -> None:
    decoder = FrameDecoder(MAX_FRAME)
    for chunk in chunks:
        try:
            frames = decoder.feed(chunk)
        except FramingError as error:
            frames = error.frames
            break
        finally:
            assert decoder.buffered <= MAX_FRAME + 9
        assert all(len(frame) <= MAX_FRAME for frame in frames)


@pytest.mark.parametrize(
    "garbage", [b"\x80", b"\xa1x", b"\xff", b"\xc0", b"\xca\0\0\0\0", b"\xd0\x01", b"\xc1"]
)
def test_invalid_lengths_are_errors(garbage: bytes) -> None:
    with pytest.raises(FramingError) as raised:
        FrameDecoder(MAX_FRAME).feed(garbage)
    assert raised.value.code == ErrorCode.INVALID_MSGPACK
    assert raised.value.message == "Invalid MsgPack - packet length"


@pytest.mark.parametrize("length", [b"\xcd\x03\xe9", b"\xce\x00\x00\x03\xe9", b"\xcf" + b"\xff" * 8])
def test_a_length_above_the_maximum_is_an_error_before_the_frame_comes(length: bytes) -> None:
    with pytest.raises(FramingError) as raised:
        FrameDecoder(MAX_FRAME).feed(length)
    number = int.from_bytes(length[1:], "big")
    assert raised.value.message == f"Invalid MsgPack - too big packet size in the header: {number}"


def test_the_maximum_itself_is_allowed() -> None:
    body = b"x" * MAX_FRAME
    assert FrameDecoder(MAX_FRAME).feed(with_length(body, 4)) == [body]


@pytest.mark.parametrize("fault", [b"\xa1x", b"\xce\xff\xff\xff\xff"])
def test_frames_before_a_fault_are_not_lost(fault: bytes) -> None:
    decoder = FrameDecoder(MAX_FRAME)
    decoder.feed(with_length(b"one", 4)[:-1])
    with pytest.raises(FramingError) as raised:
        decoder.feed(b"e" + with_length(b"two", 0) + fault)
    assert raised.value.frames == [b"one", b"two"]


def test_an_empty_frame_is_a_frame() -> None:
    assert FrameDecoder(MAX_FRAME).feed(b"\x00\xce\x00\x00\x00\x00") == [b"", b""]


def test_a_frame_that_is_announced_but_not_sent_costs_nothing() -> None:
    tracemalloc.start()
    decoder = FrameDecoder(2**31)
    assert decoder.feed(b"\xce\x7f\xff\xff\xff") == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000


def test_a_large_frame_in_small_pieces_is_copied_a_few_times_at_most() -> None:
    body = bytes(2**20)
    stream = with_length(body, 4)
    decoder = FrameDecoder(2**21)
    tracemalloc.start()
    found = [
        frame for start in range(0, len(stream), 1000) for frame in decoder.feed(stream[start : start + 1000])
    ]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [body]
    assert peak < 5 * len(body)


def test_a_frame_above_the_limit_waits_until_those_before_it_are_taken() -> None:
    decoder = FrameDecoder(MAX_FRAME)
    decoder.limit_to(4)
    large = with_length(b"x" * 5, 4)
    assert decoder.feed(with_length(b"a", 4) + with_length(b"b", 0) + large + with_length(b"c", 0)) == [
        b"a",
        b"b",
    ]
    assert (decoder.has_more, decoder.has_part) == (True, False)
    decoder.limit_to(5)
    assert decoder.more() == [b"x" * 5, b"c"]
    assert not decoder.has_more


@pytest.mark.parametrize("width", [0, 1, 2, 4, 8])
def test_it_is_refused_when_it_is_asked_for_and_still_above_the_limit(width: int) -> None:
    decoder = FrameDecoder(MAX_FRAME)
    decoder.limit_to(4)
    assert decoder.feed(with_length(b"a", 4) + with_length(b"x" * 5, width)[:-1]) == [b"a"]
    with pytest.raises(FrameTooLargeError, match="too big packet size in the header: 5") as raised:
        decoder.more()
    assert (raised.value.size, raised.value.frames) == (5, [])


def test_the_first_frame_may_be_above_the_limit_too() -> None:
    decoder = FrameDecoder(MAX_FRAME)
    decoder.limit_to(4)
    assert decoder.feed(with_length(b"x" * 5, 4)[:7]) == []
    assert decoder.has_more
    assert decoder.feed(with_length(b"x" * 5, 4)[7:]) == []
    decoder.limit_to(MAX_FRAME)
    assert decoder.more() == [b"x" * 5]


def test_above_the_maximum_no_limit_is_waited_for() -> None:
    decoder = FrameDecoder(MAX_FRAME)
    decoder.limit_to(2 * MAX_FRAME)
    with pytest.raises(FrameTooLargeError) as raised:
        decoder.feed(with_length(b"a", 4) + b"\xce" + (MAX_FRAME + 1).to_bytes(4, "big"))
    assert (raised.value.size, raised.value.frames) == (MAX_FRAME + 1, [b"a"])


def test_the_frames_before_a_fault_are_appended() -> None:
    frames = Frames([b"zero"])
    with pytest.raises(FramingError):
        FrameDecoder(MAX_FRAME).feed_to(frames, with_length(b"one", 4) + with_length(b"two", 0) + b"\xc1")
    assert list(frames) == [b"zero", b"one", b"two"]


@pytest.mark.parametrize("arguments", [(), (Frames(),), (Frames(), "data"), ([], b"data"), (None, b"data")])
def test_only_bytes_are_cut_and_only_into_frames(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        FrameDecoder(MAX_FRAME).feed_to(*arguments)


def test_held_bytes_can_be_dropped() -> None:
    decoder = FrameDecoder(MAX_FRAME)
    decoder.feed(with_length(b"x" * 5, 4)[:-1])
    assert decoder.has_part
    decoder.clear()
    assert (decoder.has_part, decoder.buffered) == (False, 0)
    assert decoder.feed(with_length(b"x", 4)) == [b"x"]
