"""Databases that the tests of this folder write to files and read back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from iproto_server import Box, Space
from iproto_server.box.api.space_index import Index
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.directory import file_name
from iproto_server.storage.recovery.bootstrap import bootstrap
from iproto_server.storage.recovery.recovery import RecoveryResult, recover
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.vclock import VClock
from iproto_server.storage.wal import WriteAheadLog
from iproto_server.storage.xlog import (
    FileType,
    RowEncoder,
    XlogWriter,
)
from tests.storage.files import INSTANCE, TIMESTAMP, Request, deletion, header, insertion, replacement
from tests.storage.files import update as update_of

JOBS = 512
CLUSTER = "b5d2e0b8-5c0a-4a0e-8a3b-0f6f3f3c6e11"


def make_jobs(box: Box) -> Space:
    """The space `jobs`: by id, and by status and id."""
    space = box.schema.create_space("jobs", format=[("id", "unsigned"), ("status", "string")])
    space.create_index("primary", parts=["id"])
    space.create_index("status", parts=["status", "id"])
    assert space.id == JOBS
    return space


def jobs_box(*rows: list[Any]) -> Box:
    """A box with the space `jobs` and rows in it."""
    box = Box(instance_uuid=INSTANCE)
    catalog = box.catalog
    catalog.load(catalog.space_by_name("_schema"), codec.pack(["cluster", CLUSTER]))
    catalog.load(catalog.space_by_name("_cluster"), codec.pack([1, str(INSTANCE)]))
    space = make_jobs(box)
    for row in rows:
        space.insert(row)
    return box


def save(box: Box, directory: Path, clock: dict[int, int]) -> Path:
    """Write a snapshot of a box."""
    with SnapshotWriter(directory, header(FileType.SNAPSHOT, clock), TIMESTAMP) as writer:
        save_rows(box, writer)
    return writer.path


def save_rows(box: Box, writer: SnapshotWriter) -> None:
    """Write all rows of a box into a snapshot."""
    for space in sorted(box.catalog, key=lambda space: space.id):
        if not isinstance(space, SysviewSpace) and not space.is_temporary:
            writer.write(space.id, space.rows(), group_id=int(space.is_local))


def insert(*row: object, space: int = JOBS) -> Request:
    return insertion(space, *row)


def replace(*row: object, space: int = JOBS) -> Request:
    return replacement(space, *row)


def delete(*key: object, space: int = JOBS) -> Request:
    return deletion(space, *key)


def update(key: list[object], operations: list[list[object]], space: int = JOBS) -> Request:
    return update_of(space, key, operations)


def write_log(
    directory: Path,
    clock: dict[int, int],
    transactions: Iterable[list[Request]],
    *,
    first_lsn: int | None = None,
    previous: dict[int, int] | None = None,
    is_ended: bool = True,
    member: int = 1,
) -> Path:
    """Write a log of one member, each transaction in a block of its own.

    Parameters:
        directory: where it goes.
        clock: the clock it begins at.
        transactions: the requests of each.
        first_lsn: the number of the first row; None for the one that follows from the clock.
        previous: the clock of the log before it.
        is_ended: whether it has an end marker.
        member: the member that writes the rows.
    """
    path = directory / file_name(FileType.LOG, sum(clock.values()))
    encoder = RowEncoder(member)
    lsn = clock.get(member, 0) + 1 if first_lsn is None else first_lsn
    with path.open("wb", buffering=0) as file:
        head = header(FileType.LOG, clock, previous_vclock=None if previous is None else VClock(previous))
        writer = XlogWriter.create(file, head)
        for requests in transactions:
            writer.write((encoder.transaction(lsn, TIMESTAMP, requests),))
            lsn += len(requests)
        if is_ended:
            writer.end()
    return path


def write_waiting(box: Box, log: WriteAheadLog) -> None:
    """Write the log as the server does at the end of an iteration, undoing what cannot be written."""
    waiting = box.transactions.take_unwritten()
    try:
        log.write()
    except BoxError:
        box.transactions.undo(waiting)
        raise


def start(directory: Path, *, force: bool = False) -> tuple[Box, RecoveryResult]:
    """Recover what is in a directory."""
    box = Box()
    recovered = recover(box, directory, directory, force=force)
    assert recovered is not None
    return box, recovered


def jobs(directory: Path, *, force: bool = False) -> dict[int, str]:
    """The jobs after recovery: status by id. Checks that the indexes agree."""
    box, _ = start(directory, force=force)
    return jobs_in(box)


def jobs_in(box: Box) -> dict[int, str]:
    """The jobs in a box: status by id. Checks that the indexes agree."""
    return texts(box.space.jobs, box.space.jobs.index.status)


def texts(space: Space, by_text: Index) -> dict[int, str]:
    """The texts in a space, by id. Checks that the index by text and id agrees, and what `bsize` says."""
    rows = [list(row) for row in space.select()]
    assert [list(row) for row in by_text.select()] == sorted(rows, key=lambda row: (row[1], row[0]))
    assert space.bsize() == sum(len(codec.pack(row)) for row in rows)
    return dict(rows)


def new_database(directory: Path) -> RecoveryResult:
    """The first files of a database."""
    return bootstrap(Box(), directory, instance_uuid=INSTANCE, cluster_uuid=INSTANCE, server_version="2.11.0")
