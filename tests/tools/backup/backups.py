"""Databases that the tests of backups copy and restore."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iproto_server.storage.directory import file_name
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, RowEncoder, XlogWriter
from tests.storage.databases import insert, jobs_box, save
from tests.storage.files import TIMESTAMP, Request, header

Blocks = Sequence[Sequence[Sequence[Request]]]
"""Blocks of transactions of requests."""


def write_blocks(
    directory: Path, after: int, blocks: Blocks, *, previous: int | None = None, is_ended: bool = True
) -> Path:
    """Write a log.

    A transaction is as many seconds later than `TIMESTAMP` as its first row's LSN says.

    Parameters:
        directory: where it goes.
        after: the LSN before its first row.
        blocks: what is in it.
        previous: the LSN before the first row of the log before it.
        is_ended: whether it has an end marker.
    """
    path = directory / file_name(FileType.LOG, after)
    encoder = RowEncoder()
    lsn = after
    with path.open("wb", buffering=0) as file:
        before = None if previous is None else VClock({1: previous})
        writer = XlogWriter.create(file, header(clock={1: after}, previous_vclock=before))
        for block in blocks:
            packed = []
            for requests in block:
                packed.append(encoder.transaction(lsn + 1, TIMESTAMP + lsn + 1, requests))
                lsn += len(requests)
            writer.write([b"".join(packed)])
        if is_ended:
            writer.end()
    return path


def job(number: int) -> list[Request]:
    """A transaction of one row: the job of that number."""
    return [insert(number, f"job {number}")]


def jobs_up_to(lsn: int) -> dict[int, str]:
    """The jobs in a database whose rows all are inserted jobs, numbered as the rows."""
    return {number: f"job {number}" for number in range(1, lsn + 1)}


def make_source(directory: Path) -> Path:
    """Make the directory of a stopped server: an old snapshot and log, and a newer snapshot and two logs.

    Row N inserts job N. The newest snapshot has rows 1 to 4, and the log begins before it, at 2. Rows 7 and 8
    are one transaction, in one block with row 6. The second log has the rows 10 to 12.
    """
    directory.mkdir()
    save(jobs_box(), directory, {})
    write_blocks(directory, 0, [[job(1)], [job(2)]])
    save(jobs_box(*([n, text] for n, text in jobs_up_to(4).items())), directory, {1: 4})
    write_blocks(
        directory,
        2,
        [[job(3), job(4)], [job(5)], [job(6), [*job(7), *job(8)]], [job(9)]],
        previous=0,
    )
    write_blocks(directory, 9, [[job(10)], [job(11), job(12)]], previous=2)
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    """The files in a directory."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}
