"""The write-ahead log: the journal that writes committed rows to files.

Rows are encoded when their transaction commits (`LogState.append`, compiled), and written together at the end
of the loop iteration (group commit). A write is all or nothing: if it fails, the file stays as it was, the
LSNs of its rows are free again, and the caller rolls the transactions back. After a failure each transaction
is written separately, at its commit, until one succeeds, so that no client sees rows that the disk refuses.

The log has the result of each change: INSERT or REPLACE of the whole row, DELETE by the primary key. So it
does not depend on triggers, and its replay needs neither the old rows nor secondary indexes.

Source of the rules: Tarantool, "Data persistence" and the options `wal_mode`, `wal_max_size`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn
from uuid import UUID

from iproto_server.box.catalog.system_space_ids import TRUNCATE
from iproto_server.box.txn.local_undo import LocalUndo
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.native._native import LogRows, LogState
from iproto_server.storage.log_rotation import (
    MAX_SIZE,
    UNWRITTEN,
    LogFile,
    RotatingLog,
    open_log,
    sync_file,
)
from iproto_server.storage.vclock import VClock

if TYPE_CHECKING:
    from iproto_server.box.txn.statement import Statement

logger = logging.getLogger("iproto_server.wal")

_LOCAL: Final = 0
"""The member id under which rows of local spaces are counted."""


class WalMode(StrEnum):
    """When a change counts as written; values of the option `wal_mode`."""

    NONE = "none"
    """At once: rows are numbered but not written."""

    WRITE = "write"
    """When the operating system has the rows: they survive a crash of the process, not of the machine."""

    FSYNC = "fsync"
    """When the disk has the rows."""


class WriteAheadLog(LogState):
    """Writes committed rows to the logs of a directory.

    `append` is compiled; it calls `refuse`, `effect_of` and `write` in rare cases.

    `write` combines `take`, `perform` and `complete` or `fail`. Only `perform` accesses files; it may run in
    another thread while the box works, one call at a time.

    Parameters:
        directory: The directory of the logs.
        mode: When a change counts as written.
        instance_uuid: The instance that writes them.
        replica_id: This instance's id in `_cluster`, 1 to 31.
        vclock: The clock of the last recovered row.
        server_version: The program's version, for the headers.
        previous_vclock: The clock in the header of the newest log; None if there is none.
        max_size: Size in bytes at which a new log begins.
        clock: Returns the time in seconds since 1970.
        defer: Calls a function that may wait for the disk outside the event loop.
        open_file, sync_file: Create and sync the logs.

    Attributes:
        mode: When a change counts as written.
        is_failing: Whether the last write failed.
        failures: Number of failed writes, whose transactions were rolled back.
        size: Bytes written by this process.
        size_since_checkpoint: Those written since the last call of `rotate`.
    """

    __slots__ = (
        "_files",
        "_is_performing",
        "_others",
        "_replica_id",
        "_written_local_lsn",
        "_written_lsn",
        "failures",
        "is_failing",
        "mode",
        "size",
        "size_since_checkpoint",
    )

    def __init__(
        self,
        directory: Path,
        mode: WalMode,
        instance_uuid: UUID,
        replica_id: int,
        vclock: VClock,
        *,
        server_version: str = "",
        previous_vclock: VClock | None = None,
        max_size: int = MAX_SIZE,
        clock: Callable[[], float] = time.time,
        defer: Callable[[Callable[[], None]], object] = lambda job: job(),
        open_file: Callable[[Path], LogFile] = open_log,
        sync_file: Callable[[LogFile], None] = sync_file,
    ) -> None:
        # The LSNs of the last row written, and of the last local one; `waiting` has those appended.
        self._written_lsn = vclock.get(replica_id, 0)
        self._written_local_lsn = vclock.get(_LOCAL, 0)
        waiting = LogRows(replica_id, self._written_lsn, self._written_local_lsn)
        super().__init__(waiting, clock, mode is not WalMode.NONE)
        self.mode = mode
        self.failures = 0
        self.is_failing = False
        self.size = 0
        self.size_since_checkpoint = 0
        self._replica_id = replica_id
        self._files = RotatingLog(
            directory,
            instance_uuid,
            is_synced=mode is WalMode.FSYNC,
            server_version=server_version,
            previous_vclock=previous_vclock,
            max_size=max_size,
            defer=defer,
            open_file=open_file,
            sync_file=sync_file,
        )
        self._others = VClock(
            {member: lsn for member, lsn in vclock.items() if member not in (_LOCAL, replica_id)}
        )
        self._is_performing = False

    # -- called by `append` --

    def refuse(self) -> NoReturn:
        """Refuse a transaction because the log is closed.

        Raises:
            BoxError: WAL_IO.
        """
        raise BoxError(ErrorCode.WAL_IO)

    def effect_of(self, statement: Statement) -> tuple[bool, bool]:
        """Tell how the row of a statement with an effect, such as a new space, is logged.

        Parameters:
            statement: A statement with an undo function.

        Returns:
            Whether a new row is logged as INSERT, and whether it is local: its effect is not replicated.
        """
        # In _truncate an inserted row has no effect, a replacing one truncates.
        is_insert = statement.old is None and statement.space.id != TRUNCATE
        return is_insert, isinstance(statement.undo, LocalUndo)

    # -- positions --

    def position(self) -> int:
        """Return the LSN of the last row appended."""
        return self.waiting.lsn

    @property
    def vclock(self) -> VClock:
        """The clock after the last row appended."""
        return self._clock_of(self.waiting.lsn, self.waiting.local_lsn)

    @property
    def written_vclock(self) -> VClock:
        """The clock after the last row written; without a log, after the last one."""
        if self.mode is WalMode.NONE:
            return self.vclock
        return self._clock_of(self._written_lsn, self._written_local_lsn)

    def _clock_before(self) -> VClock:
        """The clock before the first row of a write that is being performed."""
        return self.written_vclock

    def _clock_of(self, lsn: int, local_lsn: int) -> VClock:
        vclock = self._others.copy()
        if lsn:
            vclock[self._replica_id] = lsn
        if local_lsn:
            vclock[_LOCAL] = local_lsn
        return vclock

    # -- writing --

    def write(self) -> None:
        """Write the pending rows, if any.

        Raises:
            BoxError: WAL_IO, no row is written, and their LSNs are free again.
        """
        rows = self.take()
        if rows is None:
            return
        try:
            self.perform(rows)
        except UNWRITTEN as error:
            raise self.fail(error) from error
        self.complete(rows)

    def take(self) -> LogRows | None:
        """Take the pending transactions, or None if there are none.

        They have to be passed to `perform`, and then to `complete`, or the error to `fail`.
        """
        rows = self.waiting
        if not rows:
            return None
        self.waiting = rows.following()
        self._is_performing = True
        return rows

    def perform(self, rows: LogRows) -> None:
        """Write rows to the file and, in mode fsync, wait for the disk.

        Raises:
            One of `UNWRITTEN`: the file is unchanged.
        """
        written = self._files.write(rows.blocks(), self._clock_before)
        self.size += written
        self.size_since_checkpoint += written

    def complete(self, rows: LogRows) -> None:
        """Record that the rows of `take` are written."""
        self._is_performing = False
        self._written_lsn, self._written_local_lsn = rows.lsn, rows.local_lsn
        if self.is_failing:
            self.is_failing = self.writes_at_commit = False
            # A warning, as the failure is: on a full disk, small rows may still fit where large ones do not.
            logger.warning("the log is writable again")

    def fail(self, error: BaseException) -> BoxError:
        """Discard the rows of `take`, which could not be written, and those appended since.

        Returns:
            The error for the clients that wait for them.
        """
        self._is_performing = False
        self.waiting = LogRows(self._replica_id, self._written_lsn, self._written_local_lsn)
        self.failures += 1
        if not self.is_failing:
            self.is_failing = True
            self.writes_at_commit = self.mode is WalMode.WRITE
            logger.error("cannot write the log: %s; transactions are rolled back until it is writable", error)
        return BoxError(ErrorCode.WAL_IO)

    # -- files --

    def rotate(self) -> None:
        """Begin a new log for a checkpoint, whose recovery does not need the older logs.

        If that fails, the next row begins it.
        """
        self.size_since_checkpoint = 0
        if self.mode is WalMode.NONE:
            return
        if self._is_performing:
            self._files.is_rotation_due = True
        else:
            self._files.rotate(self.written_vclock)

    def close(self) -> None:
        """Write the pending rows, end the file, and refuse further rows.

        Raises:
            BoxError: WAL_IO, the pending rows cannot be written.
        """
        try:
            self.write()
        finally:
            self.is_closed = True
            self._files.end()
