"""Random operations result in a tuple or a BoxError, the same on each code path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.update import apply_update, apply_upsert, execute, operations_from_python, parse_update
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError

NAMES = {"id": 0, "m": 1, "a": 2, "x.y": 3}

keys = st.sampled_from(["a", "ab", "b", "x y", ""]) | st.integers(-1, 3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(width=32)
    | st.floats()
    | st.decimals(-(10**20), 10**20, places=5)
    | st.sampled_from(["", "text", b"bytes"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)
rows = st.tuples(
    st.integers(0, 9),
    st.dictionaries(keys, st.dictionaries(keys, values, max_size=3) | values, max_size=4),
    st.lists(values, max_size=4),
    values,
).map(list)

steps = st.sampled_from(
    [".a", ".ab", '["a"]', "['ab']", ".b", "[1]", "[2]", "[3]", '["x y"]', "[*]", "[0]", ".", "\udcff"]
)
paths = st.builds(
    lambda first, rest: first + "".join(rest),
    st.sampled_from(["m", "a", "[2]", "[3]", "[4]", '["m"]', "", "z"]),
    st.lists(steps, max_size=4),
)
fields = paths | st.integers(-5, 6) | st.sampled_from([2**31, -(2**31), 2**40, None, 1.5, "x.y", "id"])
integers = st.sampled_from([-(2**31), -(2**31) + 1, -3, -1, 0, 1, 2, 100, 2**31 - 1, 2**32 + 1, 2**63])
operations = st.lists(
    st.tuples(st.sampled_from("=!#+-&|^"), fields, values | integers).map(list)
    | st.tuples(st.just("#"), fields, st.just(1)).map(list)
    | st.tuples(st.just(":"), fields, integers, integers, scalars).map(list)
    | st.lists(values, max_size=6),
    max_size=7,
)

Outcome = bytes | tuple[int, str]


def is_array(raw: bytes) -> bool:
    return codec.is_valid(raw) and isinstance(codec.unpack(raw), list)


def outcome(request: list[Any], row: bytes, *, python: bool = False) -> Outcome:
    try:
        if python:
            return apply_update(operations_from_python(request, NAMES), row)
        return apply_update(parse_update(codec.pack(request), NAMES), row)
    except BoxError as error:
        return error.code, error.message


@given(operations, rows)
def test_a_tuple_or_an_error(request: list[Any], row: list[Any]) -> None:
    result = outcome(request, codec.pack(row))
    assert isinstance(result, tuple) or is_array(result)


@given(operations, rows)
def test_an_upsert_succeeds_once_its_operations_are_read(request: list[Any], row: list[Any]) -> None:
    skipped: list[BoxError] = []
    try:
        parsed = parse_update(codec.pack(request), NAMES)
    except BoxError:
        return
    raw = codec.pack(row)
    result = apply_upsert(parsed, raw, on_skipped=skipped.append)
    assert is_array(result)
    if not skipped:
        assert result == apply_update(parsed, raw)


@given(operations, rows)
def test_operations_from_python_do_the_same(request: list[Any], row: list[Any]) -> None:
    raw = codec.pack(row)
    assert outcome(request, raw, python=True) == outcome(request, raw)


flat = st.lists(
    st.tuples(st.sampled_from("=+-&|^"), st.integers(0, 4) | st.sampled_from(["m", "id"]), scalars).map(list),
    max_size=4,
)


@given(flat, rows)
def test_the_short_ways_lead_to_the_same(request: list[Any], row: list[Any]) -> None:
    row[1:3] = [5, "text"]
    raw = codec.pack(row)
    short = outcome(request, raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "apply_request", lambda *_: None)
        assert outcome(request, raw) == short


@given(st.binary(max_size=40), rows)
def test_bytes_that_are_no_operations(request: bytes, row: list[Any]) -> None:
    if not codec.is_valid(request):
        return
    try:
        result = apply_update(parse_update(request, NAMES), codec.pack(row))
    except BoxError:
        return
    assert is_array(result)
