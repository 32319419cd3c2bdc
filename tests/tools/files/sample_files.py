"""Logs and snapshots that the tests of this folder show, play and check."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from iproto_server.codec import msgpack as codec
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.xlog import (
    FileType,
    RowEncoder,
)
from tests.storage.files import TIMESTAMP, Request, header, insertion, log_of


def write_log(
    path: Path, transactions: Iterable[Iterable[Request]], *, first: int = 1, end: bool = True
) -> Path:
    """Write a log of transactions, a block each, one second apart from `TIMESTAMP` on."""
    encoder = RowEncoder()
    blocks: list[tuple[bytes, ...]] = []
    lsn = first
    for number, changes in enumerate(transactions):
        rows = tuple(changes)
        blocks.append((encoder.transaction(lsn, TIMESTAMP + number, rows),))
        lsn += len(rows)
    path.write_bytes(log_of(blocks, end=end))
    return path


def write_rows(path: Path, count: int) -> Path:
    """Write a log of so many rows `[number, text]` in space 512, each a transaction and a block."""
    return write_log(path, ([insertion(512, number, f"row {number}")] for number in range(1, count + 1)))


def write_snapshot(directory: Path, spaces: dict[int, list[list[object]]], clock: dict[int, int]) -> Path:
    """Write a snapshot of spaces' rows."""
    with SnapshotWriter(directory, header(FileType.SNAPSHOT, clock), TIMESTAMP) as writer:
        for space_id, rows in spaces.items():
            writer.write(space_id, [codec.pack(row) for row in rows])
    return writer.path
