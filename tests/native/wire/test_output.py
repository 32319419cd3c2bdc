"""The output of a connection is what a list of frames would be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.native._native import LARGE_ANSWER, Output
from tests.plugins.profiles import examples

LARGE = LARGE_ANSWER + 1
"""The first frame is not copied into the output if it is so large."""


class Model:
    """The frames as a list, each with what it is: "read", "logged" or "pushed"."""

    def __init__(self, frames: list[tuple[str, bytes]] | None = None) -> None:
        self.frames = frames or []

    def add(self, response: bytes, is_logged: bool) -> None:
        self.frames.append(("logged" if is_logged else "read", response))

    def push(self, frame: bytes) -> None:
        self.frames.append(("pushed", frame))

    def take(self) -> bytes:
        return b"".join(frame for _, frame in self.hand_over().frames)

    def take_pushed(self) -> bytes:
        pushed = [frame for kind, frame in self.frames if kind == "pushed"]
        self.frames = [each for each in self.frames if each[0] != "pushed"]
        return b"".join(pushed)

    def hand_over(self) -> Model:
        frames, self.frames = self.frames, []
        return Model(frames)

    def refuse(self, refusal: Callable[[bytes], bytes]) -> None:
        frames = self.hand_over().frames
        refused = [("read", refusal(frame)) if kind == "logged" else (kind, frame) for kind, frame in frames]
        self.frames = refused + self.frames

    @property
    def state(self) -> tuple[int, bool, bool]:
        kinds = {kind for kind, _ in self.frames}
        return sum(len(frame) for _, frame in self.frames), "logged" in kinds, "pushed" in kinds


def state(output: Output) -> tuple[int, bool, bool]:
    return output.size, output.has_logged, output.has_pushed


frames = st.binary(max_size=40) | st.builds(bytes, st.sampled_from([0, 900, 1024, 1025, 5000, LARGE]))
steps = st.one_of(
    st.tuples(st.just("add"), frames, st.booleans()),
    st.tuples(st.just("push"), frames),
    st.tuples(st.sampled_from(["take", "take_pushed", "hand_over", "refuse"])),
)


@examples(200)
@given(st.lists(steps, max_size=40))
def test_random_steps(taken: list[tuple[Any, ...]]) -> None:
    output, model = Output(), Model()
    for name, *arguments in taken:
        if name == "refuse":
            for each in (output, model):
                each.refuse(lambda response: b"refused" + response[:20])
        elif name == "hand_over":
            handed, expected = output.hand_over(), model.hand_over()
            assert state(handed) == expected.state
            for each in (handed, expected):
                each.add(b"more", True)
                each.refuse(lambda response: response[::-1])
            assert handed.take() == expected.take()
        else:
            assert getattr(output, name)(*arguments) == getattr(model, name)(*arguments)
        assert state(output) == model.state
    assert output.take() == model.take()


def test_refusing_replaces_what_depends_on_rows_alone() -> None:
    output = Output()
    output.add(b"read.", False)
    output.push(b"event.")
    output.add(b"changed.", True)
    output.add(b"read.", False)
    output.add(b"changed too.", True)
    assert state(output) == (36, True, True)
    output.refuse(lambda response: b"no " + response)
    assert state(output) == (42, False, True)
    assert output.take_pushed() == b"event."
    assert output.take() == b"read.no changed.read.no changed too."
    assert state(output) == (0, False, False)


def test_a_refusal_that_raises_leaves_everything() -> None:
    def refuse(response: bytes) -> bytes:
        raise LookupError("a fault")

    output = Output()
    output.add(b"read.", False)
    output.add(b"changed.", True)
    with pytest.raises(LookupError, match="a fault"):
        output.refuse(refuse)
    assert state(output) == (13, True, False)
    assert output.take() == b"read.changed."


def test_what_is_answered_while_others_are_refused_comes_behind() -> None:
    output = Output()

    def refuse(response: bytes) -> bytes:
        output.add(b"late.", True)
        output.push(b"event.")
        return b"no."

    output.add(b"changed.", True)
    output.add(b"read.", False)
    output.refuse(refuse)
    assert state(output) == (19, True, True)
    assert output.take() == b"no.read.late.event."


def test_many_marks() -> None:
    output = Output()
    for number in range(1000):
        output.add(b"%d," % number, number % 3 == 0)
        if number % 7 == 0:
            output.push(b"!")
    handed = output.hand_over()
    assert state(output) == (0, False, False)
    assert handed.take_pushed() == b"!" * 143
    handed.refuse(lambda response: b"")
    expected = b"".join(b"%d," % number for number in range(1000) if number % 3)
    assert handed.take() == expected


def test_a_large_first_frame_is_sent_without_a_copy() -> None:
    output, frame = Output(), bytes(LARGE)
    output.add(frame, False)
    assert output.take() is frame
    output.add(frame, True)
    output.add(b"more", False)
    assert output.take() == frame + b"more"
    assert frame == bytes(LARGE)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda output: output.add(b"response"),
        lambda output: output.add("text", True),
        lambda output: output.push(bytearray(b"frame")),
        lambda output: output.push(None),
        lambda output: type(output)(1),
    ],
)
def test_what_is_no_frame(wrong: Callable[[Any], object]) -> None:
    output: Any = Output()
    output.add(b"response", True)
    with pytest.raises(TypeError):
        wrong(output)
    assert output.take() == b"response"


def test_a_refusal_that_is_no_frame() -> None:
    output: Any = Output()
    output.add(b"response", True)
    with pytest.raises(TypeError, match="a frame is bytes"):
        output.refuse(lambda response: None)
    assert state(output) == (8, True, False)
