"""A connection's output is the same in compiled code and in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import native
from iproto_server.server.connection.pending_output import Output
from tests.plugins.profiles import examples

LARGE = 65537
"""One byte more than what is copied into the output where it is the first."""


def outputs() -> list[Any]:
    """An empty output of each kind."""
    return [Output(), native.in_python["Output"]()]


def state(output: Any) -> tuple[object, ...]:
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
    told: list[list[object]] = [[], []]
    for said, output in zip(told, outputs(), strict=True):
        other = None
        for name, *arguments in taken:
            if name == "refuse":
                output.refuse(lambda response: b"refused" + response[:20])
            elif name == "hand_over":
                other = output.hand_over()
                said.append(state(other))
                other.add(b"more", True)
                other.refuse(lambda response: response[::-1])
                said.append(other.take())
            else:
                said.append(getattr(output, name)(*arguments))
            said.append(state(output))
        said.append(output.take())
    assert told[0] == told[1]


def test_refusing_replaces_what_rests_on_rows_alone() -> None:
    for output in outputs():
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

    for output in outputs():
        output.add(b"read.", False)
        output.add(b"changed.", True)
        with pytest.raises(LookupError, match="a fault"):
            output.refuse(refuse)
        assert state(output) == (13, True, False)
        assert output.take() == b"read.changed."


def test_what_is_answered_while_others_are_refused_comes_behind() -> None:
    for output in outputs():

        def refuse(response: bytes, output: Any = output) -> bytes:
            output.add(b"late.", True)
            output.push(b"event.")
            return b"no."

        output.add(b"changed.", True)
        output.add(b"read.", False)
        output.refuse(refuse)
        assert state(output) == (19, True, True)
        assert output.take() == b"no.read.late.event."


def test_many_marks() -> None:
    for output in outputs():
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
