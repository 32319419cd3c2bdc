"""Keys cut out of packed tuples are equal where the server's keys are."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.box.key.key_def import KeyDef
from iproto_server.box.key.key_part import KeyPart
from iproto_server.box.types.field_type import FieldType
from iproto_server.codec import msgpack as codec
from pyspark_tarantool.source.decode.packed import Buffer, Cells
from pyspark_tarantool.source.decode.packed_keys import PackedKeys, share_of, shares_of
from pyspark_tarantool.source.decode.packed_tuples import Tuples
from tests.plugins.profiles import examples

_LIMITS = [0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**63, 2**64 - 1]
_UNSIGNED = st.one_of(st.sampled_from(_LIMITS), st.integers(0, 2**64 - 1))
_INTEGER = st.one_of(_UNSIGNED, st.integers(-(2**63), -1), st.sampled_from([-1, -33, -129]))
_DOUBLE = st.one_of(st.floats(), st.sampled_from(_LIMITS).map(float), st.sampled_from([-0.0, -1.0, 1e300]))
_DECIMAL = st.sampled_from([Decimal(1), Decimal("1.0"), Decimal("0.5"), Decimal(-1), Decimal(2**64)])
_STRING = st.one_of(st.text(max_size=5), st.sampled_from(["x" * size for size in (31, 32, 255, 256, 65536)]))

VALUES: dict[FieldType, st.SearchStrategy[Any]] = {
    FieldType.UNSIGNED: _UNSIGNED,
    FieldType.INTEGER: _INTEGER,
    FieldType.NUMBER: st.one_of(_INTEGER, _DOUBLE, _DECIMAL),
    FieldType.DOUBLE: _DOUBLE,
    FieldType.STRING: _STRING,
    FieldType.UUID: st.integers(0, 5).map(lambda number: UUID(int=number)),
    FieldType.SCALAR: st.one_of(_INTEGER, _DOUBLE, _STRING, st.booleans()),
}


def longer(packed: bytes) -> list[bytes]:
    """Other ways to pack the same number or string."""
    value = codec.unpack(packed)
    ways = [packed]
    if type(value) is int and value >= 0:
        for head, size in ((0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8)):
            if value < 1 << 8 * size:
                ways.append(bytes((head,)) + value.to_bytes(size, "big"))
    elif type(value) is str:
        text = value.encode()
        for head, size in ((0xD9, 1), (0xDA, 2), (0xDB, 4)):
            if len(text) < 1 << 8 * size:
                ways.append(bytes((head,)) + len(text).to_bytes(size, "big") + text)
    elif type(value) is UUID:
        ways.append(b"\xc7\x10\x02" + value.bytes)
    return ways


@st.composite
def rows(draw: st.DrawFn, kind: FieldType) -> bytes:
    value = draw(st.sampled_from(longer(codec.pack(draw(VALUES[kind])))))
    return draw(st.sampled_from([b"\x92", b"\xdc\x00\x02"])) + value + b"\x07"


@pytest.mark.parametrize("kind", VALUES)
def test_rows_have_the_same_key_if_they_have_for_the_server(kind: FieldType) -> None:
    key_def = KeyDef([KeyPart(0, kind)])
    keys = PackedKeys(key_def)

    @examples(30)
    @given(st.lists(rows(kind), min_size=1, max_size=10))
    def check(raws: list[bytes]) -> None:
        found = list(map(keys.of_row, raws))
        for first, one in zip(raws, found, strict=True):
            for second, other in zip(raws, found, strict=True):
                is_same = key_def.extract(codec.unpack(first)) == key_def.extract(codec.unpack(second))
                assert (one == other) is is_same
        assert keys.of_rows(Tuples.of(raws, 2)) == found

    check()


def test_a_key_by_itself_is_that_of_its_row() -> None:
    for parts, row, key in (
        ([KeyPart(0, FieldType.UNSIGNED)], [300, "a"], [300]),
        ([KeyPart(1, FieldType.STRING)], [300, "a"], ["a"]),
        ([KeyPart(1, FieldType.STRING), KeyPart(0, FieldType.UNSIGNED)], [300, "a"], ["a", 300]),
        ([KeyPart(0, FieldType.STRING, path="name")], [{"name": "a"}], ["a"]),
    ):
        keys = PackedKeys(KeyDef(parts))
        assert keys.of_row(codec.pack(row)) == keys.of_key(codec.pack(key))


class TestShares:
    @given(st.lists((_STRING | _INTEGER).map(codec.pack), max_size=10), st.sampled_from([b"", bytes(20)]))
    def test_many_keys_have_the_shares_that_each_of_them_has(self, keys: list[bytes], before: bytes) -> None:
        ends = np.cumsum([len(before), *map(len, keys)])
        cells = Cells(Buffer(before, *keys), ends[:-1], ends[1:])
        assert shares_of(cells).tolist() == list(map(share_of, keys))

    @pytest.mark.parametrize("kind", [int, str, lambda number: UUID(int=number)])
    @pytest.mark.parametrize("tasks", [2, 3, 4, 16])
    def test_tasks_have_about_as_many_of_keys_that_count_up(self, kind: Any, tasks: int) -> None:
        shares = [share_of(codec.pack(kind(number))) % tasks for number in range(10_000)]
        for task in range(tasks):
            assert shares.count(task) == pytest.approx(10_000 / tasks, rel=0.1)
