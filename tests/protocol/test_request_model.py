"""Requests of random frames: decoded as by the model, or the same error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.protocol import RequestType
from tests.protocol.decoding import frames, items, keys
from tests.protocol.probes import GOOD_BODIES, header
from tests.protocol.request_model import Parts, decode, decoded


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that are cut short, lengthened, or have a few changed bytes."""
    data = bytearray(draw(whole))
    for _ in range(draw(st.integers(0, 3))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))]) + draw(st.binary(max_size=3))


@given(frames | damaged(frames) | st.binary(max_size=30))
def test_all_frames_are_decoded_as_by_the_model(frame: bytes) -> None:
    assert decoded(frame) == decode(frame)


@given(st.sampled_from(sorted(GOOD_BODIES)), st.data())
def test_all_bodies_are_checked_as_by_the_model(number: RequestType, data: st.DataObject) -> None:
    good = [codec.pack(key) + codec.pack(value) for key, value in GOOD_BODIES[number].items()]
    more = data.draw(
        st.lists(st.tuples(keys.map(codec.pack), items.map(codec.pack)).map(b"".join), max_size=2)
    )
    parts = data.draw(st.permutations([*good, *more]))[data.draw(st.integers(0, 1)) :]
    frame = header(number) + bytes((0x80 + len(parts),)) + b"".join(parts)
    assert decoded(frame) == decode(frame)


@pytest.mark.parametrize("depth", [0, 1, 32, 33, 1021, 1022, 1023, 1024, 1100])
@pytest.mark.parametrize("head", [b"\x91", b"\x81\x01", b"\xdc\x00\x01"])
def test_arguments_may_be_as_deep_as_the_model_says(head: bytes, depth: int) -> None:
    frame = header(RequestType.CALL) + b"\x82\x22\xa1f\x21\x91" + head * depth + b"\xc0"
    assert isinstance(decode(frame), Parts) == (depth <= 1022)
    assert decoded(frame) == decode(frame)
