"""Blocks of snapshots and logs with right checksums: recovery is the same as requests with these rows."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final
from unittest.mock import patch

from iproto_server import Box
from iproto_server.codec import msgpack as codec
from iproto_server.storage.directory import file_name
from iproto_server.storage.errors import StorageError
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.snapshot import SnapshotEncoder
from iproto_server.storage.xlog import FileType, RowEncoder, RowType, decode_rows
from iproto_server.storage.xlog.block import END_MARKER, encode_block
from iproto_server.storage.xlog.encoder import delete_body, insert_body, update_body, upsert_body
from tests.fuzz.draw import Draw
from tests.fuzz.files.recovery import COLLECT_EVERY
from tests.fuzz.spaces import answers
from tests.fuzz.spaces.spaces import (
    FIRST,
    HASHED,
    SPACES,
    check_indexes,
    draw_key,
    draw_row,
    draw_update,
    empty,
    make_spaces,
)
from tests.fuzz.target import Target
from tests.storage.databases import jobs_box, save
from tests.storage.files import TIMESTAMP, Request, header

CLOCK: Final = 5
NAMES: Final = [f"s{FIRST + number}" for number in range(len(SPACES))]
_IDS: Final = range(FIRST, FIRST + len(SPACES))
_REQUESTS: Final = (*(RowType.INSERT, RowType.REPLACE, RowType.DELETE, RowType.UPDATE, RowType.UPSERT),)
_inputs: Final = count()


@cache
def home() -> tuple[Path, bytes]:
    """Create a directory for files, in memory if possible, and the snapshot of empty spaces of all kinds."""
    logging.getLogger("iproto_server").setLevel(logging.CRITICAL)
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="fuzz-replay-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, directory)
    box = jobs_box()
    box.run(box.session.background, make_spaces, box)
    path = save(box, directory, {1: CLOCK})
    whole = path.read_bytes()
    path.unlink()
    assert whole.endswith(END_MARKER)
    return directory, whole[: -len(END_MARKER)]


def _space(number: int) -> int:
    """Return the number of a space; not of the one whose rows have no order."""
    space = number % len(SPACES)
    return 0 if FIRST + space == HASHED else space


def draw_blocks(draw: Draw) -> list[bytes]:
    """Draw the contents of blocks of a snapshot, whose rows may be in any order."""
    encoder = SnapshotEncoder(TIMESTAMP)
    encoder.rows = 300
    blocks: list[bytes] = []
    for _ in range(draw.byte() % 4):
        how = draw.byte()
        space = _space(how)
        rows = [codec.pack(draw_row(draw, SPACES[space][0])) for _ in range(draw.byte() % 8)]
        full = encoder.add(FIRST + space, rows if how >= 0xC0 else sorted(set(rows)))
        blocks += [b"".join(pieces) for pieces in full]
        if how & 0x20:
            blocks.append(b"".join(encoder.take()))
    blocks.append(b"".join(encoder.take()))
    return [block for block in blocks if block]


def draw_request(draw: Draw) -> Request:
    """Draw a row of a log."""
    kind = draw.byte()
    space = _space(draw.byte())
    types = SPACES[space][0]
    if kind % 8 < 4:
        request_type = RowType.INSERT if kind & 1 else RowType.REPLACE
        return request_type, insert_body(FIRST + space, codec.pack(draw_row(draw, types)))
    index = kind >> 6 if kind & 0x20 else 0
    key = codec.pack(draw_key(draw, FIRST + space, index))
    if kind % 8 < 6:
        return RowType.DELETE, delete_body(FIRST + space, key, index)
    operations = codec.pack([draw_update(draw, types) for _ in range(draw.byte() % 4)])
    if kind % 8 == 6:
        return RowType.UPDATE, update_body(FIRST + space, key, operations, index_base=kind >> 4 & 1)
    row = codec.pack(draw_row(draw, types))
    return RowType.UPSERT, upsert_body(FIRST + space, row, operations, index_base=kind >> 4 & 1)


def draw_log(draw: Draw) -> list[bytes]:
    """Draw the contents of blocks of a log."""
    encoder = RowEncoder()
    lsn = CLOCK + 1
    blocks: list[bytes] = []
    rows = b""
    while not draw.is_used_up and lsn < CLOCK + 60:
        how = draw.byte()
        requests = [draw_request(draw) for _ in range(1 if how & 3 else how >> 2 & 3)]
        if requests:
            rows += encoder.transaction(lsn, TIMESTAMP, requests)
            lsn += len(requests)
        if how >= 0xE0:
            blocks.append(rows)
            rows = b""
    blocks.append(rows)
    return [block for block in blocks if block]


def damaged(blocks: list[bytes], damages: list[tuple[int, int, int]]) -> list[bytes]:
    """Change bytes of blocks, or cut blocks, before their checksums are made."""
    changed = [bytearray(block) for block in blocks]
    for number, position, change in damages:
        block = changed[number % len(changed)] if changed else bytearray()
        if block and change:
            block[position % len(block)] ^= change
        else:
            del block[position % (len(block) + 1) :]
    return [bytes(block) for block in changed if block]


def rows_by_index(box: Box) -> list[object]:
    """Return the rows of all spaces in the order of each index."""
    return [
        (name, index.name, [row.raw for row in index.select()])
        for name in NAMES
        for index in box.space[name].index
    ]


def rows_after_requests(blocks: list[bytes], log: list[bytes]) -> list[object] | None:
    """Apply the rows of blocks as requests of a client.

    Returns:
        The rows of all spaces; None if one of the requests is refused, or not about these spaces, or if rows
        of the log are missing.

    Raises:
        ValueError: The rows cannot be read.
    """
    logged = [row for block in log for row in decode_rows(block)]
    stored = [row for block in blocks for row in decode_rows(block)]
    if (
        any(row.type != RowType.INSERT for row in stored)
        or [(row.replica_id, row.lsn) for row in logged] != [(1, CLOCK + 1 + n) for n in range(len(logged))]
        or any(row.type not in _REQUESTS or row.space_id not in _IDS for row in (*stored, *logged))
    ):
        return None
    target = answers.subject()
    try:
        for row in (*stored, *logged):
            if answers.is_refusal(target.handle(codec.pack({0: row.type, 1: 5}) + row.body, "admin")):
                return None
        return rows_by_index(target.box)
    finally:
        empty(target.box)
        target.write()


def recovered_from(blocks: list[bytes], log: list[bytes], *, is_forced: bool) -> Box | None:
    """Recover the files of these blocks.

    Returns:
        The box; None if the files are refused.
    """
    directory, snapshot = home()
    pieces = [snapshot, *(encode_block(block, None) for block in blocks), END_MARKER]
    (directory / file_name(FileType.SNAPSHOT, CLOCK)).write_bytes(b"".join(pieces))
    pieces = [
        header(FileType.LOG, {1: CLOCK}).encode(),
        *(encode_block(block, None) for block in log),
        END_MARKER,
    ]
    (directory / file_name(FileType.LOG, CLOCK)).write_bytes(b"".join(pieces))
    box = Box()
    try:
        with patch.object(os, "fsync", lambda descriptor: None):
            assert recover(box, directory, directory, force=is_forced) is not None
    except StorageError:
        return None
    finally:
        for path in directory.iterdir():
            path.unlink()
        # Do not keep what recovery excludes from garbage collection.
        gc.unfreeze()
        if next(_inputs) % COLLECT_EVERY == 0:
            gc.collect()
    return box


def check(data: bytes) -> None:
    """Recover files, and compare that with requests that say the same."""
    draw = Draw(data)
    how = draw.byte()
    damages = [(draw.byte(), draw.byte() << 8 | draw.byte(), draw.byte()) for _ in range(how >> 1 & 3)]
    blocks = draw_blocks(draw)
    log = draw_log(draw)
    if how & 0x40:
        blocks = damaged(blocks, damages)
    else:
        log = damaged(log, damages)
    is_forced = bool(how & 1)
    box = recovered_from(blocks, log, is_forced=is_forced)
    if box is not None:
        check_indexes(box, [name for name in NAMES if name in box.space])
    try:
        expected = rows_after_requests(blocks, log)
    except ValueError:
        assert box is None or is_forced
        return
    if expected is not None:
        assert box is not None
        assert rows_by_index(box) == expected


def _rows(space: int, rows: int) -> bytes:
    """A group of rows of a snapshot."""
    width = len(SPACES[space][0])
    fields = (bytes((*(number + place for place in range(width)), 0)) for number in range(rows))
    return bytes((space, rows)) + b"".join(fields)


TARGET: Final = Target(
    check,
    [
        b"",
        *(b"\0\1" + _rows(space, 5) for space in range(len(SPACES))),
        *(
            b"\0\1" + _rows(space, 5) + bytes((1, 6, space, 0, 0, 1, 2, 0, 1, 2))
            for space in range(len(SPACES))
        ),
        *(
            b"\0\1" + _rows(space, 5) + bytes((1, 4, space, 0, 0, 1, 2, space, 1, 1, 1))
            for space in range(len(SPACES))
        ),
        *(
            bytes((how, 0, 0, 40, 1, 2)) + _rows(1, 5) + bytes((1, 2, 1, 1, 1, 1))
            for how in (2, 3, 0x42, 0x43)
        ),
        b"\0\3" + _rows(0, 7) + _rows(1, 0) + _rows(3, 4),
    ],
    {
        "an UPDATE that changes the primary key": bytes(
            (0, 1, 0, 5, 0, 1, 0, 1, 2, 0, 2, 3, 0, 3, 4, 0, 4, 5, 0)
        )
        + bytes((1, 6, 0, 0, 0, 1, 2, 0, 1, 2)),
    },
    memory=64 << 20,
)
