"""Recovery: loads the newest snapshot, then replays the logs that follow it.

Without `force`, a row that cannot be read or applied stops the start, with file and offset. The only
exception is a torn write at the end of the last log, which was never acknowledged: it is truncated, with a
warning. With `force`, all readable rows are loaded, and the others are reported.

Source of the rules: Tarantool, "Recovery process" and the option `force_recovery`.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from iproto_server.box.api.box import Box
from iproto_server.box.catalog.foreign.versions import version_of_program
from iproto_server.box.catalog.loading.loader import Loader
from iproto_server.box.catalog.replica_set import parse_uuid
from iproto_server.box.catalog.system_space_ids import (
    CLUSTER,
    SCHEMA,
    WITHOUT_EFFECT,
)
from iproto_server.box.catalog.sysview import SysviewSpace
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import release_free_memory
from iproto_server.storage.directory import (
    IN_PROGRESS,
    StoredFile,
    check_reached,
)
from iproto_server.storage.errors import LogGapError, StorageError, TruncatedFileError, XlogError
from iproto_server.storage.recovery.bootstrap import bootstrap
from iproto_server.storage.recovery.damage_report import DamageReport
from iproto_server.storage.recovery.log_replay import LogReplay
from iproto_server.storage.recovery.read_ahead import ReadAhead
from iproto_server.storage.recovery.recovery_files import REQUIRED_SPACES, REQUIRED_USERS, RecoveryFiles
from iproto_server.storage.recovery.recovery_progress import Progress
from iproto_server.storage.recovery.recovery_result import RecoveryResult
from iproto_server.storage.recovery.snapshot_rows import load_block
from iproto_server.storage.snapshot import snapshot_blocks
from iproto_server.storage.vclock import VCLOCK_MAX, VClock
from iproto_server.storage.xlog import Block, FileType, OnDamage, XlogReader
from iproto_server.storage.xlog.writer import sync_directory
from iproto_server.text.counting import counted

__all__ = ["Progress", "RecoveryResult", "bootstrap", "recover", "remove_unfinished"]

logger = logging.getLogger("iproto_server.recovery")

_CLUSTER_KEYS: Final = ("cluster", "replicaset_uuid")
"""The keys of `_schema` with the replica set's UUID, in Tarantool 1.7 to 2.x and in 3.x."""


def recover(
    box: Box,
    snapshot_directory: Path,
    log_directory: Path,
    *,
    force: bool = False,
    instance_uuid: UUID | None = None,
    progress: Progress | None = None,
    read_only: bool = False,
) -> RecoveryResult | None:
    """Load a database from its files.

    Parameters:
        box: The box to fill; its contents are replaced unless there is nothing to load.
        snapshot_directory: The directory of the snapshots.
        log_directory: The directory of the logs.
        force: Whether damaged parts are skipped.
        instance_uuid: The instance that the files must belong to; None: any.
        progress: Receives the progress.
        read_only: Whether the files stay unchanged: a torn tail is ignored and not truncated.

    Returns:
        The result; None if there are neither snapshots nor logs.

    Raises:
        StorageError: The files cannot be used as they are. The box must not be used then.
        OSError: A file cannot be read, or a torn tail cannot be truncated.
    """
    recovery = _Recovery(box, snapshot_directory, log_directory, force, progress, read_only)
    snapshot = recovery.files.find_snapshot()
    if snapshot is None:
        return None
    with _without_garbage_collection():
        result = recovery.run(snapshot, instance_uuid)
    release_free_memory()
    return result


def remove_unfinished(directory: Path) -> None:
    """Remove files that were never completed and so have only their temporary names.

    Parameters:
        directory: A directory of logs or snapshots that no other process writes to.

    Raises:
        OSError: A file cannot be removed.
    """
    for file_type in FileType:
        for path in directory.glob(f"*{file_type.suffix}{IN_PROGRESS}"):
            path.unlink()
            logger.info("removed the incomplete file %s", path)


class _Recovery:
    """The state of one recovery."""

    def __init__(
        self,
        box: Box,
        snapshot_directory: Path,
        log_directory: Path,
        force: bool,
        progress: Progress | None,
        read_only: bool,
    ) -> None:
        self._box = box
        self._force = force
        self._progress = progress
        self._read_only = read_only
        self._report = DamageReport(force)
        self.files = RecoveryFiles(snapshot_directory, log_directory, self._report)
        self._rows = 0
        self._read_before = 0

    def run(self, snapshot: StoredFile, instance_uuid: UUID | None) -> RecoveryResult:
        """Load the snapshot and the logs; see `recover`."""
        header = snapshot.header
        if instance_uuid is not None and instance_uuid != header.instance_uuid:
            mismatch = BoxError(ErrorCode.INSTANCE_UUID_MISMATCH, instance_uuid, header.instance_uuid)
            raise StorageError(f"{snapshot.path}: {mismatch.message}")
        chain = self.files.find_logs(header)
        vclock = header.vclock.copy()
        if self._progress is not None:
            paths = [snapshot.path, *(log.path for log in chain.logs)]
            self._progress.begin(sum(path.stat().st_size for path in paths))
        try:
            with Loader(self._box.catalog, self._report.report) as loader:
                loader.begin_file(version_of_program(header.server_version))
                if self.files.is_rebuilt:
                    self._load_first_rows(loader, header.instance_uuid)
                else:
                    self._load_snapshot(loader, snapshot.path)
                tail = self._replay_logs(LogReplay(loader, vclock, self._report.report), chain.logs, vclock)
                self._report.path, self._report.offset = snapshot.path, None
                loader.finish()
            if self._force:
                self._report.record_omitted()
            self._check_definitions(snapshot.path)
        finally:
            if self._progress is not None:
                self._progress.end()
        if chain.truncated is not None and not self._read_only:
            _remove_truncated(chain.truncated)
        if tail is not None and not self._read_only:
            _truncate(chain.logs[-1].path, tail)
        if self._force and not self._read_only:
            self.files.preserve_unreadable(vclock)
        self._box.uuid = header.instance_uuid
        cluster_uuid = self._cluster_uuid()
        if cluster_uuid is not None:
            self._box.cluster_uuid = cluster_uuid
        self._warn_of_inert_spaces()
        logger.info("recovered %s, up to %s", counted(self._rows, "row"), vclock)
        return RecoveryResult(
            header.instance_uuid,
            cluster_uuid,
            self._replica_id(header.instance_uuid),
            vclock,
            header.vclock.copy(),
            _previous_vclock(chain.logs, vclock),
            self._rows,
            self._report.damages,
        )

    def _load_first_rows(self, loader: Loader, instance_uuid: UUID) -> None:
        """Load the initial rows of every database, and those of a new replica set."""
        new = Box(instance_uuid=instance_uuid)
        first = {
            space.id: list(space.rows())
            for space in sorted(new.catalog, key=lambda space: space.id)
            if not isinstance(space, SysviewSpace) and not space.is_temporary
        }
        first[SCHEMA].append(codec.pack(["cluster", str(uuid4())]))
        first[CLUSTER].append(codec.pack([1, str(instance_uuid)]))
        for space_id, rows in first.items():
            if rows:
                loader.load(space_id, rows)
                self._rows += len(rows)
        loader.end_snapshot()

    def _check_definitions(self, path: Path) -> None:
        """Check that all indispensable system spaces and users exist."""
        catalog = self._box.catalog
        for what, lost in (
            (
                "system spaces",
                [name for number, name in REQUIRED_SPACES.items() if number not in catalog.spaces],
            ),
            (
                "users",
                [name for number, name in REQUIRED_USERS.items() if catalog.access.find_id(number) is None],
            ),
        ):
            if lost:
                raise StorageError(
                    f"{path}: the {what} {', '.join(lost)} are missing, so the database cannot be recovered"
                )

    def _load_snapshot(self, loader: Loader, path: Path) -> None:
        logger.info("recovering from %s", path)
        self._report.path = path
        with XlogReader.open(path, OnDamage.SKIP if self._force else OnDamage.STOP) as reader:
            try:
                with self._snapshot_blocks(reader) as blocks:
                    for block in blocks:
                        self._rows += load_block(loader, reader, block)
                        self._show(reader, self._rows)
            except TruncatedFileError as error:
                if not self._force:
                    raise
                self._report.record(str(error))
            self._report.record_damages(reader)
            self._read_before += reader.good_end
        loader.end_snapshot()
        self._report.path = None

    def _snapshot_blocks(self, reader: XlogReader) -> AbstractContextManager[Iterator[Block]]:
        """The blocks of a snapshot. If damage is skipped, one thread does all, and finds it in order."""
        blocks = snapshot_blocks(reader)
        return nullcontext(blocks) if self._force else ReadAhead(blocks)

    def _replay_logs(self, replay: LogReplay, logs: Sequence[StoredFile], vclock: VClock) -> int | None:
        """Apply the logs.

        Returns:
            The offset of the torn tail of the last log; None if it has none.
        """
        tail: int | None = None
        for number, log in enumerate(logs, 1):
            next_clock = logs[number].header.vclock if number < len(logs) else None
            logger.info("recovering from %s", log.path)
            self._check_gap(log, vclock)
            replay.begin_file(version_of_program(log.header.server_version))
            tail = self._replay_log(replay, log.path, vclock, next_clock)
        self._rows += replay.rows
        return tail

    def _check_gap(self, log: StoredFile, vclock: VClock) -> None:
        """Report rows that are missing before a log, and continue from its clock."""
        try:
            check_reached(vclock, log)
        except LogGapError as error:
            self._report.report(str(error))
            for member, lsn in log.header.vclock.items():
                vclock[member] = max(lsn, vclock.get(member, 0))

    def _replay_log(
        self, replay: LogReplay, path: Path, vclock: VClock, next_clock: VClock | None
    ) -> int | None:
        """Apply a log.

        Returns:
            The offset of its torn tail, if that is to be truncated.
        """
        self._report.path = path
        with XlogReader.open(path, OnDamage.SKIP if self._force else OnDamage.CUT_TAIL) as reader:
            for offset, changes in reader.changes():
                self._report.offset = offset
                replay.apply(changes, next_clock)
                self._show(reader, self._rows + replay.rows)
            self._report.path = self._report.offset = None
            self._read_before += reader.good_end
            if replay.skipped:
                logger.warning(
                    "%s: skipped %s of a failed write: the next log begins before them",
                    path,
                    counted(replay.skipped, "row"),
                )
                replay.skipped = 0
            if self._force:
                self._report.record_damages(reader)
                return None
            if not reader.damages:
                return None
            damage = reader.damages[-1]
            if next_clock is not None and not vclock.covers(next_clock):
                raise XlogError(str(path), damage.start, damage.reason)
            logger.warning(
                "%s: %s at offset %d: skipped the last %s, a torn write",
                path,
                damage.reason,
                reader.good_end,
                counted(damage.end - reader.good_end, "byte"),
            )
            return reader.good_end if next_clock is None else None

    def _show(self, reader: XlogReader, rows: int) -> None:
        if self._progress is not None:
            self._progress.update(rows, self._read_before + reader.good_end)

    # -- identity --

    def _warn_of_inert_spaces(self) -> None:
        for space_id in WITHOUT_EFFECT:
            space = self._box.catalog.spaces.get(space_id)
            if space is not None and len(space):
                logger.warning("the rows of %s are kept but have no effect in this server", space.name)

    def _cluster_uuid(self) -> UUID | None:
        settings = {row[0]: row for row in self._rows_of(SCHEMA)}
        for key in filter(settings.__contains__, _CLUSTER_KEYS):
            try:
                return parse_uuid(settings[key])
            except BoxError as error:
                self._report.report(f"the row '{key}' of space '_schema': {error.message}")
        logger.warning("the database does not name its replica set")
        return None

    def _replica_id(self, instance_uuid: UUID) -> int:
        members: dict[str, int] = {fields[1]: fields[0] for fields in self._rows_of(CLUSTER)}
        known = members.get(str(instance_uuid))
        if known is not None:
            return known
        free = next(number for number in range(1, VCLOCK_MAX + 1) if number not in members.values())
        logger.warning("the instance %s is not in _cluster; its id is now %d", instance_uuid, free)
        return free

    def _rows_of(self, space_id: int) -> list[list[Any]]:
        space = self._box.catalog.spaces.get(space_id)
        return [] if space is None else [codec.unpack(raw) for raw in space.rows()]


def _previous_vclock(logs: Sequence[StoredFile], vclock: VClock) -> VClock | None:
    """The clock of the log that the next one follows."""
    if not logs:
        return None
    newest = logs[-1].header
    # A log without rows has the same name as the next one.
    return newest.previous_vclock if newest.vclock.same_as(vclock) else newest.vclock


def _truncate(path: Path, size: int) -> None:
    """Truncate a file durably."""
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())


def _remove_truncated(path: Path) -> None:
    path.unlink()
    sync_directory(path.parent)
    logger.warning("removed %s, which ends within its header and has no rows", path)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause Python's garbage collection, and exempt the loaded rows from later collections."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
