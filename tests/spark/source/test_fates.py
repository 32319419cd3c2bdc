"""What has become of keys, noted and looked up by compiled code: as Python does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.native import IS_COMPILED
from spark.source import fates
from spark.source.fates import Fate, note, quick_fates, quick_touched
from spark.source.packed import Buffer, Cells

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled here")


@st.composite
def noted(draw: st.DrawFn) -> tuple[Cells, Cells, npt.NDArray[np.bool_]]:
    """Keys, the tuples that are there, and which of them are a task's own."""
    data = draw(st.binary(max_size=30))
    count = draw(st.integers(0, 10))
    places = st.tuples(*[st.integers(0, len(data))] * 2).map(sorted)
    outside = st.tuples(st.integers(-2, 60), st.integers(-2, 60))
    if draw(st.booleans()):
        outside = st.nothing()
    cells = []
    for none in (st.nothing(), st.just((-1, -1))):
        drawn = draw(st.lists(places | none | outside, min_size=count, max_size=count))
        start, end = np.array(drawn, np.int64).reshape(-1, 2).T
        cells.append(Cells(Buffer(data), start, end))
    own = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return cells[0], cells[1], np.array(own, np.bool_)


@given(noted())
def test_notes_the_same_fates(given: tuple[Cells, Cells, npt.NDArray[np.bool_]]) -> None:
    """Or none at all, if something is outside of the buffer."""
    keys, tuples, own = given
    found: dict[bytes, Fate] = {b"before": None}
    arguments = keys.buffer.data, *keys.places, *tuples.places, own
    is_noted = quick_fates(found, *arguments)
    expected: dict[bytes, Fate] = {b"before": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fates, "quick_fates", lambda *arguments: False)
        if is_noted:
            note(expected, keys, tuples, own)
    assert found == expected
    size = len(keys.buffer.data)
    are_inside = all(
        (start < 0 and not is_key) or 0 <= start <= end <= size
        for is_key, cells in ((True, keys), (False, tuples))
        for start, end in zip(cells.start.tolist(), cells.end.tolist(), strict=True)
    )
    assert is_noted == are_inside


@given(noted(), st.integers(0, 5))
def test_finds_the_same_keys(given: tuple[Cells, Cells, npt.NDArray[np.bool_]], known: int) -> None:
    keys, *_ = given
    raws = keys.raws()
    some: dict[bytes, Fate] = {raw: None for raw in raws[:known] if raw is not None}
    touched = quick_touched(some, keys.buffer.data, *keys.places)
    if touched is not None:
        assert [octet == 1 for octet in touched] == [raw in some for raw in raws]
    else:
        assert any(
            not 0 <= start <= end <= len(keys.buffer.data)
            for start, end in zip(keys.start.tolist(), keys.end.tolist(), strict=True)
        )


def test_refuses_what_it_is_not_made_for() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    own = np.ones(1, np.bool_)
    wrong: list[tuple[Any, ...]] = [
        (),
        ({}, b"", one, one, one, one),
        ([], b"", one, one, one, one, own),
        ({}, "", one, one, one, one, own),
        ({}, b"", one, two, one, one, own),
        ({}, b"", one, one, one, two, own),
        ({}, b"", one, one, one, one, np.ones(2, np.bool_)),
        ({}, b"", one, one, one, one, None),
    ]
    for arguments in wrong:
        with pytest.raises((TypeError, ValueError)):
            quick_fates(*arguments)
    assert not quick_fates({}, b"", two, two, one, one, own)
    wrong = [(), ({}, b"", one), ([], b"", one, one), ({}, "", one, one), ({}, b"", one, two)]
    for arguments in wrong:
        with pytest.raises((TypeError, ValueError)):
            quick_touched(*arguments)
