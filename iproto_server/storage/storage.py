"""Opening a database: its directories locked, its rows in the box, its log ready to go on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from iproto_server.box.api.box import Box
from iproto_server.box.catalog.system_space_ids import CLUSTER, SCHEMA
from iproto_server.box.tuple.tuple import Tuple
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.directory import DirectoryLock, list_files
from iproto_server.storage.garbage_collector import remove_files
from iproto_server.storage.log_rotation import LogFile, open_log, sync_file
from iproto_server.storage.recovery.recovery import (
    Progress,
    RecoveryResult,
    bootstrap,
    recover,
    remove_unfinished,
)
from iproto_server.storage.wal import WalMode, WriteAheadLog
from iproto_server.storage.xlog import FileType

logger = logging.getLogger("iproto_server.storage")


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Where a database is and how it is kept.

    Attributes:
        log_directory: Where the logs are.
        snapshot_directory: Where the snapshots are.
        wal_mode: What "written" means.
        wal_max_size: A log that has reached so many bytes is followed by another one.
        force_recovery: Whether what is damaged is left out instead of refusing to start.
        instance_uuid: Whose database it must be; None: whoever's it is, and a new one's where there is none.
        server_version: The program, in the files' words.
    """

    log_directory: Path
    snapshot_directory: Path
    wal_mode: WalMode
    wal_max_size: int
    force_recovery: bool
    instance_uuid: UUID | None
    server_version: str


class Storage:
    """The files of a running database.

    Args:
        box: An empty box; it is filled.
        options: Where the files are and how they are kept.
        defer: Calls a function that may wait for the disk, off the hot road.
        progress: Is told how far recovery is.
        open_file, sync_file: How the log's files are made and synced.

    Attributes:
        log: The log, which is the box's journal now.
        recovered: What was found, or made.
        is_new: Whether it was made.

    Raises:
        StorageError: The files cannot be used as they are, or another process uses them.
        OSError: They cannot be read or written.
        BoxError: WAL_IO, the instance is no member of its replica set, and that cannot be changed.
    """

    def __init__(
        self,
        box: Box,
        options: StorageOptions,
        defer: Callable[[Callable[[], None]], object],
        progress: Progress | None = None,
        open_file: Callable[[Path], LogFile] = open_log,
        sync_file: Callable[[LogFile], None] = sync_file,
    ) -> None:
        with ExitStack() as opened:
            for directory in (options.log_directory, options.snapshot_directory):
                directory.mkdir(parents=True, exist_ok=True)
            self._lock = opened.enter_context(DirectoryLock(options.log_directory))
            self._directories = {options.log_directory, options.snapshot_directory}
            self.is_new = False
            opened.callback(self._remove_new)
            self.recovered = self._recover(box, options, progress)
            self.log = WriteAheadLog(
                options.log_directory,
                options.wal_mode,
                self.recovered.instance_uuid,
                self.recovered.replica_id,
                self.recovered.vclock,
                server_version=options.server_version,
                previous_vclock=self.recovered.previous_vclock,
                max_size=options.wal_max_size,
                defer=defer,
                open_file=open_file,
                sync_file=sync_file,
            )
            box.transactions.journal = self.log
            box.replica_id = self.recovered.replica_id
            self._register(box)
            box.catalog.replica_set.own_id = box.replica_id
            opened.pop_all()

    def _recover(self, box: Box, options: StorageOptions, progress: Progress | None) -> RecoveryResult:
        for directory in self._directories:
            remove_unfinished(directory)
        recovered = recover(
            box,
            options.snapshot_directory,
            options.log_directory,
            force=options.force_recovery,
            instance_uuid=options.instance_uuid,
            progress=progress,
        )
        if recovered is not None:
            return recovered
        logger.info("a new database in %s", options.snapshot_directory)
        # There was neither a snapshot nor a log, and nobody else may make one while the lock is held.
        self.is_new = True
        return bootstrap(
            box,
            options.snapshot_directory,
            instance_uuid=options.instance_uuid or box.uuid,
            cluster_uuid=uuid4(),
            server_version=options.server_version,
        )

    def _register(self, box: Box) -> None:
        """Make the instance a member of its replica set, unless it is one, and say which set that is.

        An anonymous replica is none; but only members write, and Tarantool does not take the rows of others.
        A database whose `_schema` named no replica set is given one.
        """
        spaces = box.catalog.spaces
        missing: list[tuple[int, list[object]]] = []
        if self.recovered.cluster_uuid is None:
            missing.append((SCHEMA, ["cluster", str(box.cluster_uuid)]))
        if CLUSTER in spaces and spaces[CLUSTER].find(0, [box.replica_id]) is None:
            missing.append((CLUSTER, [box.replica_id, str(box.uuid)]))
        if not missing:
            return
        transactions = box.transactions
        transactions.begin()
        for space_id, row in missing:
            spaces[space_id].insert(Tuple(codec.pack(row), spaces[space_id].format))
        transactions.commit()
        self.log.write()
        transactions.take_unwritten()
        transactions.is_write_due = transactions.has_logged = False

    def close(self) -> None:
        """Write what waits, end the log, and let others have the directory.

        Raises:
            BoxError: WAL_IO, what waited cannot be written.
        """
        try:
            self.log.close()
        finally:
            self._lock.release()

    def discard(self) -> None:
        """End the log; remove a database that was made by this start; let others have the directory.

        For a start that is refused. Nothing may be under way that writes to the log.
        """
        try:
            with suppress(BoxError):
                self.log.close()
            self._remove_new()
        finally:
            self._lock.release()

    def _remove_new(self) -> None:
        if not self.is_new:
            return
        self.is_new = False
        for directory in self._directories:
            remove_unfinished(directory)
            remove_files(path for file_type in FileType for path in list_files(directory, file_type))
