"""Rows found by compiled code, and by searching with numpy: both as they are when read one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import XlogError
from iproto_server.storage.xlog import Block, RowEncoder, decode_rows, encode_row
from pyspark_tarantool.source.decode.log_rows import _CELLS, _NUMBERS, LogRows
from pyspark_tarantool.source.decode.packed import Buffer
from pyspark_tarantool.source.decode.row_scanner import _searched_rows, plain_rows, quick_rows, read_rows
from pyspark_tarantool.source.io.damage import DamageHandler
from pyspark_tarantool.source.options import OnDamaged
from tests.spark.source.logged import row_of
from tests.storage.files import TIMESTAMP, deletion, insertion, replacement, update, upsert

Find = Callable[[Buffer, int], LogRows | None]

FINDERS: Final = [_searched_rows, plain_rows]

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
space_ids = st.sampled_from([5, 200, 512, 70_000, 2**31 - 1])
requests = st.one_of(
    st.builds(insertion, space_ids, values, values),
    st.builds(replacement, space_ids, values),
    st.builds(deletion, space_ids, values),
    st.builds(
        lambda space_id, key, base: update(space_id, [key], [["=", base, key]], index_base=base),
        *(space_ids, values, st.integers(0, 1)),
    ),
    st.just(upsert(512, [1], [["=", 1, 1]])),
)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Rows, in transactions of one or more."""
    lsn = draw(st.sampled_from([1, 250, 300, 65530, 2**32 - 3, 2**33]))
    encoder = RowEncoder()
    pieces = []
    for transaction in draw(st.lists(st.lists(requests, min_size=1, max_size=3), min_size=1, max_size=5)):
        pieces.append(encoder.transaction(lsn, TIMESTAMP + lsn % 7, transaction))
        lsn += len(transaction)
    return b"".join(pieces)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Rows with a few bytes changed, or cut off."""
    data = bytearray(draw(logs()))
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


def told(rows: LogRows, items: int) -> list[Any]:
    """All that is known of rows."""
    numbers = [getattr(rows, name).tolist() for name in _NUMBERS]
    apart = [rows.taken_apart(getattr(rows, name), items) for name in ("key", "tuple")]
    return [
        *map(repr, numbers),  # NaN is equal to itself there
        *(getattr(rows, name).raws() for name in _CELLS),
        *(each.counts.tolist() for each in apart),
        *(each.item(number).raws() for each in apart for number in range(items)),
    ]


@pytest.mark.parametrize("find", FINDERS)
@given(payload=logs() | damaged(), items=st.integers(0, 3))
@example(payload=b"", items=1)
def test_rows_are_as_they_are_one_by_one(find: Find, payload: bytes, items: int) -> None:
    """Where rows are found at all: those that are not plain, or malformed, are read one by one."""
    rows = find(Buffer(payload), items)
    if rows is not None:
        assert told(rows, items) == told(LogRows.of(decode_rows(payload)), items)


class TestCompiledCode:
    def test_finds_rows_of_several_members_with_numbers_of_several_sizes(self) -> None:
        """For which numpy has to search in halves, down to single rows."""
        head = b"\x84\x00\x02\x02%c\x03%b\x04\xcb" + bytes(8)
        payload = b"".join(
            head % (member, lsn) + b"\x82\x10" + codec.pack(512 * member) + b"\x21\x92\x01\xa1x"
            for member, lsn in enumerate(
                [b"\x07", b"\xcc\x80", b"\xcd\x10\x00", b"\xce\x10\x00\x00\x00", b"\xcf" + bytes(8)]
            )
        )
        rows = plain_rows(Buffer(payload), 2)
        assert rows is not None
        assert rows.replica_id.tolist() == [0, 1, 2, 3, 4]
        assert rows.lsn.tolist() == [7, 0x80, 0x1000, 0x10000000, 0]
        assert rows.space_id.tolist() == [0, 512, 1024, 1536, 2048]
        assert told(rows, 2) == told(LogRows.of(decode_rows(payload)), 2)

    def test_finds_more_rows_than_it_expects_to(self) -> None:
        encoder = RowEncoder()
        payload = b"".join(
            encoder.transaction(1000 + number, TIMESTAMP, (deletion(1, 1),)) for number in range(5000)
        )
        assert len(payload) < 5000 * 35
        rows = plain_rows(Buffer(payload), 1)
        assert rows is not None
        assert told(rows, 1) == told(LogRows.of(decode_rows(payload)), 1)

    @pytest.mark.parametrize(
        "nested", [b"\x91" * 1025 + b"\x01", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xc6\xff"]
    )
    def test_leaves_odd_values_to_others(self, nested: bytes) -> None:
        """What is nested deep, or malformed."""
        row = RowEncoder().transaction(1000, TIMESTAMP, (insertion(512, 1),))
        assert row.endswith(b"\x91\x01")
        assert quick_rows(row, len(row), 1) is not None
        row = row[:-1] + nested
        assert quick_rows(row, len(row), 1) is None

    def test_looks_no_further_than_it_may(self) -> None:
        row = RowEncoder().transaction(1000, TIMESTAMP, (insertion(512, 1, "text"),))
        for size in range(-1, len(row) + 2):
            assert (quick_rows(row, size, 2) is None) == (size != len(row))
        assert quick_rows(row, len(row), -1) is None

    @pytest.mark.parametrize("arguments", [(), (b"",), (b"", 0), ("", 0, 0), (b"", "0", 0), (b"", 0, 2**70)])
    def test_refuses_what_it_is_not_made_for(self, arguments: tuple[Any, ...]) -> None:
        with pytest.raises((TypeError, OverflowError)):
            quick_rows(*arguments)


@pytest.mark.parametrize("lsn", [2**63, 2**64 - 1])
def test_numbers_that_exceed_63_bits_are_damage(lsn: int) -> None:
    rows = [encode_row(row_of(replacement(5, "x"), 1, number)) for number in (1, lsn)]
    damage = DamageHandler(OnDamaged.SKIP)
    blocks = [Block(0, 100, rows[0]), Block(100, 200, rows[1])]
    assert [found.lsn.tolist() for found in read_rows(blocks, "file", damage)] == [[1]]
    with pytest.raises(XlogError, match="exceeds 63 bits"):
        list(read_rows(blocks, "file", DamageHandler(OnDamaged.FAIL)))
