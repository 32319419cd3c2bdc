"""LogRows: the rows that wait for the log, against rows packed by the library msgpack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.native._native import LogRows
from iproto_server.storage.xlog import RowType
from iproto_server.storage.xlog.block import BLOCK_SIZE, HEAD_SIZE
from tests.plugins.profiles import examples
from tests.storage.files import Request, deletion, insertion

FULL = BLOCK_SIZE - HEAD_SIZE
"""The number of bytes that fill a block."""


def packed(replica_id: int, lsn: int, timestamp: float, requests: Sequence[Request]) -> bytes:
    """Pack a transaction's rows; `lsn` is that of the first one."""
    rows = []
    for number, (kind, body) in enumerate(requests):
        head: dict[int, Any] = {0: int(kind), 2: replica_id, 3: lsn + number, 4: timestamp}
        if len(requests) > 1:
            head[8] = number
        if len(requests) > 1 and number == len(requests) - 1:
            head[9] = 1
        rows.append(msgpack.packb({key: value for key, value in head.items() if value or key > 4}) + body)
    return b"".join(rows)


sizes = st.integers(0, 3000) | st.sampled_from([FULL // 2, FULL - 40, FULL - 26, FULL, 3 * FULL])
requests = st.tuples(st.sampled_from(list(RowType)), st.builds(bytes, sizes))


@examples(100)
@given(
    st.lists(st.lists(requests, min_size=1, max_size=4), max_size=12),
    st.integers(1, 31),
    st.sampled_from([0, 126, 2**32 - 2, 2**40, 2**63]),
    st.floats(),
)
def test_rows_are_numbered_and_cut_into_blocks(
    transactions: list[list[Request]], replica_id: int, lsn: int, timestamp: float
) -> None:
    rows = LogRows(replica_id, lsn)
    rows.timestamp = timestamp
    expected, last = [b""], lsn
    for requests in transactions:
        rows.append(requests)
        if len(expected[-1]) >= FULL:
            expected.append(b"")
        expected[-1] += packed(replica_id, last + 1, timestamp, requests)
        last += len(requests)
        assert (rows.lsn, len(rows)) == (last, sum(map(len, expected)))
    blocks = rows.blocks()
    assert blocks == rows.blocks() == [block for block in expected if block]
    following = rows.following()
    assert (following.lsn, following.local_lsn, len(following), following.blocks()) == (last, 0, 0, [])


@pytest.mark.parametrize("short", [-1, 0, 1])
def test_a_block_ends_as_soon_as_it_is_full(short: int) -> None:
    rows = LogRows(1, 0)
    overhead = len(packed(1, 1, 0.0, [insertion(512, bytes(300))])) - 300
    for _ in range(3):
        rows.append([insertion(512, bytes(FULL - overhead - 2 - short))])
    sizes = [len(block) for block in rows.blocks()]
    assert sizes == ([FULL - short] * 3 if short <= 0 else [2 * (FULL - short), FULL - short])


def test_what_follows_has_no_time_yet() -> None:
    rows = LogRows(3, 41, local_lsn=7)
    rows.timestamp = 1700000000.5
    rows.append([insertion(512, 1)])
    following = rows.following()
    assert (following.lsn, following.local_lsn) == (42, 7)
    following.append([deletion(513, 2)])
    assert rows.blocks() == [packed(3, 42, 1700000000.5, [insertion(512, 1)])]
    assert following.blocks() == [packed(3, 43, 0.0, [deletion(513, 2)])]


@pytest.mark.parametrize("size", [10, 2000, 2 * BLOCK_SIZE])
def test_nothing_is_appended_to_rows_that_are_being_written(size: int) -> None:
    rows = LogRows(1, 0)
    rows.append([(RowType.INSERT, bytes(size))])
    blocks = rows.blocks()
    with pytest.raises(RuntimeError, match="the rows are being written"):
        rows.append([insertion(512, 1)])
    assert rows.blocks() == blocks == [packed(1, 1, 0.0, [(RowType.INSERT, bytes(size))])]
    assert rows.lsn == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rows: rows.append(),
        lambda rows: rows.append(5),
        lambda rows: rows.append([b"rows"]),
        lambda rows: rows.append([(2,)]),
        lambda rows: rows.append([(2, "body")]),
        lambda rows: rows.append([(2, b"\x80"), ("INSERT", b"\x80")]),
        lambda rows: rows.append([(-2, b"\x80")]),
        lambda rows: type(rows)(1),
        lambda rows: type(rows)(1, "x"),
        lambda rows: type(rows)(1, -1),
        lambda rows: type(rows)(1, 1, local_lsn=None),
        lambda rows: type(rows)(2**64, 1),
    ],
)
def test_wrong_arguments_append_nothing(wrong: Callable[[Any], object]) -> None:
    rows = LogRows(1, 7)
    with pytest.raises((TypeError, OverflowError)):
        wrong(rows)
    assert (len(rows), rows.lsn, rows.blocks()) == (0, 7, [])
