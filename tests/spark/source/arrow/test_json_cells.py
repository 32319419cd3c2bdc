"""JSON texts of packed values: compiled code writes what Python writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.arrow.json_text import json_array, json_cells, quick_json
from pyspark_tarantool.source.decode.packed import Buffer, Cells

TEXTS = (
    st.text()
    | st.text('\0\b\t\n\x1f\x7f"\\/ä')
    | st.sampled_from(["\udcff", "\udced\udca0\udc80", "x" * 300])
)
COMMON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(TEXTS, inner, max_size=20),
    max_leaves=10,
)
OTHERS = st.floats() | st.binary() | st.uuids() | st.dictionaries(st.integers(0, 9), st.none())


def cells_of(raws: list[bytes | None]) -> Cells:
    """Packed values in a buffer, with bytes between them."""
    starts, ends, data = [], [], b"\x93"
    for raw in raws:
        starts.append(-1 if raw is None else len(data))
        data += (raw or b"") + b"\x93"
        ends.append(-1 if raw is None else len(data) - 1)
    return Cells(Buffer(data), np.array(starts, np.int64), np.array(ends, np.int64))


def octets(array: pa.Array) -> list[bytes | None]:
    """The bytes of strings, which need not be UTF-8."""
    texts: list[bytes | None] = array.cast(pa.binary()).to_pylist()
    return texts


@given(st.lists(COMMON, max_size=10), st.booleans())
@example([[1] * 70000], False)
def test_common_values_are_written_as_python_writes_them(values: list[Any], is_missing: bool) -> None:
    """Missing ones, and nil, are null."""
    raws: list[bytes | None] = list(map(codec.pack, values))
    if is_missing:
        raws.append(None)
        values = [*values, None]
    cells = cells_of(raws)
    assert quick_json(cells.buffer.data, *cells.places) is not None
    assert octets(json_cells(cells)) == octets(
        json_array([codec.unpack(raw) if raw else None for raw in raws])
    )


@given(st.lists(COMMON | OTHERS | st.lists(OTHERS), max_size=5))
def test_other_values_are_left_to_python(values: list[Any]) -> None:
    cells = cells_of(list(map(codec.pack, values)))
    assert octets(json_cells(cells)) == octets(json_array(list(map(codec.unpack, map(codec.pack, values)))))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x92\x01",
        b"\xa3ab",
        b"\xdd\xff\xff\xff\xff",
        b"\xc1",
        b"\x01\x02",
        b"\x82\xa1a\x01\xa1a\x02",
        b"\x81\x01\x01",
        b"\xcd\x01",
        b"\xde\x00\x41" + b"".join(b"\xa1%c\x00" % number for number in range(65)),
        b"\x91" * 100 + b"\x90",
    ],
)
def test_malformed_and_odd_values_are_left_to_python(raw: bytes) -> None:
    """Keys that repeat, keys that are no strings, many keys, and what is nested deep."""
    cells = cells_of([b"\x90", raw])
    assert quick_json(cells.buffer.data, *cells.places) is None


def test_it_looks_no_further_than_it_may() -> None:
    raw = codec.pack([1, "text", {"key": 2**40}])
    for size in range(len(raw)):
        assert quick_json(raw, np.zeros(1, np.int64), np.full(1, size, np.int64)) is None
    assert quick_json(raw, np.zeros(1, np.int64), np.full(1, len(raw) + 1, np.int64)) is None


@pytest.mark.parametrize("arguments", [(), (b"", np.zeros(1, np.int64)), ("", *[np.zeros(1, np.int64)] * 2)])
def test_it_refuses_what_it_is_not_made_for(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        quick_json(*arguments)
