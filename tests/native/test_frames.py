"""Queues of frames are the same in compiled code and in Python."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import native
from iproto_server.protocol.frames import Frames
from iproto_server.protocol.framing import FrameDecoder

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


def _both() -> tuple[Frames, Frames]:
    return Frames(), native.in_python["Frames"]()


@given(steps, st.sampled_from([b"", b"\xce\0\0"]))
def test_they_hold_the_same(taken: list[tuple[str, Any]], rest: bytes) -> None:
    """Whatever is put into them, and in whichever way: the first comes out first."""
    compiled, python = _both()
    assert type(compiled) is not type(python)
    for step, value in taken:
        if step == "fed":
            FrameDecoder(100).feed_to(compiled, _framed(value) + rest)
            python.extend(value)
        elif step == "popleft":
            for _ in range(min(value, len(python))):
                assert compiled.popleft() == python.popleft()
        else:
            for each in (compiled, python):
                getattr(each, step)(value)
        assert len(compiled) == len(python)
        assert list(compiled) == list(python)
        assert bool(compiled) == bool(python)
    copy = Frames(compiled)
    copy.extend(compiled)
    assert list(copy) == list(python) * 2
    assert list(compiled) == list(python)
    for _ in range(len(copy)):
        copy.popleft()
    assert list(compiled) == list(python)


def test_one_can_be_put_behind_itself() -> None:
    for each in _both():
        each.extend([b"a", b"b"])
        each.extend(each)
        assert list(each) == [b"a", b"b"] * 2


def test_nothing_can_be_taken_of_none() -> None:
    for each in _both():
        with pytest.raises(IndexError):
            each.popleft()
        each.append(b"a")
        each.popleft()
        with pytest.raises(IndexError):
            each.popleft()


@pytest.mark.parametrize("frame", [None, "a", bytearray(b"a"), 1])
def test_only_bytes_are_frames_to_compiled_code(frame: object) -> None:
    compiled = Frames()
    for put in (compiled.append, compiled.appendleft, lambda frame: compiled.extend([b"a", frame])):
        with pytest.raises(TypeError, match="a frame is bytes"):
            put(cast(Any, frame))
    assert list(compiled) == [b"a"]
    with pytest.raises(TypeError):
        compiled.extend(cast(Any, 1))
    with pytest.raises(TypeError):
        Frames(cast(Any, 1))


def test_of_a_large_chunk_only_the_frames_are_kept() -> None:
    """Not what has come with them: that is the decoder's."""
    decoder = FrameDecoder(1000, 50)
    kept = Frames()
    decoder.feed_to(kept, _framed([b"x" * 20] * 1000))
    assert len(kept) == 2
    assert decoder.has_more
    decoder.more_to(kept)
    assert list(kept) == [b"x" * 20] * 4
