"""Blocks: their heads, their sizes, and which of them are compressed."""

from __future__ import annotations

import io
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iproto_server.codec import msgpack as codec
from iproto_server.native._native import LogRows
from iproto_server.storage.xlog import RowEncoder, XlogWriter
from iproto_server.storage.xlog.block import (
    BLOCK_SIZE,
    COMPRESS_SIZE,
    END_MARKER,
    HEAD_SIZE,
    PLAIN_MARKER,
    ZSTD_MARKER,
    checksum,
    decode_head,
    encode_block,
    with_head,
)
from tests.storage.files import TIMESTAMP, header, insertion, log_of, reader_of, rows_of


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 65535, 65536, 200000])
def test_the_head_has_19_bytes_whatever_is_in_it(size: int) -> None:
    payload = b"\x00" * size
    block = encode_block(payload, None)
    assert len(block) == HEAD_SIZE + size
    assert decode_head(block[:HEAD_SIZE]) == (False, size, checksum(payload))
    assert block.startswith(PLAIN_MARKER)
    # Size, checksum of the block before, checksum and padding, with an array's first byte in front.
    *values, padding = codec.unpack(b"\x94" + block[4:HEAD_SIZE])
    assert values == [size, 0, checksum(payload)]
    assert set(padding) <= {"\0"}


def test_the_checksum_is_the_one_of_a_tarantool_file() -> None:
    row = bytes.fromhex("8400020201030504cb41dac05078105ff98210cd0200219201a27631")
    assert checksum(row) == 0x0144F336
    assert checksum(row[5:], checksum(row[:5])) == 0x0144F336
    assert encode_block(row, None)[:HEAD_SIZE].hex() == "d5ba0bab1c00ce0144f336a700000000000000"


def test_blocks_from_two_kilobytes_on_are_compressed() -> None:
    encoder = RowEncoder()
    for size, marker in ((COMPRESS_SIZE - 1, PLAIN_MARKER), (COMPRESS_SIZE, ZSTD_MARKER)):
        overhead = HEAD_SIZE + len(encoder.transaction(1, TIMESTAMP, [insertion(512, "x" * 300)])) - 300
        row = encoder.transaction(1, TIMESTAMP, [insertion(512, "x" * (size - overhead))])
        assert len(row) + HEAD_SIZE == size
        start = len(header().encode())
        assert log_of([(row,)])[start:].startswith(marker)
        assert log_of([(row,)], compress=False)[start:].startswith(PLAIN_MARKER)
        assert len(rows_of(log_of([(row,)]))) == 1


def test_a_write_makes_blocks_of_128_kilobytes_and_divides_no_transaction() -> None:
    rows = LogRows(1, 0)
    for number in range(1, 301):
        rows.append([insertion(512, number, "x" * 1000)])
    one = len(rows) // 300
    rows.append([insertion(512, number, "y" * 1000) for number in range(500)])
    file = io.BytesIO()
    XlogWriter.create(file, header()).write(rows.blocks())
    blocks = list(reader_of(file.getvalue()).row_blocks())
    sizes = [len(block.payload) + HEAD_SIZE for block, _ in blocks]
    for size in sizes[:-1]:
        assert BLOCK_SIZE <= size <= BLOCK_SIZE + one
    assert sizes[-1] > 500 * 1000
    assert [row.lsn for _, rows in blocks for row in rows] == list(range(1, 801))


@given(
    st.sampled_from([PLAIN_MARKER, ZSTD_MARKER]),
    st.integers(0, 300) | st.just(70_000),
    st.integers(0, 2**32 - 1) | st.sampled_from([0, 127, 128, 255, 256, 65535, 65536]),
)
def test_a_head_is_read_as_it_was_written(marker: bytes, size: int, crc: int) -> None:
    payload = b"x" * size
    block = with_head(marker, payload, crc)
    numbers = marker + msgpack.packb(size) + b"\0" + msgpack.packb(crc)
    padding = HEAD_SIZE - len(numbers) - 1
    assert block == numbers + bytes((0xA0 + padding,)) + bytes(padding) + payload
    assert decode_head(block[:HEAD_SIZE]) == (marker == ZSTD_MARKER, size, crc)


def test_a_block_that_no_reader_takes_is_not_written() -> None:
    with pytest.raises(OSError, match="File too large"):
        with_head(PLAIN_MARKER, bytes(2**31), 0)


@pytest.mark.parametrize(
    ("head", "fault"),
    [
        (END_MARKER + b"\x01\0\x02\xab" + bytes(11), "no block: unknown marker d510aded"),
        (PLAIN_MARKER + b"\x01\0\xc0\xab" + bytes(11), "malformed head of a block"),
        (PLAIN_MARKER + b"\xff\0\x02\xab" + bytes(11), "malformed head of a block"),
        (PLAIN_MARKER + b"\x01\0\x02\xaa" + bytes(11), "malformed head of a block"),
        (PLAIN_MARKER + b"\x01\0\x02\xac" + bytes(11), "malformed head of a block"),
        (PLAIN_MARKER + b"\xcf" + bytes(8) + b"\0\xcf" + bytes(4), "malformed head of a block"),
        (PLAIN_MARKER + b"\xce\x80\0\0\0\0\x02\xa7" + bytes(7), "a block of 2147483648 bytes is too large"),
    ],
)
def test_other_bytes_are_no_head(head: bytes, fault: str) -> None:
    assert len(head) == HEAD_SIZE
    with pytest.raises(ValueError, match=f"^{fault}$"):
        decode_head(head)


def test_numbers_may_be_longer_than_they_need_be_and_the_padding_any_value() -> None:
    head = PLAIN_MARKER + b"\xcf" + (5).to_bytes(8, "big") + b"\xcc\0\xcc\x07\x91\xc0"
    assert decode_head(head) == (False, 5, 7)


@pytest.mark.parametrize("head", [b"", PLAIN_MARKER, PLAIN_MARKER + bytes(16), bytearray(19), None])
def test_a_head_has_19_bytes(head: Any) -> None:
    with pytest.raises(TypeError, match="takes 19 bytes"):
        decode_head(head)
