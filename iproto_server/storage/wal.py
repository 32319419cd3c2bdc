"""The write-ahead log: the journal that writes committed rows to files.

Rows are encoded when their transaction commits, and written together at the end of the loop iteration (group
commit). A write is all or nothing: if it fails, the file stays as it was, the LSNs of its rows are free
again, and the caller rolls the transactions back. After a failure each transaction is written separately, at
its commit, until one succeeds, so that no client sees rows that the disk refuses.

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
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from iproto_server.box.catalog.system_space_ids import TRUNCATE
from iproto_server.box.txn.local_undo import LocalUndo
from iproto_server.errors import BoxError, ErrorCode
from iproto_server.storage.log_rotation import (
    MAX_SIZE,
    UNWRITTEN,
    LogFile,
    RotatingLog,
    open_log,
    sync_file,
)
from iproto_server.storage.log_rows import LogRows
from iproto_server.storage.primary_key import packed_key
from iproto_server.storage.vclock import VClock
from iproto_server.storage.xlog import (
    Row,
    RowEncoder,
    RowFlag,
    RowType,
    delete_body,
    encode_row,
    insert_body,
)

if TYPE_CHECKING:
    from iproto_server.box.txn.statement import Statement

logger = logging.getLogger("iproto_server.wal")

_LOCAL: Final = 0
"""The member id under which rows of local spaces are counted."""

_INSERT, _REPLACE, _DELETE = int(RowType.INSERT), int(RowType.REPLACE), int(RowType.DELETE)


class WalMode(StrEnum):
    """When a change counts as written; values of the option `wal_mode`."""

    NONE = "none"
    """At once: rows are numbered but not written."""

    WRITE = "write"
    """When the operating system has the rows: they survive a crash of the process, not of the machine."""

    FSYNC = "fsync"
    """When the disk has the rows."""


class LogWrite(NamedTuple):
    """Transactions to be written together.

    Attributes:
        rows: their rows.
        local_lsn: the LSN of the last row of a local space.
    """

    rows: LogRows
    local_lsn: int


class WriteAheadLog:
    """Writes committed rows to the logs of a directory.

    `write` combines `take`, `perform` and `complete` or `fail`. Only `perform` accesses files; it may run in
    another thread while the box works, one call at a time.

    Parameters:
        directory: the directory of the logs.
        mode: when a change counts as written.
        instance_uuid: the instance that writes them.
        replica_id: this instance's id in `_cluster`, 1 to 31.
        vclock: the clock of the last recovered row.
        server_version: the program's version, for the headers.
        previous_vclock: the clock in the header of the newest log; None if there is none.
        max_size: size in bytes at which a new log begins.
        clock: returns the time in seconds since 1970.
        defer: calls a function that may wait for the disk outside the event loop.
        open_file, sync_file: create and sync the logs.

    Attributes:
        mode: when a change counts as written.
        failures: number of failed writes, whose transactions were rolled back.
        size: bytes written by this process.
        size_since_checkpoint: those written since the last call of `rotate`.
    """

    __slots__ = (
        "_clock",
        "_encode",
        "_files",
        "_is_closed",
        "_is_failing",
        "_is_performing",
        "_local_lsn",
        "_others",
        "_replica_id",
        "_waiting",
        "_written_local_lsn",
        "_written_lsn",
        "failures",
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
        self.mode = mode
        self.failures = 0
        self.size = 0
        self.size_since_checkpoint = 0
        self._replica_id = replica_id
        self._clock = clock
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
        self._encode = RowEncoder(replica_id).transaction
        # The LSNs of the last row written, and of the last one appended, which is in `_waiting` for others.
        self._written_lsn = vclock.get(replica_id, 0)
        self._local_lsn = self._written_local_lsn = vclock.get(_LOCAL, 0)
        self._others = VClock(
            {member: lsn for member, lsn in vclock.items() if member not in (_LOCAL, replica_id)}
        )
        self._waiting = LogRows(replica_id, self._written_lsn)
        self._is_failing = False
        self._is_performing = False
        self._is_closed = False

    # -- the journal --

    def append(self, statements: list[Statement]) -> bool:
        """Append the rows of one transaction.

        Returns:
            Whether they are still to be written.

        Raises:
            BoxError: WAL_IO, the log is closed, or the last write and that of this transaction failed.
        """
        if self._is_closed:
            raise BoxError(ErrorCode.WAL_IO)
        if self.mode is WalMode.NONE:
            self._count(statements)
            return False
        if not self._waiting:
            self._waiting.timestamp = self._clock()
        is_plain = len(statements) == 1 and self._append_row(statements[0])
        if not is_plain and not self._append_rows(statements):
            return False
        if self._is_failing and self.mode is WalMode.WRITE:
            self.write()
            return False
        return True

    def _append_row(self, statement: Statement) -> bool:
        """Append a transaction of one plain row, the most frequent kind; return whether it is that."""
        space, _, old, new, primary, effect = statement
        if space.is_temporary or space.is_local or effect is not None:
            return False
        if new is None:
            assert old is not None
            request_type, raw = _DELETE, packed_key(primary, old)
        else:
            request_type, raw = _INSERT if old is None else _REPLACE, new
        self._waiting.append_change(request_type, space.id, raw)
        return True

    def _append_rows(self, statements: list[Statement]) -> bool:
        """Append the rows of a transaction of any kind; return whether any of them are logged."""
        requests: list[tuple[int, bytes]] = []
        has_local = False
        for space, _, old, new, primary, effect in statements:
            if space.is_temporary:
                continue
            if new is None:
                assert old is not None
                requests.append((_DELETE, delete_body(space.id, packed_key(primary, old))))
            else:
                # In _truncate an inserted row has no effect, a replacing one truncates.
                is_new = old is None and (effect is None or space.id != TRUNCATE)
                requests.append((_INSERT if is_new else _REPLACE, insert_body(space.id, new)))
            if space.is_local or (effect is not None and isinstance(effect, LocalUndo)):
                has_local = True
        if not requests:
            return False
        waiting = self._waiting
        if has_local:
            waiting.append(*self._with_local_rows(statements, requests))
        else:
            waiting.append(self._encode(waiting.lsn + 1, waiting.timestamp, requests), len(requests))
        return True

    @property
    def is_failing(self) -> bool:
        """Whether the last write failed."""
        return self._is_failing

    def position(self) -> int:
        """Return the LSN of the last row appended."""
        return self._waiting.lsn

    @property
    def vclock(self) -> VClock:
        """The clock after the last row appended."""
        return self._clock_of(self._waiting.lsn, self._local_lsn)

    @property
    def written_vclock(self) -> VClock:
        """The clock after the last row written."""
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

    def _count(self, statements: list[Statement]) -> None:
        for statement in statements:
            if _is_local(statement):
                self._local_lsn += 1
            elif not statement.space.is_temporary:
                self._waiting.lsn += 1
        self._written_lsn, self._written_local_lsn = self._waiting.lsn, self._local_lsn

    def _with_local_rows(
        self, statements: list[Statement], requests: list[tuple[int, bytes]]
    ) -> tuple[bytes, int]:
        """Encode a transaction with rows of local spaces, which have LSNs of their own.

        The transaction's id (TSN) is the LSN of its first replicated row, or of its first row.

        Returns:
            The rows, and how many are replicated.
        """
        logged = [statement for statement in statements if not statement.space.is_temporary]
        is_local = [_is_local(statement) for statement in logged]
        numbers: list[int] = []
        lsn = self._waiting.lsn
        for each_is_local in is_local:
            if each_is_local:
                self._local_lsn += 1
                numbers.append(self._local_lsn)
            else:
                lsn += 1
                numbers.append(lsn)
        replicated = [number for number, local in zip(numbers, is_local, strict=True) if not local]
        tsn = replicated[0] if replicated else numbers[0]
        last = len(requests) - 1
        rows = b"".join(
            encode_row(
                Row(
                    request_type,
                    number,
                    body=body,
                    timestamp=self._waiting.timestamp,
                    replica_id=_LOCAL if local else self._replica_id,
                    group_id=int(local),
                    tsn=tsn,
                    flags=RowFlag.COMMIT if place == last else 0,
                )
            )
            for place, ((request_type, body), number, local) in enumerate(
                zip(requests, numbers, is_local, strict=True)
            )
        )
        return rows, len(replicated)

    # -- writing --

    def write(self) -> None:
        """Write the pending rows, if any.

        Raises:
            BoxError: WAL_IO, no row is written, and their LSNs are free again.
        """
        job = self.take()
        if job is None:
            return
        try:
            self.perform(job)
        except UNWRITTEN as error:
            raise self.fail(error) from error
        self.complete(job)

    def take(self) -> LogWrite | None:
        """Take the pending transactions, or None if there are none.

        The write has to be passed to `perform`, and then to `complete`, or its error to `fail`.
        """
        if not self._waiting:
            return None
        rows, self._waiting = self._waiting, self._waiting.following()
        self._is_performing = True
        return LogWrite(rows, self._local_lsn)

    def perform(self, job: LogWrite) -> None:
        """Write rows to the file and, in mode fsync, wait for the disk.

        Raises:
            One of `UNWRITTEN`: the file is unchanged.
        """
        written = self._files.write(job.rows.blocks(), self._clock_before)
        self.size += written
        self.size_since_checkpoint += written

    def complete(self, job: LogWrite) -> None:
        """Record that the rows of `take` are written."""
        self._is_performing = False
        self._written_lsn, self._written_local_lsn = job.rows.lsn, job.local_lsn
        if self._is_failing:
            self._is_failing = False
            # A warning, as the failure is: on a full disk, small rows may still fit where large ones do not.
            logger.warning("the log is writable again")

    def fail(self, error: BaseException) -> BoxError:
        """Discard the rows of `take`, which could not be written, and those appended since.

        Returns:
            The error for the clients that wait for them.
        """
        self._is_performing = False
        self._waiting = LogRows(self._replica_id, self._written_lsn)
        self._local_lsn = self._written_local_lsn
        self.failures += 1
        if not self._is_failing:
            self._is_failing = True
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
            self._is_closed = True
            self._files.end()


def _is_local(statement: Statement) -> bool:
    """Whether a row is not replicated: it belongs to a local space, or truncates one."""
    return statement.space.is_local or isinstance(statement.undo, LocalUndo)
