"""Writes the files of many tasks of the tutorial's queue without a server, like those of a busy day.

The rows are those of the server: a put is an INSERT, a take a REPLACE, an acknowledgement a DELETE. They are
made thousands at a time, as arrays of bytes, so that files of 100 million tasks take minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bench.peers.database import DatabaseServer, Ours
from iproto_server.codec.msgpack import pack
from iproto_server.storage.directory import file_name, find_snapshots
from iproto_server.storage.snapshot import SnapshotWriter, read_snapshot
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import (
    FileType,
    RowEncoder,
    RowType,
    XlogHeader,
    XlogReader,
    XlogWriter,
    delete_body,
    insert_body,
)
from iproto_server.storage.xlog.block import BLOCK_SIZE, HEAD_SIZE

SPACE: Final = 512
PAYLOAD: Final = 100
_BEGIN: Final = 1_800_000_000
_STEP_NS: Final = 100_000
_NANOSECONDS: Final = 1_000_000_000
_AT_A_TIME: Final = 4096
_FILE_SIZE: Final = 256 * 1024**2
_FIRST_LSN: Final = 0x10000
"""The LSN of the snapshot: all later ones up to 2³² have the same packed size."""

_LSN: Final = slice(7, 11)
"""The place of the LSN in a row of a log."""

Request = tuple[int, bytes]
"""The type and the body of a change."""

_Bytes = npt.NDArray[np.uint8]
"""Packed rows of equal size, one per row of the array."""


@dataclass(frozen=True, slots=True)
class History:
    """The written files.

    Attributes:
        directory: their directory.
        snapshot_rows: the number of tasks in the snapshot.
        log_rows: the number of rows in the logs.
        standing: the number of tasks that remain.
    """

    directory: Path
    snapshot_rows: int
    log_rows: int
    standing: int

    def rows_read(self, mode: str) -> int:
        """Return the number of rows that a mode of the data source reads."""
        return {
            "snapshot": self.snapshot_rows,
            "current": self.snapshot_rows + self.log_rows,
            "changes": self.log_rows,
        }[mode]


class LogBatch(NamedTuple):
    """Rows of a log with consecutive LSNs.

    Attributes:
        rows: their number.
        pieces: their bytes, in pieces of one or more transactions.
    """

    rows: int
    pieces: Sequence[bytes]


class HistoryWriter:
    """Writes histories.

    Parameters:
        directory: the directory in which a server creates the first files, which define the queue's space.
    """

    def __init__(self, directory: Path) -> None:
        with DatabaseServer(Ours(), directory) as server:
            server.connection.call("box.snapshot")
        newest = find_snapshots(directory).newest
        assert newest is not None
        self._header = replace(newest.header, vclock=VClock({1: _FIRST_LSN}))
        with XlogReader.open(newest.path) as reader:
            rows = [row for block in read_snapshot(reader) for row in block]
        self._system: dict[int, list[bytes]] = {}
        for space, raw in rows:
            self._system.setdefault(space, []).append(raw)

    def write(self, directory: Path, standing: int, added: int, done: int) -> History:
        """Write a snapshot, followed by logs in which each change is a transaction.

        Parameters:
            directory: the directory for the files.
            standing: the number of tasks in the snapshot.
            added: the number of tasks put after it.
            done: the number of tasks taken and acknowledged after it, the oldest first.
        """
        self._write_snapshot(directory, standing)
        rows = self._write_logs(directory, _task_changes(standing, added, done))
        return History(directory, standing, rows, standing + added - done)

    def write_transactions(
        self, directory: Path, standing: int, transactions: Iterable[Sequence[Request]], remaining: int
    ) -> History:
        """Write a snapshot, followed by logs with given transactions.

        Parameters:
            directory: the directory for the files.
            standing: the number of tasks in the snapshot.
            transactions: the changes of each transaction.
            remaining: the number of tasks that remain after them.
        """
        self._write_snapshot(directory, standing)
        rows = self._write_logs(directory, _encoded(transactions))
        return History(directory, standing, rows, remaining)

    def _write_snapshot(self, directory: Path, standing: int) -> None:
        directory.mkdir()
        with SnapshotWriter(directory, self._header, _BEGIN) as writer:
            for space, rows in self._system.items():
                writer.write(space, rows)
            for numbers in _ranges(0, standing):
                writer.write(SPACE, _pieces(_tasks(numbers, "R")))

    def _write_logs(self, directory: Path, batches: Iterable[LogBatch]) -> int:
        """Write logs. Returns: the number of rows."""
        lsn = _FIRST_LSN
        previous: VClock | None = None
        iterator = iter(batches)
        batch = next(iterator, None)
        while batch is not None:
            vclock = VClock({1: lsn})
            header = XlogHeader(
                FileType.LOG, self._header.instance_uuid, vclock, previous, self._header.server_version
            )
            previous = vclock
            with (directory / file_name(FileType.LOG, lsn)).open("wb", buffering=0) as file:
                writer = XlogWriter.create(file, header)
                while batch is not None and writer.offset < _FILE_SIZE:
                    writer.write(_blocks(batch.pieces))
                    lsn += batch.rows
                    batch = next(iterator, None)
                writer.end()
        return lsn - _FIRST_LSN


def packed_tasks(numbers: Sequence[int], status: str) -> list[bytes]:
    """Return packed tasks.

    Parameters:
        numbers: the numbers of the tasks.
        status: their status, one letter.
    """
    return _pieces(_tasks(np.asarray(numbers), status))


def packed_ids(numbers: Sequence[int]) -> list[bytes]:
    """Return the packed keys of tasks.

    Parameters:
        numbers: the numbers of the tasks.
    """
    return _pieces(_keys(np.asarray(numbers)))


def _task_changes(standing: int, added: int, done: int) -> Iterator[LogBatch]:
    """Yield the rows of puts, takes and acknowledgements, alternately."""
    lsn = _FIRST_LSN
    both = min(added, done)
    insert, delete = insert_body(SPACE, b""), delete_body(SPACE, b"")
    for begin, end in ((0, both), (both, max(added, done))):
        for numbers in _ranges(begin, end):
            bodies: list[tuple[RowType, _Bytes]] = []
            if begin < added:
                bodies.append((RowType.INSERT, _beside(insert, _tasks(standing + numbers, "R"))))
            if begin < done:
                bodies.append((RowType.REPLACE, _beside(insert, _tasks(numbers, "T"))))
                bodies.append((RowType.DELETE, _beside(delete, _keys(numbers))))
            lsns = lsn + 1 + np.arange(len(numbers)) * len(bodies)
            rows = [
                _logged(row_type, lsns + place, _timestamp(lsn), body)
                for place, (row_type, body) in enumerate(bodies)
            ]
            count = len(numbers) * len(bodies)
            lsn += count
            yield LogBatch(count, _pieces(_beside(*rows)))


def _encoded(transactions: Iterable[Sequence[Request]]) -> Iterator[LogBatch]:
    """Yield transactions as rows."""
    encoder = RowEncoder()
    lsn = _FIRST_LSN
    count = 0
    pieces: list[bytes] = []
    stamp = _timestamp(lsn)
    for requests in transactions:
        pieces.append(encoder.transaction(lsn + count + 1, stamp, requests))
        count += len(requests)
        if count >= _AT_A_TIME:
            yield LogBatch(count, pieces)
            lsn, count, pieces = lsn + count, 0, []
            stamp = _timestamp(lsn)
    if pieces:
        yield LogBatch(count, pieces)


def _timestamp(lsn: int) -> float:
    return _BEGIN + lsn / 10_000


def _logged(row_type: RowType, lsns: npt.NDArray[np.int64], timestamp: float, bodies: _Bytes) -> _Bytes:
    """Return rows of a log, each a transaction."""
    head = RowEncoder().transaction(int(lsns[0]), timestamp, [(int(row_type), b"")])
    rows = _beside(head, bodies)
    rows[:, _LSN] = _big_endian(lsns, 4)
    return rows


def _tasks(numbers: npt.NDArray[np.int64], status: str) -> _Bytes:
    data = b"\xd9" + bytes((PAYLOAD,))
    return _beside(b"\x94", _ids(numbers), pack(status) + pack(0) + data, _PAYLOADS[_payload(numbers)])


def _keys(numbers: npt.NDArray[np.int64]) -> _Bytes:
    return _beside(b"\x91", _ids(numbers))


def _ids(numbers: npt.NDArray[np.int64]) -> _Bytes:
    return _beside(b"\xcf", _big_endian(_BEGIN * _NANOSECONDS + numbers * _STEP_NS, 8))


def _payload(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the places of tasks' data in `_PAYLOADS`."""
    return numbers * 7919 % (len(_PAYLOADS) - 1)


def _beside(*columns: bytes | _Bytes) -> _Bytes:
    """Join columns; those of bytes are the same in all rows."""
    count = max(len(column) for column in columns if not isinstance(column, bytes))
    return np.hstack(
        [
            np.broadcast_to(np.frombuffer(column, np.uint8), (count, len(column)))
            if isinstance(column, bytes)
            else column
            for column in columns
        ]
    )


def _big_endian(numbers: npt.NDArray[np.int64], size: int) -> _Bytes:
    return numbers.astype(f">u{size}").view(np.uint8).reshape(-1, size)


def _pieces(rows: _Bytes) -> list[bytes]:
    width = rows.shape[1]
    data = rows.tobytes()
    return [data[start : start + width] for start in range(0, len(data), width)]


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join pieces to blocks that are as large as those of a server."""
    block: list[bytes] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if HEAD_SIZE + size >= BLOCK_SIZE:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)


def _ranges(begin: int, end: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield numbers, some at a time."""
    for start in range(begin, end, _AT_A_TIME):
        yield np.arange(start, min(end, start + _AT_A_TIME))


def _payloads() -> _Bytes:
    """Return the data that tasks may have: 100 digits that do not compress well."""
    digits = np.frombuffer(os.urandom(1 << 16).hex().encode(), np.uint8)
    return np.lib.stride_tricks.sliding_window_view(digits, PAYLOAD)


_PAYLOADS: Final = _payloads()
