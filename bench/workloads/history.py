"""Writes the files of many tasks of the tutorial's queue without a server, like those of a busy day.

The rows are those of the server: a put is an INSERT, a take a REPLACE, an acknowledgement a DELETE.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

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

SPACE: Final = 512
PAYLOAD: Final = 100
_BEGIN: Final = 1_800_000_000
_STEP_NS: Final = 100_000
_NANOSECONDS: Final = 1_000_000_000
_AT_A_TIME: Final = 10_000
_FILE_SIZE: Final = 256 * 1024**2
_SYSTEM: Final = 511


@dataclass(frozen=True, slots=True)
class History:
    """The written files.

    Attributes:
        directory: their directory.
        rows: the number of rows of tasks in all files, by file type.
        standing: the number of tasks that remain.
    """

    directory: Path
    snapshot_rows: int
    log_rows: int
    standing: int


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
        self._header = newest.header
        with XlogReader.open(newest.path) as reader:
            rows = [row for block in read_snapshot(reader) for row in block]
        self._system: dict[int, list[bytes]] = {}
        for space, raw in rows:
            self._system.setdefault(space, []).append(raw)

    def write(self, directory: Path, standing: int, added: int, done: int) -> History:
        """Write a snapshot, followed by logs.

        Parameters:
            directory: the directory for the files.
            standing: the number of tasks in the snapshot.
            added: the number of tasks put after it.
            done: the number of tasks taken and acknowledged after it, the oldest first.
        """
        directory.mkdir()
        header = self._header
        with SnapshotWriter(directory, header, _BEGIN) as writer:
            for space, rows in self._system.items():
                writer.write(space, rows)
            writer.write(SPACE, (_task(number, "R") for number in range(standing)))
        rows_logged = self._write_logs(directory, header, _changes(standing, added, done))
        return History(directory, standing, rows_logged, standing + added - done)

    @staticmethod
    def _write_logs(directory: Path, header: XlogHeader, changes: Iterable[tuple[int, bytes]]) -> int:
        """Write changes, each as a transaction. Returns: the number of changes."""
        encoder = RowEncoder()
        first = lsn = header.vclock.get(1, 0)
        iterator = iter(changes)
        previous: VClock | None = None
        while some := list(islice(iterator, _AT_A_TIME)):
            vclock = VClock({1: lsn})
            log = XlogHeader(FileType.LOG, header.instance_uuid, vclock, previous, header.server_version)
            previous = vclock
            with (directory / file_name(FileType.LOG, lsn)).open("wb", buffering=0) as file:
                writer = XlogWriter.create(file, log)
                while some:
                    stamp = _BEGIN + lsn / 10_000
                    writer.write(
                        [
                            encoder.transaction(lsn + number, stamp, (change,))
                            for number, change in enumerate(some, 1)
                        ]
                    )
                    lsn += len(some)
                    some = list(islice(iterator, _AT_A_TIME)) if writer.offset < _FILE_SIZE else []
                writer.end()
        return lsn - first


def _changes(standing: int, added: int, done: int) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of puts, takes and acknowledgements, alternately."""
    insert, replace, delete = map(int, (RowType.INSERT, RowType.REPLACE, RowType.DELETE))
    for number in range(max(added, done)):
        if number < added:
            yield insert, insert_body(SPACE, _task(standing + number, "R"))
        if number < done:
            yield replace, insert_body(SPACE, _task(number, "T"))
            yield delete, delete_body(SPACE, pack([_id(number)]))


def _id(number: int) -> int:
    return _BEGIN * _NANOSECONDS + number * _STEP_NS


def _task(number: int, status: str) -> bytes:
    return pack([_id(number), status, 0, _payload(number)])


def _payloads() -> Callable[[int], str]:
    """Return a function from a task's number to its data: 100 digits that do not compress well."""
    digits = os.urandom(1 << 16).hex()
    span = len(digits) - PAYLOAD
    return lambda number: digits[number * 7919 % span :][:PAYLOAD]


_payload: Final = _payloads()
