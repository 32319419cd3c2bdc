"""The snapshot and the logs that a recovery reads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from iproto_server.box.catalog.system_space_ids import (
    CLUSTER,
    FUNC,
    INDEX,
    PRIV,
    SCHEMA,
    SPACE,
    SYSTEM_ID_MAX,
    USER,
)
from iproto_server.codec import msgpack as codec
from iproto_server.errors import BoxError
from iproto_server.storage.directory import (
    DAMAGED,
    LogChain,
    StoredFile,
    file_name,
    find_logs,
    has_end_marker,
    list_files,
    read_header,
)
from iproto_server.storage.errors import StorageError, XlogError
from iproto_server.storage.recovery.damage_report import DamageReport
from iproto_server.storage.snapshot import read_snapshot
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import FileType, OnDamage, XlogHeader, XlogReader

REQUIRED_SPACES: Final = (SCHEMA, SPACE, INDEX, FUNC, USER, PRIV, CLUSTER)
"""The system spaces that nothing works without."""


class RecoveryFiles:
    """Chooses the files of a database to read.

    Parameters:
        snapshot_directory: the directory of the snapshots.
        log_directory: the directory of the logs.
        report: receives what cannot be read.

    Attributes:
        is_rebuilt: whether the rows that every database is born with replace the first snapshot; set by
            `find_snapshot`.
    """

    def __init__(self, snapshot_directory: Path, log_directory: Path, report: DamageReport) -> None:
        self._snapshot_directory = snapshot_directory
        self._log_directory = log_directory
        self._force = report.force
        self._report = report
        self.is_rebuilt = False

    def find_snapshot(self) -> StoredFile | None:
        """Choose the snapshot to begin with.

        Returns: the snapshot; None if there are neither snapshots nor logs.

        Raises:
            StorageError: no snapshot can be used.
        """
        incomplete: list[Path] = []
        damaged: list[tuple[StoredFile, str]] = []
        paths = list_files(self._snapshot_directory, FileType.SNAPSHOT)
        for path in reversed(paths):
            if not has_end_marker(path):
                self._report.report(f"{path}: the snapshot is not complete, it has no end marker")
                incomplete.append(path)
                continue
            try:
                snapshot = StoredFile(path, read_header(path, FileType.SNAPSHOT))
            except XlogError as error:
                if not self._force:
                    raise
                self._report.record(str(error))
                continue
            damage = _damage_of(path) if self._force else None
            if damage is None and (not damaged or self._is_followed(snapshot)):
                for _, reason in damaged:
                    self._report.record(f"{reason}; an older snapshot is taken, and the logs behind it")
                return snapshot
            damaged.append((snapshot, damage or ""))
        if self._force:
            found = self._find_part([snapshot for snapshot, _ in damaged], incomplete)
            if found is not None:
                for snapshot, reason in damaged:
                    if reason and (self.is_rebuilt or snapshot.path != found.path):
                        self._report.record(reason)
                return found
        logs = list_files(self._log_directory, FileType.LOG)
        if paths:
            path = paths[-1]
            raise StorageError(
                f"{path}: the definitions of spaces in it cannot be read, and there is neither another "
                "snapshot with them nor a log from the very beginning, so nothing can be recovered"
            )
        if logs:
            raise StorageError(
                f"{self._snapshot_directory}: there is no snapshot here, although there are logs: {logs[0]}"
            )
        return None

    def find_logs(self, snapshot: XlogHeader) -> LogChain:
        """Find the logs to replay behind a snapshot.

        Parameters:
            snapshot: the snapshot's header.

        Returns: the logs in order; with `force`, those that can be read.

        Raises:
            StorageError: one of them is missing or cannot be read, and nothing may be left out.
        """
        try:
            return find_logs(self._log_directory, snapshot.vclock, snapshot.instance_uuid)
        except StorageError as error:
            if not self._force:
                raise
            self._report.record(str(error))
        logs: list[StoredFile] = []
        for path in list_files(self._log_directory, FileType.LOG):
            try:
                log = StoredFile(path, read_header(path, FileType.LOG))
            except XlogError as error:
                self._report.record(str(error))
                continue
            if snapshot.vclock.covers(log.header.vclock):
                logs.clear()
            logs.append(log)
        return LogChain(logs, None)

    def preserve_unreadable(self, vclock: VClock) -> None:
        """Rename a log that could not be read and has the name of the log that begins now.

        Parameters:
            vclock: the clock at which that log begins.
        """
        path = self._log_directory / file_name(FileType.LOG, vclock.signature)
        if not path.exists():
            return
        try:
            with XlogReader.open(path) as reader:
                is_empty = next(reader.blocks(), None) is None
        except XlogError:
            is_empty = False
        if not is_empty:
            kept = path.rename(path.with_name(path.name + DAMAGED))
            self._report.record(f"{path}: what cannot be read of it is kept in {kept.name}")

    def _find_part(self, damaged: list[StoredFile], incomplete: list[Path]) -> StoredFile | None:
        """What to begin with where no snapshot can be read as a whole; None where nothing makes sense.

        A log from the very beginning has all that a snapshot could have, but for the rows that every database
        is born with. Else a part of the newest snapshot is better than nothing, if it defines the spaces.
        """
        for path in incomplete:
            try:
                damaged.append(StoredFile(path, read_header(path, FileType.SNAPSHOT)))
            except XlogError as error:
                self._report.record(str(error))
        damaged.sort(key=lambda snapshot: snapshot.header.vclock.signature, reverse=True)
        useful = [snapshot for snapshot in damaged if _has_definitions(snapshot.path)]
        try:
            logs = find_logs(self._log_directory, VClock()).logs
        except StorageError:
            logs = []
        if not logs or logs[0].header.vclock.signature:
            return useful[0] if useful else None
        oldest = useful[-1] if useful else None
        if oldest is not None and not oldest.header.vclock.signature:
            return oldest
        self.is_rebuilt = True
        self._report.record(
            f"{logs[0].path}: no snapshot can be read, so the database is made anew from its logs, which "
            "begin with its first change"
        )
        header = XlogHeader(FileType.SNAPSHOT, logs[0].header.instance_uuid, VClock())
        return StoredFile(logs[0].path, header)

    def _is_followed(self, snapshot: StoredFile) -> bool:
        """Whether there are logs that begin with a snapshot and miss nothing."""
        try:
            return bool(find_logs(self._log_directory, snapshot.header.vclock).logs)
        except StorageError:
            return False


def _has_definitions(path: Path) -> bool:
    """Whether what can be read of a snapshot defines the system spaces that nothing works without."""
    found: set[int] = set()
    try:
        with XlogReader.open(path, OnDamage.SKIP) as reader:
            for tuples in read_snapshot(reader):
                for space_id, raw in tuples:
                    if space_id == SPACE:
                        with suppress(BoxError):
                            found.update(
                                number for number in codec.unpack(raw)[:1] if isinstance(number, int)
                            )
                if tuples and tuples[-1][0] > SYSTEM_ID_MAX:
                    break
    except StorageError:
        """What could be read before counts."""
    return found.issuperset(REQUIRED_SPACES)


def _damage_of(path: Path) -> str | None:
    """What is wrong with a snapshot; None if all of it can be read."""
    try:
        with XlogReader.open(path) as reader:
            for _ in read_snapshot(reader):
                """Reading is what finds it."""
    except StorageError as error:
        return str(error)
    return None
