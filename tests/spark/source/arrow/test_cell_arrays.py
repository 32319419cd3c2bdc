"""Cells taken out of buffers, and as Arrow arrays: by compiled code, and by Python and numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.arrow import cell_arrays
from pyspark_tarantool.source.arrow.cell_arrays import (
    integers,
    quick_integers,
    quick_strings,
    strings_of,
    texts,
)
from pyspark_tarantool.source.decode import packed as packed_values
from pyspark_tarantool.source.decode.packed import Buffer, Cells, quick_raws

MAKERS = [
    partial(integers, arrow=pa.int64()),
    partial(integers, arrow=pa.int16()),
    partial(integers, arrow=pa.decimal128(20)),
    partial(strings_of, arrow=pa.string()),
    partial(strings_of, arrow=pa.binary()),
    texts,
]
numbers = st.integers(-(2**63), 2**64 - 1) | st.integers(-200, 70_000)
strings = st.text() | st.text('ab"\\\x1f\x7f é', max_size=300) | st.just("x" * 70_000)
kinds = [numbers, strings, st.binary() | st.just(b"x" * 70_000), numbers | strings | st.booleans()]
packed = st.one_of([st.lists(st.none() | kind.map(codec.pack), max_size=20) for kind in kinds])
forms = [
    "cc01",
    "cdffff",
    "ce00000001",
    "cf7fffffffffffffff",
    "d0ff",
    "d18000",
    "d2ffffffff",
    "d38000000000000000",
]


def cells_of(raws: Sequence[bytes | None]) -> Cells:
    """Cells of packed values, missing where these are None, with something before and behind each."""
    data = b"\x01"
    places = []
    for raw in raws:
        places.append((-1, -1) if raw is None else (len(data), len(data) + len(raw)))
        data += b"" if raw is None else raw + b"\xa1"
    start, end = np.array(places, np.int64).reshape(-1, 2).T
    return Cells(Buffer(data), np.ascontiguousarray(start), np.ascontiguousarray(end))


@pytest.mark.parametrize("make", MAKERS)
@given(raws=packed)
@example(raws=[bytes.fromhex(form) for form in forms] + [b"\x7f", b"\xe0", None, b"\xc0"])
@example(raws=[b"\xd9\x01x", b"\xda\x00\x02xy", b"\xdb\x00\x00\x00\x01z", b"\xa0", b"\xa3\xff\xfe\xfd", None])
@example(raws=[b"\xc4\x01x", b"\xc5\x00\x02xy", b"\xc6\x00\x00\x00\x01z", b"\xc4\x00", None, b"\xc0"])
@example(raws=[None, None])
def test_compiled_code_makes_the_same_of_them(
    make: Callable[[Cells], pa.Array | None], raws: list[bytes | None]
) -> None:
    found = make(cells_of(raws))
    with (
        patch.object(cell_arrays, "quick_integers", lambda *arguments: None),
        patch.object(cell_arrays, "quick_strings", lambda *arguments: None),
    ):
        expected = make(cells_of(raws))
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.type, found.null_count) == (expected.type, expected.null_count)
        assert found.equals(expected)
        found.validate()


@given(packed)
def test_compiled_code_takes_out_the_same_bytes(raws: list[bytes | None]) -> None:
    assert cells_of(raws).raws() == raws
    with patch.object(packed_values, "quick_raws", lambda *arguments: None):
        assert cells_of(raws).raws() == raws


@pytest.mark.parametrize(("start", "end"), [(9, 10), (2**60, 2**60), (0, 10), (0, -1), (-(2**63), 0)])
def test_compiled_code_looks_at_nothing_outside(start: int, end: int) -> None:
    """Wherever offsets say that a value is."""
    places = np.array([start], np.int64), np.array([end], np.int64)
    for kind in ("s", "b", "q"):
        found = quick_strings(b"\xa3abc", *places, kind)
        assert found == ((b"\xfe", bytes(8), b"") if start < 0 else None)
    assert quick_raws(b"\xa3abc", *places) == ([None] if start < 0 else None)
    for data in (b"\xcf\0\0\0", b"\xcd\0", b"\xd0"):
        assert quick_integers(data, np.array([0], np.int64)) is None


@pytest.mark.parametrize(
    "arguments",
    [(), (b"",), ("", np.zeros(1, np.int64)), (b"", None), (b"", np.zeros((2, 2), np.int64)[:, 0])],
)
def test_compiled_code_refuses_what_it_is_not_made_for(arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        quick_integers(*arguments)
    with pytest.raises((TypeError, ValueError, BufferError)):
        quick_strings(*arguments)
    with pytest.raises((TypeError, ValueError, BufferError)):
        quick_raws(*arguments)
    with pytest.raises(ValueError, match="starts and ends must be equally long"):
        quick_strings(b"", np.zeros(1, np.int64), np.zeros(2, np.int64), "s")
    with pytest.raises(ValueError, match="starts and ends must be equally long"):
        quick_raws(b"", np.zeros(1, np.int64), np.zeros(2, np.int64))
