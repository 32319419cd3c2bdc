"""The set of changed keys that tasks get."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.decode.packed import Buffer, Cells
from pyspark_tarantool.source.state.changed_keys import find_numbers, key_columns, keys_of, numbers_of

UNSIGNED = st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1))


def cells_of(values: list[Any]) -> Cells:
    packed = [codec.pack(value) for value in values]
    ends = np.cumsum([0, *map(len, packed)])
    return Cells(Buffer(*packed), ends[:-1], ends[1:])


@given(st.lists(st.binary(min_size=1, max_size=40), unique=True))
def test_keys_come_back(keys: list[bytes]) -> None:
    assert sorted(keys_of(key_columns(keys))) == sorted(keys)


@given(st.sets(UNSIGNED))
@example({0, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63 - 1})
def test_unsigned_integers_are_numbers(values: set[int]) -> None:
    numbers = numbers_of(key_columns([codec.pack(value) for value in values]))
    assert numbers is not None
    assert numbers.tolist() == sorted(values)


@pytest.mark.parametrize(
    "key", [codec.pack(2**63), codec.pack(-1), codec.pack(-200), codec.pack("text"), b"\xc1\x01", b"\xc1" * 7]
)
def test_other_keys_are_not(key: bytes) -> None:
    assert numbers_of(key_columns([codec.pack(1), codec.pack(1000), key])) is None


@given(st.sets(UNSIGNED), st.lists(UNSIGNED))
def test_finds_the_same_numbers_as_a_set(values: set[int], wanted: list[int]) -> None:
    wanted += sorted(values)[:3]
    found = find_numbers(np.array(sorted(values), np.int64), cells_of(wanted))
    assert found is not None
    assert found.tolist() == [value in values for value in wanted]


@pytest.mark.parametrize("value", [1.0, "text", None, 2**63])
def test_leaves_other_values_to_the_hash_table(value: Any) -> None:
    assert find_numbers(np.array([1], np.int64), cells_of([1, value])) is None
