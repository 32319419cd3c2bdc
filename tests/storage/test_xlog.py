"""Logs: what is written is what is read, and the bytes are Tarantool's."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import (
    FileType,
    Row,
    RowEncoder,
    RowFlag,
    RowType,
    XlogHeader,
    XlogReader,
    decode_rows,
    delete_body,
    encode_row,
    insert_body,
    update_body,
    upsert_body,
)
from iproto_server.storage.xlog.block import (
    END_MARKER,
)
from iproto_server.storage.xlog.block_reader import READ_AHEAD
from tests.storage.files import INSTANCE, TIMESTAMP, header, insertion, log_of, reader_of, rows_of

numbers = st.one_of(st.integers(0, 300), st.integers(0, 2**32 + 5), st.integers(0, 2**63 - 1))
ids = st.one_of(st.integers(0, 600), st.integers(0, 2**32 - 1))
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(), st.binary()
)
arrays = st.lists(scalars, max_size=20).map(codec.pack)
bases = st.integers(0, 200)

requests = st.one_of(
    st.builds(lambda *values: (RowType.INSERT, insert_body(*values)), ids, arrays),
    st.builds(lambda *values: (RowType.REPLACE, insert_body(*values)), ids, arrays),
    st.builds(lambda *values: (RowType.DELETE, delete_body(*values)), ids, arrays, bases),
    st.builds(lambda *values: (RowType.UPDATE, update_body(*values)), ids, arrays, arrays, bases, bases),
    st.builds(lambda *values: (RowType.UPSERT, upsert_body(*values)), ids, arrays, arrays, bases),
    st.builds(lambda number, body: (number, codec.pack(body)), st.integers(13, 300), st.just({0x59: 1})),
)


def fields_of(row: Row) -> dict[int, Any]:
    """What a row's own attributes say is in its body."""
    raws = {0x20: row.key_raw, 0x21: row.tuple_raw, 0x28: row.operations_raw}
    if row.type == RowType.UPDATE:
        raws = {0x20: row.key_raw, 0x21: row.operations_raw}
    values = {key: codec.unpack(raw) for key, raw in raws.items() if raw is not None}
    if row.space_id is not None:
        values[0x10] = row.space_id
    if row.index_id:
        values[0x11] = row.index_id
    if row.index_base:
        values[0x15] = row.index_base
    return values


class TestRoundTrip:
    @given(
        st.lists(st.lists(st.lists(requests, min_size=1, max_size=5), min_size=1, max_size=5), max_size=5),
        st.one_of(st.integers(0, 300), st.integers(0, 2**63 - 1000)),
        st.integers(1, 31),
        st.booleans(),
    )
    def test_any_transactions_in_any_blocks(
        self, groups: list[list[list[tuple[int, bytes]]]], lsn: int, replica_id: int, compress: bool
    ) -> None:
        lsn += 1
        encoder = RowEncoder(replica_id)
        written, blocks, first = [], [], lsn
        for group in groups:
            block = []
            for transaction in group:
                block.append(encoder.transaction(lsn, TIMESTAMP, transaction))
                written.append(transaction)
                lsn += len(transaction)
            blocks.append(block)
        data = log_of(blocks, compress=compress)
        reader = reader_of(data)
        transactions = list(reader.transactions())
        assert [[(row.type, row.body) for row in rows] for rows in transactions] == written
        rows = [row for rows in transactions for row in rows]
        assert [row.lsn for row in rows] == list(range(first, lsn))
        assert {row.tsn for rows in transactions for row in rows} == {rows[0].lsn for rows in transactions}
        assert {(row.replica_id, row.timestamp, row.group_id) for row in rows} <= {(replica_id, TIMESTAMP, 0)}
        assert (reader.closed, reader.good_end, reader.damages) == (True, len(data) - 4, [])
        for row in rows:
            body = codec.unpack(row.body)
            if row.type <= RowType.UPSERT:
                expected = {key: value for key, value in body.items() if value or key not in (0x11, 0x15)}
                assert repr(fields_of(row)) == repr({key: expected[key] for key in fields_of(row)})
                assert fields_of(row).keys() == expected.keys()

    @given(
        st.builds(
            lambda number, lsn, timestamp, replica_id, group_id, distance, flags: Row(
                number,
                lsn,
                timestamp=timestamp,
                replica_id=replica_id,
                group_id=group_id,
                tsn=min(lsn - distance, 2**63 - 1) if distance or not flags & 1 else lsn,
                flags=flags,
                body=b"\x80",
            ),
            st.integers(13, 200),
            numbers,
            st.one_of(st.just(0.0), st.floats(allow_nan=False)),
            st.integers(0, 31),
            st.integers(0, 2),
            st.integers(-1000, 1000),
            st.integers(0, 7),
        )
    )
    def test_any_header(self, row: Row) -> None:
        last = Row(13, 1, body=b"\x80", tsn=1)
        assert decode_rows(encode_row(row) + encode_row(last)) == [row, last]

    def test_values_are_the_same_bytes(self) -> None:
        """Floats of four bytes, numbers in more bytes than they need, extension types nobody knows."""
        raw = b"\x95\xca\x3f\x80\x00\x00\xcd\x00\x01\xc7\x03\x63abc\xd9\x01x\xde\x00\x01\xc0\xc0"
        assert codec.is_valid(raw)
        data = log_of([(RowEncoder().transaction(1, TIMESTAMP, [(2, insert_body(512, raw))]),)])
        assert [row.tuple_raw for row in rows_of(data)] == [raw]

    def test_nothing_written_is_nothing_read(self) -> None:
        data = log_of([[]])
        assert data == header().encode() + END_MARKER
        assert rows_of(data) == []


class RecordingFile(io.BytesIO):
    """A file that remembers how much it was asked for at once."""

    largest = 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size >= 0
        self.largest = max(self.largest, size)
        return super().read(size)


def test_a_file_is_read_in_pieces() -> None:
    encoder = RowEncoder()
    transactions = [
        encoder.transaction(number, TIMESTAMP, [insertion(512, number, "x" * 1000)])
        for number in range(1, 5001)
    ]
    file = RecordingFile(log_of([transactions], compress=False))
    reader = XlogReader(file, "test.xlog")
    assert [rows[0].lsn for rows in reader.transactions()] == list(range(1, 5001))
    assert reader.good_end == len(file.getvalue()) - 4 > 8 * READ_AHEAD
    assert file.largest <= READ_AHEAD


class TestRows:
    def test_a_single_row_has_no_transaction_number(self) -> None:
        row = RowEncoder().transaction(5, 1795244512.2558577, [insertion(512, 1, "v1")])
        assert row.hex() == "8400020201030504cb41dac05078105ff98210cd0200219201a27631"

    def test_rows_of_a_transaction_say_how_far_they_are_from_the_first_and_the_last_commits(self) -> None:
        requests = [insertion(512, 100, "a"), insertion(512, 101, "b"), (5, delete_body(512, b"\x91\x64"))]
        payload = RowEncoder().transaction(15, 1795244512.2563543, requests)
        assert payload.hex() == (
            "8500020201030f04cb41dac0507810681c08008210cd0200219264a161"
            "8500020201031004cb41dac0507810681c08018210cd0200219265a162"
            "8600050201031104cb41dac0507810681c080209018210cd0200209164"
        )
        assert [(row.tsn, row.is_last) for row in decode_rows(payload)] == [
            (15, False),
            (15, False),
            (15, True),
        ]

    def test_rows_of_local_spaces_are_numbered_apart(self) -> None:
        """A transaction of rows that are replicated and rows that are not, as Tarantool 2.6 writes it."""
        payload = bytes.fromhex(
            "8500020701030204cb41dac0507810900e08cffffffffffffffe5a8210cd0201219202a178"
            "850002020103cd01a804cb41dac0507810900e08008210cd02002192cd07d0a167"
            "8500020701030304cb41dac0507810900e08cffffffffffffffe5b8210cd0201219103"
            "86000c020103cd01a904cb41dac0507810900e08010901"
        )
        rows = decode_rows(payload)
        assert [(row.replica_id, row.group_id, row.lsn, row.tsn, row.type) for row in rows] == [
            (0, 1, 2, 424, RowType.INSERT),
            (1, 0, 424, 424, RowType.INSERT),
            (0, 1, 3, 424, RowType.INSERT),
            (1, 0, 425, 424, RowType.NOP),
        ]
        assert [row.is_last for row in rows] == [False, False, False, True]
        assert b"".join(map(encode_row, rows)) == payload

    def test_flags_of_synchronous_replication_are_kept(self) -> None:
        row = Row(RowType.CONFIRM, 7, body=b"\x80", tsn=7, flags=RowFlag.COMMIT | RowFlag.WAIT_SYNC)
        assert decode_rows(encode_row(row)) == [row]

    def test_unknown_keys_are_passed_over(self) -> None:
        newer = codec.pack({0x00: 2, 0x03: 5, 0x0A: 7, 0x77: "x"})
        newer += codec.pack({0x10: 512, 0x21: [1], 0x2C: [1], 0x2D: [2]})
        (row,) = decode_rows(newer)
        assert (row.type, row.lsn, row.space_id, row.tuple_raw) == (2, 5, 512, b"\x91\x01")

    def test_remembered_shapes_do_not_mistake_other_rows(self) -> None:
        """Rows that begin as common ones do, and go on differently."""
        common = RowEncoder().transaction(70000, TIMESTAMP, [(4, update_body(512, b"\x91\x01", b"\x90"))])
        assert len(decode_rows(common * 2)) == 2
        head = common[: common.index(b"\x83\x10")]
        other = head + b"\x83\x10\xcd\x02\x00\x20\x91\x01\x28\x90"
        with_base = head + b"\x84\x10\xcd\x02\x00\x20\x91\x01\x21\x90\x15\x01"
        strange_key = head + b"\x83\x10\xcd\x02\x00\x20\x91\x01\x81\x01\x02\x03"
        rows = decode_rows(other + with_base + strange_key + common)
        assert [(row.key_raw, row.operations_raw, row.index_base) for row in rows] == [
            (b"\x91\x01", None, 0),
            (b"\x91\x01", b"\x90", 1),
            (b"\x91\x01", None, 0),
            (b"\x91\x01", b"\x90", 0),
        ]


class TestHeader:
    def test_it_is_tarantools(self) -> None:
        assert header(FileType.LOG, {1: 430, 0: 3}, previous_vclock=VClock()).encode() == (
            b"XLOG\n0.13\nVersion: 2.11.0\nInstance: 3dbe0a5e-5f0d-4f5c-9d5a-0e9f9a3f7f31\n"
            b"VClock: {0: 3, 1: 430}\nPrevVClock: {}\n\n"
        )

    def test_the_one_of_older_versions_is_read(self) -> None:
        text = b"SNAP\n0.12\nServer: 3dbe0a5e-5f0d-4f5c-9d5a-0e9f9a3f7f31\nVClock: {1:5,2: 7}\nOther: x\n\n"
        found = reader_of(text + END_MARKER).header
        assert found == XlogHeader(FileType.SNAPSHOT, INSTANCE, VClock({1: 5, 2: 7}))

    @given(st.dictionaries(st.integers(0, 31), st.integers(0, 2**63 - 1)), st.booleans())
    def test_what_is_written_is_read(self, clock: dict[int, int], previous: bool) -> None:
        written = header(FileType.LOG, clock, previous_vclock=VClock(clock) if previous else None)
        assert reader_of(written.encode()).header == written
