"""Java's messages reach stderr at once, without the line that all of Spark's Javas begin with."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_tarantool.java_messages import MessageFilter, filtered_stderr

NOISE = b"WARNING: Using incubator modules: jdk.incubator.vector\n"


def passed(*pieces: bytes) -> list[bytes]:
    messages = MessageFilter()
    return [messages.feed(piece) for piece in (*pieces, b"")]


def test_the_line_is_removed_wherever_it_stands() -> None:
    assert passed(b"Picked up: x\n" + NOISE + b"Exception\n" + NOISE) == [b"Picked up: x\nException\n", b""]


@pytest.mark.parametrize(
    "text",
    [
        b"WARNING: Using incubator modules: another.one\n",
        b"12:00 " + NOISE,
        b"WARNING: \n",
        b"\r[Stage 0:>   (0 + 1) / 1]",
        b"no end",
    ],
)
def test_other_lines_stay(text: bytes) -> None:
    assert passed(text) == [text, b""]


def test_an_incomplete_line_does_not_wait_for_its_end() -> None:
    assert passed(b"[Stage 0:>", b" (1 + 0)]") == [b"[Stage 0:>", b" (1 + 0)]", b""]


def test_what_began_like_the_line_appears_at_the_end() -> None:
    assert passed(b"WARNING: Us") == [b"", b"WARNING: Us"]


@given(st.lists(st.sampled_from([NOISE, b"WARNING: x\n", b"\rprogress", b"\n"])), st.data())
def test_pieces_do_not_matter(parts: list[bytes], data: st.DataObject) -> None:
    text = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    pieces = [text[start:end] for start, end in pairwise([0, *cuts, len(text)]) if end > start]
    assert b"".join(passed(*pieces)) == b"".join(passed(text))


def test_a_pipe_passes_messages_on(capfd: pytest.CaptureFixture[str]) -> None:
    writing = filtered_stderr()
    os.write(writing, NOISE + b"a message\n")
    os.close(writing)
    told = ""
    while "a message\n" not in told:  # pytest's timeout ends it
        told += capfd.readouterr().err
    assert told == "a message\n"
