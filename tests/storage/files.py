"""Logs and snapshots that the tests of this folder write and read."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from iproto_server.codec import msgpack as codec
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import (
    FileType,
    OnDamage,
    Row,
    RowEncoder,
    RowType,
    XlogHeader,
    XlogReader,
    XlogWriter,
    delete_body,
    insert_body,
    update_body,
    upsert_body,
)
from iproto_server.storage.xlog.block import BLOCK_SIZE, HEAD_SIZE

INSTANCE = uuid.UUID("3dbe0a5e-5f0d-4f5c-9d5a-0e9f9a3f7f31")
TIMESTAMP = 1700000000.25

Request = tuple[int, bytes]
"""The type and the body of a row of a log."""


def header(
    file_type: FileType = FileType.LOG, clock: dict[int, int] | None = None, **values: VClock | None
) -> XlogHeader:
    """A header of the instance that all tests are."""
    return XlogHeader(file_type, INSTANCE, VClock(clock or {}), server_version="2.11.0", **values)


def insertion(space_id: int, *fields: object) -> Request:
    """An INSERT request."""
    return RowType.INSERT, insert_body(space_id, codec.pack(fields))


def replacement(space_id: int, *fields: object) -> Request:
    """A REPLACE request."""
    return RowType.REPLACE, insert_body(space_id, codec.pack(fields))


def deletion(space_id: int, *key: object) -> Request:
    """A DELETE request."""
    return RowType.DELETE, delete_body(space_id, codec.pack(key))


def update(space_id: int, key: Sequence[object], operations: object, index_base: int = 0) -> Request:
    """An UPDATE request."""
    return RowType.UPDATE, update_body(
        space_id, codec.pack(key), codec.pack(operations), index_base=index_base
    )


def upsert(space_id: int, fields: Sequence[object], operations: object, index_base: int = 0) -> Request:
    """An UPSERT request."""
    return RowType.UPSERT, upsert_body(space_id, codec.pack(fields), codec.pack(operations), index_base)


def blocks_of(transactions: Iterable[bytes]) -> list[bytes]:
    """Join transactions to blocks, each of which ends as soon as it is full."""
    blocks = [b""]
    for transaction in transactions:
        if len(blocks[-1]) >= BLOCK_SIZE - HEAD_SIZE:
            blocks.append(b"")
        blocks[-1] += transaction
    return [block for block in blocks if block]


def log_of(groups: Iterable[Iterable[bytes]], *, compress: bool = True, end: bool = True) -> bytes:
    """The bytes of a log whose blocks, or writes of several blocks, are the groups of transactions."""
    file = io.BytesIO()
    writer = XlogWriter.create(file, header(), compress=compress)
    for transactions in groups:
        writer.write(blocks_of(transactions))
    if end:
        writer.end()
    return file.getvalue()


def numbered_log(blocks: int, *, end: bool = True) -> bytes:
    """A log of so many small blocks, each with one row `[number, text]` in space 512."""
    encoder = RowEncoder()
    return log_of(
        (
            (encoder.transaction(number, TIMESTAMP, (insertion(512, number, f"row {number}"),)),)
            for number in range(1, blocks + 1)
        ),
        end=end,
    )


def reader_of(data: bytes, on_damage: OnDamage = OnDamage.STOP) -> XlogReader:
    """A reader of bytes."""
    return XlogReader(io.BytesIO(data), "test.xlog", on_damage)


def rows_of(data: bytes, on_damage: OnDamage = OnDamage.STOP) -> list[Row]:
    """All rows of a file."""
    return [row for transaction in reader_of(data, on_damage).transactions() for row in transaction]


def lsns_of(data: bytes, on_damage: OnDamage = OnDamage.STOP) -> list[int]:
    """The LSN of every row of a file."""
    return [row.lsn for row in rows_of(data, on_damage)]


def rows_in(path: Path) -> list[Row]:
    """All rows of a file on disk, which must be intact."""
    with XlogReader.open(path) as reader:
        return [row for transaction in reader.transactions() for row in transaction]
