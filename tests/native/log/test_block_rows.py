"""BlockRows: the rows of a block, against those that the library msgpack decodes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.native._native import BlockRows
from iproto_server.storage.xlog import Row, RowEncoder, RowType, decode_rows, encode_row, insert_body
from iproto_server.storage.xlog.decoder import change_of
from tests.codec.test_msgpack import values
from tests.native.log.reference_rows import reference_rows
from tests.plugins.profiles import examples
from tests.storage.files import TIMESTAMP, deletion, insertion, replacement, update, upsert

numbers = st.integers(0, 9) | st.integers(0, 2**64 - 1) | st.sampled_from([-1, 2**63, 1.5, None, "x", True])
heads = st.dictionaries(
    st.sampled_from([0, 2, 3, 4, 7, 8, 9]) | st.integers(0, 300) | st.text(max_size=2),
    numbers | st.floats(),
    max_size=6,
)
usual_heads = st.fixed_dictionaries(
    {0: st.sampled_from([2, 3, 4, 5, 9, 12, 200]), 2: st.integers(0, 31), 3: st.integers(0, 2**40)},
    optional={
        4: st.floats(),
        7: st.integers(0, 1),
        8: st.integers(0, 3) | st.integers(0, 2**64 - 1),
        9: st.integers(0, 7),
    },
)
bodies = st.dictionaries(
    st.sampled_from([0x10, 0x11, 0x15, 0x20, 0x21, 0x28]) | st.integers(0, 300),
    st.lists(values, max_size=3) | st.integers(0, 600) | values,
    max_size=5,
)
usual_bodies = st.fixed_dictionaries(
    {0x10: st.integers(0, 600)},
    optional={key: st.lists(values, max_size=3) for key in (0x20, 0x21, 0x28)}
    | {key: st.integers(0, 3) for key in (0x11, 0x15)},
)
rows = st.tuples(heads | usual_heads, bodies | usual_bodies | values).map(
    lambda row: b"".join(map(codec.pack, row))
)


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    """Bytes of which some may be others, or missing."""
    data = bytearray(draw(whole))
    for place, change in draw(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3)):
        if data and change:
            data[place % len(data)] ^= change
        else:
            del data[place % (len(data) + 1) :]
    return bytes(data)


@examples(500)
@given(damaged(st.lists(rows, max_size=4).map(b"".join)) | st.binary(max_size=60))
@example(b"\x82\x00\x02\x08\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x80")
@example(b"\x81\x00\x0c\x81\x00\x0c\x81\x00\x02")
@example(b"\xde\x00\x01\x00\x04\xdf\x00\x00\x00\x03\x10\x05\x28\x01\x21\x90")
def test_any_bytes_are_rows_or_an_error(payload: bytes) -> None:
    try:
        expected = reference_rows(payload)
    except ValueError:
        with pytest.raises(ValueError, match=r"^malformed row at \d+ of the block's rows: "):
            BlockRows(payload)
        return
    # Compared by their representations: a time that is no number does not equal itself.
    assert repr(decode_rows(payload)) == repr(expected)
    found = BlockRows(payload)
    assert list(found) == list(map(change_of, expected))
    assert len(found) == len(expected)
    assert found.is_whole == (not expected or expected[-1].is_last)
    assert found.tuples() == [
        (row.space_id, row.tuple_raw)
        for row in expected
        if row.space_id is not None and row.tuple_raw is not None
    ]


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (b"\x00", "at 0 .*: it has no header"),
        (b"\x81\x00\x0c\x90", "at 3 .*: it has no header"),
        (b"\x81\x00", "at 0 .*: a field of its header is not an unsigned number"),
        (b"\x81\x00\xff\x80", "at 0 .*: a field of its header is not an unsigned number"),
        (b"\x82\x00\x02\x04\x01\x80", "at 0 .*: the time in its header is not a float"),
        (b"\x82\x00\x02\x50\xc1\x80", "at 0 .*: the block ends within it, or it is no MessagePack"),
        (b"\x81\x00\x02\x90", "at 0 .*: it has no body"),
        (b"\x81\x00\x02\x81\x10", "at 0 .*: a field of its body is not an unsigned number"),
        (b"\x81\x00\x02\x82\x10\xd0\x05\x21\x90", "at 0 .*: a field of its body is not an unsigned number"),
        (b"\x81\x00\x0c\x81\x00\x02\x82\x10\x01\x21\x01", "at 3 .*: a field of its body is not an array"),
        (b"\x81\x00\x02\x81\x21\x92\x01", "at 0 .*: the block ends within it"),
    ],
)
def test_an_error_tells_the_place_and_the_fault(rows: bytes, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^malformed row {fault}"):
        BlockRows(rows)


def test_a_sequence_of_changes() -> None:
    requests = [insertion(512, 1), update(512, [1], [["=", 1, 2]], 1), deletion(512, 1), upsert(513, [1], [])]
    rows = BlockRows(RowEncoder(3).transaction(7, TIMESTAMP, requests))
    assert rows[0] == (RowType.INSERT, 7, 3, 512, b"\x91\x01", None, None, 0, 0)
    assert rows[1] == (RowType.UPDATE, 8, 3, 512, None, b"\x91\x01", b"\x91\x93\xa1=\x01\x02", 0, 1)
    assert rows[-1] == (RowType.UPSERT, 10, 3, 513, b"\x91\x01", None, b"\x90", 0, 0)
    assert [lsn for _, lsn, *_ in rows] == [7, 8, 9, 10]
    for position in (4, -5):
        with pytest.raises(IndexError):
            rows[position]


def test_a_block_may_end_within_a_transaction() -> None:
    payload = RowEncoder().transaction(70_000, TIMESTAMP, [insertion(512, 1), insertion(512, 1)])
    assert BlockRows(payload).is_whole
    assert not BlockRows(payload[: payload.index(b"\x86\x00\x02")]).is_whole
    assert BlockRows(b"").is_whole


def test_runs_of_tuples_in_one_space() -> None:
    requests = [
        insertion(512, 1),
        (RowType.NOP, b""),
        replacement(512, 2),
        insertion(513, 3),
        (RowType.RAFT, b"\x80"),
        insertion(512, 4),
        (RowType.RAFT, b"\x80"),
    ]
    rows = BlockRows(RowEncoder().transaction(1, TIMESTAMP, requests))
    assert rows.run(0) == (512, [b"\x91\x01", b"\x91\x02"], 3)
    assert rows.run(2) == (512, [b"\x91\x02"], 3)
    assert rows.run(3) == (513, [b"\x91\x03"], 5)
    assert rows.run(5) == (512, [b"\x91\x04"], 7)
    for wrong in (8, -1):
        with pytest.raises((IndexError, OverflowError)):
            rows.run(wrong)


@pytest.mark.parametrize("arguments", [(), (None,), ("rows",), (bytearray(b""),), (b"", 1)])
def test_a_block_is_bytes(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        BlockRows(*arguments)  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), values.map(lambda value: codec.pack([value])))))
def test_tuples_of_a_snapshot(tuples: list[tuple[int, bytes]]) -> None:
    made = [
        Row(2, lsn, *pair, body=insert_body(*pair), timestamp=TIMESTAMP, tsn=lsn)
        for lsn, pair in enumerate(tuples)
    ]
    payload = b"".join(map(encode_row, made))
    assert BlockRows(payload).tuples() == tuples
    assert decode_rows(payload) == made
