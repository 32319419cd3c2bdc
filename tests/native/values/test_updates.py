"""Compiled code applies the operations of a request as Python does, or leaves them to Python."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.box.update import (
    NO_DOUBLES,
    Doubles,
    Operations,
    apply_update,
    apply_upsert,
    execute,
    operations_from_python,
    parse_update,
)
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.native._native import apply_request
from tests.native.outcomes import damaged

NAMES = {"id": 0, "one": 1, "two": 2, "é": 3, "\udcff": 4, "[1]": 2}
EDGES = [
    *(
        0,
        1,
        2,
        31,
        32,
        33,
        127,
        128,
        129,
        255,
        256,
        257,
        65535,
        65536,
        65537,
        2**31 - 1,
        2**31,
        2**32 - 1,
        2**32,
    ),
    *(2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1),
]
integers = (
    st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from(EDGES)
    | st.sampled_from(EDGES[:-5]).map(lambda number: -number)
    | st.integers(-40, 40)
)
FLOATS = [
    0.0,
    -0.0,
    0.1,
    1.5,
    1e300,
    -1e300,
    3.4028234663852886e38,
    3.5e38,
    5e-324,
    math.inf,
    -math.inf,
    math.nan,
]
floats = st.floats() | st.floats(width=32) | st.sampled_from(FLOATS)
texts = st.text(max_size=40) | st.sampled_from(
    ["", "x" * 31, "x" * 32, "x" * 255, "x" * 256, "é\udcff", "y" * 70_000]
)
scalars = integers | floats | texts | st.none() | st.booleans() | st.binary(max_size=3)
values = st.recursive(
    scalars | st.decimals(-(10**20), 10**20, places=5) | st.uuids(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | integers, inner, max_size=3),
    max_leaves=5,
)


def packed_signed(number: int) -> codec.Raw:
    """Pack a positive number as a signed one."""
    return codec.Raw(b"\xd2" + number.to_bytes(4, "big"))


numbers = integers | floats | st.integers(0, 2**31 - 1).map(packed_signed) | st.decimals(-9, 9, places=2)
fields = (
    st.integers(-7, 8)
    | st.integers(0, 4)
    | st.sampled_from([*NAMES, "none", "two[1]", "two.a", "[2]"])
    | st.sampled_from([2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**64 - 1, None, True, 1.0, [0]])
)
counts = st.integers(0, 4) | st.sampled_from([2**32, 2**32 + 1, -1, None])
offsets = st.integers(-8, 8) | st.sampled_from([-(2**31), 2**31 - 1, 2**31, None, 1.0])
operations = st.lists(
    st.tuples(st.sampled_from("=!"), fields, values).map(list)
    | st.tuples(st.sampled_from("+-"), fields, numbers).map(list)
    | st.tuples(st.sampled_from("&|^"), fields, numbers).map(list)
    | st.tuples(st.just("#"), fields, st.integers(0, 4) | st.sampled_from([2**32, 2**32 + 1, -1, None])).map(
        list
    )
    | st.tuples(st.just(":"), fields, offsets, offsets, texts | st.binary(max_size=3)).map(list)
    | st.lists(values, max_size=6),
    max_size=5,
) | st.lists(
    st.tuples(st.sampled_from("=!+-&|^#"), st.integers(0, 4), st.integers(1, 9)).map(list), max_size=40
)
packed_operations = operations.map(codec.pack)
rows = st.lists(scalars | numbers | texts, max_size=6) | st.lists(values, max_size=20)
places = st.sets(st.sampled_from([(0,), (1,), (3,), (2, "a"), (70,), (2, None, 0)]), max_size=3).map(
    lambda found: frozenset[Any](found)
) | st.just(NO_DOUBLES)
index_bases = st.sampled_from([0, 0, 1, 1, 2, 2**31 - 1, 2**31, 2**32 - 1])

Outcome = bytes | tuple[int, str]


def in_python(operations: Operations, row: bytes, doubles: Doubles) -> Outcome:
    """Apply operations without compiled code, as UPDATE, and as UPSERT if they succeed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "apply_request", lambda *_: None)
        try:
            result = apply_update(operations, row, doubles)
        except BoxError as error:
            return error.code, error.message
        assert apply_upsert(operations, row, doubles) == result
    return result


def check(request: bytes, row: bytes, base: int, doubles: Doubles) -> bytes | None:
    """Compare what compiled code makes of a row, if it does, with what Python does."""
    parsed = parse_update(request, NAMES, base, deferred=True)
    if parsed.fault is not None:
        return None
    assert parsed.request is not None
    found = apply_request(parsed.request, row, doubles)
    if found is not None:
        assert found == in_python(parsed, row, doubles)
        assert found == apply_update(parsed, row, doubles) == apply_upsert(parsed, row, doubles)
    return found


@given(packed_operations, rows, index_bases, places)
@example(codec.pack([["+", 0, 1]] * 32), [1], 0, NO_DOUBLES)
def test_compiled_code_does_as_python_does(
    request: bytes, row: list[Any], base: int, doubles: Doubles
) -> None:
    check(request, codec.pack(row), base, doubles)


@given(damaged(packed_operations), rows, st.integers(0, 1))
def test_operations_that_are_damaged(request: bytes, row: list[Any], base: int) -> None:
    if codec.is_valid(request):
        check(request, codec.pack(row), base, NO_DOUBLES)


unsigned = st.integers(0, 2**64 - 1) | st.sampled_from(EDGES)
small = st.integers(-9, 9)
one_of_each = st.tuples(
    st.tuples(st.sampled_from("+-"), st.sampled_from([0, "id", -6]), small | st.floats(-9, 9)),
    st.tuples(st.sampled_from("&|^"), st.sampled_from([1, "one", -5]), unsigned),
    st.tuples(st.just(":"), st.sampled_from([2, "two", -4]), st.integers(0, 9), small, texts),
    st.tuples(st.just("="), st.sampled_from([3, "é", -3]), values),
)
plain = st.builds(
    lambda places, each: [each[place] for place in places],
    st.lists(st.integers(0, 3), min_size=1, unique=True),
    one_of_each,
)
moves = st.lists(
    st.tuples(st.just("!"), st.sampled_from([6, -1, 4, 5]), values).map(list)
    | st.tuples(st.just("#"), st.just(4), st.integers(1, 3)).map(list),
    max_size=1,
)


@given(plain, moves, st.integers(0, 99), unsigned, texts, places)
def test_plain_operations_are_not_left_to_python(
    first: list[Any], second: list[Any], number: int, bits: int, text: str, doubles: Doubles
) -> None:
    row = codec.pack([number, bits, text, None, [1], {2: 3}])
    assert check(codec.pack(first + second), row, 0, doubles) is not None


@pytest.mark.parametrize("opcode", ["+", "-"])
@pytest.mark.parametrize("number", EDGES + [-each for each in EDGES[:-5]])
def test_sums_at_the_edges(opcode: str, number: int) -> None:
    for argument in (1, 2**63, -(2**63), 2**64 - 1, 1.0):
        request = codec.pack([[opcode, 0, argument]])
        row = codec.pack([number])
        found = check(request, row, 0, NO_DOUBLES)
        if found is None:
            assert isinstance(in_python(parse_update(request, NAMES), row, NO_DOUBLES), tuple)


@pytest.mark.parametrize("size", [0, 31, 32, 255, 256, 65535, 65536])
def test_splices_of_every_size(size: int) -> None:
    for paste in ("", "x", "x" * 300):
        for cut in (0, 1, -1):
            request = codec.pack([[":", 0, size // 2, cut, paste]])
            assert check(request, codec.pack(["y" * size]), 0, NO_DOUBLES) is not None


@pytest.mark.parametrize("count", [0, 15, 16, 17, 65535, 65536])
def test_rows_of_every_size(count: int) -> None:
    row = codec.pack([7] * count)
    for opcode, field, argument in (("!", -1, 1), ("=", count, 1), ("#", 0, 1), ("+", -1, 1)):
        found = check(codec.pack([[opcode, field, argument]]), row, 0, NO_DOUBLES)
        assert found is not None or (not count and opcode in "#+")


def test_a_double_moves_to_another_field() -> None:
    row = codec.pack([1, 1.5, 2])
    for operations_given, doubles in (
        ([["+", 1, 1], ["!", 1, None]], {(1,)}),
        ([["+", 1, 1], ["!", 1, None]], {(2,)}),
        ([["+", 1, 1], ["#", 0, 1]], {(0,)}),
    ):
        assert check(codec.pack(operations_given), row, 0, frozenset(doubles)) is not None


def test_doubles_beyond_what_is_known() -> None:
    row = codec.pack([1.5] * 80)
    assert check(codec.pack([["+", 70, 1]]), row, 0, frozenset({(70,)})) is None
    assert check(codec.pack([["+", 70, 1]]), row, 0, frozenset({(7,)})) is not None


def test_operations_of_a_request_keep_it() -> None:
    request = codec.pack([["=", 1, "a text that is only here"]])
    assert parse_update(request, NAMES).request == (request, NAMES, 0)
    assert operations_from_python([("=", 1, 5)], NAMES).request is None
