"""A sample database with snapshots and several logs, to be damaged by tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from iproto_server import Box
from iproto_server.storage.errors import StorageError
from iproto_server.storage.recovery.recovery_result import RecoveryResult
from iproto_server.storage.snapshot import SnapshotWriter
from iproto_server.storage.storage import Storage, StorageOptions
from iproto_server.storage.wal import WalMode
from iproto_server.storage.xlog import FileType, XlogHeader, XlogReader
from tests.server.faults.faulty_disk import FaultyDisk
from tests.storage.databases import save_rows, start, texts, write_waiting
from tests.storage.files import INSTANCE, TIMESTAMP

Rows = dict[int, str]
Change = tuple[int, str | None]
"""Id and text of a row; None: the row is deleted."""

LONG = "long " * 800
"""A text that makes a block large enough to be compressed."""

PLAIN: list[Change] = [(101, "plain")]
SEVERAL: list[Change] = [(102, "one of several"), (1, "changed"), (2, None)]
COMPRESSED: list[Change] = [(103, LONG)]


def after(rows: Rows, changes: Iterable[Change]) -> Rows:
    """Return the rows after some changes."""
    result = dict(rows)
    for key, text in changes:
        if text is None:
            result.pop(key, None)
        else:
            result[key] = text
    return result


class OpenDatabase:
    """An open database, as in a server. Use as a context manager.

    Parameters:
        directory: its directory.
        max_size: size of a log in bytes at which the next one begins.
        force: whether damaged parts are skipped.
        mode: when a change counts as written.

    Attributes:
        disk: the disk of its logs.
    """

    def __init__(
        self,
        directory: Path,
        *,
        max_size: int = 1 << 20,
        force: bool = False,
        mode: WalMode = WalMode.WRITE,
    ) -> None:
        self.directory = directory
        self.disk = FaultyDisk()
        self.box = Box()
        options = StorageOptions(
            log_directory=directory,
            snapshot_directory=directory,
            wal_mode=mode,
            wal_max_size=max_size,
            force_recovery=force,
            instance_uuid=INSTANCE,
            server_version="2.11.0",
        )
        self.storage = Storage(
            self.box, options, lambda job: job(), open_file=self.disk.open, sync_file=self.disk.sync
        )

    def flush(self) -> None:
        """Write the pending rows, as at the end of a loop iteration."""
        write_waiting(self.box, self.storage.log)

    def create(self) -> None:
        """Create the space."""
        space = self.box.schema.create_space("rows", format=[("id", "unsigned"), ("text", "string")])
        space.create_index("primary", parts=["id"])
        space.create_index("text", parts=["text", "id"])
        self.flush()

    def commit(self, changes: Iterable[Change]) -> None:
        """Make one transaction of changes, in a block of its own."""
        self.box.atomic(self._change, changes)
        self.flush()

    def _change(self, changes: Iterable[Change]) -> None:
        for key, text in changes:
            if text is None:
                self.box.space.rows.delete(key)
            else:
                self.box.space.rows.replace([key, text])

    def snapshot(self) -> Path:
        """Take a snapshot, and begin a new log."""
        log = self.storage.log
        header = XlogHeader(FileType.SNAPSHOT, self.box.uuid, log.vclock, server_version="2.11.0")
        with SnapshotWriter(self.directory, header, TIMESTAMP) as writer:
            save_rows(self.box, writer)
        log.rotate()
        return writer.path

    def close(self) -> None:
        """Close it properly."""
        self.storage.close()

    def __enter__(self) -> OpenDatabase:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class SampleDatabase(NamedTuple):
    """The files of a database, whose last log has an undamaged block and then the tail.

    Attributes:
        directory: their directory.
        files: the original content of each file.
        log: the last log.
        ends: offsets of the ends of its header and blocks.
        before: the rows before the last log.
        blocks: the changes of each block.
    """

    directory: Path
    files: dict[Path, bytes]
    log: Path
    ends: list[int]
    before: Rows
    blocks: list[Sequence[Change]]

    @property
    def data(self) -> bytes:
        """The original content of the last log."""
        return self.files[self.log]

    def rows(self, blocks: int | None = None, without: int | None = None) -> Rows:
        """Return the rows of the database.

        Parameters:
            blocks: after so many blocks of the last log; None for all of them.
            without: the number of a block that is left out.
        """
        rows = self.before
        for number, changes in enumerate(self.blocks[:blocks]):
            if number != without:
                rows = after(rows, changes)
        return rows

    def restore(self, log: bytes | None = None) -> None:
        """Restore all files, the last log with the given content."""
        for path in self.directory.iterdir():
            if path not in self.files:
                path.unlink()
        for path, data in self.files.items():
            wanted = log if path == self.log and log is not None else data
            if not path.exists() or path.read_bytes() != wanted:
                path.write_bytes(wanted)

    def unchanged(self, log: bytes | None = None) -> bool:
        """Whether all files are as after `restore`."""
        expected = dict(self.files) if log is None else {**self.files, self.log: log}
        return {path: path.read_bytes() for path in self.directory.iterdir()} == expected

    def copy_to(self, directory: Path) -> SampleDatabase:
        """Copy the files to another directory."""
        shutil.copytree(self.directory, directory, dirs_exist_ok=True)
        files = {directory / path.name: data for path, data in self.files.items()}
        return self._replace(directory=directory, files=files, log=directory / self.log.name)


def sample_database(directory: Path, tail: Sequence[Sequence[Change]], *, is_ended: bool) -> SampleDatabase:
    """Make a database with two snapshots and several logs, as in two runs of a server.

    Parameters:
        directory: its directory.
        tail: the changes of the last blocks of the last log.
        is_ended: whether the last log has its end marker, as after a proper stop.
    """
    rows: Rows = {}

    def commit(database: OpenDatabase, changes: Sequence[Change]) -> None:
        nonlocal rows
        database.commit(changes)
        rows = after(rows, changes)

    with OpenDatabase(directory, max_size=400) as database:
        database.create()
        commit(database, [(number, f"row {number}") for number in range(1, 10)])
        database.snapshot()
        commit(database, [(11, LONG)])
        commit(database, [(12, "twelve"), (3, None)])
        database.snapshot()
        for number in range(20, 26):
            commit(database, [(number, f"row {number}"), (4, f"changed {number}")])
    database = OpenDatabase(directory)
    before = rows
    blocks = [[(30, "the last but the tail")], *tail]
    for changes in blocks:
        commit(database, changes)
    log = max(directory.glob("*.xlog"))
    data = log.read_bytes()
    database.close()
    if not is_ended:
        log.write_bytes(data)
    with XlogReader.open(log) as reader:
        ends = [reader.good_end, *(block.end for block in reader.blocks())]
    assert len(ends) == len(blocks) + 1
    files = {path: path.read_bytes() for path in directory.iterdir()}
    return SampleDatabase(directory, files, log, ends, before, blocks)


def rows_after_start(directory: Path, *, force: bool = False) -> tuple[Rows, RecoveryResult]:
    """Recover a database, check that its indexes agree, and return its rows."""
    box, recovered = start(directory, force=force)
    return rows_in(box), recovered


def rows_or_refusal(directory: Path, *, force: bool = False) -> tuple[Rows, list[str]] | str:
    """Recover a database; return its rows and damages, or the error."""
    try:
        rows, recovered = rows_after_start(directory, force=force)
    except StorageError as error:
        return str(error)
    return rows, recovered.damages


def rows_in(box: Box) -> Rows:
    """Return the rows in a box, if any, after a check that the indexes agree."""
    if "rows" not in box.space:
        return {}
    return texts(box.space.rows, box.space.rows.index.text)
