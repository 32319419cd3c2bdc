"""Log files: a file is read or a storage error, and damage hides no intact row."""

from __future__ import annotations

import io
import uuid
from typing import Final

import zstandard

from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import XlogError
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, OnDamage, RowEncoder, RowType, XlogHeader, XlogReader
from iproto_server.storage.xlog.block import (
    END_MARKER,
    HEAD_SIZE,
    PLAIN_MARKER,
    ZSTD_MARKER,
    checksum,
    decode_head,
    encode_block,
)
from iproto_server.storage.xlog.encoder import delete_body, insert_body
from iproto_server.storage.xlog.header import HEADER_MAX
from tests.fuzz.draw import Draw
from tests.fuzz.target import Target

INSTANCE: Final = uuid.UUID("3dbe0a5e-5f0d-4f5c-9d5a-0e9f9a3f7f31")
HEADER: Final = XlogHeader(FileType.LOG, INSTANCE, VClock({1: 5}), VClock({1: 2}), "2.11.0")
_COMPRESSOR: Final = zstandard.ZstdCompressor(level=1)


def with_right_checksums(data: bytes) -> bytes:
    """Build a file with valid block checksums, so that the contents are decoded."""
    fixed = bytearray(data)
    for marker in (PLAIN_MARKER, ZSTD_MARKER):
        start = -1
        while (start := fixed.find(marker, start + 1)) >= 0:
            try:
                _, size, _ = decode_head(bytes(fixed[start : start + HEAD_SIZE]).ljust(HEAD_SIZE, b"\0"))
            except ValueError:
                continue
            payload = bytes(fixed[start + HEAD_SIZE : start + HEAD_SIZE + size])
            head = marker + codec.pack(size) + b"\0" + b"\xce" + checksum(payload).to_bytes(4, "big")
            padding = HEAD_SIZE - len(head)
            if len(payload) == size:
                fixed[start : start + HEAD_SIZE] = head + bytes((0xA0 + padding - 1,)) + bytes(padding - 1)
    return bytes(fixed)


def file_of(data: bytes) -> bytes:
    """Build the file of an input."""
    draw = Draw(data)
    how = draw.byte()
    file = b"" if how & 1 else HEADER.encode()
    if how & 2:
        while not draw.is_used_up:
            rows = draw.chunk()
            file += encode_block(rows * (draw.byte() % 16 + 1 if how & 4 else 1), _COMPRESSOR)
    else:
        file += draw.rest()
    if how & 8:
        file += END_MARKER
    return file if how & 16 else with_right_checksums(file)


class Reading:
    """The result of reading a file as far as possible.

    Parameters:
        file: its bytes.
        on_damage: The policy on damage.
        by_changes: Whether to read only the changes of rows.

    Attributes:
        found: The rows.
        reader: The reader, if it reached the end of the file; otherwise None.
    """

    def __init__(self, file: bytes, on_damage: OnDamage, *, by_changes: bool = False) -> None:
        self.found: list[object] = []
        self.reader: XlogReader | None = None
        offset = 0
        try:
            reader = XlogReader(io.BytesIO(file), "x", on_damage)
            batches = reader.changes() if by_changes else reader.batches()
            self.found.extend(item for _, items in batches for item in items)
            self.reader = reader
        except XlogError as error:
            offset = error.offset
        assert 0 <= offset <= len(file)
        if self.reader is not None:
            assert file.index(b"\n\n") + 2 <= self.reader.good_end <= len(file)
            assert all(0 <= damage.start <= damage.end <= len(file) for damage in self.reader.damages)

    @property
    def text(self) -> str:
        """Return the rows in a comparable form: NaN does not equal itself, but its text does."""
        return repr(self.found)


def check(data: bytes) -> None:
    file = file_of(data)
    try:
        header, _ = XlogHeader.decode(file[:HEADER_MAX], "x")
    except XlogError:
        for mode in OnDamage:
            reading = Reading(file, mode)
            assert reading.reader is None
            assert not reading.found
        return
    assert XlogHeader.decode(header.encode(), "x")[0] == header
    strict, cut = Reading(file, OnDamage.STOP), Reading(file, OnDamage.CUT_TAIL)
    skipping = Reading(file, OnDamage.SKIP)
    assert skipping.reader is not None
    if strict.reader is not None:
        assert not strict.reader.damages
        assert cut.reader is not None
        assert not cut.reader.damages
        assert strict.text == cut.text == skipping.text
    assert repr(cut.found[: len(strict.found)]) == strict.text
    if cut.reader is not None and cut.reader.damages:
        # The remaining file is intact, and has the same rows.
        again = Reading(file[: cut.reader.good_end], OnDamage.STOP)
        assert again.reader is not None
        assert again.text == cut.text
    changes = Reading(file, OnDamage.CUT_TAIL, by_changes=True)
    assert len(changes.found) == len(cut.found)


def _rows(lsn: int, count: int = 1, text: bytes = b"\xa1R") -> bytes:
    body = insert_body(512, b"\x92\1" + text)
    requests = [(RowType.INSERT, body), *[(RowType.DELETE, delete_body(512, b"\x91\1"))] * (count - 1)]
    return RowEncoder().transaction(lsn, 1.5, requests)


_BLOCKS: Final = encode_block(_rows(6), None) + encode_block(_rows(7, 2), None)
_LARGE: Final = encode_block(_rows(6, text=b"\xda\x0c\0" + b"x" * 3072), _COMPRESSOR)

TARGET: Final = Target(
    check,
    [
        b"\0" + _BLOCKS,
        b"\x08" + _BLOCKS,
        b"\x10" + _BLOCKS[:-3],
        b"\x18" + _LARGE + _BLOCKS,
        b"\1" + HEADER.encode() + _BLOCKS + END_MARKER,
        b"\1SNAP\n0.12\nServer: " + str(INSTANCE).encode() + b"\nVClock: {0: 1}\n\n" + _BLOCKS,
        b"\x0a" + bytes((len(_rows(6)),)) + _rows(6) + bytes((len(_rows(7, 2)),)) + _rows(7, 2),
        b"\x0e" + bytes((len(_rows(6, 3)),)) + _rows(6, 3) + b"\5",
        b"\0" + _BLOCKS + bytes(40),
    ],
    {
        "a block with a whole transaction and the beginning of another one": bytes.fromhex(
            "0e558500020201030604cb3ff8000000000000000082cd100200219201a15285000504cb3ff8000000000000"
            "08018210cd02002058018600050211030804cb3ff8000100000200080209018210d2ffffffff0105"
        ),
    },
    # A block may compress well.
    memory=256 << 20,
)
