"""Recovery: the contents of a log are applied or a storage error, and the result can be stored.

Every input is the log behind a small snapshot, and may damage the snapshot. The recovered state is written as
a snapshot, which is recovered again: memory must hold nothing that the files cannot.
"""

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
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.storage.errors import StorageError
from iproto_server.storage.recovery.recovery import recover
from iproto_server.storage.xlog import RowType, delete_body, insert_body, update_body, upsert_body
from tests.fuzz.draw import Draw
from tests.fuzz.spaces.updates import draw_operation
from tests.fuzz.target import Target
from tests.storage.databases import JOBS, jobs_box, save, write_log
from tests.storage.files import Request

CLOCK: Final = 5
COLLECT_EVERY: Final = 20
_OPERATIONS: Final = (RowType.UPDATE, RowType.UPSERT)
_inputs: Final = count()
_FORMAT: Final = [{"name": "id", "type": "unsigned"}, {"name": "text", "type": "string", "is_nullable": True}]
ROWS: Final[tuple[tuple[int, list[object]], ...]] = (
    (JOBS, [2, "R"]),
    (513, [1, "x", 1.5]),
    (280, [513, 1, "more", "memtx", 0, {}, _FORMAT]),
    (288, [513, 0, "pk", "tree", {"unique": True}, [[0, "unsigned"]]]),
    (288, [513, 1, "text", "hash", {"unique": True}, [{"field": 1, "type": "string", "is_nullable": False}]]),
    (288, [JOBS, 2, "third", "tree", {"unique": False}, [[1, "string"]]]),
    (272, ["key", "value"]),
    (272, ["max_id", 600]),
    (304, [40, 1, "alice", "user", {"chap-sha1": "vhvewKp0tNyweZQ+cFKAlsyphfg="}]),
    (312, [1, 40, "space", JOBS, 3]),
    (296, [50, 1, "function", 0]),
    (284, [1, 1, "counter", 1, 1, 100, 1, 0, False]),
    (285, [1, 5]),
    (340, [JOBS, 1, False, 0, ""]),
    (330, [JOBS, 1]),
    (320, [2, "5a1b0b8e-6c0a-4a0e-8a3b-0f6f3f3c6e11"]),
    (281, [JOBS, 1, "jobs", "memtx", 0, {}, []]),
)
"""Spaces, and the form of their rows."""


def draw_row(draw: Draw) -> tuple[int, list[object]]:
    """Draw a space and a row of it, which may be faulty."""
    space_id, row = draw.pick(ROWS)
    row = list(row)
    changes = draw.byte()
    for _ in range(changes % 4):
        place = draw.byte() % (len(row) + 1)
        if changes & 4:
            del row[place:]
        else:
            row[place : place + 1] = [draw.value(3)]
    return (draw.integer() & 0xFFFFFFFF if changes & 8 else space_id), row


def draw_request(draw: Draw) -> Request:
    """Draw a row of a log."""
    kind = draw.byte()
    if kind % 16 == 15:
        body = draw.chunk()
        return kind >> 4, body if codec.is_valid(body) and codec.kind(body) is codec.Kind.MAP else b"\x80"
    space_id, row = draw_row(draw)
    packed, key = codec.pack(row), codec.pack(row[: (2 if space_id in (288, 312) else 1)])
    if kind % 8 < 4:
        return (RowType.INSERT if kind & 1 else RowType.REPLACE), insert_body(space_id, packed)
    if kind % 8 == 4:
        return RowType.DELETE, delete_body(space_id, key, kind >> 6)
    operations = codec.pack([draw_operation(draw) for _ in range(draw.byte() % 3)])
    if kind % 8 == 5:
        return RowType.UPSERT, upsert_body(space_id, packed, operations, index_base=kind >> 5 & 1)
    return RowType.UPDATE, update_body(space_id, key, operations, index_base=kind >> 5 & 1)


@cache
def home() -> Path:
    """Create a directory with a snapshot, in memory if possible."""
    logging.getLogger("iproto_server").setLevel(logging.CRITICAL)
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="fuzz-recovery-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, directory)
    save(jobs_box([1, "R"]), directory, {1: CLOCK})
    (directory / "again").mkdir()
    return directory


def rows_in(box: Box) -> dict[int, list[bytes]]:
    """Return all rows, ordered by primary keys, after checking that a space's indexes have equal sizes."""
    rows: dict[int, list[bytes]] = {}
    for space in box.catalog:
        if isinstance(space, SysviewSpace) or not space.indexes:
            continue
        rows[space.id] = list(space.rows())
        for index in space.indexes.values():
            assert len(index) == len(rows[space.id]), (space.name, index.name)
    return rows


def damaged(data: bytes, damages: list[tuple[int, int]]) -> bytes:
    """Change a file at some places, or cut it there."""
    changed = bytearray(data)
    for position, change in damages:
        if changed and change:
            changed[position % len(changed)] ^= change
        else:
            del changed[position % (len(data) + 1) :]
    return bytes(changed)


def check(data: bytes) -> None:
    draw = Draw(data)
    options = draw.byte()
    force = bool(options & 1)
    damages = [(draw.byte() << 8 | draw.byte(), draw.byte()) for _ in range(options >> 1 & 3)]
    transactions: list[list[Request]] = []
    while not draw.is_used_up and len(transactions) < 20:
        transactions.append([draw_request(draw) for _ in range(draw.byte() % 3 + 1)])
    directory = home()
    with patch.object(os, "fsync", lambda descriptor: None):
        # A log that begins at the beginning replaces a damaged snapshot; another one cannot.
        clock = 0 if damages and options & 8 else CLOCK
        write_log(directory, {1: clock} if clock else {}, transactions)
        snapshot = directory / f"{CLOCK:020d}.snap"
        whole = snapshot.read_bytes()
        snapshot.write_bytes(damaged(whole, damages))
        try:
            # The results of operations were validated when they were logged, and are not validated again.
            is_checked = not any(kind in _OPERATIONS for requests in transactions for kind, _ in requests)
            is_checked = is_checked and not damages
            check_recovery(directory, directory / "again", force, is_checked)
        finally:
            for path in directory.glob("*.xlog*"):
                path.unlink()
            snapshot.write_bytes(whole)
            # Do not keep what recovery excludes from garbage collection.
            gc.unfreeze()
            if next(_inputs) % COLLECT_EVERY == 0:
                gc.collect()


def check_recovery(directory: Path, other: Path, force: bool, is_checked: bool) -> None:
    """Recover a directory, and from it another one, which must work if all rows were `checked`."""
    box = Box()
    try:
        recovered = recover(box, directory, directory, force=force)
    except StorageError:
        return
    assert recovered is not None
    rows = rows_in(box)
    path = save(box, other, {1: CLOCK})
    try:
        again = Box()
        recover(again, other, other)
        assert rows_in(again) == rows
    except StorageError:
        if is_checked:
            raise
    finally:
        path.unlink()


def _seed(*what: int) -> bytes:
    return bytes(what)


TARGET: Final = Target(
    check,
    [
        b"",
        _seed(0, 0, 0, 0, 0),
        _seed(0, 1, 1, 0, 0, 4, 0, 0),
        _seed(0, 0, 1, 2, 0, 0, 1, 3, 0, 0, 1, 4, 0, 0, 1, 1, 0),
        _seed(0, 0, 6, 0, 0, 1, 0, 1, 3, 2),
        _seed(0, 0, 5, 0, 0, 1, 3, 2, 3, 1),
        *(_seed(1, *(byte for space in range(len(ROWS)) for byte in (0, kind, space, 0))) for kind in (0, 4)),
        _seed(1, 0, 31, 4, 0x82, 0x10, 1, 0),
        _seed(3, 1, 0, 1, 0, 1, 3, 2),
        _seed(11, 0, 4, 1, 0, 1, 3, 2, 0, 0, 1, 4, 0, 0),
        _seed(5, 2, 0, 0, 0, 1, 0, 0, 0, 1, 3, 2),
    ],
    {
        "a second user of one name": (
            b"\x81\0\0\r\r\r\xe5\xe5\xe5\xe5\x81\0\0\0\xe5\xe5\xe5$\xe5\xe5\xe5\xe5\xe5\xe5\xe5\xe5\xe5\x81\0\0"
            b"\xe5\xe5\xe5\xe5$\xe5\xe5"
        ),
    },
    memory=64 << 20,
)
