"""Opens and closes the files of a database: lock, recovery, write-ahead log."""

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
    """Location and durability of a database.

    Attributes:
        log_directory: The directory of the logs.
        snapshot_directory: The directory of the snapshots.
        wal_mode: When a change counts as written.
        wal_max_size: Size in bytes at which a new log begins.
        force_recovery: Whether damaged parts are skipped instead of refusing to start.
        instance_uuid: The instance that the files must belong to; None: any, or a new one for a new database.
        server_version: The program's version, for the headers of files.
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

    Parameters:
        box: An empty box, which recovery fills.
        options: Location and durability.
        defer: Calls a function that may wait for the disk outside the event loop.
        progress: Receives the progress of recovery.
        open_file, sync_file: Create and sync the log's files.

    Attributes:
        log: The write-ahead log, which is the box's journal.
        recovered: The result of recovery, or the identity of the new database.
        is_new: Whether the database was created by this start.

    Raises:
        StorageError: The files cannot be used as they are, or another process uses them.
        OSError: A file cannot be read or written.
        BoxError: WAL_IO, the instance cannot be registered in its replica set.
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
        logger.info("creating a new database in %s", options.snapshot_directory.absolute())
        # There is neither a snapshot nor a log, and the lock keeps other processes from making one.
        self.is_new = True
        return bootstrap(
            box,
            options.snapshot_directory,
            instance_uuid=options.instance_uuid or box.uuid,
            cluster_uuid=uuid4(),
            server_version=options.server_version,
        )

    def _register(self, box: Box) -> None:
        """Register the instance in its replica set, and name the set, where either is missing.

        An anonymous replica is not registered, but only members may write: Tarantool refuses rows of others.
        A database whose `_schema` names no replica set gets a new one.
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
        """Write the pending rows, end the log, and release the directory.

        Raises:
            BoxError: WAL_IO, the pending rows cannot be written.
        """
        try:
            self.log.close()
        finally:
            self._lock.release()

    def discard(self) -> None:
        """End the log, remove a database that this start created, and release the directory.

        Used after a refused start. No write to the log may be in progress.
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
