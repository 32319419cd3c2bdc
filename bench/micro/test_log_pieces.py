"""Microbenchmarks of the log: encoding rows, encoding blocks, and writing.

    make bench-pieces

pytest-benchmark shows the time of a round, `make bench-pieces` that of one row, transaction, block or write.
Rows have 100 bytes of data. Files are in memory (`/dev/shm`) if that directory exists, to exclude the time of
the disk.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
import zstandard
from pytest_benchmark.fixture import BenchmarkFixture

from bench.micro.measuring import COUNT, measure
from bench.micro.test_hot_path import PAYLOAD
from iproto_server.codec import msgpack as codec
from iproto_server.native._native import LogRows
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WalMode, WriteAheadLog
from iproto_server.storage.xlog import RowType, delete_body, insert_body
from iproto_server.storage.xlog.block import encode_block

NOW = 1_700_000_000.5
SPACE_ID = 512
STATEMENTS = 10
"""The number of rows of the larger transactions."""

TOGETHER = 100
"""The number of transactions in a block or a write, as with so many requests in flight."""

BLOCKS = 500
LEVEL = 1
"""The compression level of logs."""

SHARED_MEMORY = Path("/dev/shm")


def rows(count: int) -> LogRows:
    """Encode transactions of one INSERT each."""
    transactions = LogRows(1, 0)
    transactions.timestamp = NOW
    for lsn in range(1, count + 1):
        transactions.append([(RowType.INSERT, insert_body(SPACE_ID, codec.pack([lsn, PAYLOAD])))])
    return transactions


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Yield a directory on the fastest file system."""
    if not os.access(SHARED_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as name:
        yield Path(name)


@pytest.mark.parametrize("kind", [RowType.INSERT, RowType.DELETE], ids=lambda kind: kind.name.lower())
def test_row_encode(benchmark: BenchmarkFixture, kind: RowType) -> None:
    """Encode a transaction of one row."""
    if kind is RowType.INSERT:
        body = insert_body(SPACE_ID, codec.pack([123_456, PAYLOAD]))
    else:
        body = delete_body(SPACE_ID, codec.pack([123_456]))
    transaction = [(int(kind), body)]

    def encode() -> None:
        waiting = LogRows(1, 0)
        for _ in range(COUNT):
            waiting.append(transaction)

    measure(benchmark, encode, tuple)


def test_transaction_encode(benchmark: BenchmarkFixture) -> None:
    """Encode a transaction of ten rows."""
    count = COUNT // STATEMENTS
    transaction = [(int(RowType.INSERT), insert_body(SPACE_ID, codec.pack([123_456, PAYLOAD])))] * STATEMENTS

    def encode() -> None:
        waiting = LogRows(1, 0)
        for _ in range(count):
            waiting.append(transaction)

    measure(benchmark, encode, tuple, count=count)


@pytest.mark.parametrize("kind", ["plain", "compressed"])
def test_block_encode(benchmark: BenchmarkFixture, kind: str) -> None:
    """Encode a block of 100 rows, with its checksum."""
    compressor = zstandard.ZstdCompressor(level=LEVEL) if kind == "compressed" else None
    [block] = rows(TOGETHER).blocks()

    def encode() -> None:
        for _ in range(BLOCKS):
            encode_block(block, compressor)

    measure(benchmark, encode, tuple, count=BLOCKS)


@pytest.mark.parametrize("together", [1, TOGETHER])
def test_write(benchmark: BenchmarkFixture, directory: Path, together: int) -> None:
    """Write transactions to a file as blocks, in one write."""
    transactions = rows(together)
    logs: list[WriteAheadLog] = []

    def setup() -> tuple[WriteAheadLog]:
        for log in logs:
            log.close()
        for file in directory.iterdir():
            file.unlink()
        log = WriteAheadLog(directory, WalMode.WRITE, UUID(int=1), 1, VClock())
        logs[:] = [log]
        log.perform(transactions)  # creates the file
        return (log,)

    def write(log: WriteAheadLog) -> None:
        for _ in range(BLOCKS):
            log.perform(transactions)

    measure(benchmark, write, setup, count=BLOCKS)
    logs[0].close()
