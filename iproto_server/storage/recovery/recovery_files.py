"""Choice of the snapshot and the logs that a recovery reads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from iproto_server.box.access.access_control import ADMIN, GUEST
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

REQUIRED_SPACES: Final = {
    SCHEMA: "_schema",
    SPACE: "_space",
    INDEX: "_index",
    FUNC: "_func",
    USER: "_user",
    PRIV: "_priv",
    CLUSTER: "_cluster",
}
"""The system spaces without which a database cannot be loaded, and their names."""
REQUIRED_USERS: Final = {GUEST: "guest", ADMIN: "admin"}
"""The users without which nobody can connect, by number, and their first names."""


class RecoveryFiles:
    """Chooses the files of a database to read.

    Parameters:
        snapshot_directory: The directory of the snapshots.
        log_directory: The directory of the logs.
        report: Receives the files that cannot be read.

    Attributes:
        is_rebuilt: Whether the initial rows of every database replace the first snapshot; set by
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

        Returns: The snapshot; None if there are neither snapshots nor logs.

        Raises:
            StorageError: No snapshot can be used.
        """
        incomplete: list[Path] = []
        damaged: list[tuple[StoredFile, str]] = []
        paths = list_files(self._snapshot_directory, FileType.SNAPSHOT)
        for path in reversed(paths):
            if not has_end_marker(path):
                self._report.report(f"{path}: the snapshot is incomplete: it has no end marker")
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
                    self._report.record(f"{reason}; using an older snapshot and the logs after it")
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
                f"{path}: its definitions of spaces cannot be read, and there is neither another snapshot "
                "with them nor a log from the very beginning, so the database cannot be recovered"
            )
        if logs:
            raise StorageError(f"{self._snapshot_directory}: there are logs but no snapshot: {logs[0]}")
        return None

    def find_logs(self, snapshot: XlogHeader) -> LogChain:
        """Find the logs to replay after a snapshot.

        Parameters:
            snapshot: The snapshot's header.

        Returns: The logs in order; with `force`, those that can be read.

        Raises:
            StorageError: A log is missing or cannot be read, and `force` is off.
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
        """Rename an unreadable log whose name the next log needs.

        Parameters:
            vclock: The clock at which the next log begins.
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
            self._report.record(f"{path}: its unreadable part is kept in {kept.name}")

    def _find_part(self, damaged: list[StoredFile], incomplete: list[Path]) -> StoredFile | None:
        """Choose the start of a recovery if no snapshot is intact; None if there is none.

        A log from the very beginning has all rows but the initial ones of every database. Otherwise the
        readable part of the newest snapshot is used, if it defines the spaces.
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
            f"{logs[0].path}: no snapshot can be read, so the database is rebuilt from its logs, which "
            "begin with its first change"
        )
        header = XlogHeader(FileType.SNAPSHOT, logs[0].header.instance_uuid, VClock())
        return StoredFile(logs[0].path, header)

    def _is_followed(self, snapshot: StoredFile) -> bool:
        """Whether logs without a gap follow a snapshot."""
        try:
            return bool(find_logs(self._log_directory, snapshot.header.vclock).logs)
        except StorageError:
            return False


def _has_definitions(path: Path) -> bool:
    """Whether the readable part of a snapshot defines all required system spaces."""
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
        """The part before the damage counts."""
    return found.issuperset(REQUIRED_SPACES)


def _damage_of(path: Path) -> str | None:
    """Why a snapshot cannot be read as a whole; None if it can."""
    try:
        with XlogReader.open(path) as reader:
            for _ in read_snapshot(reader):
                """Reading finds the damage."""
    except StorageError as error:
        return str(error)
    return None
