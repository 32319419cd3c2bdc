"""Files cut short or damaged: what the reader makes of them."""

from __future__ import annotations

import contextlib
import io

import pytest

from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import TruncatedFileError, XlogError
from iproto_server.storage.xlog import (
    Damage,
    OnDamage,
    Row,
    RowEncoder,
    XlogReader,
    XlogWriter,
    decode_rows,
    encode_row,
)
from iproto_server.storage.xlog.block import END_MARKER, HEAD_SIZE, encode_block
from tests.storage.files import (
    TIMESTAMP,
    header,
    insertion,
    log_of,
    lsns_of,
    numbered_log,
    reader_of,
    rows_of,
)

BLOCKS = 6


def block_starts(data: bytes) -> list[int]:
    """The offsets of all blocks of a file, and the one behind the last."""
    reader = reader_of(data)
    blocks = list(reader.blocks())
    return [block.start for block in blocks] + [blocks[-1].end]


def compressed_log(*, end: bool = True) -> bytes:
    """Small blocks, but for the last three, which are compressed."""
    encoder = RowEncoder()
    text = "".join(chr(33 + number * 7 % 90) for number in range(90)) * 30
    return log_of(
        (
            (encoder.transaction(number, TIMESTAMP, (insertion(512, number, text if number > 3 else ""),)),)
            for number in range(1, BLOCKS + 1)
        ),
        end=end,
    )


def rows_one_by_one(member: int, count: int, *, lsn: int = 1) -> list[bytes]:
    """A transaction, each of its rows in a block of its own."""
    requests = [insertion(512, number) for number in range(count)]
    rows = decode_rows(RowEncoder(member).transaction(lsn, TIMESTAMP, requests))
    return [encode_block(encode_row(row), None) for row in rows]


@pytest.mark.parametrize("kind", ["plain", "compressed"])
class TestEveryByteOfTheLastBlocks:
    @pytest.fixture
    def open_log(self, kind: str) -> bytes:
        """The log of a server that was killed: no end marker."""
        return numbered_log(BLOCKS, end=False) if kind == "plain" else compressed_log(end=False)

    def test_a_log_cut_anywhere_gives_every_whole_block(self, open_log: bytes) -> None:
        starts = block_starts(open_log)
        for size in range(starts[-4], len(open_log)):
            whole = sum(end <= size for end in starts[1:])
            reader = reader_of(open_log[:size], OnDamage.CUT_TAIL)
            assert [row.lsn for rows in reader.transactions() for row in rows] == list(range(1, whole + 1))
            assert reader.good_end == starts[whole]
            assert not reader.closed
            if size == starts[whole]:
                assert reader.damages == []
            else:
                assert [damage[:2] for damage in reader.damages] == [(starts[whole], size)]

    def test_a_log_cut_within_a_block_is_refused_where_it_must_be_whole(self, open_log: bytes) -> None:
        starts = block_starts(open_log)
        for size in range(starts[-4], len(open_log)):
            if size not in starts:
                with pytest.raises(TruncatedFileError) as caught:
                    rows_of(open_log[:size])
                assert caught.value.offset == max(start for start in starts if start < size)

    @pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
    @pytest.mark.parametrize("end", [False, True])
    def test_a_flipped_byte_is_refused_or_harms_nothing(self, open_log: bytes, flip: int, end: bool) -> None:
        data = open_log + END_MARKER if end else open_log
        starts = block_starts(data)
        intact = rows_of(data)
        for position in range(starts[-4], len(data)):
            damaged = bytearray(data)
            damaged[position] ^= flip
            touched = sum(start <= position for start in starts[:-1]) - 1
            reader = reader_of(bytes(damaged), OnDamage.CUT_TAIL)
            rows: list[Row] = []
            with contextlib.suppress(XlogError):
                for transaction in reader.transactions():
                    rows += transaction
                # Nothing reads the checksum of the block before, nor what the head is padded with; and
                # without its end marker a file has the same rows.
                assert rows == intact
                assert position - starts[touched] < HEAD_SIZE or position >= starts[-1]
            # An error comes after all rows that are before the damage.
            assert rows[:touched] == intact[:touched]

    def test_every_other_block_survives_a_flipped_byte_where_damage_is_skipped(self, open_log: bytes) -> None:
        data = open_log + END_MARKER
        starts = block_starts(data)
        intact = rows_of(data)
        for position in range(starts[-4], starts[-1]):
            damaged = bytearray(data)
            damaged[position] ^= 0xFF
            touched = sum(start <= position for start in starts[:-1]) - 1
            reader = reader_of(bytes(damaged), OnDamage.SKIP)
            rows = [row for transaction in reader.transactions() for row in transaction]
            assert reader.closed
            if reader.damages:
                assert rows == intact[:touched] + intact[touched + 1 :]
                assert [damage[:2] for damage in reader.damages] == [(starts[touched], starts[touched + 1])]
            else:
                assert rows == intact


class TestTornOrDamaged:
    """A tail is cut off only where an interrupted write can have left it so."""

    def test_a_wrong_size_in_a_head_is_no_torn_tail_when_blocks_follow(self) -> None:
        data = bytearray(numbered_log(BLOCKS, end=False))
        start = block_starts(bytes(data))[2]
        data[start + 4] = 0x7F  # so it seems to end within a later block
        with pytest.raises(XlogError, match=f"wrong checksum of a block at offset {start}"):
            lsns_of(bytes(data), OnDamage.CUT_TAIL)
        last_but_one = block_starts(numbered_log(BLOCKS, end=False))[-3]
        data = bytearray(numbered_log(BLOCKS, end=False))
        data[last_but_one + 4] = 0x7F
        with pytest.raises(XlogError, match=r"with intact blocks from offset \d+ on"):
            lsns_of(bytes(data), OnDamage.CUT_TAIL)

    def test_a_wrong_size_in_the_last_head_is_no_torn_tail_when_the_rows_fit_their_checksum(self) -> None:
        data = bytearray(numbered_log(BLOCKS, end=False))
        start = block_starts(bytes(data))[-2]
        data[start + 4] = 0x7F
        with pytest.raises(XlogError, match=f"wrong size 127 of a block of .* bytes at offset {start}"):
            lsns_of(bytes(data), OnDamage.CUT_TAIL)

    def test_a_tail_of_zeros_is_cut(self) -> None:
        data = numbered_log(BLOCKS, end=False)
        assert lsns_of(data + bytes(10000), OnDamage.CUT_TAIL) == list(range(1, BLOCKS + 1))
        with pytest.raises(TruncatedFileError, match=f"nothing but zeros at offset {len(data)}"):
            lsns_of(data + bytes(10000))

    def test_a_last_block_whose_pages_never_reached_the_disk_is_cut(self) -> None:
        encoder = RowEncoder()
        big = [(encoder.transaction(1, TIMESTAMP, (insertion(512, 1, "x" * 9000),)),)]
        data = bytearray(log_of(big, compress=False, end=False))
        data[8192:] = bytes(len(data) - 8192)
        assert lsns_of(bytes(data), OnDamage.CUT_TAIL) == []
        # With something behind it, it had been written.
        with pytest.raises(XlogError, match="wrong checksum"):
            lsns_of(bytes(data) + END_MARKER, OnDamage.CUT_TAIL)

    def test_garbage_is_no_torn_tail(self) -> None:
        data = numbered_log(BLOCKS, end=False)
        with pytest.raises(XlogError, match=rf"unknown marker 67617262 at offset {len(data)}"):
            lsns_of(data + b"garbage " * 10, OnDamage.CUT_TAIL)

    def test_something_behind_the_end_marker_is_an_error(self) -> None:
        data = numbered_log(BLOCKS)
        with pytest.raises(XlogError, match=f"bytes after the end marker at offset {len(data) - 4}"):
            lsns_of(data + b"x", OnDamage.CUT_TAIL)
        more = numbered_log(1)
        reader = reader_of(data + more[block_starts(more)[0] :], OnDamage.SKIP)
        assert len(list(reader.transactions())) == BLOCKS + 1
        assert reader.damages == [Damage(len(data) - 4, len(data), "there are bytes after the end marker")]

    def test_a_file_that_ends_within_a_transaction_ends_before_it(self) -> None:
        intact = numbered_log(1, end=False)
        rows = rows_one_by_one(1, 3)
        data = intact + b"".join(rows[:2]) + END_MARKER
        with pytest.raises(TruncatedFileError, match=f"ends within a transaction at offset {len(intact)}"):
            lsns_of(data)
        for mode in (OnDamage.CUT_TAIL, OnDamage.SKIP):
            reader = reader_of(data, mode)
            assert len(list(reader.transactions())) == 1
            assert reader.good_end == len(intact)
            assert [damage[:2] for damage in reader.damages] == [(len(intact), len(data))]

    def test_what_has_ended_in_a_block_is_not_cut_off_with_what_has_not(self) -> None:
        intact = numbered_log(1, end=False)
        rows = decode_rows(
            RowEncoder().transaction(3, TIMESTAMP, [insertion(512, number) for number in (3, 4)])
        )
        second = RowEncoder().transaction(2, TIMESTAMP, [insertion(512, 2)])
        data = intact + encode_block(second + encode_row(rows[0]), None)
        for mode, error in ((OnDamage.STOP, TruncatedFileError), (OnDamage.CUT_TAIL, XlogError)):
            with pytest.raises(error, match=f"within .* at offset {len(intact)}"):
                lsns_of(data, mode)
        assert lsns_of(data, OnDamage.SKIP) == [1, 2]
        last = encode_block(encode_row(rows[1]) + encode_row(rows[0]), None)
        with pytest.raises(XlogError, match=f"within .* at offset {len(data)}"):
            lsns_of(data + last, OnDamage.CUT_TAIL)

    def test_a_transaction_may_be_in_several_blocks(self) -> None:
        """As old replicas wrote it, row by row."""
        data = numbered_log(1, end=False) + b"".join(rows_one_by_one(1, 3)) + rows_one_by_one(1, 1)[0]
        transactions = [[row.lsn for row in rows] for rows in reader_of(data).transactions()]
        assert transactions == [[1], [1, 2, 3], [1]]

    def test_transactions_of_two_members_that_are_mixed_are_put_in_order_where_damage_is_skipped(
        self,
    ) -> None:
        first, second = rows_one_by_one(2, 3), rows_one_by_one(3, 3)
        intact = numbered_log(1, end=False)
        data = intact + b"".join(block for pair in zip(first, second, strict=True) for block in pair)
        for mode in (OnDamage.STOP, OnDamage.CUT_TAIL):
            offset = len(intact) + len(first[0])
            with pytest.raises(XlogError, match=f"begins before another one has ended at offset {offset}"):
                lsns_of(data, mode)
        transactions = list(reader_of(data, OnDamage.SKIP).transactions())
        assert [[(row.replica_id, row.lsn) for row in rows] for rows in transactions[1:]] == [
            [(2, 1), (2, 2), (2, 3)],
            [(3, 1), (3, 2), (3, 3)],
        ]

    def test_a_transaction_whose_end_is_missing_is_left_out_where_damage_is_skipped(self) -> None:
        first, second = rows_one_by_one(1, 3), rows_one_by_one(1, 2, lsn=4)
        data = numbered_log(1, end=False) + b"".join(first[:2] + second)
        with pytest.raises(XlogError, match="begins before another one has ended"):
            lsns_of(data, OnDamage.CUT_TAIL)
        assert lsns_of(data, OnDamage.SKIP) == [1, 4, 5]

    @pytest.mark.parametrize(
        "rows",
        [
            b"\x00",
            b"\x81\x00",
            b"\x81\x00\x02\x81\x10",
            b"\x81\x00\xa1x\x80",
            b"\x82\x00\x02\x04\x01\x80",
            b"\x81\x00\xff\x80",
            b"\xc1",
            b"\x81\x00\x02\x82\x10\xa1x\x21\x90",
            b"\x81\x00\x02\x82\x10\x01\x21\x01",
            b"\x81\x00\x02\x90",
            b"\x81\x00\x02\xc1",
        ],
    )
    def test_rows_that_are_no_rows_are_an_error_with_the_offset_of_their_block(self, rows: bytes) -> None:
        intact = numbered_log(1, end=False)
        data = intact + encode_block(rows, None)
        with pytest.raises(XlogError, match=f"malformed row .* at offset {len(intact)}"):
            lsns_of(data, OnDamage.CUT_TAIL)
        assert lsns_of(data, OnDamage.SKIP) == [1]

    def test_a_compressed_block_that_is_no_frame_is_an_error(self) -> None:
        block = bytearray(encode_block(b"not zstd", None))
        block[2:4] = b"\x0b\xba"
        data = numbered_log(1, end=False)
        with pytest.raises(XlogError, match=f"cannot be decompressed.* at offset {len(data)}"):
            lsns_of(data + bytes(block))


class TestHeader:
    def test_a_file_that_ends_within_its_header_is_cut_short(self) -> None:
        data = header().encode()
        for size in range(len(data)):
            with pytest.raises(TruncatedFileError, match=r"test\.xlog: the file ends within its header"):
                reader_of(data[:size])
        assert rows_of(data) == []

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"XLAG\n0.13\nInstance: x\n\n", "unknown file type 'XLAG'"),
            (b"XLOG\n0.14\nInstance: x\n\n", "unsupported format version '0.14'"),
            (b"XLOG\n0.13\nInstance: x\n\n", "unreadable header: not a UUID: 'x'"),
            (b"XLOG\n0.13\nVClock: {}\n\n", "does not name the instance"),
            (b"XLOG\n0.13\nVClock {}\n\n", "not 'key: value'"),
            (b"XLOG\n\n", "no header"),
            (b"\xff\xfe\n0.13\n\n", "no header"),
            (bytes(5000), "no header"),
        ],
    )
    def test_what_is_no_header_is_an_error(self, data: bytes, reason: str) -> None:
        with pytest.raises(XlogError, match=reason):
            reader_of(data)

    @pytest.mark.parametrize("clock", ["{1}", "{1: -1}", "{1: 2, 1: 3}", "{32: 1}", "1: 2", "{1: 2,}", ""])
    def test_what_is_no_clock_is_an_error(self, clock: str) -> None:
        text = header().encode().replace(b"VClock: {}", f"VClock: {clock}".encode())
        with pytest.raises(XlogError, match="not a vector clock"):
            reader_of(text)


class FailingFile(io.BytesIO):
    """A file on a disk that gets full, or whose writes come out short."""

    def __init__(self, room: int, at_once: int | None = None) -> None:
        super().__init__()
        self.room = room
        self.at_once = at_once

    def write(self, data: bytes, /) -> int:  # type: ignore[override]  # no buffer but bytes is ever written
        left = self.room - self.tell()
        if left <= 0:
            raise OSError(28, "No space left on device")
        return super().write(data[: min(left, self.at_once or left)])


class TestFailedWrites:
    def test_a_write_that_fails_leaves_the_file_at_the_last_good_block(self) -> None:
        intact = numbered_log(2, end=False)
        file = FailingFile(room=len(intact) + 30)
        writer = XlogWriter.create(file, header())
        encoder = RowEncoder()
        rows = [
            encoder.transaction(number, TIMESTAMP, (insertion(512, number, f"row {number}"),))
            for number in (1, 2, 3)
        ]
        for row in rows[:2]:
            writer.write((row,))
        for _ in range(2):
            with pytest.raises(OSError, match="No space left"):
                writer.write((rows[2],))
            assert file.getvalue() == intact
            assert writer.offset == len(intact)
        file.room = 10000
        writer.write((rows[2],))
        assert file.getvalue() == numbered_log(3, end=False)

    def test_short_writes_are_continued(self) -> None:
        file = FailingFile(room=10000, at_once=7)
        writer = XlogWriter.create(file, header())
        writer.write((RowEncoder().transaction(1, TIMESTAMP, (insertion(512, 1, "row 1"),)),))
        assert file.getvalue() == numbered_log(1, end=False)

    def test_a_writer_goes_on_where_a_reader_says_over_the_end_marker_or_a_torn_block(self) -> None:
        whole = numbered_log(3, end=False)
        two = numbered_log(2, end=False)
        third = RowEncoder().transaction(3, TIMESTAMP, (insertion(512, 3, "row 3"),))
        for data in (two + END_MARKER, whole[:-5], two):
            file = io.BytesIO(data)
            reader = XlogReader(file, "test.xlog", OnDamage.CUT_TAIL)
            for _ in reader.transactions():
                pass
            XlogWriter(file, reader.good_end).write((third,))
            assert file.getvalue() == whole


def test_a_number_in_a_body_that_codec_refuses_names_the_block() -> None:
    """Whatever is in a row, the error is one of the file's."""
    deep = b"\x91" * 5000 + b"\x01"
    row = b"\x81\x00\x02\x83\x10\x01\x21\x91\x01" + codec.pack(99) + deep
    data = numbered_log(1, end=False)
    assert len(rows_of(data + encode_block(row, None), OnDamage.SKIP)) in (1, 2)
