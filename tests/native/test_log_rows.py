"""The rows that wait for the log are the same in compiled code and in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server import native
from iproto_server.storage.log_rows import LogRows
from iproto_server.storage.xlog import RowType, encode_change
from iproto_server.storage.xlog.block import BLOCK_SIZE, HEAD_SIZE
from tests.plugins.profiles import examples

FULL = BLOCK_SIZE - HEAD_SIZE
"""The number of bytes that fill a block."""


def kinds(replica_id: int = 1, lsn: int = 0) -> list[Any]:
    """No rows yet, of each kind."""
    return [LogRows(replica_id, lsn), native.in_python["LogRows"](replica_id, lsn)]


sizes = st.integers(0, 3000) | st.sampled_from([FULL // 2, FULL - 1, FULL, FULL + 1, 3 * FULL])
appended = st.one_of(
    st.tuples(st.just("append"), st.builds(bytes, sizes), st.integers(0, 3)),
    st.tuples(
        st.just("append_change"),
        st.sampled_from([RowType.INSERT, RowType.REPLACE, RowType.DELETE]),
        st.sampled_from([1, 512, 2**31]),
        st.builds(bytes, sizes),
    ),
)


@examples(100)
@given(
    st.lists(appended, max_size=20),
    st.integers(1, 31),
    st.sampled_from([0, 126, 2**32 - 2, 2**40]),
    st.floats(),
)
def test_random_rows(rows: list[tuple[Any, ...]], replica_id: int, lsn: int, timestamp: float) -> None:
    told = []
    for waiting in kinds(replica_id, lsn):
        waiting.timestamp = timestamp
        states = []
        for name, *arguments in rows:
            getattr(waiting, name)(*arguments)
            states.append((len(waiting), waiting.lsn))
        blocks = waiting.blocks()
        assert sum(map(len, blocks)) == len(waiting)
        following = waiting.following()
        told.append((states, blocks, waiting.blocks(), len(following), following.lsn, bool(following)))
    assert told[0] == told[1]
    assert all(len(block) >= FULL for block in told[0][1][:-1])


def test_a_change_is_encoded_with_what_the_rows_have_in_common() -> None:
    for waiting in kinds(3, 41):
        waiting.timestamp = 1700000000.5
        waiting.append_change(RowType.REPLACE, 512, b"\x91\x01")
        following = waiting.following()
        following.append_change(RowType.DELETE, 513, b"\x91\x02")
        assert waiting.blocks() == [encode_change(RowType.REPLACE, 3, 42, 1700000000.5, 512, b"\x91\x01")]
        assert following.blocks() == [encode_change(RowType.DELETE, 3, 43, 0.0, 513, b"\x91\x02")]


@pytest.mark.parametrize("size", [10, 2000, 2 * BLOCK_SIZE])
def test_nothing_is_appended_to_what_is_being_written(size: int) -> None:
    for waiting in kinds():
        waiting.append(bytes(size), 1)
        blocks = waiting.blocks()
        with pytest.raises(RuntimeError, match="the rows are being written"):
            waiting.append(b"x", 1)
        with pytest.raises(RuntimeError, match="the rows are being written"):
            waiting.append_change(2, 512, b"\x90")
        assert waiting.blocks() == blocks == [bytes(size)]
        assert waiting.lsn == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rows: rows.append(b"rows"),
        lambda rows: rows.append("rows", 1),
        lambda rows: rows.append(b"rows", "one"),
        lambda rows: rows.append_change(2, 512),
        lambda rows: rows.append_change(2, 512, [1]),
        lambda rows: rows.append_change("INSERT", 512, b"\x90"),
        lambda rows: rows.append_change(2, None, b"\x90"),
        lambda rows: type(rows)(1),
        lambda rows: type(rows)(1, "x"),
    ],
)
def test_what_is_no_row(wrong: Callable[[Any], object]) -> None:
    rows: Any = LogRows(1, 7)
    with pytest.raises(TypeError):
        wrong(rows)
    assert (len(rows), rows.lsn, rows.blocks()) == (0, 7, [])
