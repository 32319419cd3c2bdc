"""Queues of frames hold what a deque would hold, however the frames have come."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.protocol.framing import FrameDecoder, Frames

frames = st.binary(max_size=20)
steps = st.lists(
    st.tuples(st.sampled_from(["append", "appendleft"]), frames)
    | st.tuples(st.just("extend"), st.lists(frames, max_size=9))
    | st.tuples(st.just("fed"), st.lists(frames, max_size=9))
    | st.tuples(st.just("popleft"), st.integers(1, 12)),
    max_size=30,
)


def _framed(parts: list[bytes]) -> bytes:
    return b"".join(b"\xce" + len(part).to_bytes(4, "big") + part for part in parts)


@given(steps, st.sampled_from([b"", b"\xce\0\0"]))
def test_the_first_frame_comes_out_first(taken: list[tuple[str, Any]], rest: bytes) -> None:
    queue, model = Frames(), deque[bytes]()
    for step, value in taken:
        if step == "fed":
            FrameDecoder(100).feed_to(queue, _framed(value) + rest)
            model.extend(value)
        elif step == "popleft":
            for _ in range(min(value, len(model))):
                assert queue.popleft() == model.popleft()
        else:
            for each in (queue, model):
                getattr(each, step)(value)
        assert len(queue) == len(model)
        assert list(queue) == list(model)
        assert bool(queue) == bool(model)
    copy = Frames(queue)
    copy.extend(queue)
    assert list(copy) == list(model) * 2
    assert list(queue) == list(model)
    for _ in range(len(copy)):
        copy.popleft()
    assert list(queue) == list(model)


def test_one_can_be_put_behind_itself() -> None:
    queue = Frames([b"a", b"b"])
    queue.extend(queue)
    assert list(queue) == [b"a", b"b"] * 2


def test_nothing_can_be_taken_of_none() -> None:
    queue = Frames()
    with pytest.raises(IndexError):
        queue.popleft()
    queue.append(b"a")
    queue.popleft()
    with pytest.raises(IndexError):
        queue.popleft()


@pytest.mark.parametrize("frame", [None, "a", bytearray(b"a"), 1])
def test_only_bytes_are_frames(frame: object) -> None:
    queue = Frames()
    for put in (queue.append, queue.appendleft, lambda frame: queue.extend([b"a", frame])):
        with pytest.raises(TypeError, match="a frame is bytes"):
            put(cast(Any, frame))
    assert list(queue) == [b"a"]
    with pytest.raises(TypeError):
        queue.extend(cast(Any, 1))
    with pytest.raises(TypeError):
        Frames(cast(Any, 1))


def test_of_a_large_chunk_only_the_frames_are_kept() -> None:
    """The decoder keeps what has come with them."""
    decoder = FrameDecoder(1000, 50)
    kept = Frames()
    decoder.feed_to(kept, _framed([b"x" * 20] * 1000))
    assert len(kept) == 2
    assert decoder.has_more
    decoder.more_to(kept)
    assert list(kept) == [b"x" * 20] * 4
