"""The states of keys in compiled code equal those in Python."""

from __future__ import annotations

import sys
from array import array
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_tarantool import native
from pyspark_tarantool.source.decode.packed import Buffer, Cells
from pyspark_tarantool.source.state.key_states import (
    OTHER_TASK,
    KeyState,
    KeyStates,
    quick_operations,
    record,
)

KEYS = st.one_of(st.binary(max_size=2), st.binary(min_size=7, max_size=30))
STATES: st.SearchStrategy[KeyState] = st.sampled_from([b"a row", b"another", OTHER_TASK, None, []])


def in_python() -> KeyStates:
    """What compiled states are compared with."""
    made: KeyStates = native.in_python["KeyStates"]()
    return made


@st.composite
def recorded(draw: st.DrawFn) -> tuple[Cells, Cells, npt.NDArray[np.bool_]]:
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


@given(recorded())
def test_records_the_same_states(given: tuple[Cells, Cells, npt.NDArray[np.bool_]]) -> None:
    """Or none at all, if something is outside of the buffer."""
    keys, tuples, own = given
    found, expected = KeyStates(), in_python()
    found[b"before"] = expected[b"before"] = None
    is_recorded = found.record_cells(keys.buffer.data, *keys.places, *tuples.places, own)
    if is_recorded:
        record(expected, keys, tuples, own)
    assert dict(found.items()) == expected
    size = len(keys.buffer.data)
    are_inside = all(
        (start < 0 and not is_key) or 0 <= start <= end <= size
        for is_key, cells in ((True, keys), (False, tuples))
        for start, end in zip(cells.start.tolist(), cells.end.tolist(), strict=True)
    )
    assert is_recorded == are_inside


@given(recorded(), st.integers(0, 5))
def test_finds_the_same_keys(given: tuple[Cells, Cells, npt.NDArray[np.bool_]], known: int) -> None:
    keys, *_ = given
    raws = keys.raws()
    some = KeyStates()
    for raw in raws[:known]:
        if raw is not None:
            some[raw] = None
    touched = some.find_cells(keys.buffer.data, *keys.places)
    if touched is not None:
        assert [octet == 1 for octet in touched] == [raw in some for raw in raws]
    else:
        assert any(
            not 0 <= start <= end <= len(keys.buffer.data)
            for start, end in zip(keys.start.tolist(), keys.end.tolist(), strict=True)
        )


@given(st.lists(st.tuples(st.sampled_from(["set", "set", "pop", "get"]), KEYS, STATES)))
def test_does_what_a_dictionary_does(steps: list[tuple[str, bytes, KeyState]]) -> None:
    made, expected = KeyStates(), in_python()
    for what, key, state in steps:
        if what == "set":
            made[key] = expected[key] = state
        elif what == "pop":
            assert made.pop(key, state) is expected.pop(key, state)
        else:
            assert made.get(key, state) is expected.get(key, state)
        assert len(made) == len(expected)
        assert (key in made) == (key in expected)
    assert dict(made.items()) == expected
    assert sorted(made.rows()) == sorted(expected.rows())
    assert made.rows_size() == expected.rows_size()
    assert sorted(made.snapshot_keys()) == sorted(expected.snapshot_keys())


def cells_of(keys: list[bytes]) -> Cells:
    """Keys one behind the other."""
    ends = np.cumsum([0, *map(len, keys)])
    return Cells(Buffer(b"".join(keys)), ends[:-1], ends[1:])


@pytest.mark.parametrize("width", [4, 8, 9, 18], ids="{} bytes a key".format)
def test_keeps_many_keys_while_others_are_removed(width: int) -> None:
    """It grows and leaves out what was removed, time and again."""
    made, expected = KeyStates(), in_python()
    for begin in range(0, 50_000, 5_000):
        keys = [number.to_bytes(width, "big") for number in range(begin, begin + 7_000)]
        cells = cells_of(keys)
        own = np.arange(len(keys)) % 3 == 0
        assert made.record_cells(cells.buffer.data, *cells.places, *cells.places, own)
        record(expected, cells, cells, own)
        for key in keys[::2]:
            assert made.pop(key) == expected.pop(key)
    everything = cells_of([number.to_bytes(width, "big") for number in range(60_000)])
    found = made.find_cells(everything.buffer.data, *everything.places)
    assert found is not None
    assert [octet == 1 for octet in found] == [key in expected for key in everything.raws()]
    assert dict(made.items()) == expected
    assert sorted(made.rows()) == sorted(expected.rows())
    assert made.rows_size() == expected.rows_size()


def test_lets_go_of_what_it_had() -> None:
    """No reference to a state is left, and none is missing."""
    made: Any = KeyStates()
    state = [b"a row"]
    before = sys.getrefcount(state)
    for number in range(1000):
        made[b"%d" % number] = state
        made[b"%d" % number] = state
        assert made[b"%d" % number] is state
        assert made.get(b"%d" % number) is state
    assert sys.getrefcount(state) == before + 1000
    for number in range(500):
        assert made.pop(b"%d" % number) is state
    assert sys.getrefcount(state) == before + 500
    del made
    assert sys.getrefcount(state) == before


def test_refuses_what_it_is_not_made_for() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    own = np.ones(1, np.bool_)
    made: Any = KeyStates()
    wrong: list[tuple[Any, ...]] = [
        (),
        (b"", one, one, one, one),
        ("", one, one, one, one, own),
        (b"", one, two, one, one, own),
        (b"", one, one, one, two, own),
        (b"", one, one, one, one, np.ones(2, np.bool_)),
        (b"", one, one, one, one, None),
    ]
    for arguments in wrong:
        with pytest.raises((TypeError, ValueError)):
            made.record_cells(*arguments)
    assert not made.record_cells(b"", two, two, one, one, own)
    for arguments in [(), (b"", one), ("", one, one), (b"", one, two)]:
        with pytest.raises((TypeError, ValueError)):
            made.find_cells(*arguments)
    numbers = array("q", [0]) * 32
    right = (b"", 0, 512, 1, 0, 1, True, True, numbers, numbers, None, None, 0, False, None)
    assert made.fold(*right) is None
    for place, value in [
        (0, "text"),
        (1, 1),
        (1, -1),
        (2, None),
        (3, 0),
        (3, 3),
        (5, 0),
        (8, array("q", [0]) * 31),
        (9, None),
        (10, array("q")),
        (10, numbers),
    ]:
        with pytest.raises((TypeError, ValueError)):
            made.fold(*right[:place], value, *right[place + 1 :])
    given_wrong: list[tuple[Any, ...]] = [(), ("", [], 0, 0), (b"\x90", (), 0, 0), (b"\x90", [], "", 0)]
    for arguments in given_wrong:
        with pytest.raises(TypeError):
            quick_operations(*arguments)
    odd: Any
    for odd in ((1, 1, None, "", 0), (1, 1, "", b"\x90", 0), (1, 1, None, b"", 0), [1, 1, None, b"\x90", 0]):
        assert quick_operations(b"\x91\x01", [odd], 0, False) is None
    for odd in ((), (1,), ("", 1, None, b"\x90", 0)):
        with pytest.raises(TypeError):
            quick_operations(b"\x91\x01", [odd], 0, False)
    for wrong_key in ("text", None, 1, bytearray(b"key")):
        for use in (made.get, made.pop, made.__getitem__, made.__contains__):
            with pytest.raises(TypeError, match="a key is bytes"):
                use(wrong_key)
        with pytest.raises(TypeError, match="a key is bytes"):
            made[wrong_key] = None
    with pytest.raises(KeyError, match="missing"):
        made[b"missing"]
    made[b"key"] = None
    with pytest.raises(TypeError, match="pop"):
        del made[b"key"]
    for arguments in [(), (b"key", 1, 2)]:
        with pytest.raises(TypeError):
            made.get(*arguments)
    with pytest.raises(TypeError, match="no arguments"):
        type(made)({b"key": None})
    assert dict(made.items()) == {b"key": None}
